"""Loss curves of the runs of an experiment, and bars of what else was measured."""

from __future__ import annotations

import math
import re
import textwrap
from pathlib import Path

import numpy as np

from landscape import plots
from validation.experiments.base import Outcome, save_figure

TITLE = 46  # characters of a title in a line
COLOURS = {"global": "#0072b2", "local": "#d55e00", "between": "#999999", "diverged": "#000000"}


def draw_curves(outcome: Outcome, folder: Path, title: str, *, columns: int = 4) -> list[Path]:
    """A panel for each arm: training loss of every run over the steps, coloured by its end, between the two losses of the chain."""
    rows = math.ceil(len(outcome.arms) / columns)
    columns = min(columns, len(outcome.arms))
    figure, axes = plots.new_figure(rows, columns, max(2.55 * columns, 9.0) + 0.4, 2.15 * rows + 0.9, share_horizontal=False, share_vertical=False)
    for axis, arm in zip(axes.flat, outcome.arms):
        results = outcome.results[arm.name]
        for result in results:
            axis.plot(result["steps"], np.array(result["training"], dtype=float), color=COLOURS[result["observed"]], linewidth=0.7, alpha=0.7)
        for loss, style in ((arm.chain.unigram_loss, (0, (5, 2))), (arm.chain.bigram_loss, (0, (1, 1.5)))):
            axis.axhline(loss, color="black", linewidth=1.1, linestyle=style)
        gap = arm.chain.unigram_loss - arm.chain.bigram_loss
        axis.set_ylim(arm.chain.bigram_loss - 0.35 * gap, arm.chain.unigram_loss + 0.6 * gap)
        axis.set_title(f"{_wrapped(arm.name)}\n{_told(results)}", fontsize=7.5)
        axis.tick_params(labelsize=7)
    for axis in axes.flat[len(outcome.arms) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("training loss (nats)", fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("steps", fontsize=8)
    figure.suptitle(title + "\ndashed: unigram loss, dotted: bigram loss; blue: ends at the bigram, red: at the unigram loss, grey: between", fontsize=9)
    return save_figure(figure, folder, outcome.experiment.name)


def _wrapped(name: str) -> str:
    """The name of an arm in lines that do not break within brackets or around a sign of equality."""
    kept = re.sub(r"\([^)]*\)|\w+ = \S+", lambda found: found[0].replace(" ", "\u00a0"), name)
    return textwrap.fill(kept, TITLE)


def _told(results: list[dict]) -> str:
    """Predicted and observed ends, in few words."""
    def words(key):
        found = [result[key] for result in results]
        return ", ".join(f"{found.count(word)} {word}" for word in dict.fromkeys(found))

    said = f"predicted: {words('predicted')}; " if "predicted" in results[0] else ""
    return f"{said}seen: {words('observed')}"
