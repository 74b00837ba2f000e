"""The console blocks of docs/howto say what the program says.

    docs.py --bin DIR [--update]

In a page, a fence "json NAME" is the file NAME; in a fence "console" each line
after "$ " is run by bash in one folder a page, and what follows is its output.
--update writes what the program says now into the pages.
"""

import os
import pathlib
import re
import subprocess
import sys

from tool import ToolTest, main

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs/howto"
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
UPDATE = "--update" in sys.argv


class Docs(ToolTest):
    def said(self, command):
        path = f"{pathlib.Path(self.binaries).resolve()}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, text=True, timeout=240,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, "PATH": path},
                              check=False)
        return done.stdout

    def block(self, text):
        """The block with what its commands say now."""
        commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        return "".join(f"$ {command}\n{self.said(command)}" for command in commands)

    def page(self, path):
        def now(fence):
            kind, name, body = fence.groups()
            if kind == "json" and name.strip():
                self.write(name.strip(), body)
            if kind != "console":
                return fence.group(0)
            return f"```console{name}\n{self.block(body)}```"

        return FENCE.sub(now, path.read_text())

    def test_pages(self):
        pages = [path for path in sorted(PAGES.glob("*.md")) if "```console" in path.read_text()]
        self.assertTrue(pages)
        for path in pages:
            with self.subTest(page=path.name):
                text = self.page(path)
                if UPDATE:
                    path.write_text(text)
                self.maxDiff = None
                self.assertEqual(path.read_text(), text,
                                 "the page says something else: docs.py --update")


if __name__ == "__main__":
    sys.argv = [argument for argument in sys.argv if argument != "--update"]
    main()
