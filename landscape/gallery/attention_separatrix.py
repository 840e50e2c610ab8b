"""The surface between the basins with attention, and the exact basins on both sides of it."""

from __future__ import annotations

import numpy as np

from landscape import plots, scenes
from landscape.attention import cylinder, surface
from landscape.basins import label_grid
from landscape.chains import Chain
from landscape.gallery.attention_space import AXES, CHAINS, MODEL, NAMES, entries, heading, plane

BOX = ((-2.0, 1.0), (-1.5, 1.5), (0.0, 1.6))  # of w, a and e
CUTS = (-0.4, 0.4)  # values of a
NODES = 400  # even: no row lies on e = 0
GRAPH, WALL = "#e6e6e6", "#b9d3c8"
CUT = ("#7b3f72", "#00664f")

CAPTIONS = {
    "attention_separatrix": (
        "The boundary of the global basin with linear attention, for e >= 0 (e -> -e is a symmetry), and the exact labels of starts at two "
        "values of a. Prediction: the boundary is a graph over (e, a) in closed form (grey), which ends on e = 0 in the line of saddles; "
        "for p + q > 1 it is continued over w >= 0 by a cylinder over one curve of (e, a) (green), the orbit of Ai: starts on it "
        "have no limit, a falls without bound. On either side of p + q = 1 negative attention bounds the local basin in e, the "
        "tighter the stronger. Black in (b, c, e, f), and coloured in (a, d): the same boundary at these a, from the closed form; the "
        "labels are of 400 x 400 starts, one by one."
    )
}


def cut(chain: Chain, a: float, n: int = 2000) -> list[np.ndarray]:
    """The boundary in the box at one a: a curve of points (e, w) on the graph and, if there is one, that on the cylinder."""
    step, e = BOX[2][1] / n, np.linspace(0.0, BOX[2][1], n + 1)
    points = []
    for _ in range(4):  # ever closer to where the graph leaves the box or ends
        with np.errstate(all="ignore"):
            w = surface(e, np.full(e.size, a), chain.target_sign)
        inside = np.isfinite(w) & (w >= BOX[0][0])
        points.append(np.stack([e[inside], w[inside]], axis=1))
        if inside.all():
            break
        last, step = points[-1][-1, 0] if inside.any() else e[0], step / 50.0
        e = last + step * np.arange(51)
    curves = [np.unique(np.concatenate(points), axis=0)]
    edge_e, edge_a = cylinder()
    order = np.argsort(edge_a)
    if chain.target_sign < 0 and edge_a.min() <= a <= edge_a.max():
        level = np.interp(a, edge_a[order], edge_e[order])
        if level <= BOX[2][1]:
            curves.append(np.array([[level, w] for w in (curves[0][-1, 1], BOX[0][1])]))
    return curves


def net(curves, n: int = 40) -> np.ndarray:
    """As many points (n) on each of some curves (k, 2), evenly spaced along them."""
    found = []
    for curve in curves:
        gone = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
        found.append([[np.interp(share * gone[-1], gone, column) for column in curve.T] for share in np.linspace(0.0, 1.0, n)])
    return np.array(found)


def scene(chain: Chain) -> scenes.Scene:
    """The boundary in three dimensions, with the curves of the cuts."""
    made = scenes.Scene(BOX, view=(28.0, -60.0), aspect=(1.2, 1.2, 0.9))
    plane(made, chain)
    values = np.linspace(*BOX[1], 49)
    for part, color in enumerate((GRAPH, WALL)):
        curves = [(a, found[part]) for a in values if len(found := cut(chain, a)) > part]
        if curves:
            points = net([curve for _, curve in curves])
            depth = np.broadcast_to(np.array([a for a, _ in curves])[:, None], points.shape[:2])
            made.surface(scenes.mesh(np.stack([points[..., 1], depth, points[..., 0]], axis=2)), color)
    for value, color in zip(CUTS, CUT):
        for curve in cut(chain, value):
            points = np.column_stack([curve, np.full(len(curve), value)])
            made.line(points[:, AXES], color, 1.8)
    return made


def draw(name: str):
    """The 2 x 3 figure."""
    figure, axes = scenes.new_figure("ABC;DEF", 10.6, 7.4, "AD", width_ratios=(1.35, 1.0, 1.0))
    for chain, letters in zip(CHAINS, ("ABC", "DEF")):
        scene(chain).paint(axes[letters[0]], NAMES)
        axes[letters[0]].set_title(f"({letters[0].lower()}) {heading(chain)}", fontsize=9.5)
        for a, letter, color in zip(CUTS, letters[1:], CUT):
            axis = axes[letter]
            labels, _ = label_grid(chain, {"e": (*BOX[2], NODES), "w": (*BOX[0], NODES)}, MODEL, {"a": a})
            plots.shade(axis, np.squeeze(labels), (*BOX[0], *BOX[2]))
            for curve in cut(chain, a):
                axis.plot(curve[:, 1], curve[:, 0], color="black", linewidth=1.4)
            axis.set(xlim=BOX[0], ylim=BOX[2], xlabel="$w$", ylabel="$e$" if letter in "BE" else "")
            axis.set_title(f"({letter.lower()}) $a={a:g}$", fontsize=9.5, color=color)
    plots.key(figure, {
        **{plots.REGION_NAMES[label]: {"facecolor": plots.REGIONS[label]} for label in list(plots.REGION_NAMES)[:2]},
        **entries("local minima on $e=0$", "maxima on $e=0$", "saddles"), "boundary": {"facecolor": GRAPH},
        "boundary without a limit": {"facecolor": WALL},
    })
    return figure
