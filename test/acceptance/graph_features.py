"""Features of graphs, from the file to four ranks: imports, replays to eager
autograd in float64, random plans, plans and trains with the same numbers.

    graph_features.py --bin DIR [TEST...]

Models: test/models/features.py.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import unittest
import warnings

from safetensors.torch import load_file

from commands import MODELS, Commands

sys.path.insert(0, str(MODELS))
import features  # noqa: E402
import reference  # noqa: E402

ROWS = 8
LAYOUTS = ("dp=4", "tp=4", "pp=2,dp=2")


class Case(unittest.TestCase):
    """Commands in a folder of the test's own."""

    binaries = ""

    def setUp(self):
        warnings.filterwarnings("ignore")
        folder = tempfile.TemporaryDirectory(prefix="monarch-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.commands = Commands(self.binaries, self.folder)

    def export(self, name, file="model.pt2", **options):
        features.export(name, self.folder / file, data=self.folder / "data.safetensors",
                        rows=ROWS, **options)

    def inspect(self, file="model.pt2", *arguments):
        return self.commands.plan_tool_succeeds(
            "inspect", file, "--format", "json", *arguments).document()

    def graph(self, file="model.pt2", *arguments):
        text = self.commands.plan_tool_succeeds("inspect", file, "--emit", "graph",
                                                *arguments).out
        (self.folder / "graph.json").write_text(text)
        return json.loads(text)

    def refused(self, *arguments, code=3):
        result = self.commands.plan_tool(*arguments)
        self.assertEqual(result.code, code, result.out + result.err)
        return result.err

    def replay(self, *units, file="model.pt2"):
        """Op by op in float64, in units of so many rows."""
        reference.reference(self.folder / file, self.folder / "data.safetensors",
                            self.folder / "expected.safetensors")
        for rows in units or (ROWS,):
            self.commands.succeed(self.commands.program("replay"), file, "--data",
                                  "data.safetensors", "--reference", "expected.safetensors",
                                  "--rows", rows)

    def draw_plans(self, count=5):
        """Random legal plans on threads against one process."""
        self.graph()
        tool = self.commands.binaries.parent / "test/plans/random_plans"
        self.commands.succeed(tool, "graph.json", count, "--sample")

    def train(self, *layouts, file="model.pt2", options=(), flags=()):
        """On four ranks, against one process; the last run's report."""
        for layout in layouts or LAYOUTS:
            self.commands.plan_tool_succeeds(
                "plan", file, "--cluster", "cpu:4", "--global-batch", ROWS, "--fix", layout,
                "-o", "plan.json", *options)
            self.commands.plan_tool_succeeds(
                "run", "plan.json", file, "--data", "data.safetensors", "--verify", "--lr", 0.1,
                "--report", "report.json", "--save-weights", "weights.safetensors", *flags)
        return json.loads((self.folder / "report.json").read_text())

    def program(self, layout, *options, file="model.pt2"):
        """The roles of a compiled plan."""
        self.commands.plan_tool_succeeds(
            "plan", file, "--cluster", "cpu:4", "--global-batch", ROWS, "--fix", layout, "-o",
            "plan.json", *options)
        self.commands.plan_tool_succeeds("compile", "plan.json", file, "-o", "program")
        return [json.loads(path.read_text())
                for path in sorted((self.folder / "program").glob("role-*.json"))]

    def whole(self, name, *units, **options):
        """What every trained model goes through."""
        self.export(name, **options)
        self.replay(*units)
        self.draw_plans()
        return self.train()


class Frozen(Case):
    def test_adapters_alone_have_gradients_and_states(self):
        self.whole("lora", 2, ROWS, dynamic_batch=True)
        document = self.inspect()
        trained = sum(p.numel() for p in features.build("lora").parameters() if p.requires_grad)
        self.assertEqual(document["trainable_parameter_count"], trained)
        self.assertGreater(document["parameter_count"], 20 * trained)
        adapters = {p["names"][0] for p in self.graph()["parameters"] if p["gradients"]}
        self.assertTrue(adapters and all("lora" in name for name in adapters), adapters)

    def test_the_backward_ends_at_the_first_adapter(self):
        self.export("lora")
        graph = self.graph()
        modules = {op["module"].split(".q")[0].split(".v")[0] for op in graph["ops"]
                   if op.get("phase") == "backward" and op.get("module")}
        before = {f"blocks.{i}" for i in (0, 1)} | {"tokens"}
        self.assertFalse([m for m in modules if any(m.startswith(b) for b in before)], modules)

    def test_tables_of_the_program_know_what_is_trained(self):
        self.export("lora", dynamic_batch=True)
        for layout in ("dp=4", "pp=2,dp=2"):
            owned = 0
            for role in self.program(layout):
                for parameter in role["parameters"]:
                    name = parameter["names"][0]
                    self.assertEqual(parameter["trainable"], "lora" in name, name)
                    has_gradient = parameter.get("gradient", -1) not in (None, -1)
                    self.assertEqual(has_gradient, "lora" in name and parameter["owner"], name)
                    owned += parameter["owner"]
            self.assertEqual(owned, len(self.graph()["parameters"]))

    def test_frozen_weights_stay(self):
        self.export("lora", dynamic_batch=True)
        self.train("tp=4", options=("--optimizer", "adamw"))
        saved = load_file(self.folder / "weights.safetensors")
        for name, parameter in features.build("lora").named_parameters():
            self.assertEqual(saved[name].equal(parameter.detach()), not parameter.requires_grad,
                             name)


class NarrowTypes(Case):
    def test_bfloat16_is_compared_by_its_own_epsilon(self):
        self.export("bf16", dynamic_batch=True)
        self.replay(2, ROWS)
        self.draw_plans()
        report = self.train("tp=4", "tp=2,pp=2")
        self.assertGreater(report["verify"]["gradients"], 1e-5)
        self.assertLess(report["verify"]["gradients"], 0.0625)

    def test_weights_of_eight_bits_have_no_gradient(self):
        for name, kind in (("int8", "int8"), ("uint8", "uint8"), ("int8_parameter", "int8"),
                           ("float8", "float8_e4m3fn")):
            with self.subTest(name):
                self.export(name, dynamic_batch=True)
                self.replay(2, ROWS)
                self.train("tp=4", "pp=2,dp=2")
                graph = self.graph()
                leaves = {value["name"]: value for value in graph["values"] if value.get("name")}
                self.assertEqual(leaves["up.weight"]["type"], kind)
                self.assertNotIn("up.weight", {p["names"][0] for p in graph["parameters"]
                                               if p["gradients"]})

    def test_bytes_of_narrow_weights_are_those_of_the_file(self):
        self.export("int8_parameter")
        stored = {group["name"]: group["bytes"] for group in self.inspect()["parameters"]}
        self.assertEqual(stored["up.weight"], features.WIDTH * 4 * features.WIDTH)

    def test_complex_tables(self):
        for name in ("complex_rotary", "complex_polar"):
            with self.subTest(name):
                self.whole(name, 2, ROWS, dynamic_batch=True)


class Regions(Case):
    def test_no_gradients_autocast_and_checkpoints(self):
        self.whole("regions_float32", 2, ROWS, dynamic_batch=True)
        self.export("regions", dynamic_batch=True)
        self.replay(2, ROWS)
        types = {value["type"] for value in self.graph()["values"]}
        self.assertIn("bfloat16", types)
        self.train("tp=4")

    def test_branches_on_data_are_kept_whole(self):
        self.export("branches", dynamic_batch=True)
        self.replay()
        self.draw_plans()
        self.train("tp=4")
        self.assertRegex(self.inspect()["file"]["notes"][0], r"^cond at .*features\.py:\d+")

    def test_all_that_depends_on_data_is_listed_at_once(self):
        self.export("loop")
        text = self.refused("plan", "model.pt2", "--cluster", "cpu:4", "--global-batch", 8)
        self.assertIn("3 violations", text)
        for what in ("while_loop", "aten.index.Tensor", "aten.item"):
            self.assertRegex(text, what + r".*features\.py:\d+")
        self.assertIn("fix", text)


class Uses(Case):
    def test_one_weight_used_twice_an_equal_one_and_an_unused_one(self):
        self.export("two_uses", dynamic_batch=True)
        self.draw_plans()
        self.train()
        document = self.inspect()
        self.assertEqual(document["ties"], [])
        gradients = {p["names"][0]: len(p["gradients"]) for p in self.graph()["parameters"]}
        self.assertEqual(gradients["code.weight"], 2)
        self.assertEqual(gradients["unused.weight"], 0)
        self.assertEqual(gradients["first.weight"], gradients["second.weight"])

    def test_buffers_that_a_step_changes(self):
        self.whole("moments", ROWS, dynamic_batch=True)


class Joint(Case):
    def test_gradients_of_the_file_are_taken(self):
        for name in ("lora", "moments", "int8"):
            with self.subTest(name):
                # torch.export.load does not take its own file of "moments".
                self.export(name, batch=ROWS, loss=True)
                options = ("--optimizer", "sgd")
                forward = self.train("dp=4", "pp=2,dp=2", options=options)
                weights = load_file(self.folder / "weights.safetensors")
                self.export(name, "joint.pt2", batch=ROWS, joint=True)
                joint = self.train("dp=4", "pp=2,dp=2", file="joint.pt2", options=options)
                self.assertAlmostEqual(joint["losses"][0], forward["losses"][0], places=5)
                for key, tensor in load_file(self.folder / "weights.safetensors").items():
                    scale = max(weights[key].abs().max().item(), 1e-3)
                    error = (tensor - weights[key]).abs().max().item() / scale
                    self.assertLess(error, 1e-4, key)

    def test_wrong_gradients_of_fused_attention_are_refused(self):
        self.export("lora", batch=ROWS, joint=True, fused_attention=True)
        text = self.refused("inspect", "model.pt2")
        self.assertIn("MP1026", text)
        self.assertIn("SDPBackend.MATH", text)

    def test_it_has_its_loss(self):
        self.export("moments", joint=True)
        text = self.refused("inspect", "model.pt2", "--loss", "0")
        self.assertIn("leave --loss out", text)


def main():
    """The tests of the script that runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options, rest = parser.parse_known_args()
    Case.binaries = options.bin
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
