"""What `inspect` says of a model file is what PyTorch says of the model.

    inspect_model.py --bin DIR
"""

import argparse
import sys
import tempfile
import unittest

import torch

from commands import MODELS, Commands

sys.path.insert(0, str(MODELS))
import models  # noqa: E402


class Inspect(unittest.TestCase):
    binaries = ""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="monarch-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.commands = Commands(cls.binaries, cls.temporary.name)
        cls.commands.export("gpt", "-o", "gpt.pt2", "--size", "odd", "--dynamic-batch")
        cls.model = models.build("gpt", models.SIZES["odd"], 0, 0.1)

    def document(self, path):
        return self.commands.plan_tool_succeeds(
            "inspect", path, "--format", "json").document()

    def test_the_file_names_its_producer_and_open_sizes(self):
        file = self.document("gpt.pt2")["file"]
        self.assertEqual(file["producer"], f"torch {torch.__version__}")
        self.assertRegex(file["format"], r"^torch.export archive, schema 8\.\d+$")
        self.assertGreater(file["nodes"], 20)
        places = [place for size in file["open_sizes"] for place in size["places"]]
        self.assertEqual(sorted(places), ["input_ids dim 0", "labels dim 0"])
        stored = {parameter.untyped_storage().data_ptr(): parameter.nbytes
                  for parameter in self.model.parameters()}
        self.assertGreaterEqual(file["weight_bytes"], sum(stored.values()))

    def test_parameters_are_those_of_the_module(self):
        document = self.document("gpt.pt2")
        parameters = list(self.model.parameters())  # each tie once
        self.assertEqual(document["parameter_count"], sum(p.numel() for p in parameters))
        self.assertEqual(sum(group["count"] for group in document["parameters"]),
                         len(parameters))
        self.assertEqual(sorted(map(sorted, document["ties"])),
                         [["head.weight", "tokens.weight"]])

    def test_the_text_holds_the_same_figures(self):
        text = self.commands.plan_tool_succeeds("inspect", "gpt.pt2").out
        document = self.document("gpt.pt2")
        self.assertIn(f"({document['parameter_count']} exactly)", text)
        self.assertIn(f"written by torch {torch.__version__}", text)
        self.assertIn("blocks.{0..1}: 2 equal modules", text)

    def test_the_graph_of_a_file_is_described_as_the_file(self):
        graph = self.commands.plan_tool_succeeds("inspect", "gpt.pt2", "--emit", "graph").out
        (self.commands.folder / "gpt.json").write_text(graph)
        of_file, of_graph = self.document("gpt.pt2"), self.document("gpt.json")
        self.assertEqual(of_graph.pop("file"), {"format": "monarch.graph/1"})
        of_file.pop("file")
        self.assertEqual(of_file, of_graph)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options, rest = parser.parse_known_args()
    Inspect.binaries = options.bin
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
