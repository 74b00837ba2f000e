"""Each flag and each field of a config tried with nonsense: a typed error with
the exit code of DESIGN §8, and nothing written.

    bad_flags.py --bin DIR
"""

from tool import BAD_INPUT, INFEASIBLE, UNSUPPORTED, USAGE, ToolTest, llama, main


class BadFlags(ToolTest):
    FLAGS = {"--seq-len": "1024", "--cluster": "p5.48xlarge", "--global-batch": "64",
             "--target": "megatron", "-o": "plan.json"}

    def arguments(self, changes):
        flags = {**self.FLAGS, **changes}
        return [word for flag, value in flags.items() if value is not None
                for word in (flag, value)]

    def refused_plan(self, codes, changes, config="config.json", says=()):
        self.write("config.json", llama())
        code = codes if isinstance(codes, int) else codes[0]
        self.refused(code, "plan", config, *self.arguments(changes), says=says)

    def test_the_flags_are_good(self):
        self.write("config.json", llama())
        self.tool("plan", "config.json", *self.arguments({}))

    def test_numbers(self):
        for flag in ("--seq-len", "--global-batch", "--micro-batch"):
            for value in ("0", "-1", "x", "", "1.5", "1e3", str(2**63), "nan"):
                if flag == "--global-batch" or value != str(2**63):
                    with self.subTest(flag=flag, value=value):
                        self.refused_plan(USAGE, {flag: value})
        for value in (2**40, 2**63):
            self.refused_plan(BAD_INPUT, {"--seq-len": str(value)})
        self.refused_plan(INFEASIBLE, {"--micro-batch": str(2**63)})
        self.refused_plan(INFEASIBLE, {"--micro-batch": "3"}, says=("nearest",))
        self.refused_plan(INFEASIBLE, {"--micro-batch": "128"})

    def test_names(self):
        for flag, value, code in (
                ("--target", "nobody", USAGE), ("--target", "", USAGE),
                ("--optimizer", "adagrad", USAGE), ("--optimizer", "adamw_16bit", USAGE),
                ("--mode", "sleep", USAGE), ("--mode", "infer", USAGE), ("--loss", "0", USAGE),
                ("--shape", "a=1", USAGE),
                ("--dtype", "int3", USAGE), ("--dtype", "int8", USAGE),
                ("--dtype", "float32", INFEASIBLE), ("--format", "xml", USAGE),
                ("--cluster", "", BAD_INPUT), ("--cluster", "nowhere.json", BAD_INPUT),
                ("--cluster", "A100", BAD_INPUT), ("--cluster", "8x", BAD_INPUT),
                ("--cluster", "0xp5.48xlarge", BAD_INPUT),
                ("--cluster", "cpu:0", BAD_INPUT), ("--nonsense", "1", USAGE)):
            with self.subTest(flag=flag, value=value):
                if flag == "--format":
                    self.write("config.json", llama())
                    result = self.commands.plan_tool("plan", "config.json",
                                                     *self.arguments({flag: value}))
                    self.assertEqual(result.code, code)
                    continue
                self.refused_plan(code, {flag: value})
        self.refused_plan(INFEASIBLE, {"--dtype": "fp8", "--cluster": "8xA100-SXM-80GB"},
                          says=("FP8",))
        for flag in ("--cluster", "--global-batch"):
            self.refused_plan(USAGE, {flag: None})

    def test_pins(self):
        for pin in ("", "tp", "tp=", "=2", "tp=x", "tp=0", "tp=-1", "tp=1.5",
                    "xp=2", "tp=2,tp=4", "tp=2,,pp=2", "zero=4", "zero=x", "recompute=half",
                    "schedule=fifo", "tp=2;pp=2", "micro_batch=0"):
            with self.subTest(pin=pin):
                if pin:
                    self.refused_plan(USAGE, {"--fix": pin})
        for pin in ("tp=16", "tp=3", "pp=64", "cp=16", "dp=3", "dp=4,tp=4", "tp=99999999999",
                    "ep=2", "zero=3"):
            with self.subTest(pin=pin):
                self.refused_plan(INFEASIBLE, {"--fix": pin})

    def test_outputs_that_cannot_be(self):
        self.refused_plan(BAD_INPUT, {"-o": "no/such/folder/plan.json"})
        self.refused_plan(BAD_INPUT, {"-o": "."})

    def test_configs(self):
        good = llama()
        for key, values in {
                "hidden_size": (0, -1, "wide", None, 2**62, 1.5), "num_hidden_layers": (0, -3, 10**9),
                "num_attention_heads": (0, -1, 7.5, 2**40), "num_key_value_heads": (3, 0, -2, 64),
                "vocab_size": (0, -1, 2**62, []), "intermediate_size": (0, -1, 2**62)}.items():
            for value in values:
                with self.subTest(key=key, value=value):
                    name = self.write("odd.json", {**good, key: value})
                    self.refused_plan(BAD_INPUT, {}, config=name)
        for extra in ({"num_experts": 8, "num_experts_per_tok": 9},
                      {"num_experts": 8, "moe_intermediate_size": -1},
                      {"num_experts": 2**40, "num_experts_per_tok": 2},
                      {"kv_lora_rank": -1}, {"kv_lora_rank": 512, "v_head_dim": -1},
                      {"head_dim": -1}, {"head_dim": 2**40}):
            with self.subTest(extra=extra):
                name = self.write("odd.json", {**good, **extra})
                self.refused_plan(BAD_INPUT, {}, config=name)
        for text in ("{", "{}", '{"model_type": 3}', '{"text_config": 3}', "{" * 10_000,
                     '{"schema": "monarch.graph/1"}'):
            with self.subTest(text=text[:20]):
                changes = {"--seq-len": None} if "graph" in text else {}
                self.refused_plan(BAD_INPUT, changes, config=self.write("odd.json", text))
        self.refused_plan(BAD_INPUT, {}, config="nowhere.json")
        self.refused_plan(BAD_INPUT, {"--seq-len": None}, config="nowhere.pt2")
        self.refused_plan(USAGE, {}, config=self.write("text.pt2", "text"), says=("--seq-len",))

    def test_simulations(self):
        self.write("config.json", llama())
        base = ["simulate", "config.json", *self.arguments({"-o": None})]
        self.tool(*base)
        for flag in ("--slow-rank", "--slow-link"):
            for value in ("", "x", "=", "0=", "=2", "0=x", "0=0", "0=-1", "0=inf", "0=nan", "99=2",
                          "-1=2", "0=0.5", "wire=0.5", "nvlink=0", "nvlink=-1", "nvlink=x"):
                with self.subTest(flag=flag, value=value):
                    self.refused(USAGE, *base, f"{flag}={value}")
        self.refused(BAD_INPUT, *base, "--trace", "no/such/folder/trace.json")
        self.refused(USAGE, "simulate")
        self.refused(USAGE, "simulate", "config.json", says=("--cluster",))
        self.refused(USAGE, "simulate", "config.json", "other.json", *self.arguments({"-o": None}))
        self.refused(USAGE, *["simulate", "config.json", *self.arguments({"-o": None,
                                                                         "--target": "monarch"})])
        self.refused(BAD_INPUT, "simulate", "nowhere.json", "--cluster", "p5.48xlarge")

    def test_verbs(self):
        for arguments in ((), ("nothing",), ("cluster",), ("cluster", "burn"), ("plan",),
                          ("cluster", "show"), ("cluster", "validate"), ("version", "3")):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, *arguments)


if __name__ == "__main__":
    main()
