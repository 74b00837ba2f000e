"""Runs the project's binaries as a user does, and hands back what they said."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "test/models"
# A command that takes longer hangs.
PATIENCE_SECONDS = 240


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str

    def document(self):
        """The one document on stdout; json.loads refuses anything after it."""
        return json.loads(self.out)


class Failure(Exception):
    """A check that does not hold."""


def check(holds, text):
    if not holds:
        raise Failure(text)


class Commands:
    """The binaries of one build, run in one folder."""

    def __init__(self, binaries, folder):
        self.binaries = pathlib.Path(binaries).resolve()
        self.folder = pathlib.Path(folder)

    def program(self, name):
        return str(self.binaries / name)

    def run(self, *arguments, environment=None):
        """Any command; ends it, by its id, when it hangs."""
        done = subprocess.run(
            [str(argument) for argument in arguments], cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_SECONDS,
            env={**os.environ, **(environment or {})})
        return Result(done.returncode, done.stdout, done.stderr)

    def plan_tool(self, *arguments):
        return self.run(self.program("monarch-plan"), *arguments)

    def succeed(self, *arguments, **options):
        result = self.run(*arguments, **options)
        command = " ".join(pathlib.Path(str(a)).name for a in arguments[:2])
        check(result.code == 0, f"{command} exits with {result.code}\n"
              f"  {' '.join(map(str, arguments))}\n{result.out}{result.err}")
        return result

    def plan_tool_succeeds(self, *arguments):
        return self.succeed(self.program("monarch-plan"), *arguments)

    def export(self, *arguments):
        self.succeed(sys.executable, MODELS / "export.py", *arguments)
