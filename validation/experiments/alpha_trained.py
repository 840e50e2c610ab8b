"""alpha as a trainable vector: does its length or its direction move, and does the loss notice?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from landscape import plots
from landscape.chains import BinaryChain
from validation.alpha import AlphaConfig, AlphaStart
from validation.experiments.base import Arm, Experiment, Outcome, canonical_labels, save_figure
from validation.experiments.verdicts import Finding
from validation.training import SGD, AdamW, Schedule

CHAINS = (BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3))
CONFIG = AlphaConfig(length=64, dimension=8, hidden=32, dtype="float64")
STARTS = {"signs": AlphaStart(1.0, -1.0, True), "Gaussian": AlphaStart(1.0, -1.0, False)}
TRAININGS = (
    (SGD(0.1), Schedule(steps=2000, evaluate_every=100, held_out=1024)), (AdamW(5e-3, weight_decay=0.0), Schedule(steps=1000, evaluate_every=50, held_out=1024)),
)


def arms(quick: bool) -> list[Arm]:
    """alpha of signs and Gaussian, under both optimisers; in full on both sides of p + q = 1."""
    return [
        Arm(f"alpha {name}, ({chain.p:g}, {chain.q:g}), {optimiser.words}", chain, CONFIG, start, optimiser, schedule, canonical_labels, measure="alpha")
        for optimiser, schedule in TRAININGS
        for chain in CHAINS[: 1 if quick else 2]
        for name, start in STARTS.items()
    ]


def alphas(outcome: Outcome, arm: Arm) -> np.ndarray:
    """alpha along every run of an arm, shape (runs, looks, d)."""
    return np.array([result["alpha"] for result in outcome.results[arm.name]], dtype=float)


def turned(values: np.ndarray) -> np.ndarray:
    """1 - cosine of alpha with its start, shape (runs, looks)."""
    units = values / np.linalg.norm(values, axis=-1, keepdims=True)
    return 0.5 * ((units - units[:, :1]) ** 2).sum(axis=-1)


def lengths(values: np.ndarray) -> np.ndarray:
    """Length of alpha relative to its start, shape (runs, looks)."""
    size = np.linalg.norm(values, axis=-1)
    return size / size[:, :1]


def spread(values: np.ndarray) -> np.ndarray:
    """Standard deviation over mean of the entries' absolute values at the end, shape (runs,)."""
    sizes = np.abs(values[:, -1])
    return sizes.std(axis=-1) / sizes.mean(axis=-1)


def summary(outcome: Outcome) -> dict:
    """Length against the start, 1 - cosine with the start and spread of the entries at the end, median over the runs, by arm."""
    found = {}
    for arm in outcome.arms:
        values = alphas(outcome, arm)
        found[arm.name] = {
            "length": float(np.median(lengths(values)[:, -1])), "turned": float(np.median(turned(values)[:, -1])), "spread": float(np.median(spread(values))),
        }
    return found


def findings(outcome: Outcome) -> list[Finding]:
    """What the authors and the reviewer say of alpha, and what the symmetry of the loss does."""
    by_sgd = [alphas(outcome, arm) for arm in outcome.arms if isinstance(arm.optimiser, SGD)]
    by_adam = [alphas(outcome, arm) for arm in outcome.arms if isinstance(arm.optimiser, AdamW)]
    gaussian = [alphas(outcome, arm) for arm in outcome.arms if not arm.start.signs and isinstance(arm.optimiser, AdamW)]
    drift = max(turned(values).max() for values in by_sgd)
    change = max(np.abs(lengths(values) - 1.0).max() for values in (*by_sgd, *by_adam))
    least = min(np.abs(lengths(values)[:, -1] - 1.0).min() for values in (*by_sgd, *by_adam))
    largest = max(spread(values).max() for values in gaussian)
    return [
        Finding("SGD never turns alpha: the loss depends on its length alone", "1 - cosine with the start below 1e-12 in every run", f"largest {drift:.1e}", bool(drift < 1e-12)),
        Finding("the length of alpha stays constant (the authors)", "within 1 % in every run", f"changes by up to {change:.0%}", bool(change < 0.01)),
        Finding("the length of alpha changes (the reviewer)", "by at least 1 % in every run", f"by at least {least:.1%}", bool(least >= 0.01)),
        Finding("from a Gaussian alpha AdamW comes to signs", "entries' absolute values spread by at most 10 % in every run", f"largest {largest:.0%}", bool(largest <= 0.1)),
    ]


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Length and direction of alpha along every run."""
    figure, axes = plots.new_figure(1, 2, 8.6, 3.4, share_vertical=False)
    for k, arm in enumerate(outcome.arms):
        values, results = alphas(outcome, arm), outcome.results[arm.name]
        time = np.array(results[0]["evaluated"]) * arm.optimiser.rate
        for axis, rows in zip(axes[0], (lengths(values), np.maximum(turned(values), 1e-18))):
            for run, row in enumerate(rows):
                axis.plot(time, row, color=f"C{k}", linewidth=0.8, label=None if run else arm.name)
    axes[0, 0].set_ylabel("length of alpha / at the start")
    axes[0, 1].set_ylabel("1 - cosine with the start")
    axes[0, 1].set_yscale("log")
    for axis in axes[0]:
        axis.set_xscale("symlog", linthresh=1.0)
        axis.set_xlim(left=0.0)
        axis.set_xlabel("rate x steps")
    axes[0, 1].legend(*axes[0, 0].get_legend_handles_labels(), fontsize=6, loc="center right", frameon=False)
    figure.suptitle("alpha as a trainable vector: its length moves, SGD keeps its direction", fontsize=10)
    return save_figure(figure, folder, "alpha_trained")


EXPERIMENT = Experiment(
    name="alpha_trained",
    prediction="In the canonical transformer with alpha as a trainable vector the loss depends on the length of alpha alone (rotations), so gradient "
    "descent changes its length and never its direction; the authors say that the length is constant and that alpha comes to signs, a "
    "reviewer that the length changes. From (e, w) = (1, -1) the bigram loss is reached all the same.",
    horizon="2000 steps of SGD at rate 0.1, 1000 of AdamW at rate 0.005 without decay. Batches of 16 sequences of 64 symbols, d = 8, r = 32, float64.",
    success="Every run ends where the canonical map says; the findings.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 3 if quick else 6,
    draw=draw,
    summary=summary,
    findings=findings,
)
