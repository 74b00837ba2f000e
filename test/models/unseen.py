"""Architectures that nothing in the project was written for. Shares no code with it.

    unseen.py NAME -o MODEL.pt2 [--batch N] [--data BATCHES.safetensors --rows N]
    unseen.py --list

Every model returns (loss, predictions), in train() mode, with random weights.
"""

import argparse
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 48
TOKENS = 8
WIDTH = 16


class GatedScan(nn.Module):
    """Linear attention with decay: state by state along the sequence, gates that
    forget, cumulative sums of logarithms."""

    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads
        self.queries = nn.Linear(WIDTH, WIDTH, bias=False)
        self.keys = nn.Linear(WIDTH, WIDTH, bias=False)
        self.values = nn.Linear(WIDTH, WIDTH, bias=False)
        self.decay = nn.Linear(WIDTH, heads)
        self.gate = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, s, _ = x.shape
        split = (b, s, self.heads, WIDTH // self.heads)
        q, k, v = (f(x).view(split) for f in (self.queries, self.keys, self.values))
        logs = torch.cumsum(F.logsigmoid(self.decay(x)), dim=1)
        apart = logs[:, :, None, :] - logs[:, None, :, :]
        causal = torch.ones(s, s, dtype=torch.bool, device=x.device).tril()
        weights = torch.where(causal[None, :, :, None], apart, -torch.inf).exp()
        scores = torch.einsum("bihd,bjhd->bijh", q, F.elu(k) + 1) * weights
        mixed = torch.einsum("bijh,bjhd->bihd", scores, v).reshape(b, s, WIDTH)
        return x + self.out(mixed * torch.sigmoid(self.gate(x)))


class TimeMix(nn.Module):
    """RWKV-like: tokens blend with the one before, an exponential scan spelled as
    a loop over time."""

    def __init__(self):
        super().__init__()
        self.blend = nn.Parameter(torch.rand(3, WIDTH))
        self.speed = nn.Parameter(torch.randn(WIDTH))
        self.bonus = nn.Parameter(torch.randn(WIDTH))
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, WIDTH, bias=False)
        self.receptance = nn.Linear(WIDTH, WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        before = F.pad(x, (0, 0, 1, -1))
        mixed = [torch.lerp(before, x, w) for w in self.blend]
        k, v = self.key(mixed[0]), self.value(mixed[1])
        r = torch.sigmoid(self.receptance(mixed[2]))
        decay = torch.exp(-F.softplus(self.speed))
        top = torch.zeros_like(k[:, 0])
        bottom = torch.zeros_like(top)
        steps = []
        for t in range(x.size(1)):
            now = torch.exp(k[:, t].clamp(max=8.0))
            boosted = torch.exp(self.bonus) * now
            steps.append((top + boosted * v[:, t]) / (bottom + boosted))
            top = decay * top + now * v[:, t]
            bottom = decay * bottom + now
        return x + self.out(r * torch.stack(steps, dim=1))


class RecurrentLanguage(nn.Module):
    """A language model of one such layer and a squared-ReLU channel mix."""

    def __init__(self, mixer):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.mixer = mixer()
        self.norm = nn.RMSNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 3 * WIDTH)
        self.down = nn.Linear(3 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, labels):
        x = self.mixer(self.tokens(ids))
        x = x + self.down(F.relu(self.up(self.norm(x))) ** 2)
        scores = self.head(x)
        return F.cross_entropy(scores.flatten(0, 1), labels.flatten()), scores


class ShiftMixer(nn.Module):
    """Patches mixed by einsum, rolls and a learned table of relative positions;
    a long convolution without FFT, by a Toeplitz matrix."""

    def __init__(self, patches=16):
        super().__init__()
        self.patches = patches
        self.embed = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.mix = nn.Parameter(torch.randn(patches, patches) / patches)
        self.filters = nn.Parameter(torch.randn(WIDTH, patches) / patches)
        self.scale = nn.Parameter(torch.ones(WIDTH))
        self.relative = nn.Parameter(torch.randn(2 * patches - 1))
        self.register_buffer("distance",
                             torch.arange(patches)[:, None] - torch.arange(patches)[None, :])
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, pixels, target):
        x = self.embed(pixels).flatten(2)
        table = self.mix + self.relative[self.distance + self.patches - 1]
        x = x + torch.einsum("bcp,pq->bcq", F.hardswish(x), table.softmax(-1))
        left, right = x.chunk(2, dim=1)
        x = torch.cat([left.roll(1, dims=2), right.roll(-2, dims=2)], dim=1)
        toeplitz = torch.where(self.distance >= 0,
                               self.filters[:, self.distance.clamp(min=0)], 0.0)
        x = x + torch.einsum("cpq,bcq->bcp", toeplitz, x)
        x = self.scale[:, None] * x / x.square().mean(1, keepdim=True).add(1e-4).sqrt()
        guess = self.head(x.amax(dim=2) + x.mean(dim=2))
        return F.smooth_l1_loss(guess, target), guess


class MessagePassing(nn.Module):
    """Edges gather from their nodes, messages are added by index, and capsules
    vote by agreement."""

    def __init__(self, nodes=6, capsules=3):
        super().__init__()
        self.nodes, self.capsules = nodes, capsules
        self.message = nn.Linear(2 * WIDTH, WIDTH)
        self.update = nn.GRUCell(WIDTH, WIDTH)
        self.votes = nn.Parameter(torch.randn(capsules, WIDTH, 4) / 4)
        edges = [(i, (i * i + 1) % nodes) for i in range(nodes)] + [(i, (i + 1) % nodes)
                                                                   for i in range(nodes)]
        self.register_buffer("source", torch.tensor([a for a, _ in edges]))
        self.register_buffer("goal", torch.tensor([b for _, b in edges]))

    def forward(self, features, classes):
        rows = features.size(0)
        x = features
        for _ in range(2):
            pairs = torch.cat([x.index_select(1, self.source), x.index_select(1, self.goal)], -1)
            sent = torch.tanh(self.message(pairs))
            inbox = torch.zeros_like(x).index_add(1, self.goal, sent)
            x = self.update(inbox.reshape(-1, WIDTH), x.reshape(-1, WIDTH)).view(
                rows, self.nodes, WIDTH)
        votes = torch.einsum("bnw,cwd->bncd", x, self.votes)
        agreement = torch.zeros(rows, self.nodes, self.capsules, device=x.device)
        for _ in range(2):
            share = agreement.softmax(dim=2).unsqueeze(-1)
            mean = (share * votes).sum(1)
            length = (mean * mean).sum(-1, keepdim=True)
            capsule = mean * length / ((1 + length) * torch.sqrt(length + 1e-6))
            agreement = agreement + torch.einsum("bncd,bcd->bnc", votes, capsule)
        lengths = torch.linalg.vector_norm(capsule, dim=-1)
        hit = F.one_hot(classes, self.capsules).to(lengths.dtype)
        loss = hit * F.relu(0.9 - lengths) ** 2 + 0.5 * (1 - hit) * F.relu(lengths - 0.1) ** 2
        return loss.sum(1).mean(), lengths


def language(generator, rows):
    shape = (rows, TOKENS)
    return dict(ids=torch.randint(0, VOCABULARY, shape, generator=generator),
                labels=torch.randint(0, VOCABULARY, shape, generator=generator))


def pictures(generator, rows):
    return dict(pixels=torch.randn(rows, 3, 16, 16, generator=generator),
                target=torch.randn(rows, 5, generator=generator))


def graphs(generator, rows):
    return dict(features=torch.randn(rows, 6, WIDTH, generator=generator),
                classes=torch.randint(0, 3, (rows,), generator=generator))


MODELS = {
    "gated_scan": (lambda: RecurrentLanguage(GatedScan), language),
    "time_mix": (lambda: RecurrentLanguage(TimeMix), language),
    "shift_mixer": (ShiftMixer, pictures),
    "message_passing": (MessagePassing, graphs),
}


def build(name, seed=0):
    torch.manual_seed(seed)
    return MODELS[name][0]().train()


def export(name, output, *, batch=4, seed=0, data=None, rows=8):
    generator = torch.Generator().manual_seed(seed + 1)
    inputs = MODELS[name][1](generator, batch)
    shapes = {key: {0: torch.export.Dim.DYNAMIC} for key in inputs}
    program = torch.export.export(build(name, seed), (), inputs, strict=False,
                                  dynamic_shapes=shapes)
    torch.export.save(program, output)
    if data:
        from safetensors.torch import save_file

        save_file(MODELS[name][1](generator, rows), data)


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(MODELS))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=list(MODELS))
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=8)
    export(**vars(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
