"""The two starts in the training that the paper's authors use: long sequences, AdamW with a cosine after a warm-up."""

from __future__ import annotations

from pathlib import Path

from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.experiments.init_comparison import STARTS
from validation.training import AUTHORS, Schedule
from validation.transformer import TransformerConfig

CHAIN = BinaryChain(0.5, 0.8)
CONFIG = TransformerConfig(length=1024, dimension=4, hidden=16)


def arms(quick: bool) -> list[Arm]:
    """Both starts; in short for a tenth of the steps."""
    schedule = Schedule(steps=200 if quick else 2000, evaluate_every=100 if quick else 1000, held_out=256)
    return [Arm(f"{name}, AdamW 0.002 with cosine, {schedule.steps} steps", CHAIN, CONFIG, start, AUTHORS, schedule) for name, start in STARTS.items()]


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of both arms."""
    return draw_curves(outcome, folder, "The authors' training at p = 0.5, q = 0.8", columns=2)


EXPERIMENT = Experiment(
    name="authors_settings",
    prediction="With the authors' own settings at p = 0.5, q = 0.8 a start N(0, 0.02) stays at the unigram loss, and one around (1, -1) reaches the "
    "bigram loss, as the exact canonical map says of gradient flow.",
    horizon="2000 steps (in short 200) of AdamW: rate 0.002, betas 0.9 and 0.95, weight decay 0.001, cosine to zero after a warm-up of 2 %. Batches of 16 "
    "sequences of 1024 symbols, d = 4, r = 16.",
    success="Every run of an arm ends where it was predicted to; each arm is judged on its own.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 2 if quick else 6,
    draw=draw,
)
