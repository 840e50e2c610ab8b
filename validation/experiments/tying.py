"""Tied against untied heads for p + q > 1: the untied landscape has no bad local minimum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome, canonical_labels
from validation.experiments.curves import draw_curves
from validation.starts import CanonicalStart, GaussianStart
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

CHAIN = BinaryChain(0.5, 0.8)
TIED = TransformerConfig(length=64, dimension=4, hidden=16)
STARTS = {"N(0, 0.02)": GaussianStart(0.02), "around (0.3, 0.5)": CanonicalStart(0.3, 0.5), "around (1, -1)": CanonicalStart(1.0, -1.0)}
TRAININGS = ((SGD(0.3), Schedule(steps=3000)), (AdamW(5e-3), Schedule(steps=500)))


def arms(quick: bool) -> list[Arm]:
    """Three starts, tied and untied, under SGD and in full under AdamW too."""
    return [
        Arm(f"{'tied' if tied else 'untied'}, {name}, {optimiser.words}", CHAIN, replace(TIED, tied=tied), start, optimiser, schedule, predict)
        for optimiser, schedule in TRAININGS[: 1 if quick else 2]
        for name, start in STARTS.items()
        for tied in (True, False)
    ]


def predict(arm: Arm, results: list[dict]) -> dict[str, list[str]]:
    """Tied: the canonical label. Untied: the bigram loss, wherever it starts."""
    return canonical_labels(arm, results) if arm.config.tied else {"untied": ["global"] * len(results)}


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "Tied and untied heads at p = 0.5, q = 0.8", columns=2)


EXPERIMENT = Experiment(
    name="tying",
    prediction="At p = 0.5, q = 0.8 a model with a head of its own reaches the bigram loss from every start, since its landscape has saddles and no bad "
    "minima; a tied one ends where the canonical map says: at the unigram loss from N(0, 0.02) and from around (0.3, 0.5).",
    horizon="3000 steps of SGD at rate 0.3; in full also 500 of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols, d = 4, r = 16.",
    success="Every run of an arm ends where it was predicted to; each arm is judged on its own.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 3 if quick else 8,
    draw=draw,
)
