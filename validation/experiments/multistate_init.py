"""The guideline on many states: a start of rank S - 1 in the predicted basin, where a Gaussian start fails."""

from __future__ import annotations

from pathlib import Path

import landscape
from landscape.chains import SymmetricChain
from landscape.outcomes import Label
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.experiments.multistate import TRAININGS, config
from validation.starts import GaussianStart, SimplexStart

STARTS = {"N(0, 0.02)": GaussianStart(0.02), "rank 4, (1, -1)": SimplexStart(1.0, -1.0)}
RATES = (0.85, 0.95, 1.0)


def arms(quick: bool) -> list[Arm]:
    """Both starts at p above the threshold 0.8, under SGD and in full under AdamW too."""
    return [
        Arm(f"{name}, p = {p:g}, {optimiser.words}", SymmetricChain(5, p), config(5, 8), start, optimiser, schedule, predict)
        for optimiser, schedule in TRAININGS[: 1 if quick else 2]
        for p in (RATES[1:] if quick else RATES)
        for name, start in STARTS.items()
    ]


def predict(arm: Arm, results: list[dict]) -> dict[str, list[str]]:
    """The exact label of each run's (e, w); at p = 1, where κ* is infinite, that of a p close by: it depends on the side alone."""
    chain = arm.chain if arm.chain.interior else SymmetricChain(arm.chain.states, 0.999)
    codes = landscape.limit(chain, [result["point"] for result in results])
    return {"canonical": [Label(int(code)).word for code in codes]}


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "Five states above the threshold p = 0.8: Gaussian starts, and starts of rank 4 around (1, -1)")


EXPERIMENT = Experiment(
    name="multistate_init",
    prediction="Five states, p = 0.85, 0.95 and 1, all above the threshold 0.8. A start of rank S - 1 = 4 at (e, w) = (1, -1), with N(0, 0.02) "
    "on every weight, is in the basin of the global minimum and reaches the bigram loss; a start N(0, 0.02) stays at the unigram loss.",
    horizon="2000 steps of SGD at rate 0.3; in full also 1500 of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols, d = 8, r = 32.",
    success="Every run of an arm ends where it was predicted to; each arm is judged on its own.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 3 if quick else 6,
    draw=draw,
)
