"""Seconds and memory of import and plan on a 12-layer GPT-2 (124 M parameters).

    bench/import_plan.py --bin build/release/bin [--runs 5] [--no-limits]

Prints the median of the runs for cpu:4 and for 64 H100s, and the peak resident
memory of the process. Exits with 1 above 3 s for both together or above 1.5 GB,
but for --no-limits: builds and machines of other kinds run it to see that it
still works.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

from measure import measure

ROOT = pathlib.Path(__file__).resolve().parents[1]
CASES = (("cpu:4", 8), ("8x8xH100-SXM-80GB", 512))
MOST_SECONDS = 3.0
MOST_BYTES = 1.5e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder of the binaries")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-limits", action="store_true", help="print, do not judge")
    options = parser.parse_args()
    tool = str(pathlib.Path(options.bin, "monarch-plan").resolve())
    total_seconds, most_bytes = 0.0, 0
    with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
        model = str(pathlib.Path(folder, "gpt2.pt2"))
        subprocess.run([sys.executable, ROOT / "test/models/export.py", "gpt2", "-o", model,
                        "--size", "124m", "--batch", "2", "--dynamic-batch"], check=True)
        for cluster, rows in CASES:
            runs = [measure([tool, "plan", model, "--cluster", cluster,
                             "--global-batch", str(rows)]) for _ in range(options.runs)]
            seconds = statistics.median(run[0] for run in runs)
            peak = max(run[1] for run in runs)
            print(f"{cluster}: {seconds:.2f} s, {peak / 1e9:.2f} GB", flush=True)
            total_seconds += seconds
            most_bytes = max(most_bytes, peak)
    print(f"together {total_seconds:.2f} s (at most {MOST_SECONDS}), "
          f"{most_bytes / 1e9:.2f} GB (at most {MOST_BYTES / 1e9})")
    if options.no_limits:
        return 0
    return int(total_seconds > MOST_SECONDS or most_bytes > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
