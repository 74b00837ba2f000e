"""Exports test models to TorchScript, by torch.jit.trace or torch.jit.script.

    torchscript.py NAME -o MODEL.pt [--script] [--batch N] [--dropout P] [--seed N]
                   [--data BATCHES.safetensors --rows N]
    torchscript.py --list

NAME is a model of models.py or of the zoo; --script takes those of SCRIPTED. It
prints the --shape flags that monarch-plan needs: a TorchScript file does not
say what its inputs look like. What PyTorch cannot trace fails with its error.
"""

import argparse
import sys
import warnings

import torch
import torch.nn.functional as F

import models
import zoo
import zoo_vision

OWN = ("mlp", "regressor", "gpt")


class ScriptedMlp(models.Mlp):
    """One kind of result, so that TorchScript has a type for it."""

    def forward(self, x, labels):
        x = self.drop(F.relu(self.up(x)))
        logits = self.head(F.gelu(self.mid(x)))
        return F.cross_entropy(logits, labels), logits


class ScriptedBlock(models.Block):
    def forward(self, x):
        b, s, e = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = [t.view(b, s, self.heads, e // self.heads).transpose(1, 2) for t in (q, k, v)]
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        x = x + self.drop(self.proj(y.transpose(1, 2).reshape(b, s, e)))
        y = self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))
        y.add_(x)
        return y


class ScriptedGpt(models.Gpt):
    def forward(self, input_ids, labels):
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.drop(self.tokens(input_ids) + self.positions(positions))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))
        return loss, logits


class ScriptedDlrm(zoo_vision.Dlrm):
    """Without a list whose length no type tells."""

    def forward(self, dense, ids0, ids1, ids2, labels):
        x = self.bottom(dense)
        features, ids = [x], [ids0, ids1, ids2]
        for k, bag in enumerate(self.bags):
            features.append(bag(ids[k]))
        stacked = torch.stack(features, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        pairs = products[:, self.first, self.second]
        scores = self.top(torch.cat([x, pairs], 1)).squeeze(-1)
        return F.binary_cross_entropy_with_logits(scores, labels), scores


# name -> class in place of the one that is exported.
SCRIPTED = {"mlp": ScriptedMlp, "gpt": ScriptedGpt, "resnet": zoo_vision.ResNet,
            "dlrm": ScriptedDlrm}


def build(name, scripted, dropout, seed):
    """The module, and a function of (rows, generator) that makes its inputs."""
    if name in OWN:
        size = models.SIZES["small"]
        model = models.build(name, size, seed, dropout)
        inputs = lambda rows, generator: models.batch(name, size, rows, generator)  # noqa: E731
    else:
        model = zoo.build(name, dropout, seed)
        inputs = lambda rows, generator: zoo.MODELS[name].inputs(  # noqa: E731
            model, rows, generator, True)
    if scripted:
        model.__class__ = SCRIPTED[name]
        if name == "gpt":
            for block in model.blocks:
                block.__class__ = ScriptedBlock
    return model, inputs


def shape_flag(name, tensor):
    """input_ids=4x8:int64; float32 need not be said."""
    sizes = "x".join(map(str, tensor.shape))
    kind = "" if tensor.dtype == torch.float32 else ":" + str(tensor.dtype).removeprefix("torch.")
    return f"{name}={sizes}{kind}"


def trace(model, inputs):
    return torch.jit.trace(model, example_kwarg_inputs=inputs, check_trace=False, strict=False)


def export(name, output, *, script=False, batch=4, dropout=0.0, seed=0, data=None, rows=8):
    """Returns the --shape flags."""
    model, inputs_of = build(name, script, dropout, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    inputs = inputs_of(batch, generator)
    program = torch.jit.script(model) if script else trace(model, inputs)
    program.save(str(output))
    if data:
        from safetensors.torch import save_file

        save_file({key: tensor.contiguous() for key, tensor in inputs_of(rows, generator).items()},
                  data)
    return [shape_flag(key, tensor) for key, tensor in inputs.items()]


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join([*OWN, *(name for name in zoo.MODELS if name not in OWN)]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--script", action="store_true")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=8)
    warnings.filterwarnings("ignore")
    for flag in export(**vars(parser.parse_args())):
        print("--shape", flag)
    return 0


if __name__ == "__main__":
    sys.exit(main())
