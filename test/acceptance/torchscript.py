"""TorchScript files through the command line: they train as eager does, and what
a stranger's file may not do is refused before anything of it runs.

    torchscript.py --bin DIR [train|train-all|refusals]
"""

import argparse
import json
import math
import pathlib
import sys
import tempfile
import unittest
import warnings
import zipfile

import torch
from safetensors.torch import load_file

from commands import MODELS, Commands, Failure, check

sys.path.insert(0, str(MODELS))
import torchscript  # noqa: E402

STEPS = 2
ROWS = 8
LEARNING_RATE = 0.05
LOSS_TOLERANCE = 1e-4

# (model, scripted, pins)
QUICK = (("gpt", True, "dp=2,tp=2"), ("dlrm", True, "dp=4"), ("llama", False, "tp=4"))
ALL = (*QUICK, ("mlp", True, "tp=2,pp=2"), ("resnet", True, "dp=4"), ("mlp", False, "tp=4"),
       ("gpt", False, "pp=4"), ("gpt2", False, "dp=2,tp=2"), ("bert", False, "tp=2,pp=2"),
       ("t5", False, "dp=2,tp=2"), ("unet", False, "dp=4"), ("vit", False, "tp=4"),
       ("mamba", False, "dp=2,pp=2"), ("mixtral", False, "dp=2,tp=2"),
       ("mixtral_batched", False, "dp=4"), ("whisper", False, "dp=2,tp=2"))
PLANS = 3


#===- Training -----------------------------------------------------------===#

def eager_losses(name, scripted, data):
    model, _ = torchscript.build(name, scripted, 0.0, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for step in range(STEPS):
        batch = {key: rows[step * ROWS:(step + 1) * ROWS] for key, rows in data.items()}
        optimizer.zero_grad()
        result = model(**batch)
        loss = result[0] if isinstance(result, tuple) else result.loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train(commands, name, scripted, pins):
    folder = commands.folder
    flags = torchscript.export(name, folder / "m.pt", script=scripted, data=folder / "d.safetensors",
                               rows=ROWS * STEPS)
    shapes = [word for flag in flags for word in ("--shape", flag)] if scripted else []
    micro = ["--micro-batch", ROWS] if name == "resnet" else []
    commands.plan_tool_succeeds("plan", "m.pt", *shapes, "--cluster", "cpu:4", "--global-batch",
                                ROWS, "--optimizer", "sgd", "--fix", pins, *micro, "-o", "p.json")
    commands.plan_tool_succeeds("compile", "p.json", "m.pt", *shapes, "-o", "program")
    commands.plan_tool_succeeds("run", "program", "--weights", "m.pt", "--data", "d.safetensors",
                                "--steps", STEPS, "--lr", LEARNING_RATE, "--verify", "--report",
                                "r.json")
    report = json.loads((folder / "r.json").read_text())
    expected = eager_losses(name, scripted, load_file(folder / "d.safetensors"))
    check(len(report["losses"]) == STEPS, f"{len(report['losses'])} losses")
    for got, want in zip(report["losses"], expected):
        check(math.isclose(got, want, rel_tol=LOSS_TOLERANCE), f"losses {report['losses']}, "
              f"eager {expected}")
    graph = commands.plan_tool_succeeds("inspect", "m.pt", *shapes, "--emit", "graph").out
    (folder / "g.json").write_text(graph)
    commands.succeed(commands.binaries.parent / "test/plans/random_plans", "g.json", PLANS,
                     "--sample")
    return report["verify"]["gradients"]


def train_all(binaries, cases):
    failures = 0
    for name, scripted, pins in cases:
        label = f"{name}, {'scripted' if scripted else 'traced'}, under {pins}"
        with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
            try:
                error = train(Commands(binaries, folder), name, scripted, pins)
                print(f"passed {label}: gradients within {error:.1e}, {PLANS} random plans",
                      flush=True)
            except Failure as failure:
                failures += 1
                print(f"FAILED {label}: {failure}", flush=True)
    return failures


#===- Refusals -----------------------------------------------------------===#

class Plain(torch.nn.Module):
    """What the others are without their one fault."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).square().mean()


class Saves(Plain):
    def forward(self, x):
        torch.save(x, "stolen")
        return self.layer(x).square().mean()


class Reads(Plain):
    def forward(self, x):
        hosts = torch.from_file("/etc/hosts", size=4, dtype=torch.uint8)
        return self.layer(x + hosts).square().mean()


class Prints(Plain):
    def forward(self, x):
        print(x)
        return self.layer(x).square().mean()


class SeedsAndForks(Plain):
    def forward(self, x):
        torch.manual_seed(1)
        future = torch.jit.fork(torch.relu, x)
        return self.layer(torch.jit.wait(future)).square().mean()


class Restores(Plain):
    @torch.jit.export
    def __getstate__(self):
        return (self.layer.weight, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[torch.Tensor, bool]):
        print("opened")
        self.training = state[1]


class Endless(Plain):
    def forward(self, x):
        turns = 0
        while turns >= 0:
            turns += 1
        return self.layer(x).square().mean()


class LooksAtData(Plain):
    def forward(self, x):
        if bool(x.sum() > 0):
            x = -x
        return self.layer(x).square().mean()


class Counts(Plain):
    """Loops and branches over numbers are what a model may have."""

    def forward(self, x, times: int = 3):
        for turn in range(times):
            x = self.layer(x) if turn % 2 == 0 else torch.relu(x)
        return x.square().mean()


class Refusals(unittest.TestCase):
    binaries = ""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="monarch-")
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.commands = Commands(self.binaries, self.folder)

    def inspect(self, *arguments):
        return self.commands.plan_tool("inspect", "m.pt", *arguments)

    def refused(self, identifier, *says, code=3, arguments=("--shape", "x=2x4")):
        before = sorted(self.folder.iterdir())
        result = self.inspect(*arguments)
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.out, "")
        self.assertIn(f"error {identifier}: ", result.err)
        for text in says:
            self.assertIn(text, result.err)
        self.assertEqual(sorted(self.folder.iterdir()), before, "the file wrote files")
        return result

    def script(self, model):
        torch.jit.script(model).save(str(self.folder / "m.pt"))

    def test_the_twin_without_a_fault(self):
        for model in (Plain(), Counts()):
            self.script(model)
            result = self.inspect("--shape", "x=2x4")
            self.assertEqual(result.code, 0, result)
            self.assertIn("TorchScript archive, scripted", result.out)

    def test_what_no_model_needs(self):
        for model, words in ((Saves(), ("aten::save",)), (Reads(), ("aten::from_file",)),
                             (Prints(), ("prim::Print",)),
                             (SeedsAndForks(), ("aten::manual_seed", "fork", "aten::wait")),
                             (Restores(), ("__setstate__",))):
            with self.subTest(words=words):
                self.script(model)
                result = self.refused("MP1030", *words)
                if not isinstance(model, Restores):
                    self.assertRegex(result.err, r"torchscript.py:\d+")

    def test_a_class_of_another_library(self):
        from torch.ao.nn.quantized import Linear

        class Quantised(Plain):
            def __init__(self):
                super().__init__()
                self.layer = Linear(4, 4)

        self.script(Quantised())
        self.refused("MP1030", "custom class")

    def test_an_op_of_another_library(self):
        library = torch.library.Library("elsewhere", "DEF")
        library.define("twist(Tensor x) -> Tensor")

        class Twists(Plain):
            def forward(self, x):
                return self.layer(torch.ops.elsewhere.twist(x)).mean()

        self.script(Twists())
        self.refused("MP1031", "elsewhere::twist")

    def test_paths_that_depend_on_data(self):
        self.script(LooksAtData())
        self.refused("MP1008", "torchscript.py:")

    def test_a_loop_without_end(self):
        self.script(Endless())
        self.refused("MP1008", "does not end", "torchscript.py:")

    def test_inputs_that_the_file_does_not_describe(self):
        self.script(Counts())
        self.refused("MP1010", "x (Tensor)", "times (int)", code=2, arguments=())
        self.refused("MP1010", "no input 'y'", code=2,
                     arguments=("--shape", "x=2x4", "--shape", "y=2"))
        self.refused("MP1801", code=2, arguments=("--shape", "x=2x4:number"))

    def test_a_trace_knows_its_inputs(self):
        torch.jit.trace(Plain(), torch.ones(2, 4)).save(str(self.folder / "m.pt"))
        result = self.inspect()
        self.assertEqual(result.code, 0, result)
        self.assertIn("TorchScript archive, traced", result.out)

    def test_damaged_files(self):
        self.script(Plain())
        path = self.folder / "m.pt"
        whole = path.read_bytes()
        for share in (0.2, 0.6, 0.99):
            path.write_bytes(whole[:int(len(whole) * share)])
            self.refused("MP1003")
        with zipfile.ZipFile(self.folder / "m.pt", "w") as target:
            target.writestr("m/data.pkl", b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.")
            target.writestr("m/constants.pkl", b"\x80\x02).")
            target.writestr("m/code/x.py", b"")
            target.writestr("m/version", b"3\n")
        self.refused("MP1031")

    def test_weights_that_lie_outside_their_record(self):
        self.script(Plain())
        path = self.folder / "m.pt"
        with zipfile.ZipFile(path) as source:
            records = {name: source.read(name) for name in source.namelist()}
        with zipfile.ZipFile(path, "w") as target:
            for name, data in records.items():
                # The weight's 16 numbers become 2.
                target.writestr(name, data[:8] if name.endswith("data/0") else data)
        self.refused("MP1031")

    def test_weights_of_another_model(self):
        self.script(Plain())
        flags = ("--shape", "x=2x4")
        self.commands.plan_tool_succeeds("plan", "m.pt", *flags, "--cluster", "cpu:2",
                                         "--global-batch", 4, "-o", "p.json")
        self.commands.plan_tool_succeeds("compile", "p.json", "m.pt", *flags, "-o", "program")
        torch.jit.script(torch.nn.Linear(4, 4)).save(str(self.folder / "other.pt"))
        result = self.commands.plan_tool("run", "program", "--weights", "other.pt", "--steps", 1)
        self.assertIn(result.code, (3, 6), result)
        self.assertIn("layer.", result.err)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder of the binaries")
    parser.add_argument("what", choices=("train", "train-all", "refusals"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    if options.what == "refusals":
        Refusals.binaries = options.bin
        unittest.main(argv=sys.argv[:1], verbosity=1)
    return 1 if train_all(options.bin, QUICK if options.what == "train" else ALL) else 0


if __name__ == "__main__":
    sys.exit(main())
