"""Cases that users met, by number: each the smallest model of that kind, and
what the tool should do with it.

    user_cases.py --bin DIR [TEST...]
"""

import json
import pathlib
import random
import zipfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from graph_features import ROWS, Case, features, main

WIDTH, TOKENS, VOCABULARY = features.WIDTH, features.TOKENS, features.VOCABULARY


def mean_loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


class Mlp(nn.Module):
    """A linear layer for each width."""

    def __init__(self, *widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x, labels):
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return mean_loss(self.layers[-1](x), labels)


class TiedGpt(features.Gpt):
    def __init__(self):
        super().__init__()
        self.head.weight = self.tokens.weight


class EqualGpt(features.Gpt):
    """Equal values, two weights."""

    def __init__(self):
        super().__init__()
        with torch.no_grad():
            self.head.weight.copy_(self.tokens.weight)


class EncoderDecoder(nn.Module):
    """Every layer of the decoder reads the encoder's last output."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.encoder = nn.ModuleList(features.Block() for _ in range(2))
        self.decoder = nn.ModuleList(features.Block() for _ in range(2))
        self.cross = nn.ModuleList(nn.Linear(WIDTH, 2 * WIDTH) for _ in range(2))

    def forward(self, ids, targets, labels):
        memory, x = self.tokens(ids), self.tokens(targets)
        for block in self.encoder:
            memory = block(memory)
        for block, cross in zip(self.decoder, self.cross):
            k, v = cross(memory).chunk(2, -1)
            x = block(x)
            x = x + F.scaled_dot_product_attention(x, k, v)
        return mean_loss(x @ self.tokens.weight.t(), labels)


class Skips(nn.Module):
    """Three levels; what goes down is needed on the way up."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in ((3, 4), (4, 6), (6, 8)))
        self.up = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in ((14, 6), (10, 4)))
        self.head = nn.Conv2d(4, 5, 1)

    def forward(self, x, labels):
        kept = []
        for i, conv in enumerate(self.down):
            x = F.relu(conv(x if i == 0 else F.avg_pool2d(x, 2)))
            kept.append(x)
        for conv, skip in zip(self.up, (kept[1], kept[0])):
            x = F.relu(conv(torch.cat([F.interpolate(x, scale_factor=2.0), skip], 1)))
        return F.cross_entropy(self.head(x), labels)


class Rotary(nn.Module):
    """One table of positions, read by every layer."""

    def __init__(self, layers=4, fused=False):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.qkv = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(layers))
        self.o = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))

    def forward(self, ids, labels):
        x, half = self.tokens(ids), WIDTH // features.HEADS // 2
        frequencies = 100.0 ** (-torch.arange(half) / half)
        angles = torch.outer(torch.arange(ids.shape[1]).float(), frequencies)
        cos, sin = angles.cos(), angles.sin()

        def turned(t):
            a, b = t.unflatten(-1, (features.HEADS, -1)).transpose(1, 2).chunk(2, -1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

        for qkv, o in zip(self.qkv, self.o):
            q, k, v = qkv(x).chunk(3, -1)
            v = v.unflatten(-1, (features.HEADS, -1)).transpose(1, 2)
            y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
            x = x + o(y.transpose(1, 2).flatten(2))
        return mean_loss(x @ self.tokens.weight.t(), labels)


class FusedSections(nn.Module):
    """Grouped q, k and v in one weight; gate and up of width 3 in another."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 2 * WIDTH)
        self.o, self.gate_up = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 6)
        self.down, self.head = nn.Linear(3, WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x, labels):
        q, k, v = self.qkv(x).split((WIDTH, WIDTH // 2, WIDTH // 2), -1)
        q, k, v = (t.unflatten(-1, (-1, 4)).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        gate, up = self.gate_up(x).chunk(2, -1)
        return mean_loss(self.head(x + self.down(F.silu(gate) * up)), labels)


class TowerAndText(nn.Module):
    """A tower of 5 heads beside a decoder of 4."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Linear(12, 20)
        self.qkv, self.into = nn.Linear(20, 60), nn.Linear(20, WIDTH)
        self.text = features.Gpt(layers=1)

    def forward(self, patches, ids, labels):
        q, k, v = (t.unflatten(-1, (5, 4)).transpose(1, 2)
                   for t in self.qkv(self.patches(patches)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = torch.cat([self.into(y), self.text.tokens(ids)], 1)
        x = self.text.blocks[0](x)[:, -TOKENS:]
        return mean_loss(self.text.head(self.text.norm(x)), labels)


class Dropped(features.Gpt):
    def logits(self, ids):
        return self.head(F.dropout(self.norm(self.tokens(ids)), 0.3, self.training))


class BatchNormed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 10)

    def forward(self, x, labels):
        return F.cross_entropy(self.head(F.relu(self.norm(self.conv(x))).mean((2, 3))), labels)


class BlockFloat8Experts(nn.Module):
    """Every row through every expert, mixed by a router; the weights are of eight
    bits, with one scale for each block of four columns."""

    EXPERTS, FFN, BLOCK = 4, 20, 4

    def __init__(self):
        super().__init__()
        self.router, self.head = nn.Linear(WIDTH, self.EXPERTS), nn.Linear(WIDTH, 10)
        blocks = self.FFN // self.BLOCK
        for name in ("up", "down"):
            weight = torch.randn(self.EXPERTS, blocks, self.BLOCK, WIDTH) / 4
            self.register_buffer(name, weight.flatten(1, 2).to(torch.float8_e4m3fn))
            self.register_buffer(name + "_scale", torch.rand(self.EXPERTS, blocks) + 0.5)

    def weight(self, name):
        narrow, scale = getattr(self, name).float(), getattr(self, name + "_scale")
        wide = narrow.unflatten(1, (-1, self.BLOCK)) * scale[..., None, None]
        return wide.flatten(1, 2)

    def forward(self, x, labels):
        shares = self.router(x).softmax(-1)
        hidden = torch.relu(torch.einsum("bd,efd->ebf", x, self.weight("up")))
        mixed = torch.einsum("ebf,efd->ebd", hidden, self.weight("down"))
        return F.cross_entropy(self.head(torch.einsum("ebd,be->bd", mixed, shares)), labels)


class ViewOut(Mlp):
    """Its outputs are views of one tensor."""

    def forward(self, x, labels):
        y = self.layers[0](x)
        y.mul_(2)
        return F.cross_entropy(self.layers[1](y), labels), y.view(-1, 2, y.shape[1] // 2), y[:, :3]


def tokens(rows=ROWS, *more):
    names = ("ids", *more, "labels")
    return {name: torch.randint(0, VOCABULARY, (rows, TOKENS)) for name in names}


def features_of(width, classes=10, rows=ROWS):
    return dict(x=torch.randn(rows, width), labels=torch.randint(0, classes, (rows,)))


def pictures(size):
    return dict(x=torch.randn(ROWS, 3, size, size), labels=torch.randint(0, 5, (ROWS, size, size)))


class Cases(Case):
    def setUp(self):
        super().setUp()
        torch.manual_seed(5)

    def save(self, model, data, file="model.pt2", batch=4, dynamic=True, train=True):
        inputs = {name: tensor[:batch] for name, tensor in data.items()}
        shapes = {name: {0: torch.export.Dim.DYNAMIC} for name in inputs} if dynamic else None
        program = torch.export.export(model.train(train), (), inputs, strict=False,
                                      dynamic_shapes=shapes)
        torch.export.save(program, self.folder / file)
        save_file({n: t.contiguous() for n, t in data.items()}, self.folder / "data.safetensors")

    def plan(self, *arguments, cluster="cpu:4", rows=ROWS):
        return self.commands.plan_tool("plan", "model.pt2", "--cluster", cluster,
                                       "--global-batch", rows, *arguments)

    def owners(self, layout):
        """Parameter -> stages that own it."""
        owners = {}
        for stage, role in enumerate(self.program(layout)):
            for parameter in role["parameters"]:
                if parameter["owner"]:
                    owners.setdefault(parameter["names"][0], []).append(stage)
        return owners

    def test_c07_layers_that_stages_do_not_divide(self):
        self.save(features.Gpt(layers=7), tokens())
        owners = self.owners("pp=2")
        self.assertEqual(len(owners), len(list(features.Gpt(layers=7).parameters())))
        self.assertTrue(all(len(stages) == 1 for stages in owners.values()), owners)
        self.train("pp=2,dp=2")

    def test_c08_no_stage_is_empty(self):
        self.save(features.Gpt(layers=2), tokens())
        stages = {stage for owner in self.owners("pp=4").values() for stage in owner}
        self.assertEqual(stages, {0, 1, 2, 3})
        self.train("pp=4")

    def test_c09_a_tied_pair_on_two_stages_stays_equal(self):
        data = tokens(3 * ROWS)
        self.save(TiedGpt(), data)
        owners = self.owners("pp=2,dp=2")
        tied = next(name for name in owners if name in ("tokens.weight", "head.weight"))
        self.assertEqual(len(owners[tied]), 1)
        report = self.train("pp=2,dp=2")
        self.assertEqual(len(report["losses"]), 3)
        saved = load_file(self.folder / "weights.safetensors")
        self.assertTrue(saved["tokens.weight"].equal(saved["head.weight"]))

    def test_c10_equal_values_are_no_tie(self):
        for model, ties in ((TiedGpt(), 1), (EqualGpt(), 0)):
            self.save(model, tokens())
            document = self.inspect()
            self.assertEqual(len(document["ties"]), ties)
            self.assertEqual(document["parameter_count"],
                             sum(p.numel() for p in model.parameters()))

    def test_c11_a_tied_pair_sharded_at_rest(self):
        # Its planner's half (one merged unit in the plan) is of another part.
        self.save(TiedGpt(), tokens())
        self.assertEqual(len([p for p in self.graph()["parameters"] if len(p["names"]) == 2]), 1)
        self.train("dp=4")

    def test_c12_an_encoder_that_all_decoder_layers_read(self):
        self.save(EncoderDecoder(), tokens(ROWS, "targets"))
        self.train("pp=4")

    def test_c13_long_skips_across_stages(self):
        self.save(Skips(), pictures(8))
        self.train("pp=4")

    def test_c14_a_rotary_table_is_made_in_each_stage(self):
        self.save(Rotary(), tokens())
        calls = [[i["name"] for segment in role["segments"] for i in segment["instructions"]
                  if i["do"] == "call"] for role in self.program("pp=4")]
        self.assertGreater(sum("aten::cos" in names for names in calls), 2)
        self.train("pp=4")

    def test_c15_sections_are_split_one_by_one(self):
        self.save(FusedSections(), dict(x=torch.randn(ROWS, TOKENS, WIDTH),
                                        labels=torch.randint(0, 10, (ROWS, TOKENS))))
        self.train("tp=2,dp=2")

    def test_c16_experts_that_do_not_divide(self):
        # Degrees of experts are of the targets that have them.
        config = {"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 128,
                  "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
                  "num_local_experts": 8, "num_experts_per_tok": 2}
        (self.folder / "config.json").write_text(json.dumps(config))
        text = self.refused("plan", "config.json", "--seq-len", 128, "--cluster",
                            "6xH100-SXM-80GB", "--global-batch", 12, "--target", "megatron",
                            "--fix", "ep=4", code=4)
        self.assertIn("ep", text)
        self.assertRegex(text, r"6")

    def test_c17_scales_of_blocks(self):
        self.save(BlockFloat8Experts(), features_of(WIDTH))
        model = BlockFloat8Experts()
        self.train("tp=2,dp=2", "tp=4")
        saved = self.graph()
        kept = {b["names"][0]: b for b in saved["buffers"]}
        self.assertEqual(set(kept), {name for name, _ in model.named_buffers()})
        # Five blocks of four: a shard of any plan holds whole blocks or whole experts.
        self.draw_plans()

    def test_c20_a_tower_of_odd_heads_beside_text(self):
        # Import, stages and data parallelism; tp=4 wants heads to split in every
        # attention, and is the planner's.
        data = tokens()
        data = dict(patches=torch.randn(ROWS, 6, 12), **data)
        self.save(TowerAndText(), data)
        self.train("pp=2,dp=2")

    def test_c21_frozen_layers_without_adapters(self):
        self.export("lora", dynamic_batch=True)
        trained = [name for role in self.program("pp=2,dp=2") for p in role["parameters"]
                   for name in p["names"] if p["trainable"]]
        self.assertTrue(trained and all("lora" in name for name in trained))
        self.train("pp=2,dp=2")

    def test_c22_an_unused_layer(self):
        self.export("two_uses", dynamic_batch=True)
        graph = self.graph()
        unused = [p["names"][0] for p in graph["parameters"] if not p["gradients"]]
        self.assertEqual(sorted(unused), ["unused.bias", "unused.weight"])
        self.train("dp=4")

    def test_c23_batch_norm_fixes_what_a_unit_is(self):
        self.save(BatchNormed(), dict(x=torch.randn(ROWS, 3, 6, 6),
                                      labels=torch.randint(0, 10, (ROWS,))))
        self.assertFalse(self.inspect()["separable"])
        self.train("dp=4")
        saved = load_file(self.folder / "weights.safetensors")
        self.assertEqual(saved["norm.num_batches_tracked"].item(), ROWS // 4)

    def test_c24_masks_do_not_depend_on_the_layout(self):
        self.save(Dropped(), tokens())
        losses = [self.train(layout)["losses"][0] for layout in ("tp=4", "dp=4")]
        self.assertAlmostEqual(*losses, places=5)

    def test_c25_outputs_that_are_views(self):
        self.save(ViewOut(WIDTH, WIDTH, 10), features_of(WIDTH, rows=2 * ROWS))
        report = self.train("pp=2,dp=2")
        self.assertEqual(len(report["losses"]), 2)

    def test_c26_a_batch_of_one_became_a_constant(self):
        self.save(Mlp(WIDTH, WIDTH, 10), features_of(WIDTH), batch=1, dynamic=False)
        self.assertFalse(self.inspect()["dynamic_batch"])
        self.train("dp=4")
        refused = self.plan("--fix", "dp=4", "--micro-batch", 2)
        self.assertEqual(refused.code, 4, refused.out)
        self.assertIn("dynamic", refused.err)

    def test_c27_sequences_of_another_length(self):
        data = tokens()
        inputs = {name: tensor[:4] for name, tensor in data.items()}
        shapes = {name: {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
                  for name in inputs}
        program = torch.export.export(features.Gpt().train(), (), inputs, strict=False,
                                      dynamic_shapes=shapes)
        torch.export.save(program, self.folder / "model.pt2")
        longer = {name: tensor.repeat(1, 2).contiguous() for name, tensor in data.items()}
        # The labels' length follows: the model compares the two.
        shape = ("--shape", f"ids=4x{2 * TOKENS}")
        save_file(longer, self.folder / "data.safetensors")
        self.train("pp=2,dp=2", options=shape, flags=shape)
        save_file(data, self.folder / "data.safetensors")
        result = self.commands.plan_tool("run", "plan.json", "model.pt2", "--data",
                                         "data.safetensors", *shape)
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.err, "ids|labels")

    def test_c28_micro_batches_that_do_not_divide(self):
        self.save(features.Gpt(), tokens())
        refused = self.plan("--micro-batch", 3)
        self.assertEqual(refused.code, 4)
        self.assertIn("2, 4", refused.err)

    def test_c29_routes_that_depend_on_data(self):
        self.export("branches", dynamic_batch=True)
        self.train("tp=4")
        self.export("loop")
        self.assertIn("aten.index.Tensor", self.refused("inspect", "model.pt2"))

    def test_c30_complex_tables(self):
        self.export("complex_rotary", dynamic_batch=True)
        self.train("dp=4", "pp=2,dp=2")

    def test_c31_weights_of_eight_bits(self):
        self.export("int8_parameter", dynamic_batch=True)
        self.train("tp=4", options=("--optimizer", "adamw"))
        weight = features.build("int8_parameter").up.weight
        self.assertTrue(load_file(self.folder / "weights.safetensors")["up.weight"].equal(weight))

    def test_c32_more_ranks_than_columns(self):
        self.save(Mlp(WIDTH, 6, 3), features_of(WIDTH, 3))
        self.train("tp=4")

    def test_c33_sizes_in_the_file_are_whole_sizes(self):
        self.export("lora", batch=ROWS)
        self.train("dp=2,tp=2")

    def test_c34_one_norm_of_all_gradients(self):
        self.save(features.Gpt(), tokens())
        self.train("tp=2,pp=2", flags=("--clip-norm", 0.05))

    def test_c35_a_table_that_is_not_saved_with_the_model(self):
        self.export("two_uses", dynamic_batch=True)
        tables = [b for b in self.graph()["buffers"] if b["names"] == ["table"]]
        self.assertFalse(tables[0]["persistent"])
        self.train("pp=2,dp=2")

    def test_c36_a_model_of_no_known_family(self):
        self.save(Mlp(WIDTH, 3 * WIDTH, WIDTH, 10), features_of(WIDTH))
        self.train("dp=2,tp=2")

    #===- Files -------------------------------------------------------------===#

    def rewrite(self, change, file="model.pt2"):
        """The archive with its program's text changed."""
        path = self.folder / file
        with zipfile.ZipFile(path) as archive:
            records = [(name, archive.read(name)) for name in archive.namelist()]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for name, data in records:
                if name.split("/")[-2:-1] == ["models"]:
                    document = json.loads(data)
                    change(document)
                    data = json.dumps(document).encode()
                archive.writestr(name, data)

    def test_c91_another_version_of_the_format(self):
        self.save(Mlp(WIDTH, 10), features_of(WIDTH))
        self.rewrite(lambda document: document["schema_version"].update(major=9))
        text = self.refused("inspect", "model.pt2")
        self.assertIn("only schema 8", text)
        self.rewrite(lambda document: document.pop("schema_version"))
        self.assertIn("schema_version", self.refused("inspect", "model.pt2"))

    def test_c92_another_kind_of_file(self):
        model = Mlp(WIDTH, 10)
        torch.save(model.state_dict(), self.folder / "state.pt")
        torch.save(model, self.folder / "pickled.pt")
        for file, says in (("state.pt", "state dict"), ("pickled.pt", "pickled")):
            text = self.refused("inspect", file)
            self.assertIn(says, text)
            self.assertIn("torch.export", text)
        with zipfile.ZipFile(self.folder / "compiled.pt2", "w") as archive:
            archive.writestr("c/archive_format", "pt2")
            archive.writestr("c/archive_version", "0")
            archive.writestr("c/data/aotinductor/model/model.so", b"\x7fELF")
        self.assertIn("compiled", self.refused("inspect", "compiled.pt2"))

    def test_c93_a_part_of_a_file(self):
        self.save(Mlp(WIDTH, 10), features_of(WIDTH))
        whole = (self.folder / "model.pt2").read_bytes()
        (self.folder / "half.pt2").write_bytes(whole[:len(whole) // 2])
        text = self.refused("inspect", "half.pt2")
        self.assertIn(str(len(whole) // 2), text)
        with zipfile.ZipFile(self.folder / "model.pt2") as archive:
            entry = next(e for e in archive.infolist() if e.filename.endswith("model.json"))
        at = whole.index(b"graph_module", entry.header_offset)
        flipped = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]
        (self.folder / "flipped.pt2").write_bytes(flipped)
        self.assertIn("models/model.json fails its checksum", self.refused("inspect", "flipped.pt2"))

    def test_mutated_files_give_typed_errors(self):
        """Real files with changes that checksums do not see, from end to end."""
        self.save(features.Gpt(layers=1), tokens())
        with zipfile.ZipFile(self.folder / "model.pt2") as archive:
            records = [(name, archive.read(name)) for name in archive.namelist()]
        draws = random.Random(20261201)
        refused = 0
        described = [name for name, data in records if data[:1] == b"{"]
        for turn in range(40):
            changed = dict(records)
            name = draws.choice(described if turn % 2 else [n for n, data in records if data])
            data = bytearray(changed[name])
            for _ in range(draws.choice((1, 4))):
                at, length = draws.randrange(len(data)), draws.randrange(1, 9)
                if draws.random() < 0.5:
                    data[at] = draws.randrange(256)
                else:
                    data[at:at + length] = data[:length] if draws.random() < 0.5 else b""
            changed[name] = bytes(data)
            with zipfile.ZipFile(self.folder / "mutated.pt2", "w") as archive:
                for each, content in changed.items():
                    archive.writestr(each, content)
            result = self.commands.plan_tool("inspect", "mutated.pt2", "--emit", "graph")
            self.assertIn(result.code, (0, 3, 5), result.err)
            if result.code:
                refused += 1
                self.assertRegex(result.err, r"error MP\d{4}")
        self.assertGreater(refused, 5)

    def test_c96_a_shard_of_weights_is_missing(self):
        self.save(Mlp(WIDTH, WIDTH, 10), features_of(WIDTH))
        shards = self.folder / "shards"
        shards.mkdir()
        named = dict(Mlp(WIDTH, WIDTH, 10).named_parameters())
        index = {}
        for i, (name, tensor) in enumerate(named.items()):
            index[name] = f"model-{i % 2 + 1:05}-of-00002.safetensors"
        for file in set(index.values()):
            save_file({n: t.detach() for n, t in named.items() if index[n] == file},
                      shards / file)
        (shards / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {}, "weight_map": index}))
        run = ("run", "plan.json", "model.pt2", "--weights", "shards", "--verify")
        self.assertEqual(self.plan("-o", "plan.json").code, 0)
        self.commands.plan_tool_succeeds(*run)
        (shards / "model-00002-of-00002.safetensors").unlink()
        text = self.refused(*run)
        self.assertIn("model-00002-of-00002.safetensors", text)

    def test_an_export_in_eval_mode_is_named(self):
        class Evaluated(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.head = nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, 10)

            def forward(self, x, labels):
                x = F.dropout(self.norm(x), 0.1, self.training)
                return F.cross_entropy(self.head(x), labels)

        self.save(Evaluated(), features_of(WIDTH), train=False)
        notes = " ".join(self.inspect()["file"]["notes"])
        self.assertIn("eval", notes)
        self.assertIn("batch_norm", notes)


if __name__ == "__main__":
    main()
