"""The start that `landscape.recommend` gives, against the Gaussian one: how many of twenty trainings reach the bigram loss."""

from __future__ import annotations

from pathlib import Path

import landscape
from landscape.chains import BinaryChain, SymmetricChain
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.experiments.multistate import config
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


def arms(quick: bool) -> list[Arm]:
    """The recommended start on every chain, and the Gaussian one beside it as an exploration; in short on three chains under SGD."""
    found = []
    for optimiser, schedule in TRAININGS[: 1 if quick else 2]:
        for chain in (CHAINS[0], CHAINS[4], MANY) if quick else (*CHAINS, MANY):
            shape = CONFIG if isinstance(chain, BinaryChain) else config(chain.states, 8)
            where = f"({chain.p:g}, {chain.q:g})" if isinstance(chain, BinaryChain) else f"S = {chain.states}, p = {chain.p:g}"
            start = recommended(chain)
            found.append(Arm(f"recommended ({start.e:.3g}, {start.w:.3g}), {optimiser.words}, {where}", chain, shape, start, optimiser, schedule, predict, least=0.95, undecided=0.05))
            found.append(Arm(f"{GAUSSIAN}, {optimiser.words}, {where}", chain, shape, GaussianStart(0.02), optimiser, schedule, None))
    return found


def predict(arm: Arm, results: list[dict]) -> dict[str, list[str]]:
    """The recommendation: the bigram loss, every time."""
    return {"recommend": ["global"] * len(results)}


def summary(outcome: Outcome) -> dict:
    """How many runs of each arm ended at the bigram loss."""
    return {arm.name: sum(run["observed"] == "global" for run in outcome.results[arm.name]) for arm in outcome.arms}


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "The recommended start and N(0, 0.02)")


EXPERIMENT = Experiment(
    name="recommended",
    prediction="From the start that `landscape.recommend` gives, of the default norm, with N(0, 0.02) on (e, w) and the attention, at least "
    "19 of 20 trainings reach the bigram loss: at six (p, q) on both sides of p + q = 1 with d = 4, r = 16, and on five states at p = 0.95 from "
    "rank 4 with N(0, 0.02) on every weight. Nothing is predicted of N(0, 0.02), which is trained beside it.",
    horizon="1500 steps of SGD at rate 0.3; in full also of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols.",
    success="At least 95 % of the runs of an arm end at the bigram loss; each arm is judged on its own.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 4 if quick else 20,
    draw=draw,
    summary=summary,
)
