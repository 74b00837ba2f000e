"""Exports a test model to .pt2, and its training data to safetensors.

    export.py NAME -o MODEL.pt2 [--size small|odd|medium|124m] [--layers N] [--batch N]
              [--dynamic-batch] [--logits-only] [--dropout P] [--seed N]
              [--data BATCHES.safetensors --rows N]

With --data it also writes `rows` rows of every input, labels included.
"""

import argparse
import pathlib
import warnings

import torch

import models


def export(name, output, *, size="small", layers=None, sequence=None, batch=4,
           dynamic_batch=False, logits_only=False, dropout=0.1, seed=0, data=None, rows=8):
    size = dict(models.SIZES[size])
    size["layers"] = layers or size["layers"]
    size["sequence"] = sequence or size["sequence"]
    model = models.build(name, size, seed, dropout)
    generator = torch.Generator().manual_seed(seed + 1)
    inputs = models.batch(name, size, batch, generator, labels=not logits_only)
    shapes = None
    if dynamic_batch:
        shapes = {name: {0: torch.export.Dim.DYNAMIC} for name in inputs}
    program = torch.export.export(model, (), inputs, strict=False, dynamic_shapes=shapes)
    pathlib.Path(output).parent.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, output)

    if data:
        from safetensors.torch import save_file

        tensors = models.batch(name, size, rows, generator)
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=models.NAMES)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--size", choices=sorted(models.SIZES), default="small")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--sequence", type=int)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--dynamic-batch", action="store_true")
    parser.add_argument("--logits-only", action="store_true")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=8)
    warnings.filterwarnings("ignore")
    export(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
