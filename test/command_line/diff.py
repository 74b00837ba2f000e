"""What another plan decides and costs: for reviews, and for CI by exit code.

    diff.py --bin DIR
"""

import json

from tool import BAD_INPUT, USAGE, ToolTest, llama, main

SAME, DIFFERENT = 0, 1
SMALL = llama(layers=2, hidden=64, heads=4, kv_heads=2, mlp=128, vocabulary=256)


class Diff(ToolTest):
    def layout(self, name, fix, *more, config=None, target="megatron"):
        self.write("config.json", config or llama())
        self.tool("plan", "config.json", "--seq-len", 4096, "--cluster", "2xp5.48xlarge",
                  "--global-batch", 64, "--target", target, "--fix", fix, "-o", name, *more)
        return name

    def own(self, name, fix):
        self.write("small.json", SMALL)
        self.tool("plan", "small.json", "--seq-len", 32, "--cluster", "cpu:4", "--global-batch", 8,
                  "--dtype", "float32", "--fix", fix, "-o", name)
        return name

    def edited(self, old, new, change):
        plan = json.loads((self.folder / old).read_text())
        change(plan)
        return self.write(new, plan)

    def compared(self, *arguments):
        """Exit code and document; the text has the same code."""
        said = self.commands.plan_tool("--format", "json", "diff", *arguments)
        text = self.commands.plan_tool("diff", *arguments)
        self.assertEqual(said.code, text.code, f"{arguments}: {said} {text}")
        self.assertEqual(said.code, DIFFERENT if not said.document()["same"] else SAME)
        return said.document(), text.out

    def test_c73_one_changed_stage(self):
        """Decisions first, then figures beyond the tolerance, then the cause."""
        pins = "tp=2,pp=2,dp=4,vpp=1,micro_batch=1,recompute=none"
        a = self.layout("a.json", pins + ",layers=16:16")
        b = self.layout("b.json", pins + ",layers=17:15")
        found, text = self.compared(a, b)
        self.assertEqual([entry["name"] for entry in found["decisions"]], ["stage_layers"])
        self.assertEqual([entry["name"] for entry in found["inputs"]], ["pins.layers"])
        self.assertRegex(text, r"(?s)^decisions\n  stage_layers  .*-> 17:15\nfigures\n"
                               r"  step_seconds .*inputs\n.*cause: other inputs: pins\n$")
        moved = {entry["name"]: entry["change"] for entry in found["figures"] if "change" in entry}
        self.assertGreater(abs(moved["step_seconds"]), 1e-3)
        # What moved by less is counted, not listed; the decision still differs.
        tolerant, _ = self.compared(a, b, "--tolerance", "1000%")
        self.assertEqual(tolerant["decisions"], found["decisions"])
        self.assertLess(len(tolerant["figures"]), len(found["figures"]))
        self.assertEqual(len(tolerant["figures"]) + tolerant["figures_within_tolerance"],
                         len(found["figures"]))

    def test_a_plan_is_the_same_as_itself(self):
        for name in (self.layout("a.json", "pp=2"), self.own("own.json", "pp=2")):
            found, text = self.compared(name, name)
            self.assertTrue(found["same"])
            self.assertEqual(text, "the same plan\n")
            self.assertEqual(found["cause"], "")

    def test_words_are_no_difference(self):
        def reword(plan):
            plan["diagnostics"].append("another remark")
            plan["alternatives"] = []
            plan["note"] = "a field of a later version"
            plan["layout"] = dict(reversed(plan["layout"].items()))

        a = self.layout("a.json", "pp=2")
        found, _ = self.compared(a, self.edited(a, "b.json", reword))
        self.assertTrue(found["same"])

    def test_figures_within_the_tolerance_are_the_same(self):
        def slower(plan):
            plan["prediction"]["step_seconds"] *= 1.02

        for a in (self.layout("a.json", "pp=2"), self.own("own.json", "pp=2")):
            b = self.edited(a, "b.json", slower)
            found, text = self.compared(a, b)
            self.assertEqual([entry["name"] for entry in found["figures"]], ["step_seconds"])
            self.assertAlmostEqual(found["figures"][0]["change"], 0.02, delta=1e-5)
            # No input is another one: the planner is, or somebody's hand.
            self.assertIn("another version of the planner", found["cause"])
            self.assertIn("(+2 %)", text)
            self.assertFalse(self.compared(a, b, "--tolerance", "1.9%")[0]["same"])
            self.assertTrue(self.compared(a, b, "--tolerance", "2.1%")[0]["same"])

    def test_a_plan_that_no_longer_fits_differs_whatever_the_tolerance(self):
        def tighter(plan):
            plan["prediction"]["fits"] = False

        a = self.layout("a.json", "pp=2")
        found, _ = self.compared(a, self.edited(a, "b.json", tighter), "--tolerance", "1000%")
        self.assertEqual([entry["name"] for entry in found["figures"]], ["fits"])

    def test_rules_of_our_own_plans(self):
        a, b = self.own("a.json", "tp=2,pp=2"), self.own("b.json", "pp=4")
        found, text = self.compared(a, b)
        names = [entry["name"] for entry in found["decisions"]]
        self.assertEqual(names[:2], ["tp", "pp"])
        self.assertIn("mesh", names)
        self.assertTrue(any(name.startswith("stage_of ") for name in names))
        self.assertTrue(any(name.startswith("choices ") for name in names))
        mesh = next(entry for entry in found["decisions"] if entry["name"] == "mesh")
        self.assertEqual((mesh["before"], mesh["after"]), ("tp=2", ""))
        # A kind of traffic that one of them does not have is zero there.
        traffic = {entry["name"]: entry["after"] for entry in found["figures"]}
        self.assertEqual(traffic["bytes.all_reduce"], 0)
        self.assertLess(len(text.splitlines()), 60)
        # One rule edited by hand.
        def moved(plan):
            plan["decisions"]["stage_of"][0]["stage"] = "0"

        one, _ = self.compared(a, self.edited(a, "c.json", moved))
        self.assertEqual(len(one["decisions"]), 1)
        self.assertEqual(one["inputs"], [])

    def test_what_the_plans_were_made_for(self):
        a = self.layout("a.json", "pp=2")
        b = self.layout("b.json", "pp=2", config=llama(layers=40))
        found, _ = self.compared(a, b, "--tolerance", "1000%")
        inputs = [entry["name"] for entry in found["inputs"]]
        self.assertIn("graph.digest", inputs)
        self.assertIn("model.layers", inputs)
        self.assertEqual(found["cause"], "other inputs: graph, model")

    def test_plans_for_different_targets(self):
        a, b = self.layout("a.json", "pp=2,zero=1"), self.own("b.json", "pp=2")
        found, _ = self.compared(a, b)
        self.assertEqual(found["decisions"][0],
                         {"name": "target", "before": "megatron", "after": "monarch"})
        # Only what both say can be compared.
        names = [entry["name"] for entry in found["figures"]]
        self.assertEqual(names[0], "step_seconds")
        self.assertIn("memory_bytes.total", names)
        self.assertNotIn("memory_bytes.logits", names)
        self.assertNotIn("peak_tensor_bytes", names)

    def test_what_is_no_plan(self):
        a = self.layout("a.json", "pp=2")
        self.refused(BAD_INPUT, "diff", a, "config.json", says=("config.json", "not a plan"))
        self.refused(BAD_INPUT, "diff", "missing.json", a, says=("missing.json",))
        broken = self.write("broken.json", {"schema": "monarch.plan/1", "inputs": {}})
        self.refused(BAD_INPUT, "diff", a, broken, says=("broken.json",))
        for text in ("5", "-1%", "x%", "%", "nan%", "1e9%"):
            self.refused(USAGE, "diff", a, a, "--tolerance", text, says=("--tolerance", "as 1%"))
        # Sections of other kinds than ours are read as they are.
        for section in ("prediction", "degrees", "layout"):
            def garble(plan):
                plan[section] = {"a": [1, {"b": None}], "c": "text"}

            found, _ = self.compared(a, self.edited(a, "odd.json", garble))
            self.assertEqual(found["same"], section == "degrees")


if __name__ == "__main__":
    main()
