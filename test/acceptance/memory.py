"""Allocator peak <= predicted peak <= 1.1 x allocator peak, on the fullest rank.

    memory.py --bin DIR [--full]

Models of moderate size, so that tensors and not the allocator's rounding count.
"""

import argparse
import json
import sys
import tempfile

from commands import Commands, check

LARGEST_EXCESS = 1.1

# model, optimizer, rows of a step, rows of a unit, layouts
QUICK = [("gpt2", "adamw", 16, 4, ("dp=4", "pp=2,dp=2")),
         ("gpt2", "sgd", 16, 8, ("tp=4", "pp=4"))]
FULL = QUICK + [("gpt", "sgd", 16, 4, ("dp=4", "tp=4", "pp=4", "pp=2,dp=2", "dp=2,tp=2")),
                ("gpt2", "sgd", 16, 16, ("dp=4", "tp=4", "tp=2,pp=2")),
                ("llama", "adamw", 16, 4, ("dp=4", "tp=4", "pp=4", "dp=2,tp=2", "")),
                ("mlp", "adamw", 1024, 256, ("dp=4", "tp=4", "pp=2,dp=2"))]


def peaks(commands, optimizer, rows, micro_batch, layout):
    """Executed and predicted bytes of the fullest rank."""
    pins = ["--fix", layout] if layout else []
    commands.plan_tool_succeeds(
        "plan", "model.pt2", "--cluster", "cpu:4", "--global-batch", rows, "--micro-batch",
        micro_batch, "--optimizer", optimizer, *pins, "-o", "plan.json")
    commands.plan_tool_succeeds("run", "plan.json", "model.pt2", "--steps", 2,
                                "--report", "report.json")
    report = json.loads((commands.folder / "report.json").read_text())
    executed = max(rank["peak_tensor_bytes"] for rank in report["ranks"])
    return executed, report["predicted"]["peak_tensor_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder of the binaries")
    parser.add_argument("--full", action="store_true", help="every model and layout")
    options = parser.parse_args()
    misses = []
    for model, optimizer, rows, micro_batch, layouts in FULL if options.full else QUICK:
        with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
            commands = Commands(options.bin, folder)
            commands.export(model, "-o", "model.pt2", "--size", "medium", "--dropout", 0,
                            "--dynamic-batch", "--batch", 2)
            for layout in layouts:
                executed, predicted = peaks(commands, optimizer, rows, micro_batch, layout)
                line = (f"{model} {optimizer} {layout or 'no pins'}: executed {executed}, "
                        f"predicted {predicted}, ratio {predicted / executed:.4f}")
                print(line, flush=True)
                if not executed <= predicted <= LARGEST_EXCESS * executed:
                    misses.append(line)
    check(not misses, "outside of the bounds:\n" + "\n".join(misses))


if __name__ == "__main__":
    sys.exit(main())
