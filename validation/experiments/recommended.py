"""The start that `landscape.recommend` gives, against the Gaussian one: how many of twenty trainings reach the bigram loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import landscape
from landscape.chains import BinaryChain, SymmetricChain
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.experiments.multistate import config
from validation.experiments.verdicts import Finding
from validation.starts import CanonicalStart, GaussianStart, SimplexStart
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

CONFIG = TransformerConfig(length=64, dimension=4, hidden=16)
TRAININGS = ((SGD(0.3), Schedule(steps=1500)), (AdamW(5e-3), Schedule(steps=1500)))
CHAINS = tuple(BinaryChain(p, q) for p, q in ((0.5, 0.8), (0.7, 0.7), (0.9, 0.9), (0.95, 0.6), (0.2, 0.3), (0.3, 0.4)))
MANY = SymmetricChain(5, 0.95)
GAUSSIAN = "N(0, 0.02)"


def recommended(chain) -> CanonicalStart | SimplexStart:
    """The recommended start of a chain, with N(0, 0.02) on (e, w) and on the attention, or on every weight for more symbols."""
    e, w = (round(value, 6) for value in landscape.recommend(chain).mean)
    return CanonicalStart(e, w, 0.02, 0.02) if isinstance(chain, BinaryChain) else SimplexStart(e, w, 0.02)


def settling(chain, optimiser):
    """The optimiser; for SGD above the largest rate at which it settles, at half of that."""
    largest = landscape.recommend(chain, positions=CONFIG.length).largest_rate
    if not isinstance(optimiser, SGD) or largest is None or optimiser.rate < largest:
        return optimiser
    return SGD(round(0.5 * largest, 3))


def arms(quick: bool) -> list[Arm]:
    """The recommended start on every chain, and the Gaussian one beside it as an exploration; in short on three chains under SGD.

    Last, the recommended start at the plain rate of SGD where it is above the largest that settles.
    """
    found, beyond = [], []
    for plain, schedule in TRAININGS[: 1 if quick else 2]:
        for chain in (CHAINS[0], CHAINS[4], MANY) if quick else (*CHAINS, MANY):
            shape = CONFIG if isinstance(chain, BinaryChain) else config(chain.states, 8)
            where = f"({chain.p:g}, {chain.q:g})" if isinstance(chain, BinaryChain) else f"S = {chain.states}, p = {chain.p:g}"
            start, optimiser = recommended(chain), settling(chain, plain)
            if optimiser != plain:
                beyond.append(Arm(f"recommended ({start.e:.3g}, {start.w:.3g}), {plain.words}, {where}", chain, shape, start, plain, schedule, None))
            found.append(Arm(f"recommended ({start.e:.3g}, {start.w:.3g}), {optimiser.words}, {where}", chain, shape, start, optimiser, schedule, predict, least=0.95, undecided=0.05))
            found.append(Arm(f"{GAUSSIAN}, {plain.words}, {where}", chain, shape, GaussianStart(0.02), plain, schedule, None))
    return found + beyond


def predict(arm: Arm, results: list[dict]) -> dict[str, list[str]]:
    """The recommendation: the bigram loss, every time."""
    return {"recommend": ["global"] * len(results)}


def summary(outcome: Outcome) -> dict:
    """How many runs of each arm ended at the bigram loss, and how far from it they ended, as a mean share of the difference."""
    return {
        "at the bigram loss": {arm.name: sum(run["observed"] == "global" for run in outcome.results[arm.name]) for arm in outcome.arms},
        "excess": {arm.name: excess(arm, outcome.results[arm.name]) for arm in outcome.arms},
    }


def excess(arm: Arm, runs: list[dict]) -> float:
    """Mean of (held-out loss - bigram loss) / (unigram loss - bigram loss) at the end."""
    chain = arm.chain
    losses = [run["held_out"][-1] - run["chance"] for run in runs]
    return float(np.mean(losses) - chain.bigram_loss) / (chain.unigram_loss - chain.bigram_loss)


def findings(outcome: Outcome) -> list[Finding]:
    """Where SGD's rate is above the largest at which it settles, it does not; at half of that it does."""
    found = []
    for arm in outcome.arms:
        if not arm.name.startswith("recommended") or not isinstance(arm.optimiser, SGD) or not isinstance(arm.chain, BinaryChain):
            continue
        largest, share = landscape.recommend(arm.chain, positions=CONFIG.length).largest_rate, excess(arm, outcome.results[arm.name])
        if arm.optimiser.rate > largest:
            statement = f"SGD at {arm.optimiser.rate:g}, above the largest rate {largest:.3g}, hovers above the bigram loss: {arm.name}"
            found.append(Finding(statement, "mean excess at least 4 % of the difference of the losses", f"{share:.1%}", share >= 0.04))
        else:
            statement = f"SGD at {arm.optimiser.rate:g}, below the largest rate {largest:.3g}, settles: {arm.name}"
            found.append(Finding(statement, "mean excess at most 4 % of the difference of the losses", f"{share:.1%}", share <= 0.04))
    return found


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "The recommended start and N(0, 0.02)")


EXPERIMENT = Experiment(
    name="recommended",
    prediction="From the start that `landscape.recommend` gives, of the default norm, with N(0, 0.02) on (e, w) and the attention, at least "
    "19 of 20 trainings reach the bigram loss: at six (p, q) on both sides of p + q = 1 with d = 4, r = 16, and on five states at p = 0.95 from "
    "rank 4 with N(0, 0.02) on every weight. Nothing is predicted of N(0, 0.02), which is trained beside it.",
    horizon="1500 steps of SGD at rate 0.3, or at half the largest rate at which it settles if 0.3 is above that; in full also of AdamW at "
    "rate 0.005. Batches of 16 sequences of 64 symbols.",
    success="At least 95 % of the runs of an arm end at the bigram loss; each arm is judged on its own.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 4 if quick else 20,
    draw=draw,
    summary=summary,
    findings=findings,
)
