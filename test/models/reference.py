"""Loss, gradients and buffers of one step of an exported model, by PyTorch.

    reference.py MODEL.pt2 --data BATCH.safetensors -o REFERENCE.safetensors
                 [--loss ce|causal_lm]

Everything runs in float64, the model's own casts to float32 included. One
forward over the whole batch; with --loss the model's first output is logits and
the loss is a mean cross-entropy over "labels".
"""

import argparse
import importlib
import re
import warnings
import zipfile

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file


def load(model):
    """The program; the classes of what Hugging Face models return are imported
    first, as torch.export.load wants them."""
    with zipfile.ZipFile(model) as archive:
        program = next(name for name in archive.namelist()
                       if re.search(r"models/[^/]+\.json$", name))
        text = archive.read(program).decode()
    for module in sorted(set(re.findall(r"transformers\.(?:models\.\w+\.)?model\w+_\w+", text))):
        importlib.import_module(module)
    return torch.export.load(model)


def promote(graph_module):
    """Replaces each floating type in the program by float64."""

    def argument(value):
        if isinstance(value, torch.dtype) and value.is_floating_point:
            return torch.float64
        return value

    for module in graph_module.modules():
        # Lifted constants are plain attributes, of any module.
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(module, name, value.double())
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in list(module.graph.nodes):
            if "_assert_tensor_metadata" in str(node.target):
                module.graph.erase_node(node)
                continue
            node.args = tuple(argument(value) for value in node.args)
            node.kwargs = {key: argument(value) for key, value in node.kwargs.items()}
        module.recompile()
    return graph_module.double()


def reference(model, data, output, loss=None):
    torch.set_default_dtype(torch.float64)
    try:
        tensors = run(load(model), load_file(data), loss)
    finally:
        torch.set_default_dtype(torch.float32)
    save_file(tensors, output)


def run(program, data, loss_kind):
    names = [spec.arg.name for spec in program.graph_signature.input_specs
             if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT]
    module = promote(program.module(check_guards=False))
    data = {name: tensor.double() if tensor.is_floating_point() else tensor
            for name, tensor in data.items()}
    result = module(**{name: data[name] for name in names})
    outputs = list(result.values()) if isinstance(result, dict) else result
    first = outputs if isinstance(outputs, torch.Tensor) else outputs[0]
    if loss_kind is None:
        loss = first
    else:
        labels = data["labels"]
        if loss_kind == "causal_lm":
            labels = F.pad(labels, (0, 1), value=-100)[..., 1:]
        loss = F.cross_entropy(first.reshape(-1, first.shape[-1]), labels.reshape(-1))
    loss.backward()

    tensors = {"loss": loss.detach()}
    for name, parameter in module.named_parameters():
        if parameter.grad is not None:
            tensors["gradient:" + name] = parameter.grad.contiguous()
    for name, buffer in module.named_buffers():
        tensors["buffer:" + name] = buffer.detach().contiguous()
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", required=True)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--loss", choices=("ce", "causal_lm"))
    warnings.filterwarnings("ignore")
    reference(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
