"""Files that are no model, or not this one, get a named error and exit code.

usage: bad_models_test.py DUMP_GRAPH_BINARY
"""

import gzip
import io
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import export  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

BINARY = sys.argv.pop(1)


class BadModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.filterwarnings("ignore")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.good = pathlib.Path(cls.folder.name, "good.pt2")
        export.export("mlp", str(cls.good), dropout=0, logits_only=True, dynamic_batch=True)
        cls.bytes = cls.good.read_bytes()

    def run_on(self, path, *arguments):
        return subprocess.run([BINARY, str(path), *arguments], capture_output=True, text=True)

    def assert_error(self, run, code, identifier, *texts):
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertIn(f"error {identifier}: ", run.stderr)
        self.assertIn("\n  fix: ", run.stderr)
        for text in texts:
            self.assertIn(text, run.stderr)

    def file(self, content):
        path = pathlib.Path(self.folder.name, "bad")
        if callable(content):
            content(path)
        else:
            path.write_bytes(content)
        return path

    def rewritten(self, name, change):
        """The good model with one record's text changed."""
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self.bytes)) as source, zipfile.ZipFile(out, "w") as target:
            for info in source.infolist():
                data = source.read(info)
                if info.filename.endswith(name):
                    data = change(data.decode()).encode()
                target.writestr(info.filename, data)
        return out.getvalue()

    def test_good_model_with_a_loss(self):
        run = self.run_on(self.good, "--loss", "ce:logits,labels")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('"unit_rows": 4', run.stdout)
        for arguments in (["--rows", "6"], ["--shape", "x=6x32"]):
            run = self.run_on(self.good, "--loss", "ce:logits,labels", *arguments)
            self.assertIn('"unit_rows": 6', run.stdout)

    def test_parameters_that_share_a_part(self):
        def tie_first_two(text):
            config = json.loads(text)
            first, second = list(config["config"].values())[:2]
            second["path_name"] = first["path_name"]
            return json.dumps(config)

        # One file of weights may hold several; here one lies inside another.
        bent = self.rewritten("weights/model_weights_config.json", tie_first_two)
        self.assert_error(self.run_on(self.file(bent)), 3, "MP1007", "share part of their memory")

    def test_files_that_are_no_model(self):
        module = torch.nn.Linear(2, 2)
        cases = {
            "MP1001": [pathlib.Path(self.folder.name, "nothing.pt2")],
            "MP1002": [b"", b"def forward(x):\n    return x\n", bytes(range(200)),
                       lambda path: zipfile.ZipFile(path, "w").close() or path.write_bytes(b"\1")],
            "MP1004": [lambda path: torch.save(module.state_dict(), path),
                       lambda path: save_file(module.state_dict(), path)],
            "MP1005": [lambda path: torch.save(module, path),
                       lambda path: torch.save(module, path,
                                               _use_new_zipfile_serialization=False)],
        }
        for identifier, contents in cases.items():
            for content in contents:
                with self.subTest(identifier=identifier, content=content):
                    path = content if isinstance(content, pathlib.Path) else self.file(content)
                    self.assert_error(self.run_on(path), 3, identifier, str(path))

    def test_files_of_other_kinds_are_named(self):
        def archive(*names):
            def write(path):
                with zipfile.ZipFile(path, "w") as out:
                    for name in names:
                        out.writestr("model/" + name, "x")
            return write

        onnx = b"\x08\x0a\x12\x07pytorch\x1a\x052.3.0:\x80\x01"
        cases = {
            "Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n",
            "web page": b"\n<!DOCTYPE html>\n<html><body>404</body></html>",
            "ONNX": onnx,
            "GGUF": b"GGUF\3\0\0\0",
            "HDF5": b"\x89HDF\r\n\x1a\n",
            "gzip": gzip.compress(self.bytes),
            "compiled package": archive("archive_format",
                                        "data/aotinductor/model/model.wrapper.so"),
            "torch 2.7 or older": archive("serialized_exported_program.json"),
        }
        for words, content in cases.items():
            with self.subTest(words):
                run = self.run_on(self.file(content))
                identifier = re.search(r"error (MP\d+)", run.stderr).group(1)
                self.assert_error(run, 3, identifier, words)
                self.assertIn(identifier, ("MP1002", "MP1006"))

    def test_truncated_model(self):
        for share in (0.1, 0.5, 0.9, 0.999):
            content = self.bytes[: int(len(self.bytes) * share)]
            with self.subTest(share=share):
                self.assert_error(self.run_on(self.file(content)), 3, "MP1003")

    def test_programs_that_cannot_be_read(self):
        changes = {
            "MP1007": [lambda text: text.replace('"major": 8', '"major": 9'),
                       lambda text: text.replace('"nodes"', '"notes"', 1),
                       lambda text: text.replace('"as_tensor"', '"as_tension"', 1),
                       lambda text: text.replace('"user_output"', '"buffer_mutation"')],
            "MP1008": [lambda text: text.replace("torch.ops.aten.relu.default",
                                                 "torch.ops.aten.nonzero.default")],
            "MP1025": [lambda text: text.replace("torch.ops.aten.relu.default",
                                                 "torch.ops.mine.relu.default")],
            "MP1903": [lambda text: text[:-100], lambda text: "[" * 500],
        }
        for identifier, list_of_changes in changes.items():
            for index, change in enumerate(list_of_changes):
                with self.subTest(identifier=identifier, index=index):
                    path = self.file(self.rewritten("models/model.json", change))
                    run = self.run_on(path, "--loss", "ce:logits,labels")
                    self.assert_error(run, 3, identifier)

    def test_random_damage_never_crashes(self):
        generator = random.Random(3)
        for _ in range(15):
            content = bytearray(self.bytes)
            start = content.find(b'"graph_module"')
            for _ in range(4):
                content[generator.randrange(start, len(content))] = generator.randrange(256)
            run = self.run_on(self.file(bytes(content)))
            self.assertIn(run.returncode, (0, 3), run.stderr)

    def test_losses_and_shapes(self):
        cases = [
            (3, "MP1009", []),  # logits are no loss
            (3, "MP1009", ["--loss", "nothing"]),
            (3, "MP1009", ["--loss", "ce:nothing,labels"]),
            (2, "MP1009", ["--loss", "ce:logits"]),
            (2, "MP1009", ["--loss", "mean:logits,labels"]),
            (3, "MP1009", ["--loss", "ce:logits,x"]),
            (3, "MP1009", ["--loss", "causal_lm:logits,labels"]),  # no sequence
            (2, "MP1022", ["--loss", "ce:logits,labels", "--rows", "0"]),
        ]
        ce = ["--loss", "ce:logits,labels"]
        cases += [
            (2, "MP1010", [*ce, "--shape", "x=4x31"]),  # fixed in the file
            (2, "MP1010", [*ce, "--shape", "x=4"]),
            (2, "MP1010", [*ce, "--shape", "x=0x32"]),
            (2, "MP1010", [*ce, "--shape", "y=4x32"]),
        ]
        for code, identifier, arguments in cases:
            with self.subTest(arguments=arguments):
                self.assert_error(self.run_on(self.good, *arguments), code, identifier)


if __name__ == "__main__":
    unittest.main()
