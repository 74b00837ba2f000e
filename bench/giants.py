"""Seconds and memory of inspect and import on models that fit no machine.

    bench/giants.py --bin build/release/bin [--keep FOLDER] [NAME...]

Exports Llama-3.1-405B and a 671 B mixture of experts without weights (minutes;
--keep reuses the files), then prints for each the median of three runs of
`inspect` and of the joint graph's import. Exits with 1 above 2 s and 500 MB
for inspect, 10 s and 2 GB for the import (release build, two cores).
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from measure import measure

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Configurations as published by their authors (config.json on the hub).
MODELS = {
    "llama-405b": ("llama", {
        "vocab_size": 128256, "hidden_size": 16384, "intermediate_size": 53248,
        "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8,
        "max_position_embeddings": 131072}),
    "deepseek-671b": ("deepseek_v3", {
        "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432,
        "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128,
        "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
        "num_experts_per_tok": 8, "first_k_dense_replace": 3}),
}
# Verb, further arguments, seconds, bytes.
VERBS = (("inspect", (), 2.0, 500e6), ("import", ("--emit", "graph"), 10.0, 2e9))


def export(name, output):
    architecture, fields = MODELS[name]
    command = [sys.executable, "-m", "monarch_plan.export", "--config", architecture,
               "--fake-weights", "--dtype", "bfloat16", "--sequence", "4096", "--dynamic-batch",
               "-o", str(output)]
    for key, value in fields.items():
        command += ["--set", f"{key}={value}"]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], default=[])
    parser.add_argument("--bin", required=True, help="folder of the binaries")
    parser.add_argument("--keep", help="folder of exports to reuse")
    options = parser.parse_args()
    tool = str(pathlib.Path(options.bin, "monarch-plan").resolve())
    failed = False
    with tempfile.TemporaryDirectory(prefix="monarch-") as temporary:
        folder = pathlib.Path(options.keep or temporary)
        for name in options.names or MODELS:
            model = folder / f"{name}.pt2"
            if not model.exists():
                export(name, model)
            for verb, arguments, most_seconds, most_bytes in VERBS:
                runs = [measure([tool, "inspect", str(model), *arguments]) for _ in range(3)]
                seconds = statistics.median(run[0] for run in runs)
                peak = max(run[1] for run in runs)
                print(f"{name}: {verb} {seconds:.2f} s (at most {most_seconds}), "
                      f"{peak / 1e6:.0f} MB (at most {most_bytes / 1e6:.0f})", flush=True)
                failed |= seconds > most_seconds or peak > most_bytes
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
