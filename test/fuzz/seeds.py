"""Makes the first files of the corpus, out of real ones.

    seeds.py --bin build/dev/bin [--corpus test/fuzz/corpus]

Models of a few layers are exported, planned and compiled; each reader gets the
files of its kind. What fuzzing adds later stays beside them.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
EXPORT = HERE.parent / "models" / "export.py"


class Product(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, 2))

    def forward(self, x):
        return (x @ self.weight).sum()


class Seeds:
    def __init__(self, binaries, corpus, folder):
        self.tool = pathlib.Path(binaries) / "monarch-plan"
        self.corpus = pathlib.Path(corpus)
        self.folder = pathlib.Path(folder)

    def put(self, reader, name, content):
        path = self.corpus / reader / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def run(self, *arguments):
        done = subprocess.run([self.tool, *map(str, arguments)], cwd=self.folder,
                              capture_output=True, text=True, check=True)
        return done.stdout

    def models(self):
        """Models through every step. The smallest gives the large kinds: a
        mutation of a short file is read quickly, and hits something."""
        mlp = self.folder / "mlp.pt2"
        subprocess.run([sys.executable, "-W", "ignore", EXPORT, "mlp", "-o", mlp, "--dropout", "0",
                        "--dynamic-batch"], check=True, stdout=subprocess.DEVNULL)
        product = self.folder / "product.pt2"
        torch.export.save(torch.export.export(
            Product(), (torch.ones(4, 2),), dynamic_shapes=({0: torch.export.Dim("rows")},)), product)
        self.put("model-file", "product.pt2", product.read_bytes())
        self.put("archive", "product.pt2", product.read_bytes())
        for file in (mlp, product):
            with zipfile.ZipFile(file) as archive:
                inner = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
            self.put("model", f"{file.stem}.json", inner["models/model.json"])
            self.put("json", f"{file.stem}-weights.json",
                     inner["data/weights/model_weights_config.json"])
            self.put("graph", f"{file.stem}.json", self.run("inspect", file, "--emit", "graph"))
        for fix in ("dp=2", "tp=2", "pp=2"):
            for file, reader in ((mlp, "plan"), (product, "program")):
                name = f"{file.stem}-{fix.replace('=', '')}"
                plan = self.folder / f"{name}.plan.json"
                self.run("plan", file, "--cluster", "cpu:2", "--global-batch", 4, "--fix", fix,
                         "--optimizer", "sgd", "-o", plan)
                if reader == "plan":
                    self.put("plan", f"{name}.json", plan.read_text())
                else:
                    self.run("compile", plan, file, "-o", name)
                    self.program(name)

    def program(self, name):
        folder = self.folder / name
        manifest = json.loads((folder / "manifest.json").read_text())
        roles = [json.loads((folder / role["file"]).read_text()) for role in manifest["roles"]]
        whole = json.dumps({"manifest": manifest, "roles": roles})
        self.put("program", f"{name}.json", whole)
        for expression in sorted(set(re.findall(r'"((?:\d+\*)?s\d[^"]*)"', whole))):
            label = re.sub(r"[^0-9a-z]+", "-", expression)
            self.put("expression", label, expression)

    def archives(self):
        """Archives as PyTorch and others write them, with little in them."""
        for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
            path = self.folder / f"{name}.zip"
            with zipfile.ZipFile(path, "w", method) as archive:
                archive.writestr("m/version", "3")
                archive.writestr("m/data/weights/weight_0", bytes(64))
                archive.writestr("m/models/model.json", "{}")
            self.put("archive", f"{name}.zip", path.read_bytes())
            self.put("model-file", f"{name}.zip", path.read_bytes())
        state = self.folder / "state.pt"
        torch.save({"weight": torch.zeros(2)}, state)
        script = self.folder / "script.pt"
        torch.jit.save(torch.jit.script(torch.nn.ReLU()), script)
        for path in (state, script):
            self.put("archive", path.name, path.read_bytes())
            self.put("model-file", path.name, path.read_bytes())
        wide = self.folder / "zip64.zip"
        with zipfile.ZipFile(wide, "w") as archive:
            with archive.open("m/version", "w", force_zip64=True) as record:
                record.write(b"3")
        self.put("archive", "zip64.zip", wide.read_bytes())

    def others(self):
        tensors = self.folder / "tensors.safetensors"
        save_file({"a": torch.arange(3.0), "b": torch.zeros(2, 2, dtype=torch.bfloat16),
                   "empty": torch.zeros(0, dtype=torch.int64)}, tensors, {"format": "pt"})
        self.put("safetensors", "tensors.safetensors", tensors.read_bytes())
        self.put("model-file", "tensors.safetensors", tensors.read_bytes())
        for name, content in (("page.html", "<!DOCTYPE html><html></html>"),
                              ("pointer", "version https://git-lfs.github.com/spec/v1\n"
                                          "oid sha256:0\nsize 1\n"),
                              ("gguf", b"GGUF\x03\0\0\0"), ("hdf5", b"\x89HDF\r\n\x1a\n"),
                              ("gzip", b"\x1f\x8b\x08\0"), ("onnx", b"\x08\x0a\x12\x07pytorch")):
            self.put("model-file", name, content)
        for name in ("cpu:4", "2x8xH100-SXM-80GB", "4xRTX4090"):
            file = name.replace(":", "-") + ".json"
            self.put("cluster", file, self.run("--format", "json", "cluster", "show", name))
        self.put("json", "numbers.json", '[0, -1, 1.5e300, 9223372036854775807, "\\ud834\\udd1e"]')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--corpus", default=HERE / "corpus")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
        seeds = Seeds(pathlib.Path(options.bin).resolve(), options.corpus, folder)
        seeds.models()
        seeds.archives()
        seeds.others()


if __name__ == "__main__":
    main()
