"""What ends a job in mid-run ends all of it, within seconds: a rank that is
killed (exit code 9, one cause line), and an interrupt of the launcher (130).
No rank, no scratch file and no output stays behind.

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

LOST_RANK, INTERRUPTED = 9, 130
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


class RunningJob:
    """`monarch-plan run` of a plan on four ranks, once it has made three steps."""

    def __init__(self, commands):
        self.folder = commands.folder
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self.launcher = subprocess.Popen(
            [commands.program("monarch-plan"), "run", "plan.json", "model.pt2",
             "--steps", "1000000", "--save-weights", "weights.safetensors",
             "--report", "report.json"],
            cwd=self.folder, env={**os.environ, "TMPDIR": str(self.scratch)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)

    def __enter__(self):
        # Ends early if the launcher does.
        for line in self.launcher.stdout:
            if line.startswith("step 3 "):
                break
        self.ranks = {int(environment_of(pid)["RANK"]): pid
                      for pid in children_of(self.launcher.pid)}
        check(sorted(self.ranks) == [0, 1, 2, 3], f"ranks {self.ranks}")
        return self

    def __exit__(self, *_):
        if self.launcher.poll() is None:
            self.launcher.send_signal(signal.SIGKILL)
            self.launcher.wait()

    def end(self, pid, sent, code):
        """Sends a signal; what the launcher says when it ends with this code."""
        os.kill(pid, sent)
        out, err = self.launcher.communicate(timeout=PATIENCE_SECONDS)
        check(self.launcher.returncode == code,
              f"exits with {self.launcher.returncode}\n{out}{err}")
        causes = re.findall(r"^error MP\d{4}:.*$", err, re.MULTILINE)
        check(len(causes) == 1, f"not one cause line:\n{err}")
        wait_until(lambda: not any(map(exists, self.ranks.values())), "the end of all ranks")
        check(not list(self.scratch.iterdir()), f"left behind: {list(self.scratch.iterdir())}")
        for name in ("weights.safetensors", "report.json"):
            check(not list(self.folder.glob(f"{name}*")), f"{name} of a job that failed")
        return err


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
        with RunningJob(commands) as job:
            err = job.end(job.ranks[2], signal.SIGKILL, LOST_RANK)
            check(re.search(r"rank 2\b", err), f"does not name rank 2:\n{err}")
            check(re.search(r"step \d+", err), f"does not name the step:\n{err}")
        for sent in (signal.SIGINT, signal.SIGTERM):
            with RunningJob(commands) as job:
                job.end(job.launcher.pid, sent, INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
