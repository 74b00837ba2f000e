"""Float32 master weights of a bfloat16 model, on four ranks against PyTorch
eager with master weights, and against the same without.

    master_weights.py --bin DIR [TEST...]

One batch is trained on again and again at a rate at which most updates are below
half a unit in the last place of a bfloat16 weight: with master weights they add
up, without they vanish.
"""

import json

import torch
from safetensors.torch import load_file, save_file

from graph_features import ROWS, Case, features, main

STEPS = 24
RATE = 1e-2
# Eight epsilons of bfloat16, as --verify has it.
TOLERANCE = 8 * 2**-7


class MasterWeights(Case):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        self.export("bf16", dynamic_batch=True)
        self.batch = load_file(self.folder / "data.safetensors")
        save_file({name: torch.cat([tensor] * STEPS) for name, tensor in self.batch.items()},
                  self.folder / "data.safetensors")
        self.initial = {name: parameter.detach().clone() for name, parameter
                        in features.build("bf16").named_parameters()}

    def eager(self, masters, optimizer=torch.optim.SGD, rate=RATE, steps=STEPS, clip=None):
        """Losses, and what the optimizer holds by name."""
        model = features.build("bf16")
        parameters = dict(model.named_parameters())
        held = {name: parameter.detach().float().requires_grad_() if masters else parameter
                for name, parameter in parameters.items()}
        optimizer = optimizer(held.values(), lr=rate, weight_decay=0)
        losses = []
        for _ in range(steps):
            model.zero_grad()
            loss = model(**self.batch)[0]
            loss.backward()
            losses.append(loss.item())
            for name, parameter in parameters.items():
                held[name].grad = parameter.grad.to(held[name].dtype)
            if clip:
                torch.nn.utils.clip_grad_norm_(held.values(), clip)
            optimizer.step()
            with torch.no_grad():
                for name, parameter in parameters.items():
                    parameter.copy_(held[name])
        return losses, {name: tensor.detach() for name, tensor in held.items()}

    def ranks(self, layout, masters, optimizer="sgd", rate=RATE, steps=STEPS, flags=()):
        """The report of a verified run, and the saved weights."""
        run = self.commands.plan_tool_succeeds
        run("plan", "model.pt2", "--cluster", "cpu:4", "--global-batch", ROWS, "--fix", layout,
            "--micro-batch", 2, "--optimizer", optimizer, "--master-weights", masters,
            "-o", "plan.json")
        run("run", "plan.json", "model.pt2", "--data", "data.safetensors", "--verify", "--lr",
            rate, "--steps", steps, "--report", "report.json", "--save-weights",
            "weights.safetensors", *flags)
        report = json.loads((self.folder / "report.json").read_text())
        for figure in ("bytes", "collectives"):
            for kind, predicted in report["predicted"][figure].items():
                self.assertEqual(sum(rank[figure][kind] for rank in report["ranks"]), predicted,
                                 f"{layout}: {figure} of {kind}")
        return report, load_file(self.folder / "weights.safetensors")

    def assert_moved_alike(self, weights, expected):
        """Errors as a share of how far the tensor, or all, moved from the start."""
        moves = {name: expected[name] - start.float() for name, start in self.initial.items()}
        largest = max(move.abs().max().item() for move in moves.values())
        for name, move in moves.items():
            self.assertEqual(weights[name].dtype, torch.float32, name)
            error = (weights[name] - expected[name]).abs().max().item()
            # The key bias moves by rounding alone.
            scale = max(move.abs().max().item(), 1e-1 * largest)
            self.assertLess(error / scale, TOLERANCE, name)

    def test_small_updates_add_up(self):
        losses, expected = self.eager(masters=True)
        vanished, _ = self.eager(masters=False)
        gap = vanished[-1] - losses[-1]
        self.assertGreater(gap, 0.04)
        for layout in ("dp=4", "tp=2,dp=2", "pp=2,dp=2"):
            with self.subTest(layout):
                report, weights = self.ranks(layout, "float32")
                for step, (got, want) in enumerate(zip(report["losses"], losses, strict=True)):
                    self.assertLess(abs(got - want), gap / 8, f"loss of step {step + 1}")
                self.assert_moved_alike(weights, expected)
        report, weights = self.ranks("dp=4", "none")
        self.assertLess(abs(report["losses"][-1] - vanished[-1]), gap / 8)
        self.assertEqual({tensor.dtype for tensor in weights.values()}, {torch.bfloat16})

    def test_updates_far_below_a_weights_precision(self):
        """Next to 1, where scales of norms are, bfloat16 has steps of 2^-8."""
        rate, scales = 1e-4, [name for name in self.initial if "norm" in name
                              and name.endswith("weight")]
        _, expected = self.eager(masters=True, rate=rate, steps=3)
        _, weights = self.ranks("pp=2,dp=2", "float32", rate=rate, steps=3)
        self.assert_moved_alike(weights, expected)
        for name in scales:
            self.assertFalse(weights[name].equal(self.initial[name].float()), name)
        _, weights = self.ranks("pp=2,dp=2", "none", rate=rate, steps=3)
        for name in scales:
            self.assertTrue(weights[name].equal(self.initial[name]), name)

    def test_adamw_and_the_norm(self):
        losses, _ = self.eager(masters=True, optimizer=torch.optim.AdamW, rate=1e-4, clip=0.5)
        vanished, _ = self.eager(masters=False, optimizer=torch.optim.AdamW, rate=1e-4, clip=0.5)
        gap = vanished[-1] - losses[-1]
        self.assertGreater(gap, 0.04)
        report, _ = self.ranks("tp=2,pp=2", "float32", optimizer="adamw", rate=1e-4,
                               flags=("--clip-norm", 0.5))
        self.assertLess(abs(report["losses"][-1] - losses[-1]), gap / 8)

    def test_saved_masters_are_taken_up_again(self):
        """A float32 file is not rounded on its way to the master copies."""
        once, whole = self.ranks("tp=2,dp=2", "float32", steps=8)
        self.ranks("tp=2,dp=2", "float32", steps=4)
        (self.folder / "weights.safetensors").rename(self.folder / "half.safetensors")
        again, resumed = self.ranks("tp=2,dp=2", "float32", steps=4,
                                    flags=("--weights", "half.safetensors"))
        self.assertEqual(once["losses"][4:], again["losses"])
        for name, tensor in whole.items():
            self.assertTrue(resumed[name].equal(tensor), name)

    def test_the_plan_and_the_program_say_so(self):
        roles = self.program("pp=2,dp=2,master_weights=float32")
        plan = json.loads((self.folder / "plan.json").read_text())
        self.assertEqual(plan["decisions"]["master_weights"], "float32")
        self.assertEqual(plan["origins"]["master_weights"], "user")
        for role in roles:
            for parameter in role["parameters"]:
                self.assertEqual(parameter["owner"], "master" in parameter)
                if "master" in parameter:
                    types = [role["values"][parameter[key]][0]
                             for key in ("value", "gradient", "master")]
                    self.assertEqual(types, ["bfloat16", "float32", "float32"])


if __name__ == "__main__":
    main()
