"""Models of the zoo: their joint graph equals eager autograd, and random plans agree.

    zoo_test.py --bin DIR [--plans 5] MODEL...

Each model is exported, replayed op by op in float64 against PyTorch eager, whole
and in units, and a few random legal plans run on threads against one process.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import reference
import zoo

ROWS = 4


class Failure(Exception):
    """What a command said."""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def worst(text):
    return re.search(r"worst error (\S+)", text).group(1)


def check(name, binaries, folder, plans):
    model, data, expected, graph = (
        folder / file for file in ("m.pt2", "data.safetensors", "expected.safetensors", "m.json"))
    dynamic = zoo.MODELS[name].dynamic_batch
    zoo.export(name, model, batch=2 if dynamic else ROWS, dynamic_batch=dynamic, data=data,
               rows=ROWS)
    reference.reference(model, data, expected)
    errors = [worst(run(binaries / "replay", model, "--data", data, "--reference", expected,
                        "--rows", rows)) for rows in ((2, ROWS) if dynamic else (ROWS,))]
    run(binaries / "dump-graph", model, "-o", graph)
    drawn = run(binaries.parent / "test/plans/random_plans", graph, plans, "--sample")
    return f"replay {max(errors, key=float)}, {plans} plans {worst(drawn)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the binaries")
    parser.add_argument("--plans", type=int, default=5)
    parser.add_argument("models", nargs="+", choices=list(zoo.MODELS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    status = 0
    for name in options.models:
        with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
            try:
                print(name, check(name, options.bin.resolve(), pathlib.Path(folder),
                                  options.plans), flush=True)
            except (Failure, zoo.exporter.ExportError) as failure:
                print(f"FAILED {name}: {failure}", flush=True)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
