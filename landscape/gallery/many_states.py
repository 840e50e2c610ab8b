"""Phase portraits of symmetric chains on three, five and ten states, on both sides of the threshold p = (S - 1)/S."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from landscape import plots
from landscape.chains import SymmetricChain
from landscape.gallery.portrait import portrait
from landscape.outcomes import Label

# Below and above the threshold, with κ* between 1.5 and 1.6 and between -1.7 and -1.5.
CHAINS = {3: (0.3, 0.9), 5: (0.45, 0.95), 10: (0.65, 0.98)}
BOXES = {3: (-2.6, 1.4), 5: (-4.0, 1.8), 10: (-8.0, 2.6)}  # of w

CAPTIONS = {
    "phase_portrait_states": (
        "Gradient flow (arrows, on level lines of the invariant) over the exact basins of the canonical landscape for S = 3, 5 and "
        "10 states, below (top) and above (bottom) the threshold p = (S - 1)/S. Prediction: the threshold plays the part of "
        "p + q = 1, but ReLU breaks the symmetry e -> -e, so that the saddle is at w = -√S/2 as seen from e > 0 and at "
        "w = -√(S(S - 1))/2 from e < 0. The piece of e = 0 between them (thick dashes) attracts from one side only and repels on "
        "the other: an open set of starts ends there, in saddles, from above if p is below the threshold and from below otherwise. "
        "Titles say what share of the box that is. Thin dashes: the boundary of the global basin; the grid of starts is 801 x 801."
    )
}


def portraits() -> list[list[plots.Portrait]]:
    """A row below the threshold and one above it."""
    rows = [[], []]
    for column, (states, pair) in enumerate(CHAINS.items()):
        for row, p in enumerate(pair):
            chain = SymmetricChain(states, p)
            relation = "<" if chain.regime == "below" else ">"
            found = portrait(chain, "", e=(-2.5, 2.5, 801), w=(*BOXES[states], 801), arrows=17)
            share = float(np.mean(found.labels == Label.SADDLE))
            letter = "abcdef"[3 * row + column]
            title = f"({letter}) $S={states}$, $p={p:g}{relation}{states - 1}/{states}$: {share:.1%} to saddles"
            rows[row].append(replace(found, title=title))
    return rows


def draw(name: str):
    """The 2 x 3 figure."""
    figure, axes = plots.new_figure(2, 3, 10.2, 6.9, share_horizontal="col")
    rows = portraits()
    for axis, found in zip(axes.ravel(), rows[0] + rows[1]):
        plots.flow(axis, found, shaded=True)
    plots.label_outer(axes)
    plots.legend(figure, rows[0] + rows[1])
    return figure
