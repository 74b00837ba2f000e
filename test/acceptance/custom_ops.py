"""Models with an op of a library that the project does not know: without a rule
it is kept whole, with one it is split, and both train with the same numbers.

    custom_ops.py --bin DIR --library GATED_OPS.so
"""

import argparse
import json
import pathlib
import sys
import unittest

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
from torch.export.experimental import _export_forward_backward

from graph_features import Case

HERE = pathlib.Path(__file__).resolve().parent
RULES = HERE / "customops/gated.rules.json"
WIDTH, ROWS = 16, 8


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(32, 10)
        self.weight = nn.Parameter(torch.randn(32, WIDTH))

    def forward(self, x, labels):
        y = torch.ops.gatedlib.gated(torch.tanh(self.up(x)), self.weight, 1.5)
        return F.cross_entropy(self.head(y), labels)


def register_derivative():
    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], inputs[1])
        ctx.scale = inputs[2]

    def backward(ctx, gradient):
        x, w = ctx.saved_tensors
        return *torch.ops.gatedlib.gated_backward(gradient, x, w, ctx.scale), None

    torch.library.register_autograd("gatedlib::gated", backward, setup_context=setup)


class CustomOps(Case):
    library = ""

    def setUp(self):
        super().setUp()
        torch.manual_seed(3)
        self.model = Gated().train()
        self.inputs = dict(x=torch.randn(ROWS, WIDTH), labels=torch.randint(0, 10, (ROWS,)))
        save_file(self.inputs, self.folder / "data.safetensors")
        program = torch.export.export(self.model, (), self.inputs, strict=False)
        torch.export.save(program, self.folder / "forward.pt2")
        torch.export.save(_export_forward_backward(program), self.folder / "model.pt2")

    def rules(self):
        return "--rules", RULES

    def test_its_derivative_is_not_invented(self):
        text = self.refused("inspect", "forward.pt2")
        self.assertRegex(text, r"gatedlib::gated: .*derivative")
        self.assertRegex(text, r"custom_ops\.py:\d+")
        self.assertIn("--mode infer", text)

    def test_the_forward_alone_is_read(self):
        document = self.inspect("forward.pt2", "--mode", "infer")
        self.assertIn("gatedlib::gated", document["kept_whole"])
        self.assertNotIn("gatedlib::gated", self.inspect("forward.pt2", "--mode", "infer",
                                                         *self.rules())["kept_whole"])

    def test_without_a_rule_it_is_kept_whole(self):
        self.assertEqual(self.inspect()["kept_whole"],
                         {"gatedlib::gated": 1, "gatedlib::gated_backward": 1})
        text = self.commands.plan_tool_succeeds(
            "plan", "model.pt2", "--cluster", "cpu:4", "--global-batch", ROWS).out
        self.assertIn("gatedlib::gated kept whole", text)
        self.train("dp=4", "tp=4", flags=("--library", self.library))

    def test_with_a_rule_it_is_split(self):
        self.train("dp=4", "tp=4", options=self.rules(),
                   flags=("--library", self.library, *self.rules()))
        loss = self.model(**self.inputs)
        report = json.loads((self.folder / "report.json").read_text())
        self.assertAlmostEqual(report["losses"][0], loss.item(), places=5)

    def test_the_library_is_asked_for(self):
        self.commands.plan_tool_succeeds("plan", "model.pt2", "--cluster", "cpu:4",
                                         "--global-batch", ROWS, "-o", "plan.json")
        text = self.refused("run", "plan.json", "model.pt2")
        self.assertIn("--library", text)

    def test_rules_that_do_not_fit_are_named(self):
        rules = json.loads(RULES.read_text())
        ops = rules["ops"]

        def refused(wanted):
            (self.folder / "bad.json").write_text(json.dumps(rules))
            self.assertIn(wanted, self.refused("inspect", "model.pt2", "--rules", "bad.json"))

        ops["gatedlib::gated"]["operands"] = ["n _"]
        refused("has 2 operands, its rule 1")
        ops["gatedlib::gated"]["operands"] = ["n f", "f _"]
        refused("the label 'f' is 16 and 32")
        ops["gatedlib::gated"]["flops"] = "n q"
        refused("'q' is no number and no label")
        ops["aten::mm"] = ops.pop("gatedlib::gated")
        ops["aten::mm"].pop("flops")
        refused("a rule of the project's own")
        rules["schema"] = "monarch.rules/2"
        refused("monarch.rules/1")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--library", required=True)
    options, rest = parser.parse_known_args()
    Case.binaries, CustomOps.library = options.bin, options.library
    torch.ops.load_library(options.library)
    register_derivative()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
