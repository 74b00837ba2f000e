"""What plan says of a plan that this project runs: a screen for people, the same
as JSON, from hyper-parameters and from a graph.

    own_plans.py --bin DIR
"""

import pathlib

from tool import ToolTest, llama, main

GRAPHS = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "graphs"
SCREEN = 45


class OwnPlans(ToolTest):
    def screen(self, text):
        self.assertLessEqual(len(text.splitlines()), SCREEN, text)
        for line in ("cluster ", "world ", "batch ", "step ", "memory ", "traffic", "binds ",
                     "stage ", "gap "):
            self.assertRegex(text, rf"(?m)^ *{line}", text)
        self.assertRegex(text, r"90 %: .* to ", text)

    def figures(self, plan):
        prediction = plan["prediction"]
        self.assertLess(prediction["band"]["low_seconds"], prediction["step_seconds"])
        self.assertGreater(prediction["band"]["high_seconds"], prediction["step_seconds"])
        parts = sum(prediction["seconds"].values())
        self.assertLessEqual(parts, prediction["step_seconds"] * 1.0001)
        self.assertGreater(parts, prediction["step_seconds"] * 0.9)
        memory = dict(prediction["memory_bytes"])
        outside = [memory.pop(name) for name in ("stage", "usable", "context", "total")]
        self.assertEqual(sum(memory.values()), outside[3])
        self.assertEqual(outside[3], prediction["peak_tensor_bytes"])
        self.assertLessEqual(outside[3], outside[1])
        rows = plan["inputs"]["workload"]["global_batch"]
        self.assertAlmostEqual(prediction["rows_per_second"] * prediction["step_seconds"] / rows,
                               1, delta=1e-4)
        self.assertGreater(prediction["mfu"], 0)
        self.assertLess(prediction["mfu"], 1)
        self.assertIn(prediction["binds"], ("compute", "collectives", "sends between stages",
                                            "pipeline bubble"))

    def test_a_model_by_its_hyper_parameters(self):
        config = llama(layers=4, hidden=1024, heads=16, kv_heads=16, mlp=2816, vocabulary=32000)
        self.write("config.json", config)
        question = ("plan", "config.json", "--seq-len", 512, "--cluster", "1x4xH100-SXM-80GB",
                    "--global-batch", 16)
        text = self.tool(*question).out
        self.screen(text)
        self.assertRegex(text, r"(?m)^not +dp \d+ tp \d+ pp \d+ .*: .*\+.*(compute|collectives|idle)")
        plan = self.document(*question)
        self.figures(plan)
        self.assertAlmostEqual(plan["prediction"]["tokens_per_second"]
                               / plan["prediction"]["rows_per_second"], 512, delta=0.01)
        # Each other family once, the best of it, with a reason.
        own = plan["degrees"]
        families = [(a["dp"], a["tp"], a["pp"]) for a in plan["alternatives"]]
        self.assertEqual(len(families), len(set(families)))
        self.assertNotIn((own["dp"], own["tp"], own["pp"]), families)
        self.assertTrue(families)
        for other in plan["alternatives"]:
            self.assertTrue(other["rejected"])

    def test_a_graph(self):
        question = ("plan", GRAPHS / "gpt-small.json", "--cluster", "cpu:4", "--global-batch", 8,
                    "--fix", "pp=2")
        self.screen(self.tool(*question).out)
        self.figures(self.document(*question))

    def test_a_faster_plan_that_does_not_fit_is_named(self):
        self.write("config.json", llama())
        text = self.tool("plan", "config.json", "--seq-len", 4096, "--cluster",
                         "1x8xH100-SXM-80GB", "--global-batch", 16).out
        self.screen(text)
        self.assertRegex(text, r"(?m)^faster but too large: .*needs .* of .*-\d")


if __name__ == "__main__":
    main()
