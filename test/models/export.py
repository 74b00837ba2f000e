"""Exports a test model to .pt2, and its training data to safetensors.

    export.py NAME -o MODEL.pt2 [--size small|odd|124m] [--layers N] [--batch N]
              [--dynamic-batch] [--logits-only] [--dropout P] [--seed N]
              [--data BATCHES.safetensors --rows N]

With --data it also writes `rows` rows of every input, labels included.
"""

import argparse
import pathlib
import warnings

import torch

import models


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
    options = parser.parse_args()
    warnings.filterwarnings("ignore")

    size = dict(models.SIZES[options.size])
    size["layers"] = options.layers or size["layers"]
    size["sequence"] = options.sequence or size["sequence"]
    model = models.build(options.name, size, options.seed, options.dropout)
    generator = torch.Generator().manual_seed(options.seed + 1)
    inputs = models.batch(options.name, size, options.batch, generator,
                          labels=not options.logits_only)
    shapes = None
    if options.dynamic_batch:
        shapes = {name: {0: torch.export.Dim.DYNAMIC} for name in inputs}
    program = torch.export.export(model, (), inputs, strict=False, dynamic_shapes=shapes)
    pathlib.Path(options.output).parent.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, options.output)

    if options.data:
        from safetensors.torch import save_file

        rows = models.batch(options.name, size, options.rows, generator)
        save_file({name: tensor.contiguous() for name, tensor in rows.items()}, options.data)


if __name__ == "__main__":
    main()
