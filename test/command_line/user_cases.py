"""What practitioners hit: memory that was estimated wrong, odd clusters, plans
reused. Each test is named by its case.

    user_cases.py --bin DIR
"""

from tool import INFEASIBLE, BAD_INPUT, UNSUPPORTED, ToolTest, llama, main

GIB = 1024**3
ALONE = "tp=1,pp=1,cp=1,ep=1,vpp=1"


def cards(device, nodes, per_node, memory=None, **levels):
    """A cluster file; levels by name and bandwidth."""
    document = {"schema": "monarch.cluster/1", "extends": f"{nodes}x{per_node}x{device}",
                "levels": [{"name": name, "bw": bandwidth} for name, bandwidth in levels.items()]}
    if memory:
        document["devices"] = {device: {"memory": memory}}
    return document


class UserCases(ToolTest):
    def remarks(self, document):
        return "\n".join(document["remarks"])

    # Memory.

    def test_c37_needed_and_kept_free_are_two_things(self):
        """What the card keeps free is not part of what the job needs."""
        one = self.price(llama(layers=2), "1xH100-SXM-80GB", ALONE + ",dp=1,micro_batch=1", rows=8)
        memory = one["memory_bytes"]
        self.assertLess(memory["total"], 0.5 * memory["usable"])
        self.assertIn("headroom", self.remarks(one))
        self.assertIn("context", self.remarks(one))

    def test_c38_states_alone_are_never_the_need(self):
        """6.8 billion parameters, ZeRO-3 on four cards of 24 GB."""
        config = llama(vocabulary=32000, kv_heads=32, mlp=11008)
        priced = self.price(config, self.write("c.json", cards("RTX3090", 1, 4)),
                            "dp=4,micro_batch=1,zero=3," + ALONE, target="deepspeed-zero3", rows=16)
        memory = priced["memory_bytes"]
        states = memory["parameters"] + memory["gradients"] + memory["optimizer"]
        self.assertGreater(memory["activations"], 0)
        self.assertGreater(memory["gathered"], 0)
        self.assertGreater(memory["total"], 1.1 * states)
        self.assertFalse(priced["fits"])

    def test_c40_logits_rule_the_last_stage(self):
        config = llama(layers=2, hidden=64, heads=4, kv_heads=4, mlp=256, vocabulary=151936)
        priced = self.price(config, "1xH100-SXM-80GB", ALONE + ",dp=1,micro_batch=1,recompute=none",
                            sequence=32768, rows=1)
        logits = priced["memory_bytes"]["logits"]
        # Half precision, single precision, its gradient.
        self.assertGreaterEqual(logits / (32768 * 151936), 10)
        self.assertIn("chunked loss", self.remarks(priced))
        # Over tp the vocabulary is split.
        halved = self.price(config, "2xH100-SXM-80GB",
                            "tp=2,pp=1,cp=1,ep=1,vpp=1,dp=1,micro_batch=1,recompute=none",
                            sequence=32768, rows=1)
        self.assertLess(halved["memory_bytes"]["logits"], 0.6 * logits)

    def test_c41_communicators_have_a_line(self):
        priced = self.price(llama(), "1x8xH100-SXM-80GB", "tp=2,pp=2,dp=2,micro_batch=1")
        self.assertRegex(self.remarks(priced), r"[\d.]+ GiB of context and communicators")

    def test_c45_headroom_is_explicit(self):
        priced = self.price(llama(), "1x8xH100-SXM-80GB", "tp=8")
        self.assertIn("5 % headroom", self.remarks(priced))

    def test_c51_activation_bound_is_said(self):
        """Sharding weights over eight cards does not help a long sequence."""
        priced = self.price(llama(vocabulary=32000), "1x8xH100-SXM-80GB",
                            "tp=1,pp=1,dp=8,cp=1,micro_batch=1,zero=3,recompute=none",
                            target="torchtitan", sequence=131072, rows=8)
        self.assertFalse(priced["fits"])
        text = self.remarks(priced)
        self.assertIn("activation-bound: sharding weights will not help", text)
        self.assertRegex(text, r"a sequence of \d+ would fit")
        self.assertRegex(text, r"most effective: (recompute|cp)")

    def test_c54_what_cannot_fit_is_infeasible(self):
        """405 billion parameters on one card: need, have, lever; exit 4."""
        big = llama(layers=126, hidden=16384, heads=128, kv_heads=8, mlp=53248)
        self.write("config.json", big)
        self.refused(INFEASIBLE, "plan", "config.json", "--seq-len", 4096, "--cluster",
                     "1xH100-SXM-80GB", "--global-batch", 8, "--target", "megatron", "-o", "p.json",
                     says=("GiB",))

    # Clusters.

    def test_c55_three_cards(self):
        """52 heads divide by none of 3: stages or sharding, never tp 3."""
        config = llama(layers=60, hidden=52 * 64, heads=52, kv_heads=52, mlp=8192, vocabulary=32000)
        uneven = self.price(config, "1x3xH100-SXM-80GB", "tp=1,pp=3,dp=1,micro_batch=1", rows=24)
        self.assertEqual(uneven["layout"]["pp"], 3)
        self.write("config.json", config)
        self.refused(INFEASIBLE, "plan", "config.json", "--seq-len", 4096, "--cluster",
                     "1x3xH100-SXM-80GB", "--global-batch", 24, "--target", "megatron", "--fix",
                     "tp=3", "-o", "p.json", says=("52 heads over tp 3", "legal are 1"))

    def test_c56_mixed_memories_are_never_planned_as_equal(self):
        mixed = {"schema": "monarch.cluster/1", "name": "mixed",
                 "devices": {"large": {"memory": "24GB", "memory_bw": "1TB/s",
                                       "peak": {"bfloat16": "100TFLOP/s"}},
                             "small": {"memory": "12GB", "memory_bw": "1TB/s",
                                       "peak": {"bfloat16": "100TFLOP/s"}}},
                 "nodes": [{"count": 1, "per_node": 7, "device": "large"},
                           {"count": 1, "per_node": 1, "device": "small"}],
                 "levels": [{"name": "pcie", "size": 8, "bw": "16GB/s"}]}
        self.refused(UNSUPPORTED, "cluster", "validate", self.write("mixed.json", mixed),
                     says=("several kinds",))

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

    # Plans reused.

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
