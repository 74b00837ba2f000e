"""The models that the tests export: an MLP, a regressor, a hand-written GPT, and
Hugging Face GPT-2 and Llama, unchanged. Shares no code with the project.

Every model is in train() mode. With labels it returns (loss, logits), without
it returns logits alone.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

NAMES = ("mlp", "distances", "regressor", "metric", "gpt", "gpt2", "llama")

# width, heads, key/value heads, vocabulary, sequence length, layers
SIZES = {
    "small": dict(width=32, heads=4, kv_heads=2, vocabulary=64, sequence=8, layers=2),
    "odd": dict(width=48, heads=6, kv_heads=3, vocabulary=97, sequence=7, layers=2),
    "medium": dict(width=256, heads=8, kv_heads=4, vocabulary=1024, sequence=128, layers=4),
    "124m": dict(width=768, heads=12, kv_heads=4, vocabulary=50257, sequence=1024, layers=12),
}


class Mlp(nn.Module):
    """Two hidden layers and a mean cross-entropy over classes."""

    def __init__(self, size, dropout):
        super().__init__()
        width = size["width"]
        self.up = nn.Linear(width, 4 * width)
        self.mid = nn.Linear(4 * width, 4 * width)
        self.head = nn.Linear(4 * width, size["vocabulary"])
        self.drop = nn.Dropout(dropout)

    def forward(self, x, labels=None):
        x = self.drop(F.relu(self.up(x)))
        logits = self.head(F.gelu(self.mid(x)))
        if labels is None:
            return logits
        return F.cross_entropy(logits, labels), logits


class Distances(Mlp):
    """Scores are distances from learned points: an op that few models have."""

    def __init__(self, size, dropout):
        super().__init__(size, dropout)
        self.points = nn.Parameter(torch.randn(size["vocabulary"], 4 * size["width"]))

    def forward(self, x, labels):
        logits = -torch.cdist(F.relu(self.up(x)), self.points)
        return F.cross_entropy(logits, labels), logits


class Regressor(nn.Module):
    """Mean squared error and a second mean, a frozen layer, a mutated buffer."""

    def __init__(self, size, dropout):
        super().__init__()
        width = size["width"]
        self.frozen = nn.Linear(width, width)
        for parameter in self.frozen.parameters():
            parameter.requires_grad_(False)
        self.up = nn.Linear(width, 2 * width)
        self.head = nn.Linear(2 * width, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, target=None):
        self.calls.add_(1)
        y = self.head(torch.tanh(self.up(self.frozen(x)))) * self.scale
        if target is None:
            return y
        return F.mse_loss(y, target) + 0.1 * y.abs().mean(), y


class Metric(Regressor):
    """Also returns a number that is no loss and not linear in its mean."""

    def forward(self, x, target):
        loss, y = super().forward(x, target)
        return loss, y, y.abs().mean().exp()


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, s, e = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (t.view(b, s, self.heads, e // self.heads).transpose(1, 2) for t in (q, k, v))
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        x = x + self.drop(self.proj(y.transpose(1, 2).reshape(b, s, e)))
        y = self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))
        y.add_(x)
        return y


class Gpt(nn.Module):
    """Tied head, fused QKV, learned positions, an in-place residual."""

    def __init__(self, size, dropout):
        super().__init__()
        width = size["width"]
        self.tokens = nn.Embedding(size["vocabulary"], width)
        self.positions = nn.Embedding(size["sequence"], width)
        self.blocks = nn.ModuleList(
            Block(width, size["heads"], dropout) for _ in range(size["layers"]))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, size["vocabulary"], bias=False)
        self.head.weight = self.tokens.weight
        self.drop = nn.Dropout(dropout)

    def forward(self, input_ids, labels=None):
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.drop(self.tokens(input_ids) + self.positions(positions))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if labels is None:
            return logits
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))
        return loss, logits


def hugging_face(name, size, dropout):
    import transformers

    if name == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=size["vocabulary"], n_embd=size["width"], n_layer=size["layers"],
            n_head=size["heads"], n_positions=max(size["sequence"], 16), use_cache=False,
            resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.LlamaConfig(
        vocab_size=size["vocabulary"], hidden_size=size["width"],
        intermediate_size=2 * size["width"], num_hidden_layers=size["layers"],
        num_attention_heads=size["heads"], num_key_value_heads=size["kv_heads"],
        max_position_embeddings=max(size["sequence"], 16), use_cache=False)
    return transformers.LlamaForCausalLM(config)


def build(name, size, seed, dropout):
    torch.manual_seed(seed)
    own = {"mlp": Mlp, "distances": Distances, "regressor": Regressor, "metric": Metric, "gpt": Gpt}
    model = own[name](size, dropout) if name in own else hugging_face(name, size, dropout)
    # Biases and norms start at constants; distinct values find swapped slices.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1 and parameter.is_floating_point():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.train()


def batch(name, size, rows, generator, labels=True):
    """`rows` rows of inputs by name; labels hold ignored positions, unevenly."""

    def integers(high, *shape):
        return torch.randint(0, high, shape, generator=generator)

    s, v = size["sequence"], size["vocabulary"]
    if name in ("mlp", "distances", "regressor", "metric"):
        data = dict(x=torch.randn(rows, size["width"], generator=generator))
        if name in ("mlp", "distances"):
            data["labels"] = integers(v, rows)
            ignored = torch.rand(rows, generator=generator) < 0.3
            data["labels"][ignored] = -100
            data["labels"][0] = 0
        else:
            data["target"] = torch.randn(rows, 3, generator=generator)
    else:
        data = dict(input_ids=integers(v, rows, s))
        if name != "gpt":
            data["attention_mask"] = torch.ones(rows, s, dtype=torch.int64)
            data["attention_mask"][-1, s - 2:] = 0
        data["labels"] = integers(v, rows, s)
        ignored = torch.rand(rows, s, generator=generator) < 0.3
        ignored &= (torch.arange(rows) % 2 == 0)[:, None]
        data["labels"][ignored] = -100
    if not labels:
        data.pop("labels", None)
        data.pop("target", None)
    return data
