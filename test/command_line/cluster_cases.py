"""What practitioners hit on odd clusters, and with plans that are used again. Each
test is named by its case.

    cluster_cases.py --bin DIR
"""

from tool import BAD_INPUT, INFEASIBLE, UNSUPPORTED, ToolTest, cards, llama, main



class ClusterCases(ToolTest):
    def test_c55_three_cards(self):
        """52 heads divide by none of 3: stages or sharding, never tp 3."""
        def heads(width, mlp):
            return llama(layers=60, hidden=52 * width, heads=52, kv_heads=52, mlp=mlp,
                         vocabulary=32000)

        three = "1x3xV100-SXM2-32GB"
        self.write("config.json", heads(128, 17920))
        served = self.document("plan", "config.json", "--mode", "infer", "--seq-len", 2048,
                               "--cluster", three, "--global-batch", 1)
        self.assertEqual(served["degrees"], {"tp": 1, "pp": 3, "replicas": 1})
        self.assertEqual(sum(served["stage_layers"]), 60)
        # Two cards are too few, four share the heads.
        two, four = served["beside"]
        self.assertEqual((two["devices"], two["fits"]), (2, False))
        self.assertEqual((four["devices"], four["degrees"]["tp"]), (4, 4))
        # A number of layers that 3 does not divide is cut unevenly.
        config = dict(heads(64, 8192), num_hidden_layers=61)
        uneven = self.price(config, "1x3xH100-SXM-80GB", "tp=1,pp=3,dp=1,micro_batch=1", rows=24)
        self.assertEqual(uneven["layout"]["pp"], 3)
        self.write("config.json", config)
        question = ("plan", "config.json", "--seq-len", 1024, "--cluster", "1x3xH100-SXM-80GB",
                    "--global-batch", 24, "--target")
        self.refused(INFEASIBLE, *question, "megatron", "--fix", "tp=3", "-o", "p.json",
                     says=("52 heads over tp 3", "legal are 1"))
        trained = self.document(*question, "torchtitan")["layout"]
        self.assertEqual((trained["tp"], trained["dp"] * trained["cp"] * trained["pp"]), (1, 3))
        self.assertEqual(trained["zero"], 3)

    def test_c56_layers_by_what_each_card_holds(self):
        """70 billion parameters on seven cards of 24 GB and one of 12 GB."""
        self.write("config.json", llama(layers=80, hidden=8192, heads=64, mlp=28672))
        served = self.document("plan", "config.json", "--mode", "infer", "--seq-len", 2048,
                               "--cluster", self.write("mixed.json", self.mixed()),
                               "--global-batch", 1, "--memory-share", 0.97)
        stages = served["stages"]
        self.assertEqual([stage["device"] for stage in stages], ["RTX4090"] * 7 + ["small"])
        self.assertEqual(sum(stage["layers"] for stage in stages), 80)
        for stage in stages:
            self.assertLessEqual(stage["needed_bytes"], stage["usable_bytes"])
        self.assertLess(stages[-1]["layers"], 0.55 * stages[1]["layers"])
        self.assertIn("7 x RTX4090 + 1 x small", self.tool("cluster", "validate", "mixed.json").out)
        # An even cut would not fit the small one.
        per_layer = (stages[1]["needed_bytes"] - stages[2]["needed_bytes"]) \
            if stages[1]["layers"] != stages[2]["layers"] else \
            stages[1]["needed_bytes"] / stages[1]["layers"]
        self.assertGreater(10 * abs(per_layer), stages[-1]["usable_bytes"])
        # What runs one program on equal devices says so.
        self.refused(UNSUPPORTED, "plan", "config.json", "--seq-len", 2048, "--cluster",
                     "mixed.json", "--global-batch", 8, says=("several kinds", "--target"))

    def mixed(self):
        return {"schema": "monarch.cluster/1", "name": "mixed",
                "devices": {"small": {"memory": "12GB", "memory_bw": "360GB/s",
                                      "peak": {"bfloat16": "51TFLOP/s"}}},
                "nodes": [{"count": 1, "per_node": 7, "device": "RTX4090"},
                          {"count": 1, "per_node": 1, "device": "small"}],
                "levels": [{"name": "pcie", "size": 8, "bw": "16GB/s"}]}

    def test_c57_speeds_that_differ(self):
        """Layers by speed; and whether the fast cards alone are faster."""
        self.write("config.json", llama(layers=24, hidden=2048, heads=16, kv_heads=16, mlp=5632,
                                        vocabulary=32000))
        for slow in ("A100-SXM4-80GB", "T4"):
            cluster = {"schema": "monarch.cluster/1", "name": slow,
                       "nodes": [{"count": 1, "per_node": 2, "device": "H100-SXM-80GB"},
                                 {"count": 1, "per_node": 2, "device": slow}],
                       "levels": [{"name": "nvlink", "size": 2, "bw": "300GB/s"},
                                  {"name": "nic", "size": 4, "bw": "25GB/s"}]}
            plan = self.document("plan", "config.json", "--seq-len", 2048, "--cluster",
                                 self.write("speeds.json", cluster), "--global-batch", 32,
                                 "--target", "deepspeed")
            others = {other["what"]: other for other in plan["others"]}
            both = others["with every kind of device"]["step_seconds"]
            fast = others[f"without {slow}"]["step_seconds"]
            self.assertEqual(plan["step_seconds"], min(both, fast))
            layers = plan["layout"]["stage_layers"]
            self.assertEqual(sum(layers), 24)
            if slow == "T4":
                self.assertLess(fast, both)
                idle = {run["device"]: run["idle_devices"] for run in plan["runs"]}
                self.assertEqual(idle["T4"], 2)
            else:
                self.assertLess(both, fast)
                first = plan["runs"][0]["device"]
                quick, lazy = layers if first.startswith("H100") else reversed(layers)
                self.assertGreater(quick, 1.5 * lazy)

    def test_c57_when_dropping_the_slow_card_wins(self):
        arguments = ("2xH100-SXM-80GB", "tp=1,pp=1,dp=2,micro_batch=1")
        config = llama(layers=4)
        for factor, verdict in ((3, "drop it"), (1.2, "keep it")):
            slow = self.price(config, *arguments, "--slow-rank", f"1={factor}", rows=16)
            self.assertIn(verdict, self.remarks(slow))

    def test_c59_tensor_parallelism_over_pcie_loses(self):
        config = llama(layers=16, hidden=2048, heads=16, kv_heads=16, mlp=5632, vocabulary=32000)
        pins = "cp=1,ep=1,vpp=1,micro_batch=1,recompute=none"
        seconds, exchange = {}, {}
        for name, degrees in (("tp", "tp=2,pp=1,dp=1"), ("pp", "tp=1,pp=2,dp=1"),
                              ("dp", "tp=1,pp=1,dp=2")):
            priced = self.price(config, "2xRTX4090", f"{degrees},{pins}", rows=16)
            seconds[name] = priced["step_seconds"]
            exchange[name] = priced["seconds"]["exchange"]
        self.assertLess(seconds["pp"], seconds["tp"])
        self.assertLess(seconds["dp"], seconds["tp"])
        # The reason is there to be read.
        self.assertGreater(exchange["tp"], 0.5 * (seconds["tp"] - seconds["pp"]))

    def test_c60_slices_of_a_gpu_do_not_talk(self):
        path = self.fake_smi("NVIDIA A100-SXM4-40GB, 4864, 0, Enabled\n" * 7)
        self.refused(INFEASIBLE, "cluster", "detect", environment=path, says=("slice", "cpu:N"))
        sliced = cards("A100-SXM4-40GB", 1, 7)
        sliced["devices"] = {"A100-SXM4-40GB": {"memory": "5GB", "reserved": "1GB", "mig": True}}
        self.refused(INFEASIBLE, "cluster", "validate", self.write("mig.json", sliced),
                     says=("slice", "cpu:N"))

    def test_c61_sharding_over_a_slow_network(self):
        """Shard inside the node, replicate across; and one node may be faster."""
        config = llama(vocabulary=32000, kv_heads=32, mlp=11008)
        slow = self.write("eth.json", cards("H100-SXM5-80GB", 2, 8, nic="0.75GB/s"))
        pins = "tp=1,pp=1,dp=16,cp=1,micro_batch=1,zero=3,recompute=selective"
        whole = self.price(config, slow, pins, target="torchtitan", rows=32)
        hybrid = self.price(config, slow, pins + ",dp_shard=8", target="torchtitan", rows=32)
        self.assertLess(hybrid["step_seconds"], whole["step_seconds"])
        self.assertIn("dp_shard=8", self.remarks(whole))
        one = self.price(config, "1x8xH100-SXM5-80GB", pins.replace("dp=16", "dp=8"),
                         target="torchtitan", rows=32)
        self.assertLess(one["step_seconds"], whole["step_seconds"])

    def test_c63_odd_degrees_shard_the_optimizer(self):
        for degree in (3, 5, 6):
            priced = self.price(llama(layers=4), f"1x{degree}xH100-SXM-80GB",
                                f"tp=1,pp=1,dp={degree},zero=1,micro_batch=1", rows=degree * 2)
            plain = self.price(llama(layers=4), f"1x{degree}xH100-SXM-80GB",
                               f"tp=1,pp=1,dp={degree},zero=0,micro_batch=1", rows=degree * 2)
            self.assertAlmostEqual(plain["memory_bytes"]["optimizer"] / degree
                                   / priced["memory_bytes"]["optimizer"], 1, delta=0.01)

    def test_c64_a_batch_that_does_not_divide(self):
        self.write("config.json", llama())
        self.refused(INFEASIBLE, "plan", "config.json", "--seq-len", 4096, "--cluster",
                     "4xH100-SXM-80GB", "--global-batch", 37, "--target", "megatron", "--fix",
                     "dp=4,tp=1,pp=1,micro_batch=1", "-o", "p.json", says=("36", "40"))

    def test_c65_instances_that_read_alike(self):
        small = self.document("cluster", "show", "p4d.24xlarge")
        large = self.document("cluster", "show", "p4de.24xlarge")
        self.assertEqual(small["devices"]["A100-SXM4-40GB"]["memory"], "40GB")
        self.assertEqual(large["devices"]["A100-SXM4-80GB"]["memory"], "80GB")
        self.assertIn("date", small["provenance"])
        self.refused(BAD_INPUT, "cluster", "show", "8xA100", says=("40GB", "80GB"))
        self.refused(BAD_INPUT, "cluster", "show", "p4x.24xlarge", says=("p4d.24xlarge",))

    def test_c67_memory_that_others_use_is_not_there(self):
        for used in (0, 8156):
            path = self.fake_smi(f"NVIDIA H100 80GB HBM3, 81559, {used}, Disabled\n" * 2)
            self.tool("cluster", "detect", "-o", f"{used}.json", environment=path)

        def reserved(name):
            whole = self.document("cluster", "show", name)
            return int(whole["devices"]["H100-SXM-80GB"]["reserved"].removesuffix("MiB"))

        self.assertEqual(reserved("8156.json") - reserved("0.json"), 8156)

    def test_c69_a_plan_for_another_shape_is_costed_again(self):
        self.write("config.json", llama())
        fix = "tp=2,pp=2,dp=4,cp=1,ep=1,vpp=1,micro_batch=1"
        plan = self.document("plan", "config.json", "--seq-len", 512, "--cluster", "2xp5.48xlarge",
                             "--global-batch", 64, "--target", "megatron", "--fix", fix,
                             "-o", "p.json")
        again = self.document("simulate", "p.json", "--seq-len", 64)
        self.assertTrue(again["recosted"])
        self.assertIn("re-costed", self.remarks(again))
        # Decisions stay, every figure is new.
        self.assertEqual(again["layout"], plan["layout"])
        before = plan["prediction"]
        self.assertLess(again["step_seconds"], before["step_seconds"])
        self.assertLess(again["memory_bytes"]["activations"], before["memory_bytes"]["activations"])
        self.assertNotEqual(again["tokens_per_second"], before["tokens_per_second"])
        self.assertNotEqual(again["mfu"], before["mfu"])


if __name__ == "__main__":
    main()
