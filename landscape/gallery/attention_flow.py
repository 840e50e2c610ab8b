"""Figure 2 of the paper: gradient flow with attention on a manifold of one energy, below and above p + q = 1."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from landscape import plots, scenes
from landscape.attention import SADDLE_W, surface
from landscape.chains import Chain
from landscape.flows import trajectory
from landscape.gallery.attention_space import AXES, CHAINS, MODEL, NAMES, entries, heading, lattice, orbits, plane

ENERGY = -1.4  # below -G_min = -0.847, so that the manifold is one piece with a neck on e = 0
BOX = ((-2.2, 0.0), (-1.5, 1.5), (0.0, 1.8))  # of w, a and e
NEAREST = -1e-3  # w next to 0, where E is infinite
LOW, MIDDLE, HIGH = 0.12, 0.8, 1.55  # heights e of the rings of starts
ENTRIES = ("local minima on $e=0$", "maxima on $e=0$", "saddles", "global minima", "orbit to a global minimum", "orbit to a local minimum")

CAPTIONS = {
    "attention_flow": (
        "Gradient flow with linear attention. It keeps E = e^2 - 2a^2 - w^2 - sgn(w) log|w|, so that every orbit stays on a surface; "
        f"drawn is E = {ENERGY:g} for w < 0, e >= 0 (w = 0 and e = 0 are not crossed, and e -> -e is a symmetry). Prediction: with "
        "attention the surface is a tube that meets the plane e = 0 in an oval, one half of which attracts (orange) and the other "
        "repels (grey), with a saddle at both ends; which half is which depends on the side of p + q = 1 alone, and so does the "
        "direction of the same orbits. Blue band: the global minima kappa = kappa* on the surface, in two pieces with f = 1 + ae^2 "
        "> 0 and < 0 on either side of the saddle at a = -1/e^2 (diamond). Black: the separatrix, which ends in the saddles on e = 0 "
        "(purple line). Thin: orbits by integration from starts on three rings."
    )
}


def height(chain: Chain, w, a) -> np.ndarray:
    """e > 0 of the manifold over places (w, a); NaN where it is not there."""
    w, a = (values.ravel() for values in np.broadcast_arrays(np.float64(w), np.float64(a)))
    rest = MODEL.invariant_values(chain, np.stack([np.zeros(w.size), w, a], axis=1))["E"]
    return np.sqrt(np.where(ENERGY >= rest, ENERGY - rest, np.nan))


def ring(chain: Chain, e: float, angles) -> np.ndarray:
    """Starts (n, 3) on the manifold at one height, at angles around the middle of the neck, from which it rises all around."""
    found = []
    for direction in np.stack([np.cos(angles), np.sin(angles)], axis=1):
        edge = (NEAREST - SADDLE_W) / direction[0] if direction[0] > 0.0 else np.inf  # w = 0
        place = lambda radius: (SADDLE_W + radius * direction[0], radius * direction[1])  # noqa: B023, E731
        radius = brentq(lambda radius: np.nan_to_num(height(chain, *place(radius))[0]) - e, 0.0, min(edge, 3.0))
        found.append((e, *place(radius)))
    return np.array(found)


def starts(chain: Chain) -> np.ndarray:
    """Starts (n, 3): low over the half of the neck that repels, half-way up over the other, and all around high up."""
    repels = 0.0 if chain.target_sign > 0 else np.pi
    rings = ((LOW, repels + np.linspace(-0.4, 0.4, 5) * np.pi), (MIDDLE, np.pi - repels + np.array([-0.1, 0.05, 0.18]) * np.pi),
             (HIGH, np.array([-0.75, -0.5, -0.25, 0.0, 0.2, 0.5, 0.7, 0.9]) * np.pi))
    return np.concatenate([ring(chain, *place) for place in rings])


def separatrix(chain: Chain) -> list[np.ndarray]:
    """Where the separatrix crosses the manifold: curves of shape (n, 3)."""
    from contourpy import contour_generator

    e, a = np.linspace(1e-3, BOX[2][1], 200), np.linspace(*BOX[1], 301)
    places = np.stack([values.ravel() for values in np.meshgrid(e, a, indexing="ij")], axis=1)
    energy = np.ma.masked_invalid(_over(chain, places)[1].reshape(e.size, a.size))
    curves = [curve[:, ::-1].copy() for curve in contour_generator(a, e, energy).lines(0.0)]
    for curve in curves:
        for _ in range(3):  # Newton's steps against what the grid is off
            off = _over(chain, curve)[1]
            slopes = [(_over(chain, curve + step)[1] - _over(chain, curve - step)[1]) / 2e-6 for step in 1e-6 * np.eye(2)]
            steps = np.stack(slopes, axis=1) * (off / (slopes[0] ** 2 + slopes[1] ** 2))[:, None]
            curve -= np.where((np.abs(steps) < 0.02).all(axis=1, keepdims=True), steps, 0.0)
    return [np.stack([curve[:, 0], _over(chain, curve)[0], curve[:, 1]], axis=1) for curve in curves]


def _over(chain: Chain, places) -> tuple[np.ndarray, np.ndarray]:
    """w of the separatrix over places (e, a), and its energy there less that of the manifold."""
    with np.errstate(all="ignore"):
        w = surface(places[:, 0], places[:, 1], chain.target_sign)
    energy = MODEL.invariant_values(chain, np.nan_to_num(np.stack([places[:, 0], w, places[:, 1]], axis=1)))["E"]
    return w, np.where(np.isfinite(w), energy - ENERGY, np.nan)


def strict_saddle(chain: Chain) -> np.ndarray:
    """The point of the manifold on the curve of saddles off e = 0."""
    def place(e):
        return np.array([[e, SADDLE_W, -1.0 / e**2]])

    return place(brentq(lambda e: MODEL.invariant_values(chain, place(e))["E"][0] - ENERGY, 0.5, 2.0))[0]


def scene(chain: Chain, ways) -> scenes.Scene:
    """The manifold of a chain with its sets and trajectories."""
    made = scenes.Scene(BOX, view=(34.0, -42.0), aspect=(1.2, 1.2, 0.9))
    plane(made, chain)
    w = np.concatenate([np.linspace(BOX[0][0], -0.4, 18)[:-1], np.linspace(-0.4, NEAREST, 12)])
    nodes = (w, np.linspace(*BOX[1], 25), np.linspace(*BOX[2], 19))
    points, shape = lattice(*nodes), [len(values) for values in nodes]
    energy, gap = MODEL.invariant_values(chain, points)["E"].reshape(shape), MODEL.kappa(chain, points).reshape(shape)
    facets, gaps = scenes.level_surface(nodes, energy, ENERGY, (gap,))
    made.surface(facets, "#ececec")
    made.segments(scenes.level_lines(facets, [gap[:, 0] for gap in gaps], chain.kappa_star), **plots.LINES["global minima"], lift=1.5)
    for curve in separatrix(chain):
        made.line(curve[:, AXES], "black", 1.4)
    orbits(made, ways)
    return made


def draw(name: str):
    """The 1 x 2 figure."""
    figure, axes = scenes.new_figure("AB", 9.6, 4.6, "AB")
    for chain, (letter, axis) in zip(CHAINS, axes.items()):
        made = scene(chain, [trajectory(chain, start, MODEL) for start in starts(chain)])
        made.paint(axis, NAMES)
        axis.plot(*strict_saddle(chain)[AXES, None], zorder=9, **plots.SADDLE)
        axis.set_title(f"({letter.lower()}) {heading(chain)}", fontsize=9.5)
    plots.key(figure, entries(*ENTRIES) | {"separatrix": {"color": "black", "linewidth": 1.4}, "saddle off $e=0$": plots.SADDLE})
    return figure
