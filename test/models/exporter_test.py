"""python -m monarch_plan.export as users run it, without a network.

usage: exporter_test.py DUMP_GRAPH_BINARY
"""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["HF_HUB_OFFLINE"] = "1"
# What earlier downloads left: read when transformers is imported.
HUB = tempfile.TemporaryDirectory(prefix="hub-")
os.environ["HF_HUB_CACHE"] = HUB.name
sys.path.insert(0, str(ROOT / "python"))
from monarch_plan import export as exporter  # noqa: E402

BINARY = sys.argv.pop(1)
SMALL = ("hidden_size=32", "intermediate_size=64", "num_hidden_layers=1", "num_attention_heads=4",
         "vocab_size=64", "max_position_embeddings=16")


class Exporter(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "out/model.pt2"

    def export(self, *arguments):
        """The module's main, in this process: PyTorch is imported once."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = exporter.main([*map(str, arguments), "-o", str(self.model)])
            except SystemExit as usage:
                code = usage.code
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def graph(self, *arguments):
        run = subprocess.run([BINARY, self.model, *arguments], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def assert_refused(self, run, code, *texts):
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        self.assertFalse(self.model.exists())
        for text in texts:
            self.assertIn(text, run.stderr)
        self.assertNotIn("Traceback", run.stderr)

    def small(self):
        return [part for field in SMALL for part in ("--set", field)]

    def test_an_architecture_by_name(self):
        run = self.export("--config", "llama", *self.small(), "--sequence", 8, "--batch", 3)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("LlamaForCausalLM", run.stdout)
        self.assertIn("input_ids 3x8", run.stdout)
        graph = self.graph()
        self.assertEqual(graph["unit_rows"], 3)
        self.assertFalse(graph["dynamic_batch"])
        self.assertEqual([entry["name"] for entry in graph["inputs"]],
                         ["input_ids", "attention_mask", "labels"])

    def test_the_module_is_a_command(self):
        run = subprocess.run([sys.executable, "-m", "monarch_plan.export", "--help"], text=True,
                             capture_output=True, env={**os.environ,
                                                       "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("--dynamic-batch", run.stdout)

    def test_a_configuration_file(self):
        fields = dict(field.split("=") for field in SMALL)
        config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"],
                  **{name: int(value) for name, value in fields.items()}}
        path = self.folder / "config.json"
        path.write_text(json.dumps(config))
        for model in (path, self.folder):
            run = self.export(model, "--sequence", 8, "--dynamic-batch")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("BertForSequenceClassification", run.stdout)
            self.assertIn("labels 2", run.stdout)
            self.assertTrue(self.graph()["dynamic_batch"])

    def test_without_labels_and_without_dropout(self):
        run = self.export("--config", "bert", *self.small(), "--sequence", 8, "--no-labels",
                          "--eval")
        self.assertEqual(run.returncode, 0, run.stderr)
        graph = self.graph("--loss", "ce:logits,labels")
        self.assertFalse([op for op in graph["ops"] if "dropout" in op["op"]])

    def weights(self):
        with zipfile.ZipFile(self.model) as archive:
            return [archive.read(name) for name in sorted(archive.namelist())
                    if "weights/weight_" in name]

    def test_a_folder_and_a_model_of_the_hub_bring_their_weights(self):
        import transformers

        fields = {name: int(value) for name, value in (field.split("=") for field in SMALL)}
        config = transformers.LlamaConfig(**fields)
        saved = transformers.LlamaForCausalLM(config)
        embedding = saved.model.embed_tokens.weight.detach().numpy().tobytes()
        # As the hub's client lays out what it has fetched.
        revision = "0" * 40
        cached = pathlib.Path(HUB.name, "models--someone--tiny-llama")
        saved.save_pretrained(cached / "snapshots" / revision)
        (cached / "refs").mkdir()
        (cached / "refs/main").write_text(revision)
        for model in (cached / "snapshots" / revision, "someone/tiny-llama"):
            run = self.export(model, "--sequence", 8)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(embedding, self.weights())
            run = self.export(model, "--sequence", 8, "--random-weights")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertNotIn(embedding, self.weights())
        self.model.unlink()
        self.assert_refused(self.export("someone/else"), 3, "someone/else")

    def test_equal_seeds_give_equal_weights(self):
        weights = []
        for seed in (5, 5, 6):
            self.export("--config", "llama", *self.small(), "--sequence", 8, "--seed", seed)
            weights.append(self.weights())
        self.assertEqual(weights[0], weights[1])
        self.assertNotEqual(weights[0], weights[2])

    def test_what_cannot_be_exported(self):
        self.assert_refused(self.export("--config", "no-such"), 3, "no-such")
        self.assert_refused(self.export("--config", "llama", *self.small(), "--set", "hidden=3"), 3,
                            "no field hidden")
        self.assert_refused(self.export("--config", "llama", *self.small(), "--task",
                                        "image-classification"), 3, "image-classification")
        self.assert_refused(self.export(self.folder / "nothing"), 3, "nothing")
        self.assert_refused(self.export(), 2, "MODEL")
        self.assert_refused(self.export("--config", "llama", "--batch", 0), 2, "--batch")

    def test_torch_export_speaks_for_itself(self):
        # Layers that are dropped by a random number on the host.
        run = self.export("--config", "opt", "--set", "hidden_size=32", "--set", "ffn_dim=64",
                          "--set", "num_hidden_layers=1", "--set", "num_attention_heads=4",
                          "--set", "vocab_size=64", "--set", "layerdrop=0.5", "--sequence", 8)
        self.assert_refused(run, 3, "torch.export cannot export OPTForCausalLM",
                            "GuardOnDataDependentSymNode")


if __name__ == "__main__":
    unittest.main()
