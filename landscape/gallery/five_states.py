"""Basins of the symmetric chain on five states, on both sides of its threshold p = 4/5."""

from __future__ import annotations

from landscape import plots
from landscape.chains import SymmetricChain
from landscape.gallery.portrait import portrait

CHAINS = (SymmetricChain(5, 0.3), SymmetricChain(5, 0.9))

CAPTIONS = {
    "five_states": (
        "Basins of attraction of the canonical landscape for S = 5 symbols at p = 0.3 (below the threshold 4/5) and p = 0.9 "
        "(above). ReLU breaks the symmetry e -> -e for S >= 3: the saddle lies at a different w as seen from e > 0 and from "
        "e < 0, and the piece of e = 0 between the two attracts from one side and repels on the other."
    )
}


def draw(name: str):
    """The 1 x 2 figure."""
    figure, axes = plots.new_figure(1, 2, 7.6, 4.3)
    portraits = []
    for axis, chain, letter in zip(axes[0], CHAINS, "ab"):
        relation = "<" if chain.regime == "below" else ">"
        title = f"({letter}) $S={chain.states}$, $p={chain.p:g}$  ($p{relation}4/5$)"
        portraits.append(portrait(chain, title, e=(-2.5, 2.5, 801), w=(-3.2, 1.8, 801)))
        plots.basins(axis, portraits[-1])
    plots.label_outer(axes)
    plots.legend(figure, portraits)
    return figure
