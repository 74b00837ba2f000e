"""What is wrong is named, with the exit code of DESIGN §8, and writes nothing.

    bad_input.py --bin DIR
"""

import argparse
import io
import json
import re
import shutil
import struct
import sys
import tempfile
import unittest
import zipfile

import torch
from safetensors.torch import load_file, save_file

from commands import Commands

USAGE, BAD_INPUT, INFEASIBLE, STALE = 2, 3, 4, 6

# One node of two devices; `memory` is a whole JSON member.
CLUSTER = """{"schema": "monarch.cluster/1", "name": "pair",
 "nodes": [{"device": "toy", "per_node": 2}],
 "devices": {"toy": {%s, "memory_bw": "10GB/s", "peak": {"float32": "1TFLOP/s"}}},
 "levels": [{"name": "bus", "size": 2, "bw": "1GB/s", "latency": "2us"}]}"""


class BadInput(unittest.TestCase):
    binaries = ""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="monarch-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.commands = Commands(cls.binaries, cls.temporary.name)
        cls.folder = cls.commands.folder
        cls.commands.export("gpt", "-o", "model.pt2", "--dropout", 0, "--dynamic-batch",
                            "--data", "data.safetensors", "--rows", 4)
        cls.commands.export("mlp", "-o", "other.pt2", "--dropout", 0, "--dynamic-batch")
        for name in ("model", "other"):
            cls.commands.plan_tool_succeeds(
                "plan", f"{name}.pt2", "--cluster", "cpu:2", "--global-batch", 4,
                "--optimizer", "sgd", "-o", f"{name}.plan.json")
        cls.commands.plan_tool_succeeds("compile", "model.plan.json", "model.pt2",
                                        "-o", "program")

    def snapshot(self):
        return {str(path.relative_to(self.folder)): path.read_bytes()
                for path in self.folder.rglob("*") if path.is_file()}

    def refused(self, code, *arguments, says=(), formats=("text", "json")):
        """The command fails, says why, and leaves no trace."""
        before = self.snapshot()
        for output_format in formats:
            result = self.commands.plan_tool("--format", output_format, *arguments)
            shown = f"{arguments}: {result}"
            self.assertEqual(result.code, code, shown)
            self.assertRegex(result.err, r"MP\d{4}", shown)
            if output_format == "json":
                error = result.document()["error"]
                self.assertRegex(error["id"], r"^MP\d{4}$", shown)
                self.assertEqual(error["code"], code, shown)
                self.assertTrue(error["message"], shown)
            else:
                self.assertEqual(result.out, "", shown)
            for text in says:
                self.assertIn(text, result.err, shown)
        self.assertEqual(self.snapshot(), before, f"{arguments} changes files")

    def refused_plan(self, code, model, *arguments, cluster="cpu:2", rows=4, says=()):
        (self.folder / "existing.json").write_text("kept\n")
        for target, output_format in (("absent.json", "text"), ("existing.json", "json")):
            self.refused(code, "plan", model, "--cluster", cluster, "--global-batch", rows,
                         "-o", target, *arguments, says=says, formats=(output_format,))

    def refused_run(self, code, *arguments, says=()):
        (self.folder / "existing.json").write_text("kept\n")
        self.refused(code, "run", *arguments, "--report", "existing.json",
                     "--save-weights", "absent.safetensors", says=says)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    # Models.

    def test_text_instead_of_a_model(self):
        self.refused_plan(BAD_INPUT, self.write("text.pt2", "not a model\n"), says=("text.pt2",))

    def test_empty_model(self):
        self.refused_plan(BAD_INPUT, self.write("empty.pt2", ""))

    def test_truncated_model(self):
        whole = (self.folder / "model.pt2").read_bytes()
        for share in (0.1, 0.5, 0.99):
            with self.subTest(share=share):
                self.refused_plan(BAD_INPUT,
                                  self.write("cut.pt2", whole[:int(len(whole) * share)]))

    def test_damaged_model(self):
        """One bit of the graph, so its checksum is wrong."""
        whole = bytearray((self.folder / "model.pt2").read_bytes())
        entry = next(entry for entry in zipfile.ZipFile(io.BytesIO(whole)).infolist()
                     if entry.filename.endswith("/model.json"))
        name, extra = struct.unpack("<HH", whole[entry.header_offset + 26:][:4])
        data = entry.header_offset + 30 + name + extra
        whole[data + entry.compress_size // 2] ^= 0x01
        self.refused_plan(BAD_INPUT, self.write("damaged.pt2", bytes(whole)))

    def test_state_dict(self):
        weights = {"a": torch.zeros(2)}
        torch.save(weights, self.folder / "weights.pt2")
        self.refused_plan(BAD_INPUT, "weights.pt2", says=("torch.export",))

    def test_missing_model(self):
        self.refused_plan(BAD_INPUT, "nowhere.pt2", says=("nowhere.pt2",))

    def test_folder_instead_of_a_model(self):
        (self.folder / "folder").mkdir(exist_ok=True)
        self.refused_plan(BAD_INPUT, "folder", says=("folder, not a .pt2",))

    def test_flags_of_an_import_with_a_graph(self):
        graph = self.commands.plan_tool_succeeds("inspect", "model.pt2", "--emit", "graph").out
        self.write("graph.json", graph)
        for flags in (("--loss", "0"), ("--shape", "input_ids=2x8"), ("--mode", "infer")):
            with self.subTest(flags=flags):
                self.refused_plan(USAGE, "graph.json", *flags, says=("MP1806",))

    def test_loss_of_no_output(self):
        self.refused_plan(BAD_INPUT, "model.pt2", "--loss", "ce:nowhere,labels",
                          says=("nowhere",))

    # Pins, clusters, batches.

    def test_degree_that_splits_no_head(self):
        self.refused_plan(INFEASIBLE, "model.pt2", "--fix", "tp=3", cluster="cpu:3",
                          says=("legal tp on 3 devices: 1",))

    def test_degrees_that_are_not_the_world(self):
        self.refused_plan(INFEASIBLE, "model.pt2", "--fix", "tp=3", cluster="cpu:4",
                          says=("1, 2, 4",))

    def test_unknown_pin(self):
        for pin in ("xp=2", "tp", "tp=x", "tp=0", "tp=2,tp=4"):
            with self.subTest(pin=pin):
                self.refused_plan(USAGE, "model.pt2", "--fix", pin)

    def test_bare_number_in_a_cluster(self):
        name = self.write("bare.json", CLUSTER % '"memory": 80')
        self.refused_plan(BAD_INPUT, "model.pt2", cluster=name,
                          says=("/devices/toy/memory", "GiB"))

    def test_cluster_of_another_version(self):
        name = self.write("newer.json", CLUSTER.replace("cluster/1", "cluster/2")
                          % '"memory": "1GiB"')
        self.refused_plan(BAD_INPUT, "model.pt2", cluster=name)

    def test_unknown_cluster(self):
        self.refused_plan(BAD_INPUT, "model.pt2", cluster="8xFOO")
        self.refused_plan(BAD_INPUT, "model.pt2", cluster="nowhere.json")

    def test_model_that_fits_nowhere(self):
        name = self.write("tiny.json", CLUSTER % '"memory": "20kB"')
        self.refused_plan(INFEASIBLE, "model.pt2", cluster=name)

    def test_micro_batch_that_does_not_divide(self):
        self.refused_plan(INFEASIBLE, "model.pt2", "--micro-batch", 3, rows=4)

    def test_batch_that_no_step_takes(self):
        for rows in (2**63 - 1, 2**40):
            with self.subTest(rows=rows):
                self.refused_plan(USAGE, "model.pt2", rows=rows, says=(f"{rows} rows",))
        self.refused_plan(USAGE, "model.pt2", rows=2**63)

    # Plans and programs.

    def test_plan_of_another_model(self):
        for arguments in (("compile", "model.plan.json", "other.pt2", "-o", "absent"),
                          ("compile", "other.plan.json", "model.pt2", "-o", "program")):
            with self.subTest(arguments=arguments):
                self.refused(STALE, *arguments)
        self.refused_run(STALE, "model.plan.json", "other.pt2")

    def test_weights_of_another_model(self):
        self.refused_run(STALE, "program", "--weights", "other.pt2",
                         says=("tokens.weight",))

    def test_damaged_plan(self):
        text = (self.folder / "model.plan.json").read_text()
        cut = self.write("cut.plan.json", text[:len(text) // 2])
        self.refused(BAD_INPUT, "compile", cut, "model.pt2", "-o", "absent")
        newer = self.write("newer.plan.json", text.replace("monarch.plan/1", "monarch.plan/2"))
        self.refused(BAD_INPUT, "compile", newer, "model.pt2", "-o", "absent")

    def changed_plan(self, change):
        """The plan with one thing changed."""
        plan = json.loads((self.folder / "model.plan.json").read_text())
        change(plan)
        return self.write("changed.plan.json", json.dumps(plan))

    def refused_change(self, code, change, *says):
        self.refused(code, "compile", self.changed_plan(change), "model.pt2",
                     "-o", "absent", says=says)

    def test_plan_of_stages_that_no_model_has(self):
        for stages in (10**6, 10**12, 0, -1, [1] * 100_000, "2"):
            with self.subTest(stages=str(stages)[:20]):
                self.refused_change(
                    BAD_INPUT, lambda plan: plan["decisions"].update(stages=stages), "stage")
        rules = [{"match": f"blocks.{i}", "stage": "0"} for i in range(20_000)]
        self.refused_change(
            BAD_INPUT, lambda plan: plan["decisions"].update(stage_of=rules), "blocks.")

    def test_plan_of_more_ranks_than_there_are(self):
        axes = [{"name": f"dp{i}", "size": 2**20, "role": "data"} for i in range(8)]
        self.refused_change(BAD_INPUT, lambda plan: plan["decisions"].update(mesh=axes), "ranks")

    def test_plan_without_rows(self):
        self.refused_change(BAD_INPUT, lambda plan: plan["decisions"].pop("unit_rows"),
                            "unit_rows")

    def test_plan_without_a_model(self):
        self.refused_change(BAD_INPUT, lambda plan: plan.update(inputs={}),
                            "/inputs/graph/digest")

    def test_edited_plan(self):
        """Decisions that are legal, but not those that were priced."""
        def change(plan):
            plan["decisions"]["optimizer"] = "adamw"
        self.refused_change(STALE, change, "MP2213", "peak_tensor_bytes")
        self.refused_run(STALE, self.changed_plan(change), "model.pt2", says=("MP2213",))

    def test_all_that_is_wrong_with_a_plan(self):
        """In one message, each with its place in the model."""
        def change(plan):
            plan["decisions"]["stages"] = 1
            plan["decisions"]["stage_of"] = [{"match": "**", "stage": "3"}]
        self.refused_change(BAD_INPUT, change, "violations", "at blocks.0 (models.py:",
                            "at blocks.0.qkv (linear.py:", "more")

    def test_changed_program(self):
        """A file that is not the manifest's."""
        for name in ("manifest.json", "role-0.json"):
            shutil.copytree(self.folder / "program", self.folder / "changed",
                            dirs_exist_ok=True)
            path = self.folder / "changed" / name
            path.write_text(path.read_text().replace('"mul"', '"add"', 1)
                            .replace("1", "2", 1))
            result = self.commands.plan_tool("run", "changed", "--weights", "model.pt2")
            self.assertIn(result.code, (BAD_INPUT, STALE), result)
            self.assertRegex(result.err, r"MP\d{4}")

    def test_existing_folder_that_is_no_program(self):
        (self.folder / "mine").mkdir(exist_ok=True)
        self.write("mine/notes.txt", "kept\n")
        self.refused(BAD_INPUT, "compile", "model.plan.json", "model.pt2", "-o", "mine")

    def test_missing_program(self):
        self.refused_run(BAD_INPUT, "nowhere", "--weights", "model.pt2")

    def test_graph_instead_of_weights(self):
        graph = self.commands.plan_tool_succeeds("inspect", "model.pt2", "--emit", "graph").out
        self.refused_run(BAD_INPUT, "program", "--weights", self.write("graph.json", graph),
                         says=("JSON",))

    def test_outputs_without_a_folder(self):
        """Said before the first step."""
        for flag in ("--report", "--save-weights"):
            with self.subTest(flag=flag):
                self.refused(BAD_INPUT, "run", "program", "--weights", "model.pt2",
                             flag, "nowhere/out", says=("MP1902", "nowhere"))

    def test_run_without_weights(self):
        self.refused_run(USAGE, "program", says=("--weights",))

    # Batches.

    def test_batches(self):
        whole = load_file(self.folder / "data.safetensors")
        self.write("text.safetensors", "no batches\n")
        bytes_of = (self.folder / "data.safetensors").read_bytes()
        self.write("cut.safetensors", bytes_of[:-8])
        lacking = {"input_ids": whole["input_ids"]}
        save_file(lacking, self.folder / "lacking.safetensors")
        short = {name: tensor[:3].contiguous() for name, tensor in whole.items()}
        save_file(short, self.folder / "short.safetensors")
        wide = dict(whole, input_ids=torch.zeros(4, 9, dtype=torch.int64))
        save_file(wide, self.folder / "wide.safetensors")
        for name, says in (("text", ""), ("cut", ""), ("lacking", "labels"), ("short", ""),
                           ("wide", "input_ids"), ("nowhere", "")):
            with self.subTest(name=name):
                self.refused_run(BAD_INPUT, "program", "--weights", "model.pt2",
                                 "--data", f"{name}.safetensors", says=(says,))

    def test_labels_none_of_which_counts(self):
        """Not a number, as in PyTorch, and the same as in one process."""
        whole = load_file(self.folder / "data.safetensors")
        ignored = dict(whole, labels=torch.full_like(whole["labels"], -100))
        save_file(ignored, self.folder / "ignored.safetensors")
        result = self.commands.plan_tool_succeeds(
            "run", "program", "--weights", "model.pt2", "--data", "ignored.safetensors",
            "--verify", "--report", "ignored.json")
        self.assertIn("loss nan", result.out)
        self.assertIn("equal to one process", result.out)
        self.assertEqual(json.loads((self.folder / "ignored.json").read_text())["losses"],
                         ["nan"])
        (self.folder / "ignored.json").unlink()

    # The command line itself.

    def test_usage(self):
        plan = ("plan", "model.pt2", "--cluster", "cpu:2", "--global-batch", 4)
        for arguments in ((), ("fly",), ("plan",), (*plan, "--fast"),
                          (*plan, "--optimizer", "adam"), (*plan, "--shape", "x"),
                          ("plan", "model.pt2", "--cluster", "cpu:2", "--global-batch", 0),
                          ("compile", "model.plan.json"), ("run",),
                          ("run", "program", "--steps", "-1")):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, *arguments)
        self.refused(USAGE, "version", "--format", "yaml", formats=("text",))

    def test_output_that_cannot_be_written(self):
        for arguments in (("plan", "model.pt2", "--cluster", "cpu:2", "--global-batch", 4,
                           "-o", "nowhere/plan.json"),
                          ("compile", "model.plan.json", "model.pt2", "-o",
                           "data.safetensors/program")):
            with self.subTest(arguments=arguments):
                self.refused(BAD_INPUT, *arguments)

    def test_success_writes_one_document(self):
        for arguments in (("version",), ("inspect", "model.pt2", "--emit", "graph"),
                          ("plan", "model.pt2", "--cluster", "cpu:2", "--global-batch", 4),
                          ("plan", "model.pt2", "--cluster", "cpu:2", "--global-batch", 4,
                           "-o", "-"),
                          ("compile", "model.plan.json", "model.pt2", "-o", "program"),
                          ("run", "program", "--init", 1)):
            result = self.commands.plan_tool("--format", "json", *arguments)
            self.assertEqual(result.code, 0, result)
            self.assertIsInstance(result.document(), dict)

    def test_the_same_command_writes_the_same_bytes(self):
        first = self.commands.plan_tool_succeeds(
            "plan", "model.pt2", "--cluster", "cpu:2", "--global-batch", 4, "-o", "-").out
        again = self.commands.plan_tool_succeeds(
            "plan", "model.pt2", "--cluster", "cpu:2", "--global-batch", 4, "-o", "-").out
        self.assertEqual(first, again)
        self.assertEqual(json.loads(first)["schema"], "monarch.plan/1")
        self.assertIsNone(re.search(re.escape(str(self.folder)), first))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="folder of the binaries")
    options, rest = parser.parse_known_args()
    BadInput.binaries = options.bin
    unittest.main(argv=[sys.argv[0], *rest])
