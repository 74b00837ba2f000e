"""Architectures of unseen.py: they import as they are, train on four ranks to
eager's losses, and random plans agree with one process.

    unseen_test.py --bin DIR [MODEL...]
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file

import unseen

ROWS, STEPS, RATE, PLANS = 8, 2, 0.05, 3
PINS = {"gated_scan": "dp=2,tp=2", "time_mix": "tp=4", "shift_mixer": "tp=2,pp=2",
        "message_passing": "dp=4"}


class Failure(Exception):
    """What a command said, or how numbers differ."""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def eager_losses(name, data):
    model = unseen.build(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss, _ = model(**{key: rows[step * ROWS:(step + 1) * ROWS]
                           for key, rows in data.items()})
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def check(name, binaries, folder):
    model, data, plan, report, graph = (
        folder / file for file in ("m.pt2", "d.safetensors", "p.json", "r.json", "g.json"))
    unseen.export(name, model, data=data, rows=ROWS * STEPS)
    tool = binaries / "monarch-plan"
    run(tool, "plan", model, "--cluster", "cpu:4", "--global-batch", ROWS, "--optimizer", "sgd",
        "--fix", PINS[name], "-o", plan)
    run(tool, "run", plan, model, "--data", data, "--steps", STEPS, "--lr", RATE, "--verify",
        "--report", report)
    said = json.loads(report.read_text())
    expected = eager_losses(name, load_file(data))
    if len(said["losses"]) != STEPS or not all(
            math.isclose(a, b, rel_tol=1e-4) for a, b in zip(said["losses"], expected)):
        raise Failure(f"losses {said['losses']}, eager {expected}")
    graph.write_text(run(tool, "inspect", model, "--emit", "graph"))
    run(binaries.parent / "test/plans/random_plans", graph, PLANS, "--sample")
    return said["verify"]["gradients"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the binaries")
    parser.add_argument("models", nargs="*", default=list(unseen.MODELS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    status = 0
    for name in options.models:
        with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
            try:
                error = check(name, options.bin.resolve(), pathlib.Path(folder))
                print(f"{name} under {PINS[name]}: gradients within {error:.1e}, {PLANS} random "
                      "plans", flush=True)
            except Failure as failure:
                print(f"FAILED {name}: {failure}", flush=True)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
