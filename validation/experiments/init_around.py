"""Starts around four points of the map at p = 0.5, q = 0.8, as in the authors' rebuttal."""

from __future__ import annotations

from pathlib import Path

from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.starts import CanonicalStart
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

CHAIN = BinaryChain(0.5, 0.8)
CONFIG = TransformerConfig(length=64, dimension=4, hidden=16)
CENTRES = ((-1.0, -1.0), (0.0, -0.5), (0.0, 0.5), (0.0, 0.0))
TRAININGS = ((SGD(0.3), Schedule(steps=1500)), (AdamW(5e-3), Schedule(steps=500)))


def arms(quick: bool) -> list[Arm]:
    """The four centres under SGD, and in full under AdamW too."""
    return [
        Arm(f"around ({e:g}, {w:g}), {optimiser.words}", CHAIN, CONFIG, CanonicalStart(e, w, 0.02, 0.02), optimiser, schedule)
        for optimiser, schedule in TRAININGS[: 1 if quick else 2]
        for e, w in CENTRES
    ]


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "Starts N(μ, 0.02) on the canonical slice at p = 0.5, q = 0.8")


EXPERIMENT = Experiment(
    name="init_around",
    prediction="Starts (e, w) ~ N(μ, 0.02) on the canonical slice at p = 0.5, q = 0.8, with attention from N(0, 0.02), end where the exact "
    "map says: around (-1, -1) at the bigram loss, around (0, -0.5), (0, 0.5) and (0, 0) at the unigram loss.",
    horizon="1500 steps of SGD at rate 0.3; in full also 500 of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols, d = 4, r = 16.",
    success="Every run of an arm ends where it was predicted to; each arm is judged on its own.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 4 if quick else 12,
    draw=draw,
)
