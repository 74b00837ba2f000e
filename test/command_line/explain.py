"""Why this plan, why not that one, what binds, what if.

    explain.py --bin DIR
"""

import json

from tool import BAD_INPUT, STALE, USAGE, ToolTest, llama, main

SMALL = llama(layers=2, hidden=64, heads=4, kv_heads=2, mlp=128, vocabulary=256)


class Explain(ToolTest):
    def asked(self, *more):
        self.write("config.json", llama())
        return ("explain", "config.json", "--seq-len", 4096, "--cluster", "2xp5.48xlarge",
                "--global-batch", 64, "--target", "megatron", *more)

    def own(self, *more):
        self.write("small.json", SMALL)
        return ("explain", "small.json", "--seq-len", 32, "--cluster", "cpu:4", "--global-batch", 8,
                "--dtype", "float32", *more)

    def test_the_choice_is_that_of_plan_and_says_who_decided(self):
        explained = self.document(*self.asked("--fix", "pp=2"))
        plan = self.document("plan", *self.asked("--fix", "pp=2")[1:])
        self.assertEqual(explained["step_seconds"], plan["prediction"]["step_seconds"])
        by = {entry["name"]: entry["by"] for entry in explained["decisions"]}
        self.assertEqual((by["pp"], by["tp"], by["schedule"]), ("user", "planner", "default"))
        text = self.tool(*self.asked("--fix", "pp=2")).out
        for part in ("chosen", "step      compute", "pp 2 (user)", "schedule 1f1b (default)", "binds", "other families",
                     "one decision changed", "one figure changed"):
            self.assertIn(part, text)

    def test_other_families_and_neighbours_lose_by_what_is_said(self):
        explained = self.document(*self.asked())
        self.assertGreaterEqual(len(explained["alternatives"]), 3)
        for family in explained["alternatives"]:
            self.assertGreaterEqual(family["step_seconds"], explained["step_seconds"])
            self.assertRegex(family["reason"], r"^\+[\d.]+ m?s")
        self.assertGreaterEqual(len(explained["neighbours"]), 5)
        for neighbour in explained["neighbours"]:
            self.assertNotEqual(neighbour["verdict"], "faster", neighbour)

    def test_why_not_is_illegal_too_large_slower_or_the_choice(self):
        best = self.document(*self.asked())
        own = f"tp={best['layout']['tp']},pp={best['layout']['pp']}"
        questions = ("tp=6,pp=2", "zero=0,dp=16,recompute=none", "tp=8,pp=2", own)
        arguments = [part for text in questions for part in ("--why-not", text)]
        illegal, large, slower, chosen = self.document(*self.asked(*arguments))["why_not"]
        self.assertEqual(illegal["verdict"], "illegal")
        # All that is violated, and the least change that is not.
        for text in ("12 devices of 16", "32 heads over tp 6: legal are 1, 2, 4, 8, 16"):
            self.assertIn(text, illegal["reason"])
        self.assertEqual(illegal["nearest_legal"], "tp=8,pp=2")
        self.assertNotIn("step_seconds", illegal)
        self.assertEqual(large["verdict"], "does not fit")
        self.assertRegex(large["reason"], r"needs [\d.]+ GiB of [\d.]+ on stage 0, [\d.]+ too many")
        self.assertIn("its peak: optimizer", large["reason"])
        self.assertEqual(slower["verdict"], "slower")
        self.assertGreater(slower["step_seconds"], best["step_seconds"])
        self.assertIn("collectives inside layers +", slower["reason"])
        self.assertEqual(chosen["verdict"], "chosen")

    def test_a_pin_that_costs_is_said_to(self):
        answer, = self.document(*self.asked("--fix", "tp=8", "--why-not", "tp=2"))["why_not"]
        self.assertEqual(answer["verdict"], "faster")

    def test_what_binds_and_what_if(self):
        explained = self.document(*self.asked())
        now = explained["step_seconds"]
        self.assertIn("faster_but_too_large", explained)
        self.assertEqual(explained["binding"]["what"], "memory")
        entries = {(entry["what"], entry["factor"]): entry for entry in explained["sensitivity"]}
        self.assertEqual(len(entries), 10)
        self.assertLess(entries["FLOPs", 1.2]["step_seconds"], now)
        self.assertGreater(entries["FLOPs", 0.8]["step_seconds"], now)
        self.assertLess(entries["memory", 1.2]["best"]["step_seconds"], now)
        # Nothing is faster for want of memory: a figure binds.
        self.write("small.json", llama(layers=4, hidden=2048, heads=16, kv_heads=16, mlp=5632,
                                       vocabulary=32000))
        fits = self.document("explain", "small.json", "--seq-len", 2048, "--cluster",
                             "1xH100-SXM-80GB", "--global-batch", 8, "--target", "megatron")
        self.assertNotIn("faster_but_too_large", fits)
        self.assertEqual(fits["binding"]["what"], "FLOPs")
        # Heads and rows that seven devices cannot share.
        idle = self.document("explain", "small.json", "--seq-len", 2048, "--cluster",
                             "1x7xH100-SXM-80GB", "--global-batch", 8, "--target", "megatron")
        self.assertGreater(idle["idle_devices"], 0)
        self.assertEqual(idle["binding"]["what"], "divisibility")

    def test_a_plan_is_explained_with_what_it_was_asked(self):
        self.tool("plan", *self.asked("--fix", "pp=2")[1:], "-o", "plan.json")
        explained = self.document("explain", "plan.json", "--why-not", "pp=1")
        self.assertEqual(explained["layout"]["pp"], 2)
        self.assertEqual(explained["why_not"][0]["verdict"], "faster")
        self.assertNotIn("planned", explained)
        # On other machines the search may choose another one: said.
        slow = self.document("explain", "plan.json", "--cluster", "2xp4de.24xlarge")
        plan = json.loads((self.folder / "plan.json").read_text())
        self.assertNotEqual(slow["layout"]["micro_batch"], str(plan["layout"]["micro_batch"]))
        self.assertTrue(slow["planned"]["reason"])

    def test_plans_of_our_own(self):
        explained = self.document(*self.own("--why-not", "tp=2,pp=2", "--why-not", "tp=3"))
        slower, illegal = explained["why_not"]
        now = explained["prediction"]["step_seconds"]
        self.assertEqual((slower["verdict"], illegal["verdict"]), ("slower", "illegal"))
        self.assertGreater(slower["step_seconds"], now)
        self.assertRegex(slower["reason"], r"\+[\d.]+ %: \w+ [+-][\d.]+ %")
        self.assertIn("4 devices", illegal["reason"])
        self.assertIn("1, 2, 4", illegal["nearest_legal"])
        entries = {(entry["what"], entry["factor"]): entry for entry in explained["sensitivity"]}
        self.assertLess(entries["FLOPs", 1.2]["step_seconds"], now)
        self.assertGreater(entries["FLOPs", 0.8]["step_seconds"], now)
        self.assertTrue(explained["binding"]["reason"])
        # A plan of our own is explained with its model.
        self.tool("plan", *self.own("--fix", "pp=2")[1:], "-o", "own.json")
        self.refused(USAGE, "explain", "own.json", says=("explain PLAN MODEL",))
        again = self.document("explain", "own.json", "small.json", "--seq-len", 32, "--dtype",
                              "float32")
        self.assertEqual((again["degrees"]["pp"], again["origins"]["pp"]), (2, "user"))
        self.assertNotIn("planned", again)
        # Of another model it is not.
        self.refused(STALE, "explain", "own.json", "small.json", "--seq-len", 16, "--dtype",
                     "float32")

    def test_own_plans_that_cannot_be(self):
        wide = self.write("wide.json", llama(layers=2, hidden=1024, heads=8, kv_heads=8, mlp=4096,
                                             vocabulary=32000))
        tight = self.write("tight.json", {
            "schema": "monarch.cluster/1", "extends": "cpu:4",
            "devices": {"cpu": {"memory": "600MB", "reserved": "0B"}}})
        explained = self.document("explain", wide, "--seq-len", 64, "--cluster", tight,
                                  "--global-batch", 8, "--dtype", "float32", "--why-not",
                                  "dp=4", "--why-not", "zero=5,tp=2")
        large, unsupported = explained["why_not"]
        self.assertEqual(large["verdict"], "does not fit")
        self.assertRegex(large["reason"], r"needs [\d.]+ [GM]iB a device, there are 572 MiB")
        self.assertRegex(large["reason"], r"dp could be \d, with [\d.]+ MiB a device")
        self.assertNotIn("nearest_legal", large)
        self.assertEqual(unsupported["verdict"], "illegal")
        self.assertIn("zero=5", unsupported["reason"])

    def test_the_same_bytes_every_time(self):
        for arguments in (self.asked("--why-not", "tp=8,pp=2"), self.own("--why-not", "tp=2")):
            for form in ("text", "json"):
                outputs = {self.tool("--format", form, *arguments).out for _ in range(3)}
                self.assertEqual(len(outputs), 1)

    def test_questions_that_are_none(self):
        self.refused(USAGE, *self.asked("--why-not", "heads=3"), says=("--why-not",))
        self.refused(USAGE, *self.own("--why-not", "heads=3"), says=("--why-not",))
        self.refused(USAGE, "explain", self.write("config.json", llama()), "--seq-len", 8,
                     "--global-batch", 8, says=("--cluster",))
        self.refused(USAGE, "explain", "config.json", "--seq-len", 8, "--cluster", "cpu:2",
                     says=("--global-batch",))
        self.write("bad.json", {"schema": "monarch.plan/1", "target": "megatron", "layout": {},
                                "inputs": {"graph": {"digest": "x"}, "workload": 3}})
        self.refused(BAD_INPUT, "explain", "bad.json", says=("/inputs/workload",))


if __name__ == "__main__":
    main()
