"""How long every start takes, by quadrature along its orbit, on both sides of p + q = 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from landscape import plots
from landscape.architectures import architecture
from landscape.basins import label_grid
from landscape.chains import BinaryChain
from landscape.gallery.general import label_map
from landscape.times import arrival_time

CHAINS = (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8))
WITHIN = 1e-3
SHORTEST, LONGEST = 1.0, 1e3  # colours end here
NODES = 400  # even, so that no row lies on e = 0, where every start is at rest

CAPTIONS = {
    "arrival_times": (
        f"Flow time until a start is within {WITHIN:g} of its limit, by one quadrature along each orbit. Prediction: it grows without "
        "bound only towards the separatrix (dashed), like one over the root of the distance to it, and towards the pieces of e = 0 "
        "that repel, like the logarithm of 1/|e|; the line of local minima is reached fast, but for its end at the saddle. Starts that "
        f"are that near already are white, and colours end at {SHORTEST:g} and {LONGEST:g}; the solid line holds the global minima."
    )
}


def draw(name: str):
    """The 1 x 2 figure."""
    figure, axes = plots.new_figure(1, 2, 9.2, 4.2)
    for axis, chain, letter in zip(axes[0], CHAINS, "ab"):
        box = (-2.0, 2.0, NODES)
        labels, nodes = label_grid(chain, {"e": box, "w": box})
        model = architecture("canonical")
        points = np.stack([grid.ravel() for grid in np.meshgrid(nodes["e"], nodes["w"], indexing="ij")], axis=1)
        times = arrival_time(chain, points, within=WITHIN).reshape(labels.shape)
        found = replace(label_map(model.on(chain), labels, nodes, search=False), times=np.where(times > 0.0, np.clip(times, SHORTEST, LONGEST), 0.0))
        plots.convergence_times(figure, axis, found, "flow time until arrival")
        curve = model.separatrix(chain, reach=2.0, n=300)
        axis.plot(curve[:, 1], curve[:, 0], **plots.SEPARATRIX)
        gap = model.kappa(chain, points).reshape(labels.shape)
        axis.contour(nodes["w"], nodes["e"], gap, levels=[chain.kappa_star], colors="#0072b2", linewidths=1.6, linestyles="solid")
        axis.set_ylim(-2.0, 2.0)
        axis.set_xlim(-2.0, 2.0)
        relation = "<" if chain.regime == "below" else ">"
        axis.set_title(f"({letter}) $p={chain.p:g}$, $q={chain.q:g}$  ($p+q{relation}1$): arrival within {WITHIN:g}", fontsize=9)
    plots.label_outer(axes)
    return figure
