"""What is trained, and how it is split. Each scenario is one exported file, one
loss, one optimizer and one global batch, under several layouts.
"""

import dataclasses
from typing import Optional

STEPS = 5

ALL_LAYOUTS = ("", "dp=4", "tp=4", "pp=4", "pp=2,dp=2", "dp=2,tp=2", "tp=2,pp=2")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """The defaults are those of most."""

    model: str
    size: str = "small"
    layers: int = 2
    # Rows of the exported example; a static batch keeps them as the unit.
    batch: int = 4
    dynamic: bool = True
    # What --loss says; the file then gives logits alone.
    loss: str = ""
    rows: int = 8
    micro_batch: Optional[int] = None
    optimizer: str = "sgd"
    learning_rate: float = 0.1
    weight_decay: float = 0.0
    clip_norm: float = 0.0
    # The quick tier runs these layouts, the full tier all.
    quick: tuple = ()
    layouts: tuple = ALL_LAYOUTS
    # How the ranks are started: "run" (program), "plan" (plan and model) or
    # "torchrun".
    start: str = "run"


SCENARIOS = {
    "mlp": Scenario("mlp", quick=("", "dp=2,tp=2")),
    # One unit of 8 rows: data ranks split its rows.
    "mlp-static": Scenario("mlp", batch=8, dynamic=False, quick=("dp=4",)),
    "mlp-adamw": Scenario("mlp", optimizer="adamw", learning_rate=1e-3, weight_decay=0.1,
                          quick=("tp=2,pp=2",), layouts=("", "dp=4", "tp=4", "tp=2,pp=2")),
    "gpt": Scenario("gpt", quick=("tp=4", "pp=4")),
    # Gradients are clipped by their norm over all ranks, tied weights once.
    "gpt-clip": Scenario("gpt", clip_norm=0.5, micro_batch=2,
                         quick=("tp=2,pp=2",), layouts=("", "dp=4", "pp=4", "tp=2,pp=2")),
    "gpt-logits": Scenario("gpt", loss="ce:logits,labels", start="plan",
                           quick=("pp=2,dp=2",)),
    "gpt2": Scenario("gpt2", quick=("pp=2,dp=2", "")),
    # 6 heads and a vocabulary of 97 divide by no 4.
    "gpt2-odd": Scenario("gpt2", size="odd", batch=8, dynamic=False,
                         quick=("tp=4",), layouts=("", "dp=4", "tp=4", "dp=2,tp=2")),
    "gpt2-units": Scenario("gpt2", batch=8, dynamic=False, rows=32, quick=("pp=4",)),
    "llama": Scenario("llama", quick=("dp=2,tp=2", "pp=2,dp=2")),
    "llama-odd": Scenario("llama", size="odd", layouts=("", "dp=4", "tp=4", "dp=2,tp=2")),
    "llama-logits": Scenario("llama", loss="causal_lm:logits,labels", quick=("tp=4",)),
    "torchrun": Scenario("gpt", start="torchrun", quick=("tp=2,pp=2",),
                         layouts=("tp=2,pp=2", "dp=4")),
}
