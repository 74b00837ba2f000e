"""monarch-plan run as a user does, in a folder of its own."""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "acceptance"))

from commands import Commands  # noqa: E402

USAGE, BAD_INPUT, INFEASIBLE, UNSUPPORTED, STALE, LIMIT = 2, 3, 4, 5, 6, 7


def llama(layers=32, hidden=4096, heads=32, kv_heads=8, mlp=14336, vocabulary=128256):
    """The config.json of a Llama; 8B by default."""
    return {"model_type": "llama", "hidden_size": hidden, "intermediate_size": mlp,
            "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "vocab_size": vocabulary,
            "tie_word_embeddings": False}


def cards(device, nodes, per_node, memory=None, **levels):
    """A cluster file; levels by name and bandwidth."""
    document = {"schema": "monarch.cluster/1", "extends": f"{nodes}x{per_node}x{device}",
                "levels": [{"name": name, "bw": bandwidth} for name, bandwidth in levels.items()]}
    if memory:
        document["devices"] = {device: {"memory": memory}}
    return document


class ToolTest(unittest.TestCase):
    binaries = ""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="monarch-")
        self.addCleanup(temporary.cleanup)
        self.commands = Commands(self.binaries, temporary.name)
        self.folder = self.commands.folder

    def write(self, name, content):
        text = content if isinstance(content, str) else json.dumps(content)
        (self.folder / name).write_text(text)
        return name

    def tool(self, *arguments, **options):
        """Succeeds, and says its text."""
        result = self.commands.run(self.commands.program("monarch-plan"), *arguments, **options)
        self.assertEqual(result.code, 0, f"{arguments}: {result}")
        return result

    def document(self, *arguments, **options):
        return self.tool("--format", "json", *arguments, **options).document()

    def refused(self, code, *arguments, says=(), **options):
        """Fails with this code, in both formats, names why, writes nothing."""
        before = self.snapshot()
        for form in ("text", "json"):
            result = self.commands.run(self.commands.program("monarch-plan"), "--format", form,
                                       *arguments, **options)
            shown = f"{arguments}: {result}"
            self.assertEqual(result.code, code, shown)
            self.assertRegex(result.err, r"error MP\d{4}: .", shown)
            if form == "json":
                error = result.document()["error"]
                self.assertEqual(error["code"], code, shown)
                self.assertTrue(error["message"], shown)
            else:
                self.assertEqual(result.out, "", shown)
            for text in says:
                self.assertIn(text, result.err, shown)
        self.assertEqual(self.snapshot(), before, f"{arguments} changes files")

    def snapshot(self):
        return {str(path.relative_to(self.folder)): path.read_bytes()
                for path in self.folder.rglob("*") if path.is_file()}

    def remarks(self, document):
        return "\n".join(document["remarks"])

    def price(self, config, cluster, fix, *more, target="megatron", rows=64, sequence=4096):
        """A pinned layout, as it is."""
        self.write("config.json", config)
        return self.document("simulate", "config.json", "--seq-len", sequence, "--cluster", cluster,
                             "--global-batch", rows, "--target", target, "--fix", fix, *more)

    def fake_smi(self, query, matrix=""):
        """A PATH on which nvidia-smi answers this."""
        folder = self.folder / "fake"
        folder.mkdir(exist_ok=True)
        self.write("fake/query.txt", query)
        self.write("fake/matrix.txt", matrix)
        script = folder / "nvidia-smi"
        script.write_text('#!/bin/sh\nhere=$(dirname "$0")\ncase "$1" in\n'
                          '  --query-gpu=*) cat "$here/query.txt" ;;\n'
                          '  topo) cat "$here/matrix.txt" ;;\n  *) exit 1 ;;\nesac\n')
        script.chmod(0o755)
        return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options, rest = parser.parse_known_args()
    ToolTest.binaries = options.bin
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])
