"""Figure 1 of the paper: flow directions on energy contours, and basins, below and above p + q = 1."""

from __future__ import annotations

from landscape import plots
from landscape.chains import BinaryChain
from landscape.gallery.portrait import portrait

CHAINS = {
    "phase_portrait_symmetric": (BinaryChain(0.1, 0.1), BinaryChain(0.9, 0.9)),
    "phase_portrait": (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8)),
}

_TEXT = (
    "Canonical landscape at (p, q) = {below} (top, p + q < 1) and {above} (bottom, p + q > 1). (a, c) Directions of gradient "
    "flow on level lines of the invariant E, along which every orbit runs. (b, d) Basins of attraction, exactly: the limit of "
    "each start, the separatrix E = E_sad, the curve of global minima, and on e = 0 the local minima, maxima and the saddle "
    "(the bias minimised out). For p + q < 1 the local basin does not trap generic training of the full model; see README."
)

CAPTIONS = {
    name: _TEXT.format(below=f"({a.p:g}, {a.q:g})", above=f"({b.p:g}, {b.q:g})") for name, (a, b) in CHAINS.items()
}


def draw(name: str):
    """The 2 x 2 figure for the pair of chains of that name."""
    figure, axes = plots.new_figure(2, 2, 7.2, 7.6)
    portraits = []
    for row, (chain, letters) in enumerate(zip(CHAINS[name], (("a", "b"), ("c", "d")))):
        relation = "<" if chain.regime == "below" else ">"
        where = f"$p={chain.p:g}$, $q={chain.q:g}$  ($p+q{relation}1$)"
        for column, (letter, panel, what) in enumerate(zip(letters, (plots.flow, plots.basins), ("flow", "basins"))):
            found = portrait(chain, f"({letter}) {what}, {where}")
            panel(axes[row, column], found)
            portraits.append(found)
    plots.label_outer(axes)
    plots.legend(figure, portraits)
    return figure
