"""A rank killed in mid-run ends the job: exit code 9, one cause line, all ranks
gone, within seconds.

    lost_rank.py --bin DIR
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from commands import Commands, check

LOST_RANK = 9
# Far above what it takes; a hang would end at the ranks' own 120 s at best.
PATIENCE_SECONDS = 60


def children_of(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def environment_of(pid):
    entries = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(entry.decode().split("=", 1) for entry in entries if b"=" in entry)


def exists(pid):
    """Neither gone nor waiting to be reaped."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def wait_until(holds, text):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        check(time.monotonic() < deadline, f"waited in vain for {text}")
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder of the binaries")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
        commands = Commands(options.bin, folder)
        commands.export("mlp", "-o", "model.pt2", "--dropout", 0, "--dynamic-batch")
        commands.plan_tool_succeeds("plan", "model.pt2", "--cluster", "cpu:4",
                                    "--global-batch", 8, "--fix", "dp=2,tp=2",
                                    "-o", "plan.json")
        launcher = subprocess.Popen(
            [commands.program("monarch-plan"), "run", "plan.json", "model.pt2",
             "--steps", "1000000", "--save-weights", "weights.safetensors"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        try:
            # Ends early if the launcher does.
            for line in launcher.stdout:
                if line.startswith("step 3 "):
                    break
            ranks = {int(environment_of(pid)["RANK"]): pid
                     for pid in children_of(launcher.pid)}
            check(sorted(ranks) == [0, 1, 2, 3], f"ranks {ranks}")
            os.kill(ranks[2], signal.SIGKILL)
            out, err = launcher.communicate(timeout=PATIENCE_SECONDS)
        finally:
            if launcher.poll() is None:
                launcher.send_signal(signal.SIGKILL)
                launcher.wait()
        check(launcher.returncode == LOST_RANK,
              f"exits with {launcher.returncode}\n{out}{err}")
        causes = re.findall(r"^error MP\d{4}:.*$", err, re.MULTILINE)
        check(len(causes) == 1, f"not one cause line:\n{err}")
        check(re.search(r"rank 2\b", err), f"does not name rank 2:\n{err}")
        check(re.search(r"step \d+", err), f"does not name the step:\n{err}")
        wait_until(lambda: not any(map(exists, ranks.values())), "the end of all ranks")
        check(not (commands.folder / "weights.safetensors").exists(),
              "weights of a job that failed")


if __name__ == "__main__":
    sys.exit(main())
