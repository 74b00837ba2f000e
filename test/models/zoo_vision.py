"""Models beyond text, in small sizes with random weights: pictures, tables of
categories, sound, state spaces, mixtures of experts. Shares no code with the
project.

MODELS has, by name, a function that builds the model and one that makes `rows`
rows of its inputs with a source of random numbers; the loss is output 0.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 64
TOKENS = 8


class Randoms:
    """Draws of one generator."""

    def __init__(self, generator):
        self.generator = generator

    def normal(self, *shape):
        return torch.randn(shape, generator=self.generator)

    def integers(self, high, *shape):
        return torch.randint(0, high, shape, generator=self.generator)

    def bits(self, *shape):
        return torch.randint(0, 2, shape, generator=self.generator).float()


class BasicBlock(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False),
                                          nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        y += self.shortcut(x)
        return self.relu(y)


class ResNet(nn.Module):
    """Batch norm, whose running statistics are buffers."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8),
                                  nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.layer1 = BasicBlock(8, 8, 1)
        self.layer2 = BasicBlock(8, 12, 2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(12, 10)

    def forward(self, pixels, labels):
        x = self.layer2(self.layer1(self.stem(pixels)))
        logits = self.head(torch.flatten(self.pool(x), 1))
        return F.cross_entropy(logits, labels), logits


class UNet(nn.Module):
    """Group norm, long skips, a transposed convolution and a resampling."""

    def __init__(self):
        super().__init__()

        def block(inside, outside):
            return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1),
                                 nn.GroupNorm(4, outside), nn.SiLU())

        self.down1, self.down2 = block(3, 8), block(8, 12)
        self.middle = block(12, 16)
        self.up2 = nn.ConvTranspose2d(16, 12, 2, stride=2)
        self.merge2 = block(24, 12)
        self.merge1 = block(20, 8)
        self.head = nn.Conv2d(8, 5, 1)

    def forward(self, pixels, labels):
        first = self.down1(pixels)
        second = self.down2(F.avg_pool2d(first, 2))
        x = self.middle(F.max_pool2d(second, 2))
        x = self.merge2(torch.cat([self.up2(x), second], 1))
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = self.merge1(torch.cat([x, first], 1))
        logits = self.head(F.interpolate(x, scale_factor=1.0, mode="nearest"))
        return F.cross_entropy(logits, labels), logits


class Dlrm(nn.Module):
    """A recommender: one embedding bag a category, pairwise products."""

    def __init__(self, categories=3, width=8):
        super().__init__()
        self.bags = nn.ModuleList(
            nn.EmbeddingBag(20 + 6 * k, width, mode="mean" if k == 1 else "sum")
            for k in range(categories))
        self.bottom = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, width),
                                    nn.ReLU())
        features = categories + 1
        self.top = nn.Sequential(nn.Linear(width + features * (features - 1) // 2, 16),
                                 nn.ReLU(), nn.Linear(16, 1))
        pairs = torch.tril_indices(features, features, -1)
        self.register_buffer("first", pairs[0])
        self.register_buffer("second", pairs[1])

    def forward(self, dense, ids0, ids1, ids2, labels):
        x = self.bottom(dense)
        bags = [bag(ids) for bag, ids in zip(self.bags, (ids0, ids1, ids2))]
        stacked = torch.stack([x, *bags], 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        pairs = products[:, self.first, self.second]
        scores = self.top(torch.cat([x, pairs], 1)).squeeze(-1)
        return F.binary_cross_entropy_with_logits(scores, labels), scores


class OffsetBags(nn.Module):
    """Bags of any length in one list, weighted, with a padding id."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(23, 8, mode="sum", padding_idx=0)
        self.weights = nn.Embedding(23, 1)
        self.head = nn.Linear(8, 1)

    def forward(self, labels, ids, offsets):
        rows = self.bag(ids, offsets, per_sample_weights=self.weights(ids).squeeze(-1))
        scores = self.head(rows).squeeze(-1)
        return F.binary_cross_entropy_with_logits(scores, labels), scores


class Contrastive(nn.Module):
    """Every row against every other: no unit of fewer rows means the same."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(12, 8), nn.Linear(10, 8)

    def forward(self, a, b):
        a = F.normalize(self.left(a), dim=-1)
        b = F.normalize(self.right(b), dim=-1)
        logits = 3.0 * a @ b.t()
        labels = torch.arange(logits.size(0), device=logits.device)
        return F.cross_entropy(logits, labels), logits


def resnet_batch(r, rows):
    return dict(pixels=r.normal(rows, 3, 32, 32), labels=r.integers(10, rows))


def unet_batch(r, rows):
    return dict(pixels=r.normal(rows, 3, 16, 16), labels=r.integers(5, rows, 16, 16))


def dlrm_batch(r, rows):
    return dict(dense=r.normal(rows, 13), ids0=r.integers(20, rows, 3),
                ids1=r.integers(26, rows, 4), ids2=r.integers(32, rows, 2),
                labels=r.bits(rows))


def bags_batch(r, rows):
    """Three ids a row; a batch of at most eight rows, in bags that begin anew."""
    ids = r.integers(23, 3 * rows)
    ids[2] = 0
    bags = torch.tensor([0, 3, 3, 7, 12, 13, 20, 24]).repeat(-(-rows // 8))
    return dict(labels=r.bits(rows), ids=ids, offsets=bags[:rows])


def contrastive_batch(r, rows):
    return dict(a=r.normal(rows, 12), b=r.normal(rows, 10))


def vit():
    import transformers as t

    return t.ViTForImageClassification(t.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        image_size=16, patch_size=8, num_labels=10, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0))


def vit_batch(r, rows):
    return dict(pixel_values=r.normal(rows, 3, 16, 16), labels=r.integers(10, rows))


class WithLoss(nn.Module):
    """CLIP with its loss on, as a training loop calls it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, pixel_values, attention_mask):
        result = self.model(input_ids=input_ids, pixel_values=pixel_values,
                            attention_mask=attention_mask, return_loss=True)
        return result.loss, result.logits_per_image


def clip():
    import transformers as t

    common = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                  num_attention_heads=4, projection_dim=16, attention_dropout=0.0)
    return WithLoss(t.CLIPModel(t.CLIPConfig(
        text_config=dict(common, vocab_size=VOCABULARY, max_position_embeddings=TOKENS,
                         eos_token_id=VOCABULARY - 1, bos_token_id=0, pad_token_id=1),
        vision_config=dict(common, image_size=16, patch_size=8), projection_dim=16)))


def clip_batch(r, rows):
    ids = r.integers(VOCABULARY - 2, rows, TOKENS)
    ids[:, -1] = VOCABULARY - 1
    return dict(input_ids=ids, pixel_values=r.normal(rows, 3, 16, 16),
                attention_mask=torch.ones(rows, TOKENS, dtype=torch.int64))


def language(r, rows, mask=True):
    data = dict(input_ids=r.integers(VOCABULARY, rows, TOKENS))
    if mask:
        data["attention_mask"] = torch.ones(rows, TOKENS, dtype=torch.int64)
        data["attention_mask"][-1, TOKENS - 2:] = 0
    data["labels"] = r.integers(VOCABULARY, rows, TOKENS)
    data["labels"][::2, 5:] = -100
    return data


def mamba():
    import transformers as t

    return t.MambaForCausalLM(t.MambaConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, state_size=4,
        time_step_rank=4, use_cache=False))


def mamba_batch(r, rows):
    return language(r, rows, mask=False)


def whisper():
    import transformers as t

    return t.WhisperForConditionalGeneration(t.WhisperConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
        decoder_ffn_dim=64, num_mel_bins=8, max_source_positions=8, max_target_positions=16,
        use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0))


def whisper_batch(r, rows):
    return dict(input_features=r.normal(rows, 8, 16), labels=r.integers(VOCABULARY, rows, TOKENS))


def decoder(**more):
    common = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
                  max_position_embeddings=16, use_cache=False)
    return dict(common, **more)


def mixtral(experts, auxiliary=False):
    import transformers as t

    config = t.MixtralConfig(**decoder(num_local_experts=4, num_experts_per_tok=2,
                                       output_router_logits=auxiliary))
    config._experts_implementation = experts
    return t.MixtralForCausalLM(config)


def deepseek(experts):
    import transformers as t

    config = t.DeepseekV3Config(**decoder(
        num_key_value_heads=4, moe_intermediate_size=24, n_routed_experts=4, n_group=2,
        topk_group=1, num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1,
        q_lora_rank=16, kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8))
    config._experts_implementation = experts
    model = t.DeepseekV3ForCausalLM(config)
    # Routers start unbiased: ties would be broken by the kernel.
    for name, buffer in model.named_buffers():
        if "correction_bias" in name:
            torch.nn.init.normal_(buffer, std=0.1)
    return model


MODELS = {
    "resnet": (ResNet, resnet_batch),
    "unet": (UNet, unet_batch),
    "dlrm": (Dlrm, dlrm_batch),
    "offset_bags": (OffsetBags, bags_batch),
    "contrastive": (Contrastive, contrastive_batch),
    "vit": (vit, vit_batch),
    "clip": (clip, clip_batch),
    "mamba": (mamba, mamba_batch),
    "whisper": (whisper, whisper_batch),
    "mixtral": (lambda: mixtral("grouped_mm"), language),
    "mixtral_batched": (lambda: mixtral("batched_mm"), language),
    "mixtral_balanced": (lambda: mixtral("grouped_mm", auxiliary=True), language),
    "deepseek_v3": (lambda: deepseek("grouped_mm"), language),
    "deepseek_v3_batched": (lambda: deepseek("batched_mm"), language),
}
# torch.export fixes the batch of these, or their loss depends on the unit's rows.
FIXED_BATCH = {"resnet", "offset_bags", "contrastive", "clip", "mixtral_balanced"}
