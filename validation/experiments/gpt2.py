"""Does the guideline help a GPT-2 of the transformers library? The theory has neither its layer norm nor its GELU."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.experiments.verdicts import Finding
from validation.gpt2 import AroundStart, GPT2Sizes, StandardStart
from validation.training import SGD, AdamW, Schedule

CHAINS = (BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3))
SIZES = GPT2Sizes(length=64, dimension=8)
TRAININGS = (SGD(0.3), SGD(0.05), AdamW(5e-3))
STARTS = {"N(0, 0.02)": StandardStart(), "around (1, -1)": AroundStart()}
SCHEDULE = Schedule(steps=1500)


def arms(quick: bool) -> list[Arm]:
    """Both starts under each optimiser, at both chains; in the quick variant under SGD and at p + q > 1 alone."""
    return [
        Arm(f"{name}, {optimiser.words}, ({chain.p}, {chain.q})", chain, SIZES, start, optimiser, SCHEDULE)
        for optimiser in TRAININGS[: 2 if quick else 3] for chain in CHAINS[: 1 if quick else 2] for name, start in STARTS.items()
    ]


def early(outcome: Outcome, arm: Arm) -> list[int | None]:
    """Training steps of each run until the mean loss of a window is half-way down from the unigram to the bigram loss; None if never."""
    half = 0.5 * (arm.chain.unigram_loss + arm.chain.bigram_loss)
    found = []
    for result in outcome.results[arm.name]:
        below = [step for step, loss in zip(result["steps"], result["training"]) if loss is not None and loss < half]
        found.append(below[0] if below else None)
    return found


def summary(outcome: Outcome) -> dict:
    """By arm: steps until half-way (median over the runs, None if most never get there), and held-out losses at the end."""
    def median(steps):
        values = [np.inf if step is None else step for step in steps]
        middle = float(np.median(values))
        return middle if np.isfinite(middle) else None

    return {
        arm.name: {"half-way": median(early(outcome, arm)), "losses": [result["held_out"][-1] for result in outcome.results[arm.name]]}
        for arm in outcome.arms
    }


def findings(outcome: Outcome) -> list[Finding]:
    """Whether the guideline is the sooner one half-way."""
    found = []
    for plain, guided in zip(outcome.arms[::2], outcome.arms[1::2]):
        steps = [[np.inf if step is None else step for step in early(outcome, arm)] for arm in (plain, guided)]
        sooner = sum(one < other for one, other in zip(steps[1], steps[0]))
        words = " and ".join("never" if not np.isfinite(median) else f"{median:.0f} steps" for median in map(np.median, steps))
        kind = guided.name.replace("around (1, -1), ", "")
        found.append(Finding(
            f"the guideline is half-way to the bigram loss before N(0, 0.02), seed by seed: {kind}", "in more than half of the runs",
            f"{sooner} of {len(steps[0])}; medians of N(0, 0.02) and the guideline: {words}", sooner > len(steps[0]) / 2,
        ))
    return found


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "GPT-2 with one layer: what the theory would predict, had it layer norm and GELU")


EXPERIMENT = Experiment(
    name="gpt2",
    prediction="What the canonical map says, though GPT-2 has layer norm, GELU and two logits from a tied embedding: starts around (1, -1) in the "
    "roles of its weights reach the bigram loss at both (p, q); its own start N(0, 0.02) does at (0.2, 0.3) and stays at the unigram loss at (0.5, 0.8).",
    horizon="1500 steps of SGD at rate 0.3, as elsewhere, and at rate 0.05 (with another seed the guideline, whose gap layer norm makes "
    "2 e sqrt d = 5.7 in size, had been seen to overshoot at 0.3), and of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols, one layer, one head, width 8.",
    success="The label of each run's (e, w) is where it ends.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 3 if quick else 8,
    draw=draw,
    summary=summary,
    findings=findings,
    needs="transformers",
)
