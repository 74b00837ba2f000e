"""Searches that take a while: progress for a terminal, SIGINT, limits.

    long_searches.py --bin DIR

A search is interrupted by a signal that waits, blocked, for a program that lets
it in: it ends with the first candidates. So no test depends on the time of anything.
"""

import json
import os
import pty
import signal
import subprocess

from tool import LIMIT, USAGE, ToolTest, llama, main

INTERRUPTED = 130
SMALL = llama(layers=4, hidden=64, heads=4, kv_heads=2, mlp=128, vocabulary=256)


def interrupt_at_once():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    os.kill(os.getpid(), signal.SIGINT)


def ignore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGINT)


class LongSearches(ToolTest):
    def layout(self, *more, cluster="8xp5.48xlarge"):
        """The first degrees that are looked at have a layout that fits."""
        self.write("config.json", llama())
        return ("plan", "config.json", "--seq-len", 8192, "--cluster", cluster, "--global-batch",
                64, "--target", "megatron", *more)

    def own(self, *more, cluster="cpu:4"):
        self.write("small.json", SMALL)
        return ("plan", "small.json", "--seq-len", 32, "--cluster", cluster, "--global-batch", 8,
                "--dtype", "float32", *more)

    def begun(self, arguments, before, form="json"):
        return subprocess.run(
            [self.commands.program("monarch-plan"), "--format", form, *map(str, arguments)],
            cwd=self.folder, text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=240,
            preexec_fn=before)

    def test_an_interrupted_search_gives_its_best_so_far(self):
        for ask in (self.layout, self.own):
            whole = self.document(*ask())
            self.assertTrue(whole["search"]["complete"])
            done = self.begun(ask("-o", "plan.json"), interrupt_at_once)
            self.assertEqual(done.returncode, INTERRUPTED, done)
            plan = json.loads(done.stdout)
            self.assertFalse(plan["search"]["complete"])
            # No worse than it says: the bound holds for what was not looked at.
            best = whole["prediction"]["step_seconds"]
            self.assertGreaterEqual(plan["prediction"]["step_seconds"], best)
            self.assertLessEqual(plan["search"]["bound_seconds"], best)
            self.assertGreater(plan["search"]["gap"], 0)
            # The file is whole, and the plan a plan.
            self.assertEqual(json.loads((self.folder / "plan.json").read_text()), plan)
            said = self.begun(ask(), interrupt_at_once, form="text")
            self.assertEqual(said.returncode, INTERRUPTED)
            self.assertIn("ended early", said.stdout)
            self.assertIn("gap", said.stdout)

    def test_interrupted_before_anything_fits(self):
        tight = self.write("tight.json", {
            "schema": "monarch.cluster/1", "extends": "cpu:4",
            "devices": {"cpu": {"memory": "1MB", "reserved": "0B"}}})
        small = self.write("cards.json", {
            "schema": "monarch.cluster/1", "extends": "8x8xH100-SXM-80GB",
            "devices": {"H100-SXM-80GB": {"memory": "12GB"}}})
        for arguments in (self.own("-o", "p.json", cluster=tight),
                          self.layout("-o", "p.json", cluster=small)):
            before = self.snapshot()
            done = self.begun(arguments, interrupt_at_once)
            self.assertEqual(done.returncode, INTERRUPTED, done)
            self.assertIn("before any", json.loads(done.stdout)["error"]["message"])
            self.assertEqual(self.snapshot(), before)

    def test_what_has_interrupts_ignored_is_not_interrupted(self):
        for ask in (self.layout, self.own):
            done = self.begun(ask(), ignore_interrupts)
            self.assertEqual(done.returncode, 0, done)
            self.assertEqual(json.loads(done.stdout), self.document(*ask()))

    def test_limits_are_counts_of_work(self):
        for ask in (self.layout, self.own):
            whole = self.document(*ask())
            first = self.document(*ask("--limit", 1))
            self.assertFalse(first["search"]["complete"])
            self.assertEqual(self.document(*ask("--limit", 1)), first)
            self.assertGreaterEqual(first["prediction"]["step_seconds"],
                                    whole["prediction"]["step_seconds"])
            self.assertLessEqual(first["search"]["bound_seconds"],
                                 whole["prediction"]["step_seconds"])
            # One that is never reached changes nothing.
            self.assertEqual(self.document(*ask("--limit", 10**9)), whole)
        tight = self.write("tight.json", {
            "schema": "monarch.cluster/1", "extends": "cpu:4",
            "devices": {"cpu": {"memory": "1MB", "reserved": "0B"}}})
        self.refused(LIMIT, *self.own("--limit", 1, "-o", "p.json", cluster=tight),
                     says=("before any plan that fits",))
        self.refused(USAGE, *self.own("--limit", 0))

    def test_progress_is_for_terminals(self):
        for ask in (self.layout, self.own):
            plain = self.tool(*ask())
            self.assertEqual(plain.err, "")
            terminal, end = pty.openpty()
            with os.fdopen(terminal, "rb", buffering=0) as screen:
                done = subprocess.run(
                    [self.commands.program("monarch-plan"), *map(str, ask())], cwd=self.folder,
                    text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=end,
                    timeout=240, check=True)
                os.close(end)
                shown = b""
                try:
                    while part := screen.read(4096):
                        shown += part
                except OSError:  # Nobody writes any more.
                    pass
            # The result is the same; the line is taken away.
            self.assertEqual(done.stdout, plain.out)
            line = shown.decode()
            self.assertRegex(line, r"^\r\d+ (layouts bounded|of \d+ degrees looked at)")
            self.assertRegex(line, r"\r +\r$")


if __name__ == "__main__":
    main()
