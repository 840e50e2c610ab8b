"""Is what attention adds negligible at the end of training on first-order chains, as a = 0 would have it?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from landscape import plots
from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome, save_figure
from validation.experiments.verdicts import Finding
from validation.starts import CanonicalStart, GaussianStart, ManifoldStart
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

CONFIG = TransformerConfig(length=64, dimension=4, hidden=16)
CHAINS = (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8))
WEAK, STRONG = 0.02, 0.3
STARTS = {
    "N(0, 0.02)": GaussianStart(0.02), "(1, -1), weak attention": CanonicalStart(1.0, -1.0, 0.02, WEAK),
    "(1, -1), strong attention": ManifoldStart(1.0, -1.0, 0.0, STRONG),
}
TRAININGS = (
    (SGD(0.3), Schedule(steps=1500, evaluate_every=100, held_out=512)), (AdamW(5e-3), Schedule(steps=1500, evaluate_every=100, held_out=512)),
)


def arms(quick: bool) -> list[Arm]:
    """Three starts on both sides under SGD, and in full under AdamW too."""
    return [
        Arm(f"{name}, ({chain.p:g}, {chain.q:g}), {optimiser.words}", chain, CONFIG, start, optimiser, schedule, None, measure="attention_share")
        for optimiser, schedule in TRAININGS[: 1 if quick else 2]
        for chain in CHAINS
        for name, start in STARTS.items()
    ]


def shares(outcome: Outcome, arm: Arm, look: int = -1) -> np.ndarray:
    """What attention adds, relative to the residual stream, in every run of an arm."""
    return np.array([result["share"][look] for result in outcome.results[arm.name]], dtype=float)


def summary(outcome: Outcome) -> dict:
    """Median share at the start and at the end, by arm."""
    return {arm.name: {"start": float(np.median(shares(outcome, arm, 0))), "end": float(np.median(shares(outcome, arm)))} for arm in outcome.arms}


def findings(outcome: Outcome) -> list[Finding]:
    """For each arm whether attention adds less than 5 % at the end, and from strong attention whether it falls."""
    found = []
    for arm in outcome.arms:
        ends = shares(outcome, arm)
        found.append(Finding(f"attention adds next to nothing at the end: {arm.name}", "less than 5 % of the residual stream in every run", f"largest {ends.max():.1%}", bool(ends.max() < 0.05)))
        if isinstance(arm.start, ManifoldStart):
            ratio = ends / shares(outcome, arm, 0)
            found.append(Finding(f"strong attention fades: {arm.name}", "to less than half in every run", f"largest {ratio.max():.2f} of the start", bool(ratio.max() < 0.5)))
    return found


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """The share of attention over the steps, by chain and optimiser."""
    panels = list(dict.fromkeys((arm.chain, arm.optimiser) for arm in outcome.arms))
    figure, axes = plots.new_figure(1, len(panels), 2.7 * len(panels) + 0.5, 3.2)
    for axis, (chain, optimiser) in zip(axes[0], panels):
        for arm in outcome.arms:
            if (arm.chain, arm.optimiser) == (chain, optimiser):
                name = next(name for name, start in STARTS.items() if start == arm.start)
                colour = f"C{list(STARTS).index(name)}"
                for k, result in enumerate(outcome.results[arm.name]):
                    axis.semilogy(result["evaluated"], np.maximum(np.array(result["share"], dtype=float), 1e-6), color=colour, linewidth=0.8, label=None if k else name)
        axis.axhline(0.05, color="black", linewidth=0.9, linestyle=(0, (1, 1.5)))
        axis.set_title(f"({chain.p:g}, {chain.q:g}), {optimiser.words}", fontsize=9)
        axis.set_xlabel("steps")
    axes[0, 0].set_ylabel("|attention| / |residual stream|")
    axes[0, 0].legend(fontsize=7, frameon=False)
    figure.suptitle("What attention adds; predicted to end below the dotted line", fontsize=10)
    return save_figure(figure, folder, "attention_vanishes")


EXPERIMENT = Experiment(
    name="attention_vanishes",
    prediction="First-order chains need no attention, so that a = 0 is said to be where training goes (rebuttal, Figure 7): what attention adds is "
    "less than 5 % of the residual stream at the end, from weak attention and from strong, on both sides of p + q = 1; strong attention fades.",
    horizon="1500 steps of SGD at rate 0.3; in full also of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols, d = 4, r = 16.",
    success="The findings; each is of every run of its arm.",
    tolerance="Root mean square over 64 held-out sequences of what attention adds, over that of the residual stream it is added to: below 0.05.",
    arms=arms,
    runs=lambda quick: 3 if quick else 6,
    draw=draw,
    summary=summary,
    findings=findings,
)
