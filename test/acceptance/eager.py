"""The same training in PyTorch eager: float32, one process, whole batches."""

import sys

import torch
import torch.nn.functional as F

from commands import MODELS
from scenarios import STEPS

sys.path.insert(0, str(MODELS))
import models  # noqa: E402  test/models/models.py

SEED = 0


def build(scenario):
    size = dict(models.SIZES[scenario.size], layers=scenario.layers)
    return models.build(scenario.model, size, SEED, dropout=0.0)


def batches(scenario):
    """Every step's rows of every input, in one tensor each. Ignored labels lie
    unevenly: a third of every other row, nearly all of every fifth."""
    size = models.SIZES[scenario.size]
    generator = torch.Generator().manual_seed(SEED + 7)
    rows = scenario.rows * STEPS
    data = models.batch(scenario.model, size, rows, generator)
    labels = data["labels"]
    if labels.dim() == 2:
        labels[::5, 2:] = -100
    if "attention_mask" in data:
        data["attention_mask"][1::6, -3:] = 0
    return {name: tensor.contiguous() for name, tensor in data.items()}


def loss_of(scenario, model, batch):
    if not scenario.loss:
        result = model(**batch)
        return result[0] if isinstance(result, tuple) else result.loss
    labels = batch.pop("labels")
    logits = model(**batch)
    logits = logits if isinstance(logits, torch.Tensor) else logits.logits
    if scenario.loss.startswith("causal_lm"):
        logits, labels = logits[:, :-1], labels[:, 1:]
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


def train(scenario, data):
    """Losses, and the state dict after the last step."""
    model = build(scenario)
    if scenario.optimizer == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), lr=scenario.learning_rate,
                                      weight_decay=scenario.weight_decay)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=scenario.learning_rate,
                                    weight_decay=scenario.weight_decay)
    losses = []
    for step in range(STEPS):
        rows = slice(step * scenario.rows, (step + 1) * scenario.rows)
        optimizer.zero_grad()
        loss = loss_of(scenario, model, {name: t[rows] for name, t in data.items()})
        loss.backward()
        if scenario.clip_norm:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), scenario.clip_norm)
            assert norm > scenario.clip_norm, f"nothing to clip: {norm}"
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: t.detach().clone() for name, t in model.state_dict().items()}, model
