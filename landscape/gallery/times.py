"""How long gradient flow takes from everywhere, on both sides of p + q = 1, with the exact separatrix over it."""

from __future__ import annotations

import numpy as np

from landscape import plots
from landscape.architectures import architecture
from landscape.basins import basin_map
from landscape.chains import BinaryChain
from landscape.gallery.general import label_map

CHAINS = (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8))
NODES = 240  # even, so that no row lies on e = 0, where every start is at rest

CAPTIONS = {
    "convergence_times": (
        "Flow time until the flow is within 1e-9 of its limit, for starts on a grid, by integration of the generated gradient "
        "alone; the dashed line is the exact separatrix. Prediction: the time grows without bound towards the separatrix, along "
        "which starts end in the saddle, and nowhere else but next to pieces of e = 0 that repel."
    )
}


def draw(name: str):
    """The 1 x 2 figure."""
    figure, axes = plots.new_figure(1, 2, 9.2, 4.2)
    for axis, chain, letter in zip(axes[0], CHAINS, "ab"):
        box = (-2.0, 2.0, NODES)
        made = basin_map(chain, method="flow", e=box, w=box)
        nodes = {key: made[key].values for key in ("e", "w")}
        model = architecture("canonical")
        plots.convergence_times(figure, axis, label_map(model.on(chain), made["label"].values, nodes, made, search=False))
        curve = model.separatrix(chain, reach=2.0, n=300)
        axis.plot(curve[:, 1], curve[:, 0], **plots.SEPARATRIX)
        axis.set_ylim(-2.0, 2.0)
        axis.set_xlim(-2.0, 2.0)
        relation = "<" if chain.regime == "below" else ">"
        share = float(np.mean(made["label"].values == 1))
        axis.set_title(f"({letter}) $p={chain.p:g}$, $q={chain.q:g}$  ($p+q{relation}1$): {share:.1%} reach a global minimum", fontsize=9)
    plots.label_outer(axes)
    return figure
