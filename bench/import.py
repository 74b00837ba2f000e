"""What each model of test/models/zoo.py comes to, measured: docs/models.md.

    bench/import.py --bin build/dev/bin [--plans 100] [--write docs/models.md] [MODEL...]

For each model: exports, imports, the joint graph against eager autograd in
float64, plans for two clusters, random legal plans, and two steps on four local
ranks against one process. What was measured is kept in --work, a file a model;
--write makes the table of all that is there. Exits with 1 where something that
PyTorch exports does not pass.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test/models"))

ROWS = 8
CLUSTERS = {"cpu": ("cpu:4", 8), "h100": ("2x8xH100-SXM-80GB", 64)}
PATIENCE_SECONDS = 1800
STEPS = ("export", "import", "forward", "replay", "cpu", "h100", "random", "train", "eager", "script")
TITLES = {"export": "exports", "import": "joint graph: ops forward + backward",
          "forward": "forward alone", "replay": "against eager, float64",
          "cpu": "plan for cpu:4", "h100": "plan for 2x8xH100-SXM-80GB",
          "random": "random legal plans, worst", "train": "2 steps on 4 ranks, worst",
          "eager": "the same in PyTorch eager", "script": "traced to TorchScript, the same"}
LEARNING_RATE = 0.1
# Two steps in float32, differently summed.
EAGER_TOLERANCE = 2e-4


class Failed(Exception):
    """The text of a cell."""


def run(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"longer than {PATIENCE_SECONDS} s") from error
    return done


def cause(done):
    """The line that says what is wrong."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    for line, after in zip(lines, lines[1:] + [""]):
        if line.startswith(("error", "FAILED", "MP")):
            return line
        # Of Python; what follows the first sentence is values or advice.
        if raised := re.match(r"(?:\w+\.)*\w+(?:Error|Exception):(.*)", line):
            return re.split(r"[.(] ?", (raised.group(1) or after).strip())[0]
    return lines[-1] if lines else f"exit code {done.returncode}"


def succeed(*command):
    done = run(*command)
    if done.returncode:
        raise Failed(cause(done))
    return done.stdout


def batch_of(data, step):
    """One of the two global batches; what has no rows is there once a batch."""
    return {name: tensor.chunk(2)[step] for name, tensor in data.items()}


class Measurement:
    """One model; cells by step."""

    def __init__(self, name, binaries, plans, folder):
        self.name, self.plans, self.folder = name, plans, pathlib.Path(folder)
        self.tool = binaries / "monarch-plan"
        self.replay_tool = binaries / "replay"
        self.random_tool = binaries.parent / "test/plans/random_plans"
        self.model = self.folder / "model.pt2"
        self.data = self.folder / "data.safetensors"
        self.cells, self.failures = {}, []

    def measure(self):
        import zoo

        self.entry = zoo.MODELS[self.name]
        for step in STEPS:
            try:
                self.cells[step] = getattr(self, step + "_")()
            except Failed as failure:
                self.cells[step] = "**" + str(failure) + "**"
                self.failures.append(step)
                if step == "export":
                    break
                if step == "import":
                    break
        return self

    def zoo(self, output, *arguments):
        batch = ["--dynamic-batch"] if self.entry.dynamic_batch else ["--batch", ROWS]
        succeed(sys.executable, ROOT / "test/models/zoo.py", self.name, "-o", output, *batch,
                *arguments)

    def export_(self):
        # Two steps of data for the run; the first of them is the replay's.
        self.zoo(self.model, "--data", self.data, "--rows", 2 * ROWS)
        self.zoo(self.folder / "logits.pt2", "--logits-only")
        return "dynamic batch" if self.entry.dynamic_batch else "static batch"

    def import_(self):
        text = succeed(self.tool, "inspect", self.model, "--emit", "graph")
        (self.folder / "graph.json").write_text(text)
        graph = json.loads(text)
        phases = collections.Counter(op.get("phase", "forward") for op in graph["ops"])
        return f"{phases['forward']} + {phases['backward']}"

    def forward_(self):
        graph = json.loads(succeed(self.tool, "inspect", self.folder / "logits.pt2", "--mode",
                                   "infer", "--emit", "graph"))
        return f"{len(graph['ops'])} ops"

    def replay_(self):
        from safetensors.torch import load_file, save_file

        data, expected = self.folder / "batch.safetensors", self.folder / "expected.safetensors"
        save_file({name: tensor.contiguous()
                   for name, tensor in batch_of(load_file(self.data), 0).items()}, data)
        succeed(sys.executable, ROOT / "test/models/reference.py", self.model, "--data", data,
                "-o", expected)
        worst = 0.0
        for rows in (ROWS, 2) if self.entry.dynamic_batch else (ROWS,):
            text = succeed(self.replay_tool, self.model, "--data", data, "--reference", expected,
                           "--rows", rows)
            worst = max(worst, float(re.search(r"worst error (\S+)", text).group(1)))
        return f"{worst:.0e}"

    def plan(self, key):
        cluster, rows = CLUSTERS[key]
        text = succeed(self.tool, "plan", self.model, "--cluster", cluster, "--global-batch",
                       rows, "-o", self.folder / f"{key}.json")
        degrees = re.search(r"= dp (\d+) x tp (\d+) x cp \d+ x pp (\d+)", text)
        return "dp {} tp {} pp {}".format(*degrees.groups())

    def cpu_(self):
        return self.plan("cpu")

    def h100_(self):
        return self.plan("h100")

    def random_(self):
        done = run(self.random_tool, self.folder / "graph.json", self.plans)
        line = re.search(r"(\d+) plans, (\d+) failed, worst error (\S+)", done.stdout)
        if line is None:
            raise Failed(cause(done))
        plans, failed, worst = line.groups()
        whole = re.search(r"kept whole: (.*)", done.stdout)
        self.whole = whole.group(1) if whole else ""
        if int(failed):
            raise Failed(f"{failed} of {plans} plans: {cause(done)}")
        return f"{plans}, {worst}"

    def train_(self):
        worst, self.runs = 0.0, []
        for pins in ([], ["--fix", "dp=1,tp=2,pp=2"]):
            plan, report, weights = (self.folder / file for file in (
                "run.json", "report.json", f"weights{len(self.runs)}.safetensors"))
            succeed(self.tool, "plan", self.model, "--cluster", "cpu:4", "--global-batch", ROWS,
                    "--optimizer", "sgd", *pins, "-o", plan)
            succeed(self.tool, "run", plan, self.model, "--data", self.data, "--steps", 2, "--lr",
                    LEARNING_RATE, "--verify", "--save-weights", weights, "--report", report)
            report = json.loads(report.read_text())
            worst = max(worst, *report["verify"].values())
            self.runs.append((report["losses"], weights))
        return f"{worst:.0e}"

    def eager_(self):
        """The model's own code, trained on whole batches, starting from equal weights."""
        from safetensors.torch import load_file

        if len(getattr(self, "runs", [])) < 2:
            raise Failed("not trained")
        losses, expected = self.train_in_eager()
        worst = 0.0
        for own_losses, weights in self.runs:
            weights = load_file(weights)
            worst = max([worst, *(abs(own - loss) / abs(loss)
                                  for own, loss in zip(own_losses, losses, strict=True))])
            for name, tensor in expected.items():
                if name in weights and tensor.is_floating_point():
                    scale = tensor.abs().max().clamp(min=1e-3)
                    worst = max(worst, ((weights[name] - tensor).abs().max() / scale).item())
        if not worst <= EAGER_TOLERANCE:
            raise Failed(f"{worst:.0e}")
        return f"{worst:.0e}"

    def script_(self):
        """The traced file: two steps on four ranks against one process."""
        model, data, plan, report = (self.folder / file for file in (
            "model.pt", "script.safetensors", "script.json", "script-report.json"))
        batch = [] if self.entry.dynamic_batch else ["--batch", ROWS]
        traced = run(sys.executable, ROOT / "test/models/torchscript.py", self.name, "-o", model,
                     *batch, "--data", data, "--rows", 2 * ROWS)
        if traced.returncode:
            return f"PyTorch cannot trace it: {cause(traced)}"
        succeed(self.tool, "plan", model, "--cluster", "cpu:4", "--global-batch", ROWS,
                "--optimizer", "sgd", "-o", plan)
        succeed(self.tool, "run", plan, model, "--data", data, "--steps", 2, "--lr", LEARNING_RATE,
                "--verify", "--report", report)
        return f"{max(json.loads(report.read_text())['verify'].values()):.0e}"

    def train_in_eager(self):
        """Losses, and the state dict after the last step."""
        import torch
        import zoo
        from safetensors.torch import load_file

        model, data = zoo.build(self.name), load_file(self.data)
        constants = {name: value for name, value in self.entry.inputs(
            model, 1, torch.Generator().manual_seed(0), True).items() if name not in data}
        optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
        losses = []
        for step in range(2):
            batch = batch_of(data, step)
            optimizer.zero_grad()
            result = model(**batch, **constants)
            loss = result[0] if isinstance(result, tuple) else result.loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model.state_dict()


def tables_of(path):
    """Rows of the tables in a page, by their first cell: {name: [cells...]} for each."""
    tables, lines = [], path.read_text().splitlines() if path.exists() else []
    for before, line in zip([""] + lines, lines):
        if line.startswith("|---"):
            tables.append({})
        elif tables and line.startswith("| ") and before.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            tables[-1][cells[0]] = cells
    return tables


def write_table(work, output):
    """Of what lies in `work`, and of what the page says of the other models."""
    import zoo

    cells, whole = (tables_of(output) + [{}, {}])[:2]
    for name in zoo.MODELS:
        kept = work / f"{name}.json"
        if not kept.exists():
            continue
        row = json.loads(kept.read_text())
        cells[name] = [name, *(row["cells"].get(step, "").replace("|", "\\|") for step in STEPS)]
        whole.pop(name, None)
        if row["whole"]:
            whole[name] = [name, row["whole"]]
    lines = [
        "# Models",
        "",
        "Written by `bench/import.py --write docs/models.md`; every cell was measured, on the small models of `test/models/zoo.py`",
        "(2 layers, random weights), with files that `python -m monarch_plan.export` writes. A cell in bold is what failed, and why.",
        "Errors are the largest difference of loss, gradients and buffers, relative as in [report.md](report.md):",
        "",
        "- of the joint graph, run op by op in float64, from PyTorch's autograd (at most 1e-12);",
        "- of random plans, run by threads in float64, from one process (at most 1e-12);",
        "- of two SGD steps on four processes in float32, under the plan that the planner chooses and under tp=2,pp=2, from one",
        "  process (at most 1e-5);",
        f"- of their losses and weights from the model's own code, trained by PyTorch eager (at most {EAGER_TOLERANCE:.0e}).",
        "",
        "| model | " + " | ".join(TITLES[step] for step in STEPS) + " |",
        "|---" * (len(STEPS) + 1) + "|",
    ]
    lines += ["| " + " | ".join(cells[name]) + " |" for name in zoo.MODELS if name in cells]
    if whole:
        lines += ["", "Ops that have no rule, and are therefore computed whole on every rank of a stage:",
                  "", "| model | ops |", "|---|---|"]
        lines += ["| " + " | ".join(whole[name]) + " |" for name in zoo.MODELS if name in whole]
    output.write_text("\n".join(lines) + "\n")


def main():
    import zoo

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the binaries")
    parser.add_argument("--plans", type=int, default=100, help="random plans a model (100)")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench-import",
                        help="folder of what was measured")
    parser.add_argument("--write", type=pathlib.Path, help="the table, as Markdown")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="all of the zoo when absent")
    options = parser.parse_args()
    unknown = sorted(set(options.models) - set(zoo.MODELS))
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}; there are {', '.join(zoo.MODELS)}")
    options.work.mkdir(parents=True, exist_ok=True)
    status = 0
    for name in options.models or zoo.MODELS:
        with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
            row = Measurement(name, options.bin.resolve(), options.plans, folder).measure()
        for step in STEPS:
            print(f"{name:12} {step:8} {row.cells.get(step, '-')}", flush=True)
        (options.work / f"{name}.json").write_text(json.dumps(
            {"name": name, "cells": row.cells, "whole": getattr(row, "whole", "")}, indent=1))
        status |= bool(set(row.failures) - {"export"})
    if options.write:
        # Rows of models that were measured elsewhere stay.
        write_table(options.work, options.write)
    return status


if __name__ == "__main__":
    sys.exit(main())
