"""Figure 4 of the paper: the loss with attention on two planes, and its minima with a != 0."""

from __future__ import annotations

import numpy as np

from landscape import plots
from landscape.attention import SADDLE_W
from landscape.gallery.attention_space import CHAINS, MODEL, SADDLES, heading

REACH, NODES = 2.0, 301  # odd: e = 0 is a row
PLANES = {"w": -1.0, "e": 1.0}  # what is held, at the values of the guideline
LEVELS = np.linspace(0.0, 3.0, 13)  # of the loss; every fourth has a tick
FACTOR = {"color": "#00664f", "linewidth": 1.6, "linestyle": (0, (4, 1.5))}
WITHOUT = {"color": "black", "linewidth": 0.8, "linestyle": (0, (6, 3))}
SHADES = ("#ffffff", "#8a8a8a")  # of the lowest and the highest loss

CAPTIONS = {
    "attention_landscape": (
        "Loss with linear attention, the bias minimised out, at w = -1 (a, c) and at e = 1 (b, d): 0 is the bigram loss, 1 the unigram loss. "
        "Prediction: the global minima are the surface kappa = kappa* (blue), which leaves the plane a = 0 (dashed): there are global minima "
        "with a != 0, and for p + q < 1 at w = -1 there are no others; the surface has pieces with f = 1 + a e^2 > 0 and < 0. The line e = 0 "
        "holds local minima (orange) or maxima (dotted) by the side of p + q = 1. On f = 0 (green) and w = -1/sqrt 2 (purple) the loss is "
        "the unigram loss; where they cross, gradient and gap vanish: a saddle with e != 0 (diamond)."
    )
}


def plane(chain, held: str, n: int = NODES):
    """Nodes, loss (0 for bigram, 1 for unigram) and gap over (e, a) at w, or over (w, a) at e; arrays of shape (n, n), a running fastest."""
    nodes = np.linspace(-REACH, REACH, n)
    first, a = (values.ravel() for values in np.meshgrid(nodes, nodes, indexing="ij"))
    other = np.full(first.size, PLANES[held])
    points = np.stack([first, other, a] if held == "w" else [other, first, a], axis=1)
    loss = (MODEL.loss(chain, points) - chain.bigram_loss) / (chain.unigram_loss - chain.bigram_loss)
    return nodes, loss.reshape(n, n), MODEL.kappa(chain, points).reshape(n, n)


def panel(axis, chain, held: str):
    """One plane with the sets that it meets."""
    nodes, loss, gap = plane(chain, held)
    filled = axis.contourf(nodes, nodes, loss.T, LEVELS, colors=plots.between(*SHADES, len(LEVELS)), extend="max")
    lowest = plots.LINES["global minima"]
    axis.contour(nodes, nodes, gap.T, [chain.kappa_star], colors=lowest["color"], linewidths=lowest["linewidth"], linestyles="solid")
    axis.axhline(0.0, **WITHOUT)
    if held == "w":
        axis.plot(nodes[nodes != 0.0], np.where(nodes[nodes != 0.0] ** -2.0 < 2 * REACH, -(nodes[nodes != 0.0] ** -2.0), np.nan), **FACTOR)
        minima = chain.target_sign * (PLANES["w"] - SADDLE_W) < 0.0
        axis.axvline(0.0, **plots.LINES["local minima" if minima else "maxima"])
    else:
        corner = -1.0 / PLANES["e"] ** 2
        axis.axhline(corner, **FACTOR)
        axis.axvline(SADDLE_W, **SADDLES)
        axis.plot([SADDLE_W], [corner], **plots.SADDLE)
    axis.set_xlim(-REACH, REACH)
    axis.set_ylim(-REACH, REACH)
    axis.set_xlabel("$e$" if held == "w" else "$w$")
    return filled


def draw(name: str):
    """The 2 x 2 figure."""
    figure, axes = plots.new_figure(2, 2, 8.2, 7.6, share_horizontal=False)
    for row, chain in zip(axes, CHAINS):
        for axis, held in zip(row, PLANES):
            filled = panel(axis, chain, held)
            letter = "abcd"[2 * CHAINS.index(chain) + list(PLANES).index(held)]
            axis.set_title(f"({letter}) ${held}={PLANES[held]:g}$, {heading(chain)}", fontsize=9)
        row[0].set_ylabel("$a$")
    figure.colorbar(filled, ax=axes, label="loss: 0 bigram, 1 unigram", ticks=LEVELS[::4], aspect=40, pad=0.02)
    plots.key(figure, {
        "global minima": plots.LINES["global minima"], "local minima": plots.LINES["local minima"], "maxima": plots.LINES["maxima"], "$w=-1/\\sqrt{2}$": SADDLES,
        "$f=0$": FACTOR, "saddle off $e=0$": plots.SADDLE, "$a=0$": WITHOUT,
    })
    return figure
