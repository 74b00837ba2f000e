"""Small models of every architecture that the project is tested on, by name.

    zoo.py NAME -o MODEL.pt2 [--batch N] [--dynamic-batch] [--logits-only]
           [--dropout P] [--seed N] [--data BATCHES.safetensors --rows N]
    zoo.py --list

Hugging Face models come through monarch_plan.export, the script that users run.
Every model is in train() mode, with random weights. With --data it also writes
`rows` rows of every input: padded rows, and labels ignored unevenly.
"""

import argparse
import dataclasses
import pathlib
import sys
import warnings
from typing import Callable, Optional

import torch

import zoo_vision

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from monarch_plan import export as exporter  # noqa: E402

SEQUENCE = 8
VOCABULARY = 64
IGNORED = -100


@dataclasses.dataclass(frozen=True)
class Entry:
    """A model and its data."""

    # (dropout) -> module, with random weights of torch's generator.
    build: Callable
    # (model, rows, generator, labels) -> inputs by name.
    inputs: Callable
    # What --loss says of the file without labels.
    loss: Optional[str] = None
    # False where torch.export fixes the batch.
    dynamic_batch: bool = True


#===- Hugging Face -------------------------------------------------------===#

def set_dropouts(config, dropout):
    for part in (config, config.get_text_config()):
        for name, value in part.to_dict().items():
            # Whole layers are dropped on the host, which no export can follow.
            if "drop" in name and "layerdrop" not in name and isinstance(value, (int, float)):
                setattr(part, name, dropout)


def hugging_face(architecture, loss=None, dynamic_batch=True, task=None, **fields):
    def build(dropout):
        config = exporter.read_config(architecture=architecture, overrides=fields)
        set_dropouts(config, dropout)
        return exporter.model_class(config, task)(config)

    def inputs(model, rows, generator, labels):
        data = exporter.example_inputs(model, rows, SEQUENCE, generator, labels)
        pad(data, generator)
        return data

    return Entry(build, inputs, loss, dynamic_batch)


def pad(data, generator):
    """The last row is padded; of even rows about a third of the labels is
    ignored, never the first one of all."""
    mask, labels = data.get("attention_mask"), data.get("labels")
    if mask is not None:
        mask[-1, -2:] = 0
    if labels is not None and labels.dim() == 2:
        ignored = torch.rand(labels.shape, generator=generator) < 0.3
        ignored &= (torch.arange(labels.shape[0]) % 2 == 0)[:, None]
        ignored[0, 0] = False
        labels[ignored] = IGNORED


def decoder(architecture, **fields):
    """A decoder of the Llama kind, 4 heads over 2 key/value heads."""
    common = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64,
                  num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                  max_position_embeddings=16)
    return hugging_face(architecture, loss="causal_lm:logits,labels", **{**common, **fields})


def encoder(architecture, **fields):
    return hugging_face(architecture, loss="ce:logits,labels", **{
        **dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
               num_attention_heads=4, max_position_embeddings=16), **fields})


TEXT = {
    "gpt2": hugging_face("gpt2", loss="causal_lm:logits,labels", vocab_size=VOCABULARY, n_embd=32,
                         n_layer=2, n_head=4, n_positions=16),
    "gpt_neox": hugging_face("gpt_neox", loss="causal_lm:logits,labels", vocab_size=VOCABULARY,
                             hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                             num_attention_heads=4, max_position_embeddings=16),
    "opt": hugging_face("opt", loss="causal_lm:logits,labels", vocab_size=VOCABULARY,
                        hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4,
                        max_position_embeddings=16, word_embed_proj_dim=32),
    "bloom": hugging_face("bloom", loss="causal_lm:logits,labels", vocab_size=VOCABULARY,
                          hidden_size=32, n_layer=2, n_head=4),
    "llama": decoder("llama"),
    "mistral": decoder("mistral", sliding_window=4),
    "qwen2": decoder("qwen2"),
    "qwen3": decoder("qwen3", head_dim=8),
    "gemma": decoder("gemma", head_dim=16, num_key_value_heads=1),
    "phi": decoder("phi", num_key_value_heads=4, rope_parameters={
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}),
    "falcon": hugging_face("falcon", loss="causal_lm:logits,labels", vocab_size=VOCABULARY,
                           hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                           max_position_embeddings=16),
    "bert": encoder("bert"),
    "roberta": encoder("roberta", max_position_embeddings=18),
    "t5": hugging_face("t5", loss="ce:logits,labels", vocab_size=VOCABULARY, d_model=32, d_kv=8,
                       d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
                       pad_token_id=0),
    "bart": hugging_face("bart", loss="ce:logits,labels", vocab_size=VOCABULARY, d_model=32,
                         encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                         decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
                         max_position_embeddings=16),
}


def beyond_text(name):
    build, inputs = zoo_vision.MODELS[name]
    return Entry(lambda dropout: build(),
                 lambda model, rows, generator, labels: inputs(
                     zoo_vision.Randoms(generator), rows),
                 dynamic_batch=name not in zoo_vision.FIXED_BATCH)


MODELS = {**TEXT, **{name: beyond_text(name) for name in zoo_vision.MODELS}}


#===- Export -------------------------------------------------------------===#

def build(name, dropout=0.0, seed=0):
    """Biases and norms start at constants: distinct values find swapped slices."""
    torch.manual_seed(seed)
    model = MODELS[name].build(dropout)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1 and parameter.is_floating_point():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.train()


def export(name, output, *, batch=4, dynamic_batch=False, logits_only=False, dropout=0.0, seed=0,
           data=None, rows=8):
    entry = MODELS[name]
    model = build(name, dropout, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    inputs = entry.inputs(model, batch, generator, not logits_only)
    exporter.save(exporter.export_program(model, inputs, dynamic_batch), output)
    if data:
        from safetensors.torch import save_file

        tensors = entry.inputs(model, rows, generator, True)
        if logits_only:
            tensors.update(entry.inputs(model, rows, generator, False))
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()
                   if isinstance(tensor, torch.Tensor)}, data)


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(MODELS))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=list(MODELS))
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--dynamic-batch", action="store_true")
    parser.add_argument("--logits-only", action="store_true")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=8)
    warnings.filterwarnings("ignore")
    try:
        export(**vars(parser.parse_args()))
    except exporter.ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
