"""A graph written from four captured blocks is that of all blocks, byte by byte.

usage: repeats_test.py DUMP_GRAPH_BINARY
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import export  # noqa: E402

BINARY = sys.argv.pop(1)
LAYERS = 7


class Repeats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.filterwarnings("ignore")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def dump(self, model, *arguments):
        run = subprocess.run([BINARY, model, *arguments], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_the_short_capture_gives_the_whole_graph(self):
        for name in ("gpt", "gpt2", "llama"):
            for options in ({"dropout": 0.1, "dynamic_batch": True}, {"dropout": 0},
                            {"dropout": 0, "logits_only": True, "dynamic_batch": True}):
                model = str(pathlib.Path(self.folder.name, name + ".pt2"))
                export.export(name, model, layers=LAYERS, **options)
                loss = ["--loss", "causal_lm:logits,labels"] if "logits_only" in options else []
                with self.subTest(name, **options):
                    whole = self.dump(model, *loss, "--all-blocks")
                    self.assertEqual(self.dump(model, *loss), whole)
                    self.assertIn(f".{LAYERS - 1}.", whole)
                with self.subTest(name, mode="infer", **options):
                    self.assertEqual(self.dump(model, "--infer"),
                                     self.dump(model, "--infer", "--all-blocks"))


if __name__ == "__main__":
    unittest.main()
