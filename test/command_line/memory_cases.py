"""What practitioners hit when memory is estimated wrong. Each test is named by its
case.

    memory_cases.py --bin DIR
"""

from tool import BAD_INPUT, INFEASIBLE, ToolTest, cards, llama, main

GIB = 1024**3
ALONE = "tp=1,pp=1,cp=1,ep=1,vpp=1"


class MemoryCases(ToolTest):
    def table(self, name, gigabytes):
        return {"name": name, "rows": int(gigabytes * 1e9) // (128 * 4 + 4), "width": 128,
                "lookups": 10}

    def test_c37_needed_and_reserved_are_two_things(self):
        """What a server takes by design is not part of what the job needs."""
        self.write("config.json", llama())
        question = ("plan", "config.json", "--mode", "infer", "--seq-len", 4096, "--cluster",
                    "1xA100-SXM4-80GB", "--global-batch", 1)
        one = self.document(*question)
        needed = one["needed_bytes"]
        self.assertAlmostEqual(needed["weights"], 16.06e9, delta=0.1e9)
        self.assertAlmostEqual(needed["total"], sum(needed.values()) - needed["total"], delta=1e6)
        self.assertEqual(one["reserved_bytes"], 0.9 * 80e9)
        self.assertLess(needed["total"], 0.3 * one["reserved_bytes"])
        # Another share changes what is reserved and what that holds, not the need.
        half = self.document(*question, "--memory-share", 0.5)
        self.assertEqual(half["needed_bytes"], needed)
        self.assertEqual(half["reserved_bytes"], 40e9)
        self.assertLess(half["max_length"], one["max_length"])
        self.assertRegex(self.tool(*question).out, r"(?m)^needed .*weights.*\n^reserved .*by design")

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

    def test_c46_one_large_block_leaves_the_rest_a_place(self):
        """Blocks of 9, 1 and 1 on two devices of 10: all placed, none overfull."""
        self.write("tables.json", {"schema": "monarch.tables/1", "tables": [
            self.table("large", 9), self.table("a", 1), self.table("b", 1)]})
        small = cards("A100-SXM4-40GB", 1, 2, memory="12.4GB")
        plan = self.document("plan", "tables.json", "--cluster", self.write("small.json", small),
                             "--global-batch", 1024)
        self.assertEqual([p["table"] for p in plan["placements"]], ["large", "a", "b"])
        held = [0, 0]
        for placement in plan["placements"]:
            for device in placement["devices"]:
                held[device] += placement["bytes"] / len(placement["devices"])
        self.assertAlmostEqual(sum(held), 11e9, delta=1e7)
        self.assertLessEqual(max(held), plan["memory_bytes"]["usable"])
        # Parts by columns have the state of each row once more.
        self.assertAlmostEqual(plan["memory_bytes"]["total"], max(held), delta=5e7)

    def test_c48_keys_and_values_by_their_type(self):
        """Half the bytes, twice the length; what fits is not refused."""
        self.write("config.json", llama())
        question = ("plan", "config.json", "--mode", "infer", "--seq-len", 4096, "--max-length",
                    131072, "--cluster", "1xH100-SXM-80GB", "--global-batch", 1)
        plain, narrow = (self.document(*question, "--kv-dtype", kind)
                         for kind in ("bfloat16", "fp8"))
        # 32 layers x 8 heads x 128 x (key and value) x 2 bytes.
        self.assertEqual(plain["key_value_bytes_per_token"], 131072)
        self.assertEqual(narrow["key_value_bytes_per_token"], 65536)
        self.assertAlmostEqual(plain["needed_bytes"]["keys_and_values"], 16 * GIB, delta=1e6)
        self.assertGreaterEqual(plain["max_length"], 131072)
        self.assertAlmostEqual(narrow["max_length"] / plain["max_length"], 2, delta=0.01)
        self.assertEqual(plain["max_concurrency"], plain["max_length"] // 131072)
        # Heads of a rank, layers of a stage.
        for fix in ("tp=2,pp=1", "tp=1,pp=2"):
            split = self.document(*question[:9], "2xH100-SXM-80GB", *question[10:], "--fix", fix)
            self.assertEqual(split["key_value_bytes_per_token"], 131072 / 2)
        # One more sequence than the limit is refused.
        most = plain["max_concurrency"]
        self.tool(*question[:-1], most)
        self.refused(INFEASIBLE, *question[:-1], most + 1, says=("GiB",))

    def test_c49_a_table_larger_than_any_device(self):
        self.write("tables.json", {"schema": "monarch.tables/1", "tables": [
            self.table("users", 60), self.table("items", 10), self.table("shops", 10)]})
        question = ("plan", "tables.json", "--cluster", "1x4xA100-SXM4-40GB", "--global-batch")
        plan = self.document(*question, 8192)
        users = plan["placements"][0]
        self.assertEqual((users["table"], len(users["devices"])), ("users", 4))
        self.assertIn(users["split"], ("rows", "columns"))
        self.assertLessEqual(plan["memory_bytes"]["total"], plan["memory_bytes"]["usable"])
        # The reserved share is said.
        self.assertAlmostEqual(plan["memory_bytes"]["reserved"] + plan["memory_bytes"]["usable"],
                               40e9, delta=1e6)
        self.assertRegex(self.tool(*question, 8192).out, r"of the card's [\d.]+ are reserved")
        # Columns too narrow to split: by rows.
        narrow = dict(self.table("users", 60), rows=60 * 10**9 // 68, width=16)
        self.write("tables.json", {"schema": "monarch.tables/1", "tables": [narrow]})
        self.assertEqual(self.document(*question, 8192)["placements"][0]["split"], "rows")
        # None does: it is named.
        self.write("tables.json", {"schema": "monarch.tables/1", "tables": [
            self.table("shops", 10), self.table("world", 400)]})
        self.refused(INFEASIBLE, *question, 8192, says=("world", "GiB"))

    def test_c50_every_table_once(self):
        """Names of nested containers too; a name that stands twice is refused."""
        names = ["user.tables.0.id", "user.tables.1.country", "item"]
        tables = [self.table(name, 1) for name in names]
        self.write("tables.json", {"schema": "monarch.tables/1", "tables": tables})
        question = ("plan", "tables.json", "--cluster", "1x2xA100-SXM4-40GB", "--global-batch", 64)
        plan = self.document(*question)
        self.assertEqual([p["table"] for p in plan["placements"]], names)
        for placement in plan["placements"]:
            self.assertEqual(len(set(placement["devices"])), len(placement["devices"]))
            self.assertTrue(placement["devices"])
        self.write("tables.json", {"schema": "monarch.tables/1", "tables": tables + tables[:1]})
        self.refused(BAD_INPUT, *question, "-o", "p.json", says=(names[0], "twice"))

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


if __name__ == "__main__":
    main()
