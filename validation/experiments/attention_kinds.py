"""Linear against softmax attention from the same starts, on the same batches: does the kind decide where a training ends?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.experiments.verdicts import Finding
from validation.starts import CanonicalStart, GaussianStart
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

CHAINS = (BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3))
SOFTMAX = TransformerConfig(length=64, dimension=4, hidden=16)
KINDS = ("softmax", "linear")
STARTS = {"N(0, 0.02)": GaussianStart(0.02), "around (0.3, 0.5)": CanonicalStart(0.3, 0.5), "around (1, -1)": CanonicalStart(1.0, -1.0)}
TRAININGS = ((SGD(0.3), Schedule(steps=1500)), (AdamW(5e-3), Schedule(steps=500)))


def arms(quick: bool) -> list[Arm]:
    """Each start with both kinds; in full on both sides of p + q = 1 and under AdamW too."""
    return [
        Arm(f"{name}, ({chain.p:g}, {chain.q:g}), {optimiser.words}, {kind}", chain, replace(SOFTMAX, attention=kind), start, optimiser, schedule)
        for optimiser, schedule in TRAININGS[: 1 if quick else 2]
        for chain in CHAINS[: 1 if quick else 2]
        for name, start in STARTS.items()
        for kind in KINDS
    ]


def findings(outcome: Outcome) -> list[Finding]:
    """Both kinds end alike, run by run."""
    pairs = [(one, two) for one, two in zip(outcome.arms[::2], outcome.arms[1::2])]
    found = []
    for softmax, linear in pairs:
        ends = list(zip(*([result["observed"] for result in outcome.results[arm.name]] for arm in (softmax, linear)), strict=True))
        same = sum(a == b for a, b in ends)
        name = softmax.name.removesuffix(", softmax")
        found.append(Finding(f"linear and softmax attention end alike: {name}", "in every run", f"{same} of {len(ends)}", same == len(ends)))
    return found


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "Softmax and linear attention from the same starts on the same batches")


EXPERIMENT = Experiment(
    name="attention_kinds",
    prediction="Where a training ends is decided by the start and not by the kind of attention: with softmax and with linear attention, from the same "
    "weights on the same batches, runs end alike, and where the canonical map says.",
    horizon="1500 steps of SGD at rate 0.3; in full also 500 of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols, d = 4, r = 16.",
    success="Every run of an arm ends where it was predicted to; both kinds end alike.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 3 if quick else 8,
    draw=draw,
    findings=findings,
)
