"""Basins of the reduced landscape over the canonical slice, for one position and for many, on both sides of p + q = 1."""

from __future__ import annotations

import math

import numpy as np

from landscape import plots
from landscape.architectures import architecture
from landscape.basins import basin_map
from landscape.chains import BinaryChain
from landscape.gallery.general import label_map

CHAINS = (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8))
PACES = (1.0, 1.0 / 16.0, 1.0 / 256.0)
NODES = 121  # of w; one more of e, so that none lies on e = 0, where every start is critical

CAPTIONS = {
    "reduced_basins": (
        "Limits in the reduced landscape (positions, both MLP weights and the bias move on their own) of starts on the canonical "
        "slice, by flow, at (p, q) = (0.2, 0.3) (top) and (0.5, 0.8) (bottom), for positions that move s = 1, 1/16 and 1/256 times as fast as the embedding (s = 1/N for N positions of "
        "their own). Dashed: the canonical separatrix. Triangles: the thresholds for small e that derivations/reduced-critical-"
        "sets.md predicts. Top, p + q < 1; for s >= 1/4 no start is local. Bottom, p + q > 1; the symmetry e -> -e is lost."
    )
}


def thresholds(regime: str, pace: float) -> dict[int, float]:
    """Below (p + q < 1) or above which w a start with small e of either sign is predicted to be local."""
    if regime == "below":
        return {-1: -1.0 / math.sqrt(1.0 - 4.0 * pace)} if pace < 0.25 else {}
    return {-1: -0.5, 1: -0.5 if pace >= 0.25 else -1.0 / math.sqrt(3.0 + 4.0 * pace)}


def draw(name: str):
    """The 2 x 3 figure."""
    figure, axes = plots.new_figure(2, 3, 9.6, 6.6)
    e = np.linspace(-2.0, 2.0, NODES + 1)
    found = []
    for row, chain in enumerate(CHAINS):
        for column, pace in enumerate(PACES):
            landscape = architecture("reduced").on(chain, {"c": pace})
            made = basin_map(landscape, method="flow", coarse=4, e=e, w=(-2.0, 0.8, NODES))
            nodes = {key: made[key].values for key in ("e", "w")}
            panel = label_map(landscape, made["label"].values, nodes)
            plots.regions(axes[row, column], panel)
            for side, w in thresholds(chain.regime, pace).items():
                axes[row, column].plot(w, 0.0, marker=6 if side < 0 else 7, color="black", markersize=8, zorder=6)
            relation = "<" if chain.regime == "below" else ">"
            share = float(np.mean(made["label"].values == 2))
            fraction = "1" if pace == 1.0 else f"1/{round(1 / pace)}"
            axes[row, column].set_title(
                f"({'abcdef'[3 * row + column]}) $p+q{relation}1$, $s={fraction}$: {share:.1%} local", fontsize=9.5,
            )
            axes[row, column].set(xlabel="", ylabel="")
            found.append(panel)
    plots.label_outer(axes)
    plots.region_legend(figure, *found)
    return figure
