"""The standard Gaussian start against the start that the basin map recommends, at p = 0.5 and q = 0.8."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from landscape import plots
from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome, save_figure
from validation.starts import CanonicalStart, GaussianStart
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

CHAIN = BinaryChain(0.5, 0.8)
CONFIG = TransformerConfig(length=64, dimension=4, hidden=16)
STARTS = {"N(0, 0.02)": GaussianStart(0.02), "around (1, -1)": CanonicalStart(1.0, -1.0, 0.02, 0.02)}
TRAININGS = ((SGD(0.3), Schedule(steps=1500)), (AdamW(5e-3), Schedule(steps=1500)))
COLOURS = {"N(0, 0.02)": "#d55e00", "around (1, -1)": "#0072b2"}


def arms(quick: bool) -> list[Arm]:
    """Both starts under SGD, and in full under AdamW too."""
    return [
        Arm(f"{name}, {optimiser.words}", CHAIN, CONFIG, start, optimiser, schedule)
        for optimiser, schedule in TRAININGS[: 1 if quick else 2]
        for name, start in STARTS.items()
    ]


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves by start, a panel for each optimiser, against the unigram and bigram losses."""
    optimisers = list(dict.fromkeys(arm.optimiser.words for arm in outcome.arms))
    figure, axes = plots.new_figure(1, len(optimisers), 4.6 * len(optimisers) + 0.6, 4.0, share_horizontal=False)
    for axis, words in zip(axes[0], optimisers):
        for arm in outcome.arms:
            if arm.optimiser.words == words:
                _curves(axis, arm, outcome.results[arm.name])
        axis.axhline(CHAIN.unigram_loss, color="black", linewidth=1.2, linestyle=(0, (5, 2)), label="unigram loss")
        axis.axhline(CHAIN.bigram_loss, color="black", linewidth=1.2, linestyle=(0, (1, 1.5)), label="bigram loss")
        axis.set_title(words, fontsize=10)
        axis.set_xlabel("training steps (each point averages 25)")
    axes[0, 0].set_ylabel("training loss (nats per symbol)")
    figure.suptitle("Predicted: N(0, 0.02) stays at the unigram loss,\na start around (1, -1) reaches the bigram loss", fontsize=10)
    axes[0, 0].legend(fontsize=8, frameon=False)
    return save_figure(figure, folder, "init_comparison")


def _curves(axis, arm: Arm, results: list[dict]) -> None:
    name = next(name for name, start in STARTS.items() if start == arm.start)
    steps, losses = np.array(results[0]["steps"]), np.array([result["training"] for result in results], dtype=float)
    label = f"{name}: median and range of {len(results)} runs"
    axis.fill_between(steps, losses.min(axis=0), losses.max(axis=0), color=COLOURS[name], alpha=0.25, linewidth=0)
    axis.plot(steps, np.median(losses, axis=0), color=COLOURS[name], linewidth=1.8, label=label)


EXPERIMENT = Experiment(
    name="init_comparison",
    prediction="The limit of a run is the label of its own (e, w) in the exact canonical basin map at p = 0.5, q = 0.8: a statement "
    "on gradient flow, put here to SGD and AdamW alike. A "
    "start with every weight from N(0, 0.02), 0.02 being the standard deviation, is off the slice; its counterpart in the map is (e, w) drawn from the same law.",
    horizon="1500 steps of SGD at rate 0.3; in full also of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols.",
    success="Every run of an arm ends where it was predicted to; each arm is judged on its own.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss "
    "(local); no held-out loss more than 4 standard errors below the bigram loss.",
    arms=arms,
    runs=lambda quick: 4 if quick else 12,
    draw=draw,
)
