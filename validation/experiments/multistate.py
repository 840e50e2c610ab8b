"""Chains of many states from Gaussian starts: unigram or bigram, on both sides of the threshold p = (S - 1)/S, and the rank of W_1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from landscape.chains import SymmetricChain
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.experiments.verdicts import Finding
from validation.starts import GaussianStart, SimplexStart
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

TRAININGS = ((SGD(0.3), Schedule(steps=2000, held_out=1024)), (AdamW(5e-3), Schedule(steps=1500, held_out=1024)))
# S, d, p: five states as in the authors' rebuttal, three, ten, and ten in fewer than nine dimensions
CASES = ((5, 8, (0.3, 0.6, 0.95, 1.0)), (3, 8, (0.3, 0.9)), (10, 16, (0.3, 1.0)), (10, 4, (0.3, 1.0)))
LOW_RANK = "from rank S - 1"


def config(states: int, width: int) -> TransformerConfig:
    """Width d, four times as many hidden units, S symbols with an embedding vector each."""
    return TransformerConfig(length=64, dimension=width, hidden=4 * width, symbols=states)


def arms(quick: bool) -> list[Arm]:
    """Gaussian starts on both sides of the threshold; in full for several S and both optimisers, and low-rank starts beside them."""
    found = []
    for optimiser, schedule in TRAININGS[: 1 if quick else 2]:
        for states, width, rates in CASES[: 1 if quick else 4]:
            for p in rates[::2] if quick else rates:
                name = f"S = {states}, d = {width}, p = {p:g}, {optimiser.words}"
                found.append(Arm(name, SymmetricChain(states, p), config(states, width), GaussianStart(0.02), optimiser, schedule, predict, measure="low_rank"))
    if not quick:
        start, (optimiser, schedule) = SimplexStart(1.0, -1.0, 0.0), TRAININGS[0]
        found += [
            Arm(f"S = 5, d = 8, p = {p:g}, {optimiser.words}, {LOW_RANK}", SymmetricChain(5, p), config(5, 8), start, optimiser, schedule, predict, measure="low_rank")
            for p in (0.3, 0.95)
        ]
    return found


def predict(arm: Arm, results: list[dict]) -> dict[str, list[str]]:
    """Small Gaussian starts: the bigram loss below the threshold, the unigram loss above it; from (1, -1) the bigram loss."""
    word = "global" if arm.chain.regime == "below" or isinstance(arm.start, SimplexStart) else "local"
    return {"canonical": [word] * len(results)}


def summary(outcome: Outcome) -> dict:
    """Share of W_1's and the embeddings' energy in the top 1 to 4 directions at the end, mean over the runs, by arm."""
    return {
        arm.name: {key: np.mean([result[f"energy {key}"][-1] for result in outcome.results[arm.name]], axis=0).tolist() for key in ("W1", "embeddings")}
        for arm in outcome.arms
    }


def findings(outcome: Outcome) -> list[Finding]:
    """W_1 comes to rank S - 1 where the bigram law is learnt, and a start of that rank keeps it."""
    found = []
    for arm in outcome.arms:
        if arm.chain.states != 5:
            continue
        shares = [result["energy W1"][-1] for result in outcome.results[arm.name] if result["observed"] == "global"]
        if shares and LOW_RANK in arm.name:
            lowest = min(share[3] for share in shares)
            found.append(Finding(f"W_1 keeps rank 4: {arm.name}", "at least 99 % of its energy in 4 directions, in every run", f"{lowest:.1%}", lowest >= 0.99))
        elif shares and "SGD" not in arm.name:
            lowest = min(share[3] for share in shares)
            found.append(Finding(f"W_1 comes to rank 4 from a Gaussian start: {arm.name}", "at least 95 % of its energy in 4 directions, in every run", f"{lowest:.1%}", lowest >= 0.95))
    return found


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "Symmetric chains on S states, starts N(0, 0.02)")


EXPERIMENT = Experiment(
    name="multistate",
    prediction="Symmetric chains on S states, every weight from N(0, 0.02): the bigram loss for p < (S - 1)/S and the unigram loss for "
    "p > (S - 1)/S, also where d < S - 1. With five states W_1 comes to rank S - 1 = 4 where the bigram law is learnt by AdamW, and a "
    "start of that rank keeps it.",
    horizon="2000 steps of SGD at rate 0.3; in full also 1500 of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols, r = 4 d.",
    success="Every run of an arm ends where it was predicted to; each arm is judged on its own; the findings on ranks.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 3 if quick else 6,
    draw=draw,
    summary=summary,
    findings=findings,
)
