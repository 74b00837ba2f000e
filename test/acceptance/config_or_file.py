"""A model's file and its config.json get the same answers for other targets.

    config_or_file.py --bin DIR
"""

import argparse
import json
import pathlib
import sys
import tempfile
import unittest

from commands import Commands

PYTHON = sys.executable
SEQUENCE = 256
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512,
          "intermediate_size": 1536, "num_hidden_layers": 4, "num_attention_heads": 8,
          "num_key_value_heads": 4, "vocab_size": 4096, "max_position_embeddings": SEQUENCE,
          "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False,
          "use_cache": False, "bos_token_id": 1, "eos_token_id": 2}
EXPORT = """
import sys, torch, transformers
config = transformers.AutoConfig.from_pretrained(sys.argv[1])
config._attn_implementation = "sdpa"
model = transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16)

class WithLoss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = model

    def forward(self, input_ids, labels):
        logits = self.model(input_ids=input_ids, use_cache=False).logits.float()
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

ids = torch.zeros(2, int(sys.argv[2]), dtype=torch.int64)
rows = torch.export.Dim("rows", min=1, max=4096)
torch.export.save(torch.export.export(WithLoss(), (ids, ids),
                                      dynamic_shapes=({0: rows}, {0: rows})), sys.argv[3])
"""


class ConfigOrFile(unittest.TestCase):
    binaries = ""

    def test_same_answers(self):
        with tempfile.TemporaryDirectory(prefix="monarch-") as folder:
            commands = Commands(self.binaries, folder)
            (pathlib.Path(folder) / "config.json").write_text(json.dumps(CONFIG))
            exported = commands.run(PYTHON, "-c", EXPORT, "config.json", SEQUENCE, "model.pt2")
            self.assertEqual(exported.code, 0, exported.err)
            for target, fix in (("megatron", "tp=2,pp=2,dp=2"), ("megatron", "tp=1,pp=1,dp=8"),
                                ("torchtitan", "tp=2,pp=1,dp=4,zero=3")):
                with self.subTest(target=target, fix=fix):
                    common = ("--cluster", "8xH100-SXM-80GB", "--global-batch", 64, "--target",
                              target, "--fix", fix + ",micro_batch=4,recompute=none")
                    file, config = (
                        commands.plan_tool_succeeds("--format", "json", "simulate", *model,
                                                    *common).document()
                        for model in (("model.pt2",), ("config.json", "--seq-len", SEQUENCE)))
                    self.assertAlmostEqual(file["step_seconds"] / config["step_seconds"], 1,
                                           delta=0.05)
                    # Hugging Face's code keeps a little more from forward to backward.
                    self.assertAlmostEqual(
                        file["memory_bytes"]["total"] / config["memory_bytes"]["total"], 1,
                        delta=0.1)
                    for states in ("parameters", "gradients", "optimizer"):
                        self.assertAlmostEqual(
                            file["memory_bytes"][states] / config["memory_bytes"][states], 1,
                            delta=1e-3)
            # A plan for another target is not compiled here.
            commands.plan_tool_succeeds("plan", "config.json", "--seq-len", SEQUENCE, "--cluster",
                                        "8xH100-SXM-80GB", "--global-batch", 64, "--target",
                                        "megatron", "-o", "plan.json")
            refused = commands.plan_tool("compile", "plan.json", "model.pt2", "-o", "program")
            self.assertEqual(refused.code, 3, refused)
            self.assertIn("megatron", refused.err)
            self.assertFalse((pathlib.Path(folder) / "program").exists())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options, rest = parser.parse_known_args()
    ConfigOrFile.binaries = options.bin
    unittest.main(argv=[sys.argv[0], *rest])
