"""The joint graph of every test model equals eager autograd in float64.

usage: replay_test.py REPLAY_BINARY

Each model with labels and with logits only (--loss), with a static and with a
dynamic batch, whole and in units; and a twin that must fail.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import export  # noqa: E402
import reference  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

BINARY = sys.argv.pop(1)
ROWS = 6


class Replay(unittest.TestCase):
    def setUp(self):
        warnings.filterwarnings("ignore")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model, self.data, self.expected = (
            str(pathlib.Path(folder.name, name))
            for name in ("model.pt2", "data.safetensors", "expected.safetensors"))

    def replay(self, *arguments):
        command = [BINARY, self.model, "--data", self.data, "--reference", self.expected]
        return subprocess.run([*command, *arguments], capture_output=True, text=True)

    def check(self, name, *, units=(ROWS,), loss=None, **options):
        export.export(name, self.model, dropout=0, data=self.data, rows=ROWS, **options)
        reference.reference(self.model, self.data, self.expected, loss)
        arguments = ["--loss", loss + ":logits,labels"] if loss else []
        for rows in units:
            with self.subTest(name=name, rows=rows, loss=loss, **options):
                run = self.replay("--rows", str(rows), *arguments)
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def check_all(self, name, loss):
        for logits_only in (False, True):
            how = dict(logits_only=logits_only, loss=loss if logits_only else None)
            self.check(name, batch=ROWS, **how)
            self.check(name, dynamic_batch=True, size="odd", units=(1, 2, ROWS), **how)

    def test_mlp(self):
        self.check_all("mlp", "ce")

    def test_gpt(self):
        self.check_all("gpt", "ce")

    def test_gpt2(self):
        self.check_all("gpt2", "causal_lm")

    def test_llama(self):
        self.check_all("llama", "causal_lm")

    def test_an_op_whose_shape_its_kernel_knows(self):
        self.check("distances", dynamic_batch=True, units=(2, ROWS))

    def test_two_means_frozen_parameters_and_buffers(self):
        self.check("regressor", batch=ROWS)
        self.check("regressor", dynamic_batch=True)

    def test_a_mean_that_is_no_part_of_the_loss(self):
        self.check("metric", dynamic_batch=True)

    def test_dropout_does_not_depend_on_the_units(self):
        for name in ("gpt", "gpt2"):
            export.export(name, self.model, dropout=0.2, dynamic_batch=True, data=self.data,
                          rows=ROWS)
            command = [BINARY, self.model, "--data", self.data]
            subprocess.run([*command, "--write", self.expected, "--rows", str(ROWS)], check=True)
            for rows in (1, 2, 3):
                with self.subTest(name=name, rows=rows):
                    run = self.replay("--rows", str(rows))
                    self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            # The masks are not all ones.
            reference.reference(self.model, self.data, self.expected)
            self.assertEqual(self.replay("--rows", str(ROWS)).returncode, 1)

    def test_finds_a_wrong_gradient(self):
        self.check("mlp", batch=ROWS)
        tensors = load_file(self.expected)
        tensors["gradient:mid.weight"][3, 5] += 1e-9
        save_file(tensors, self.expected)
        run = self.replay()
        self.assertEqual(run.returncode, 1)
        self.assertIn("mid.weight", run.stdout)


if __name__ == "__main__":
    unittest.main()
