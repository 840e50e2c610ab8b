"""The standard Gaussian start against the start that the basin map recommends, on both sides of p + q = 1."""

from __future__ import annotations

from pathlib import Path

from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.starts import CanonicalStart, GaussianStart
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

CONFIG = TransformerConfig(length=64, dimension=4, hidden=16)
STARTS = {"N(0, 0.02)": GaussianStart(0.02), "around (1, -1)": CanonicalStart(1.0, -1.0, 0.02, 0.02)}
TRAININGS = ((SGD(0.3), Schedule(steps=1500)), (AdamW(5e-3), Schedule(steps=1500)))
CHAINS = tuple(BinaryChain(p, q) for p, q in ((0.5, 0.8), (0.1, 0.2), (0.2, 0.3), (0.3, 0.4), (0.7, 0.7), (0.9, 0.9), (0.95, 0.6)))


def arms(quick: bool) -> list[Arm]:
    """Both starts under SGD, in short at one (p, q) on each side; in full on a grid, and under AdamW too."""
    return [
        Arm(f"{name}, {optimiser.words}, ({chain.p:g}, {chain.q:g})", chain, CONFIG, start, optimiser, schedule)
        for optimiser, schedule in TRAININGS[: 1 if quick else 2]
        for chain in (CHAINS[:3:2] if quick else CHAINS)
        for name, start in STARTS.items()
    ]


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "N(0, 0.02) against a start around (1, -1)")


EXPERIMENT = Experiment(
    name="init_comparison",
    prediction="The limit of a run is the label of its own (e, w) in the exact canonical basin map: a statement on gradient flow, "
    "put here to SGD and AdamW alike. For p + q > 1 that is the unigram loss from N(0, 0.02) and the bigram loss from around (1, -1); "
    "for p + q < 1 it is the bigram loss from both. A start with every weight from N(0, 0.02), 0.02 being the standard deviation, is "
    "off the slice; its counterpart in the map is (e, w) drawn from the same law.",
    horizon="1500 steps of SGD at rate 0.3; in full also of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols, d = 4, r = 16.",
    success="Every run of an arm ends where it was predicted to; each arm is judged on its own.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss "
    "(local); no held-out loss more than 4 standard errors below the bigram loss.",
    arms=arms,
    runs=lambda quick: 4 if quick else 12,
    draw=draw,
)
