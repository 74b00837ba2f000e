"""One run of a command: how long it took and how much memory it held."""

import os
import subprocess
import sys
import time


def measure(command):
    """Wall seconds and peak resident bytes of one run."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"exit code {process.returncode} of {' '.join(command)}")
    return seconds, usage.ru_maxrss * 1024
