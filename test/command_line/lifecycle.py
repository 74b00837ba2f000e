"""The life of a plan, as practitioners met it: pins and who decided, ties between
equals, searches that never end, products that are no world. Each test is named
by its case.

    lifecycle.py --bin DIR
"""

import json
import os
import random
import subprocess

from tool import INFEASIBLE, USAGE, ToolTest, llama, main

SMALL = llama(layers=4, hidden=64, heads=8, kv_heads=8, mlp=128, vocabulary=256)


class Lifecycle(ToolTest):
    def layout(self, fix, config=None, cluster="1x8xH100-SXM-80GB", rows=8, sequence=4096):
        self.write("config.json", config or llama())
        return ("plan", "config.json", "--seq-len", sequence, "--cluster", cluster, "--global-batch",
                rows, "--target", "megatron", *(("--fix", fix) if fix else ()))

    def own(self, fix, config=None, cluster="cpu:4", rows=8, sequence=32):
        self.write("own.json", config or SMALL)
        return ("plan", "own.json", "--seq-len", sequence, "--cluster", cluster, "--global-batch",
                rows, "--dtype", "float32", *(("--fix", fix) if fix else ()))

    def test_c71_pins_that_memory_rules_out(self):
        """All weights replicated, tight memory: the smallest set of pins that is
        to blame, and what relaxing each of them frees."""
        self.refused(INFEASIBLE, *self.layout("zero=0,tp=1,pp=1,micro_batch=1,recompute=full"),
                     says=("tp=1, pp=1, zero=0 cannot be honoured together",
                           "GiB too many a device", "tp could be 2, 4, 8 (", "pp could be",
                           "zero could be 1 (", "GiB less)"))
        # Any of the three alone is no reason.
        for fix in ("zero=0,tp=1", "zero=0,pp=1", "tp=1,pp=1"):
            self.tool(*self.layout(fix + ",micro_batch=1,recompute=full"))
        tight = self.write("tight.json", {
            "schema": "monarch.cluster/1", "extends": "cpu:4",
            "devices": {"cpu": {"memory": "900MB", "reserved": "0B"}}})
        wide = llama(layers=4, hidden=1024, heads=8, kv_heads=8, mlp=4096, vocabulary=32000)
        self.refused(INFEASIBLE, *self.own("dp=4,micro_batch=2", wide, tight, sequence=64),
                     says=("dp=4 cannot be honoured: nothing fits", "GiB a device, there are 858",
                           "dp could be 1, with"))
        self.tool(*self.own("micro_batch=2", wide, tight, sequence=64))

    def test_c72_equal_costs_never_flip(self):
        """The same command twenty times, and from files whose fields stand in
        another order: the same bytes."""
        for name, ask, config in (("config.json", self.layout, llama()),
                                  ("own.json", self.own, SMALL)):
            arguments = (*ask(""), "-o", "-")
            plans = set()
            for seed in range(20):
                fields = list(config.items())
                random.Random(seed).shuffle(fields)
                self.write(name, dict(fields))
                plans.add(self.tool(*arguments).out)
            self.assertEqual(len(plans), 1)
            # The digest is in the plan, so that ranks and hosts can compare it.
            self.assertRegex(json.loads(plans.pop())["inputs"]["graph"]["digest"], "^[0-9a-f]{64}$")

    def test_c74_large_models_are_planned_in_bounded_memory(self):
        """126 layers on 1,024 cards in a gigabyte; a limit gives the best so far
        with its gap. (2,000 tables: unit test "C74".)"""
        giant = llama(layers=126, hidden=16384, heads=128, mlp=53248)
        arguments = self.layout("", giant, "128x8xH100-SXM-80GB", 512, 8192)

        def within(*more):
            said = self.folder / "said.json"
            with said.open("w") as out:
                started = subprocess.Popen(
                    [self.commands.program("monarch-plan"), "--format", "json",
                     *map(str, (*arguments, *more))], cwd=self.folder, stdout=out,
                    stdin=subprocess.DEVNULL)
            # Of this process alone, and with no limit on addresses, which sanitizers reserve.
            _, status, usage = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(started.returncode, 0)
            self.assertLess(usage.ru_maxrss, 2**20, "kilobytes")
            return json.loads(said.read_text())

        whole = within()
        self.assertTrue(whole["search"]["complete"])
        self.assertEqual(whole["inputs"]["model"]["layers"], 126)
        some = within("--limit", whole["search"]["counts"]["bounded"] // 2)
        self.assertFalse(some["search"]["complete"])
        self.assertGreaterEqual(some["search"]["gap"], whole["search"]["gap"])
        self.assertGreaterEqual(some["prediction"]["step_seconds"],
                                whole["prediction"]["step_seconds"])
        self.assertEqual(within("--limit", 10**9), whole)

    def test_c78_the_users_split_is_honoured_and_said_to_be_his(self):
        """Stages of 3 and 1 layers, where even ones are better."""
        even = self.document(*self.layout("pp=2,dp=1,tp=1", SMALL, "2xH100-SXM-80GB", 8, 64))
        own = self.document(*self.layout("pp=2,dp=1,tp=1,layers=3:1", SMALL, "2xH100-SXM-80GB", 8,
                                         64))
        self.assertEqual(own["layout"]["stage_layers"], [3, 1])
        self.assertGreater(own["prediction"]["step_seconds"], even["prediction"]["step_seconds"])
        self.assertEqual(own["origins"]["layers"], "user")
        for plan in (even, own):
            self.assertEqual(plan["origins"]["pp"], "user")
            self.assertEqual(plan["origins"]["micro_batch"], "planner")
            self.assertEqual(plan["origins"]["schedule"], "default")
            self.assertTrue(set(plan["origins"].values()) <= {"user", "planner", "default"})
        # What cannot be honoured is refused, not dropped.
        self.refused(INFEASIBLE, *self.layout("pp=2,layers=3:2", SMALL, "2xH100-SXM-80GB", 8, 64),
                     says=("layers",))
        self.refused(USAGE, *self.own("layers=3:1"), says=("layers", "keys are"))
        plan = self.document(*self.own("pp=2"))
        self.assertEqual((plan["degrees"]["pp"], plan["origins"]["pp"], plan["origins"]["tp"]),
                         (2, "user", "planner"))

    def test_c79_products_are_exact(self):
        """World 12, tp 8: the equation, never 12 / 8 = 1."""
        twelve = "3x4xA100-SXM4-80GB"
        self.refused(INFEASIBLE, *self.layout("tp=8", cluster=twelve, rows=24),
                     says=("tp 8 x pp 1 x dp 1 x cp 1 = 8 devices of 12", "tp could be 1, 2, 4"))
        # Two of the three are enough for a product that no pp makes 12.
        self.refused(INFEASIBLE, *self.layout("tp=4,pp=2,dp=2", cluster=twelve, rows=24),
                     says=("dp=2, tp=4 cannot be honoured together",
                           "tp 4 x pp 1 x dp 2 x cp 1 = 8 devices of 12"))
        for fix in ("tp=8", "tp=4,pp=2,dp=2"):
            self.refused(INFEASIBLE, *self.own(fix, cluster="cpu:12", rows=24), says=("12 devices",))
        # What is planned uses all of them, and says the product.
        for plan in (self.document(*self.layout("tp=4", cluster=twelve, rows=24)),
                     self.document(*self.own("tp=4", cluster="cpu:12", rows=24))):
            degrees = plan["degrees"]
            self.assertEqual(degrees["tp"] * degrees["pp"] * degrees["dp"] * degrees.get("cp", 1),
                             12)
        self.assertRegex(self.tool(*self.own("tp=4", cluster="cpu:12", rows=24)).out,
                         r"world   12 = dp \d+ x tp 4 x cp 1 x pp \d+")


if __name__ == "__main__":
    main()
