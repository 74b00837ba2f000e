"""Small models, one a feature of graphs: frozen weights and adapters, weights
used twice, quantised weights, complex tables, regions, custom ops, bf16. Shares
no code with the project.

    features.py NAME -o MODEL.pt2 [--batch N] [--dynamic-batch]
                [--strict] [--joint] [--loss] [--fused-attention]
                [--data BATCHES.safetensors --rows N]

MODELS has, by name, the module's class and a function that makes `rows` rows of
its inputs; the loss is output 0.
"""

import argparse
import pathlib
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, VOCABULARY, TOKENS = 16, 4, 32, 8


class Block(nn.Module):
    """Attention and MLP, with separate projections."""

    def __init__(self, linear=nn.Linear):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = linear(WIDTH, 4 * WIDTH), linear(4 * WIDTH, WIDTH)

    def heads(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def forward(self, x):
        y = self.norm1(x)
        y = F.scaled_dot_product_attention(self.heads(self.q(y)), self.heads(self.k(y)),
                                           self.heads(self.v(y)), is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """A decoder whose head is a weight of its own."""

    def __init__(self, layers=2, linear=nn.Linear):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block(linear) for _ in range(layers))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def logits(self, ids):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def forward(self, ids, labels):
        logits = self.logits(ids)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


def freeze(module):
    for parameter in module.parameters():
        parameter.requires_grad_(False)


class Adapted(nn.Module):
    """A frozen linear layer and a trained product of low rank."""

    def __init__(self, inside, outside, rank=4):
        super().__init__()
        self.base = nn.Linear(inside, outside)
        freeze(self.base)
        self.lora_a = nn.Linear(inside, rank, bias=False)
        self.lora_b = nn.Linear(rank, outside, bias=False)

    def forward(self, x):
        return self.base(x) + 2.0 * self.lora_b(self.lora_a(x))


class Lora(Gpt):
    """Adapters in the last two of four blocks; all else is frozen."""

    def __init__(self):
        super().__init__(layers=4)
        freeze(self)
        for block in self.blocks[2:]:
            block.q, block.v = Adapted(WIDTH, WIDTH), Adapted(WIDTH, WIDTH)


class Bf16(Gpt):
    def __init__(self):
        super().__init__()
        self.bfloat16()

    def forward(self, ids, labels):
        logits = self.logits(ids)
        return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten()), logits


class TwoUses(nn.Module):
    """One weight used as it is and transposed, an equal one that is its own, one
    that nothing uses, and a table that is not saved."""

    def __init__(self):
        super().__init__()
        self.code = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.second.load_state_dict(self.first.state_dict())
        self.unused = nn.Linear(WIDTH, 3)
        self.head = nn.Linear(WIDTH, 10)
        self.register_buffer("table", torch.linspace(0.5, 1.5, WIDTH), persistent=False)

    def forward(self, x, labels):
        x = self.second(torch.tanh(self.first(x))) * self.table
        x = F.linear(F.relu(self.code(x)), self.code.weight.t())
        logits = self.head(x)
        return F.cross_entropy(logits, labels), logits


class Moments(nn.Module):
    """Buffers that each step changes: a counter and a running mean."""

    def __init__(self):
        super().__init__()
        self.up, self.head = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, 10)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(2 * WIDTH))

    def forward(self, x, labels):
        y = torch.tanh(self.up(x))
        with torch.no_grad():
            self.steps += 1
            self.mean.mul_(0.9).add_(0.1 * y.mean(0))
        logits = self.head(y)
        return F.cross_entropy(logits, labels), logits


class Quantised(nn.Module):
    """A frozen weight of one byte an element, with a scale a row."""

    def __init__(self, inside, outside, kind=torch.int8):
        super().__init__()
        weight = torch.randn(outside, inside)
        top = {torch.int8: 127, torch.uint8: 127, torch.float8_e4m3fn: 448}[kind]
        scale = weight.abs().amax(1, keepdim=True) / top
        stored = (weight / scale).round() if kind != torch.float8_e4m3fn else weight / scale
        if kind == torch.uint8:
            stored += 128
        self.zero = 128 if kind == torch.uint8 else 0
        self.register_buffer("weight", stored.to(kind))
        self.register_buffer("scale", scale)
        self.bias = nn.Parameter(torch.zeros(outside))

    def forward(self, x):
        weight = self.weight.to(x.dtype)
        if self.zero:
            weight = weight - self.zero
        return F.linear(x, weight * self.scale, self.bias)


class QuantisedMlp(nn.Module):
    kind = torch.int8

    def __init__(self):
        super().__init__()
        self.up = Quantised(WIDTH, 4 * WIDTH, self.kind)
        self.down = Quantised(4 * WIDTH, WIDTH, self.kind)
        self.adapter = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x, labels):
        x = self.adapter(x)
        logits = self.head(self.down(F.gelu(self.up(x))))
        return F.cross_entropy(logits, labels), logits


class QuantisedBytes(QuantisedMlp):
    kind = torch.uint8


class QuantisedFloat8(QuantisedMlp):
    kind = torch.float8_e4m3fn


class QuantisedParameter(QuantisedMlp):
    """The stored weights are parameters, as quantising libraries make them."""

    def __init__(self):
        super().__init__()
        for layer in (self.up, self.down):
            weight = layer.weight
            del layer.weight
            layer.weight = nn.Parameter(weight, requires_grad=False)


class ComplexRotary(nn.Module):
    """Rotary positions by a complex table, as the first Llama has them."""

    polar = False

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.head = nn.Linear(WIDTH, 10)
        half = WIDTH // HEADS // 2
        angles = torch.outer(torch.arange(TOKENS).float(), 100 ** (-torch.arange(half) / half))
        if self.polar:
            self.register_buffer("angles", angles, persistent=False)
        else:
            self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles),
                                 persistent=False)

    def rotate(self, x, table):
        x = x.unflatten(-1, (HEADS, -1))
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        turned = torch.view_as_real(pairs * table[None, :, None, :]).flatten(3)
        return turned.transpose(1, 2)

    def forward(self, x, labels):
        table = torch.polar(torch.ones_like(self.angles), self.angles) if self.polar \
            else self.freqs_cis
        q, k = self.rotate(self.q(x), table), self.rotate(self.k(x), table)
        v = self.v(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        logits = self.head(self.o(y.transpose(1, 2).flatten(2)))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


class ComplexPolar(ComplexRotary):
    polar = True


class Regions(nn.Module):
    """A part without gradients, a part under autocast, a part that is made
    again in the backward."""

    autocast = True

    def __init__(self):
        super().__init__()
        self.up, self.mid, self.again = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x, labels):
        with torch.no_grad():
            shift = torch.sigmoid(self.up(x)).mean(-1, keepdim=True)
        y = torch.tanh(self.up(x)) + shift
        if self.autocast:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.mid(y)
            y = y.float()
        y = checkpoint(lambda z: F.gelu(self.again(z)), y, use_reentrant=False)
        logits = self.head(y)
        return F.cross_entropy(logits, labels), logits


class RegionsFloat32(Regions):
    autocast = False


class Branches(nn.Module):
    """Two branches of equal shapes, chosen by data. The one that is not taken
    would give an infinite derivative."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x, labels):
        y = torch.relu(self.first(x))
        y = torch.cond(x.sum() > 1e6, lambda y: torch.sqrt(y),
                       lambda y: torch.tanh(self.second(y)), (y,))
        logits = self.head(y)
        return F.cross_entropy(logits, labels), logits


class Loop(nn.Module):
    """A loop, a size and a number that depend on data: no plan is possible."""

    def __init__(self):
        super().__init__()
        self.up, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x, labels):
        count = torch.zeros((), dtype=torch.int64)
        _, y = torch._higher_order_ops.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, torch.tanh(y)), (count, self.up(x)))
        chosen = y[y[:, 0] > 0]
        most = labels.max().item()
        torch._check(most >= 0)
        torch._check(most <= 9)
        return F.cross_entropy(self.head(y), labels) + chosen.sum() + most


class LossAlone(nn.Module):
    """Only the loss, as joint exports want it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs)[0]


def rows_of_features(g, rows):
    return dict(x=torch.randn(rows, WIDTH, generator=g),
                labels=torch.randint(0, 10, (rows,), generator=g))


def rows_of_sequences(g, rows):
    return dict(x=torch.randn(rows, TOKENS, WIDTH, generator=g),
                labels=torch.randint(0, 10, (rows, TOKENS), generator=g))


def rows_of_tokens(g, rows):
    labels = torch.randint(0, VOCABULARY, (rows, TOKENS), generator=g)
    labels[::2, 5:] = -100
    return dict(ids=torch.randint(0, VOCABULARY, (rows, TOKENS), generator=g), labels=labels)


MODELS = {
    "lora": (Lora, rows_of_tokens),
    "bf16": (Bf16, rows_of_tokens),
    "two_uses": (TwoUses, rows_of_features),
    "moments": (Moments, rows_of_features),
    "int8": (QuantisedMlp, rows_of_features),
    "uint8": (QuantisedBytes, rows_of_features),
    "float8": (QuantisedFloat8, rows_of_features),
    "int8_parameter": (QuantisedParameter, rows_of_features),
    "complex_rotary": (ComplexRotary, rows_of_sequences),
    "complex_polar": (ComplexPolar, rows_of_sequences),
    "regions": (Regions, rows_of_features),
    "regions_float32": (RegionsFloat32, rows_of_features),
    "branches": (Branches, rows_of_features),
    "loop": (Loop, rows_of_features),
}


def build(name, seed=0):
    torch.manual_seed(seed)
    model = MODELS[name][0]()
    # Biases and norms start at constants; distinct values find swapped slices.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1 and parameter.is_floating_point():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.train()


def export(name, output, *, batch=4, dynamic_batch=False, strict=False, joint=False, loss=False,
           fused_attention=False, data=None, rows=8, seed=0):
    """`joint`: forward and backward; `loss`: the loss is the only output. The joint
    export of fused attention on CPU has wrong gradients (torch 2.15)."""
    generator = torch.Generator().manual_seed(seed + 1)
    inputs = MODELS[name][1](generator, batch)
    shapes = {key: {0: torch.export.Dim.DYNAMIC} for key in inputs} if dynamic_batch else None
    model = build(name, seed)
    if joint or loss:
        model = LossAlone(model).train()
        shapes = {"inputs": shapes} if shapes else None
    program = torch.export.export(model, (), inputs, strict=strict, dynamic_shapes=shapes)
    if joint:
        from torch.export.experimental import _export_forward_backward

        with sdpa_kernel(SDPBackend.FLASH_ATTENTION if fused_attention else SDPBackend.MATH):
            program = _export_forward_backward(program)
    pathlib.Path(output).parent.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, output)
    if data:
        from safetensors.torch import save_file

        tensors = MODELS[name][1](generator, rows)
        save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=list(MODELS))
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--dynamic-batch", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--joint", action="store_true")
    parser.add_argument("--loss", action="store_true")
    parser.add_argument("--fused-attention", action="store_true")
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=8)
    warnings.filterwarnings("ignore")
    export(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
