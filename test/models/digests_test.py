"""The digest of a model's graph does not depend on who exported it: torch 2.11 and
2.15 give one, and so do processes with other hash seeds and source files.

usage: digests_test.py MONARCH_PLAN
"""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY = sys.argv.pop(1)
HERE = pathlib.Path(__file__).resolve().parent
FILES = HERE.parent / "fixtures/torch-2.11"


def run(*command, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode:
        raise AssertionError(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


def inspect(path):
    return json.loads(run(BINARY, "inspect", path, "--format", "json"))


class Digests(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="monarch-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_torch_2_11_and_this_one(self):
        run("bash", FILES / "make.sh", sys.executable, self.folder)
        for model in ("mlp", "gpt2", "resnet", "mixtral"):
            with self.subTest(model):
                digests, producers = [], []
                for number, folder in enumerate((FILES, self.folder)):
                    path = self.folder / f"{model}-{number}.pt2"
                    path.write_bytes(gzip.decompress((folder / f"{model}.pt2.gz").read_bytes()))
                    document = inspect(path)
                    digests.append(document["graph"])
                    producers.append(document["file"]["producer"])
                self.assertTrue(producers[0].startswith("torch 2.11."), producers)
                self.assertFalse(producers[1].startswith("torch 2.11."), producers)
                self.assertEqual(len(digests[0]), 64)
                self.assertEqual(digests[0], digests[1])

    def test_other_processes_and_source_files(self):
        """Twice the same; then from copies of the sources, elsewhere and with other
        lines; another model has another digest."""
        copy = self.folder / "copy of models"
        copy.mkdir()
        for name in ("models.py", "export.py"):
            shutil.copy(HERE / name, copy / name)
        text = (copy / "models.py").read_text()
        (copy / "models.py").write_text("# another\n# file\n" + text.replace("class Gpt(",
                                                                            "class Other(")
                                        .replace('"gpt": Gpt', '"gpt": Other'))
        digests = []
        for number, (folder, seed, extra) in enumerate(((HERE, "1", ()), (HERE, "2", ()),
                                                        (copy, "3", ()),
                                                        (HERE, "1", ("--layers", "3")))):
            path = self.folder / f"gpt-{number}.pt2"
            run(sys.executable, "-W", "ignore", folder / "export.py", "gpt", "-o", path,
                "--dynamic-batch", "--dropout", "0", *extra, PYTHONHASHSEED=seed)
            digests.append(inspect(path)["graph"])
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(digests[0], digests[2])
        self.assertNotEqual(digests[0], digests[3])


if __name__ == "__main__":
    unittest.main()
