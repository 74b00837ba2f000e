"""Trains exported models on four local ranks and in PyTorch eager, and compares.

    train.py --bin DIR [--full] SCENARIO...

Checks of each layout: losses within 1e-4 relative; each weight within 2e-4 of
its largest entry; the figures of --verify; executed bytes and collectives equal
to the predicted ones; every name of the file in the saved weights.
"""

import argparse
import json
import math
import pathlib
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file, save_file

import eager
from commands import Commands, Failure, check
from scenarios import SCENARIOS, STEPS

RANKS = 4
LOSS_TOLERANCE = 1e-4
WEIGHT_TOLERANCE = 2e-4
# AdamW's first steps move a weight by about the rate whatever its gradient's size,
# so rounding of near-zero gradients shows: eager float32 itself is 3.0e-4 from eager
# float64 in mlp-adamw's mid.weight (every other tensor below 2e-5). Twice that.
ADAMW_WEIGHT_TOLERANCE = 6e-4
VERIFY_TOLERANCE = 1e-5
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send")


def export(commands, scenario):
    arguments = [scenario.model, "-o", "model.pt2", "--size", scenario.size,
                 "--layers", scenario.layers, "--batch", scenario.batch,
                 "--dropout", 0, "--seed", eager.SEED]
    if scenario.dynamic:
        arguments.append("--dynamic-batch")
    if scenario.loss:
        arguments.append("--logits-only")
    commands.export(*arguments)


def train_on_ranks(commands, scenario, layout):
    loss = ["--loss", scenario.loss] if scenario.loss else []
    pins = ["--fix", layout] if layout else []
    micro_batch = ["--micro-batch", scenario.micro_batch] if scenario.micro_batch else []
    commands.plan_tool_succeeds(
        "plan", "model.pt2", "--cluster", f"cpu:{RANKS}", "--global-batch", scenario.rows,
        "--optimizer", scenario.optimizer, *loss, *pins, *micro_batch, "-o", "plan.json")
    for stale in ("report.json", "weights.safetensors"):
        (commands.folder / stale).unlink(missing_ok=True)
    numbers = ["--lr", scenario.learning_rate]
    if scenario.weight_decay:
        numbers += ["--weight-decay", scenario.weight_decay]
    if scenario.clip_norm:
        numbers += ["--clip-norm", scenario.clip_norm]
    flags = ["--data", "batches.safetensors", "--verify", "--save-weights",
             "weights.safetensors", "--report", "report.json", *numbers]
    if scenario.start == "plan":
        commands.plan_tool_succeeds("run", "plan.json", "model.pt2", *loss, *flags)
        return
    commands.plan_tool_succeeds("compile", "plan.json", "model.pt2", *loss, "-o", "program")
    flags += ["--weights", "model.pt2"]
    if scenario.start == "run":
        commands.plan_tool_succeeds("run", "program", *flags)
        return
    commands.succeed(pathlib.Path(sys.executable).with_name("torchrun"), "--no-python",
                     "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0",
                     "--nnodes", 1, "--nproc-per-node", RANKS,
                     commands.program("monarch-run"), "program", *flags)


def check_report(report):
    check(report["schema"] == "monarch.report/1", "schema of the report")
    check([rank["rank"] for rank in report["ranks"]] == list(range(RANKS)), "ranks of the report")
    predicted = report["predicted"]
    for figure in ("bytes", "collectives"):
        check(sorted(predicted[figure]) == sorted(KINDS), f"kinds of predicted {figure}")
        for kind in KINDS:
            executed = sum(rank[figure][kind] for rank in report["ranks"])
            check(executed == predicted[figure][kind],
                  f"{figure} of {kind}: executed {executed}, predicted {predicted[figure][kind]}")
    check(sum(predicted["collectives"].values()) > 0, "four ranks that never spoke")
    for rank in report["ranks"]:
        check(len(rank["step_seconds"]) == STEPS, f"steps of rank {rank['rank']}")
        check(rank["stage"] >= 0 and isinstance(rank["coordinates"], list),
              f"place of rank {rank['rank']}")
        check(0 < rank["peak_tensor_bytes"] <= predicted["peak_tensor_bytes"],
              f"peak of rank {rank['rank']}: {rank['peak_tensor_bytes']} bytes, "
              f"predicted at most {predicted['peak_tensor_bytes']}")
    for figure in ("loss", "gradients", "buffers", "weights"):
        check(report["verify"][figure] <= VERIFY_TOLERANCE,
              f"verify: {figure} {report['verify'][figure]}")


def check_losses(losses, expected):
    check(len(losses) == STEPS, f"{len(losses)} losses")
    for step, (got, want) in enumerate(zip(losses, expected)):
        check(math.isclose(got, want, rel_tol=LOSS_TOLERANCE),
              f"loss of step {step + 1}: {got}, eager {want}")


def check_weights(weights, expected, model, tolerance):
    """`expected` names each tie twice, as the file does."""
    missing = sorted(set(expected) - set(weights))
    check(not missing, f"saved weights lack {missing}")
    buffers = {name for name, _ in model.named_buffers(remove_duplicate=False)}
    unknown = sorted(set(weights) - set(expected) - buffers)
    check(not unknown, f"saved weights hold {unknown}")
    worst = ("", 0.0)
    for name, want in expected.items():
        got = weights[name]
        check(got.dtype == want.dtype and got.shape == want.shape,
              f"{name}: {got.dtype} {tuple(got.shape)}")
        error = ((got - want).abs().max() / want.abs().max()).item()
        check(math.isfinite(error), f"{name} is not finite")
        worst = max(worst, (name, error), key=lambda pair: pair[1])
    check(worst[1] <= tolerance, f"{worst[0]} is off by {worst[1]} of its largest entry")
    return worst[1]


def run_scenario(binaries, name, is_full):
    scenario = SCENARIOS[name]
    layouts = scenario.layouts if is_full else scenario.quick
    failures = 0
    with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
        commands = Commands(binaries, folder)
        export(commands, scenario)
        data = eager.batches(scenario)
        save_file(data, commands.folder / "batches.safetensors")
        losses, expected, model = eager.train(scenario, data)
        check(losses[-1] < losses[0] + 1, f"eager training diverges: {losses}")
        for layout in layouts:
            label = f"{name} under {layout or 'no pins'}"
            try:
                train_on_ranks(commands, scenario, layout)
                report = json.loads((commands.folder / "report.json").read_text())
                check_report(report)
                check_losses(report["losses"], losses)
                weights = load_file(commands.folder / "weights.safetensors")
                error = check_weights(weights, expected, model,
                                      ADAMW_WEIGHT_TOLERANCE if scenario.optimizer == "adamw"
                                      else WEIGHT_TOLERANCE)
            except Failure as failure:
                failures += 1
                print(f"FAILED {label}: {failure}", flush=True)
            else:
                print(f"passed {label}: weights within {error:.1e}", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder of the binaries")
    parser.add_argument("--full", action="store_true", help="every layout")
    parser.add_argument("scenarios", nargs="+", choices=sorted(SCENARIOS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    failures = sum(run_scenario(options.bin, name, options.full) for name in options.scenarios)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
