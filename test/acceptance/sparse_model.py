"""A model of 8 GiB of weights is inspected and planned by its headers alone.

    sparse_model.py --bin DIR

The archive is a sparse file: its weights are a hole, which reading would fill
with time and memory.
"""

import argparse
import json
import os
import sys
import tempfile
import unittest
import zipfile

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from commands import Commands

ROWS, WIDTH = 2**21, 1024
WEIGHT_BYTES = ROWS * WIDTH * 4
# What the tool and its libraries take without any model.
MEMORY_BYTES = 400 << 20
HOLE = bytes(64 << 20)
# A process starts with the peak of the one that it was forked from: a small one.
MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


class SparseFile:
    """A file in which HOLE is skipped, not written."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def write(self, data):
        if len(data) == len(HOLE):
            self.file.seek(len(data), os.SEEK_CUR)
            return len(data)
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


class Lookup(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(ROWS, WIDTH)
        self.head = torch.nn.Linear(WIDTH, 16)

    def forward(self, ids, labels):
        return torch.nn.functional.cross_entropy(self.head(self.table(ids)), labels)


def write_model(path):
    """As torch.export.save writes it, but the table is a hole."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        program = torch.export.export(
            Lookup(), (torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)))
    headers = path.with_suffix(".headers")
    torch.export.save(program, headers)
    sparse = SparseFile(path)
    with zipfile.ZipFile(headers) as source, zipfile.ZipFile(sparse, "w") as target:
        for record in source.infolist():
            content = source.read(record)
            if record.filename.endswith("weights/model_weights_config.json"):
                # Fake tensors have one empty record together.
                config = json.loads(content)
                for i, name in enumerate(("table.weight", "head.weight", "head.bias")):
                    config["config"][name]["path_name"] = f"weight_{i}"
                content = json.dumps(config)
            if not record.filename.endswith("weights/weight_0"):
                target.writestr(record.filename, content)
        root = source.infolist()[0].filename.split("/")[0]
        target.writestr(f"{root}/data/weights/weight_1", bytes(WIDTH * 16 * 4))
        target.writestr(f"{root}/data/weights/weight_2", bytes(16 * 4))
        hole = zipfile.ZipInfo(f"{root}/data/weights/weight_0")
        with target.open(hole, "w", force_zip64=True) as record:
            for _ in range(WEIGHT_BYTES // len(HOLE)):
                record.write(HOLE)
    sparse.close()


class SparseModel(unittest.TestCase):
    binaries = ""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="monarch-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.commands = Commands(cls.binaries, cls.temporary.name)
        cls.path = cls.commands.folder / "wide.pt2"
        write_model(cls.path)

    def peak_bytes(self, *arguments):
        """Of the tool alone, and what it says; it succeeds."""
        result = self.commands.succeed(sys.executable, "-c", MEASURE,
                                       self.commands.program("monarch-plan"), *arguments)
        return int(result.err.split()[-1]) * 1024, result.out

    def test_the_file_is_a_hole(self):
        status = self.path.stat()
        self.assertGreater(status.st_size, WEIGHT_BYTES)
        self.assertLess(status.st_blocks * 512, 64 << 20)

    def test_inspect_reads_headers_alone(self):
        memory, output = self.peak_bytes("inspect", self.path)
        self.assertIn(str(ROWS * WIDTH + WIDTH * 16 + 16), output)
        self.assertLess(memory, MEMORY_BYTES)

    def test_plan_reads_headers_alone(self):
        memory, output = self.peak_bytes("plan", self.path, "--cluster", "8xH100-SXM-80GB",
                                         "--global-batch", 32, "--optimizer", "sgd")
        self.assertIn("world   8", output)
        self.assertLess(memory, MEMORY_BYTES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder of the binaries")
    options, rest = parser.parse_known_args()
    SparseModel.binaries = options.bin
    unittest.main(argv=[sys.argv[0], *rest])
