"""Figure 5 of the paper: gradient flow with attention around the origin, below and above p + q = 1."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from landscape import plots, scenes
from landscape.chains import Chain
from landscape.flows import trajectory
from landscape.gallery.attention_space import AXES, CHAINS, MODEL, NAMES, ORBITS, entries, heading, lattice, orbits, plane

REACH = 0.5
THROUGH = 0.25  # |w| of the surfaces of one energy at e = a = 0
NEAR, FAR = 0.02, 0.45  # |e| of starts where the plane repels and where it attracts
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5)
PREDICTION = {"color": "black", "linewidth": 1.2, "linestyle": (0, (4, 2))}

CAPTIONS = {
    "attention_origin": (
        "Gradient flow with linear attention around the origin. Prediction: as kappa = e^2 (1 + 2w|w|) up to fourth order in e, e obeys "
        "de/dt = -2 phi'(0) (1 + 2w|w|) e, while w changes by the factor exp(±(e^2 - e_0^2)) only, with the sign of w, and a by "
        "(e^4 - e_0^4)/8: attention does not matter here. So the origin repels for p + q < 1 (a), and for p + q > 1 (b) every start "
        "around it ends on the plane e = 0, at the unigram loss. Surfaces: two of one energy, with orbits on them by integration. "
        f"(c) |e| along the orbits from |e| = {NEAR:g} (a) and {FAR:g} (b) against flow time; dashed: the prediction. It starts to fail "
        "where e^2 is no longer small against 1."
    )
}


def starts(chain: Chain) -> np.ndarray:
    """Starts (n, 3) on both surfaces."""
    found = []
    for side in (-1.0, 1.0):
        energy = level(chain, side)
        for e in (NEAR, -NEAR) if chain.target_sign > 0 else (FAR, -FAR):
            for a in (-0.3, 0.0, 0.3):
                def over(w, e=e, a=a, energy=energy):
                    return MODEL.invariant_values(chain, [(e, w, a)])["E"][0] - energy

                found.append((e, brentq(over, 0.1 * side * THROUGH, 2.0 * side * THROUGH), a))
    return np.array(found)


def level(chain: Chain, side: float) -> float:
    """The energy of the surface at w < 0 or w > 0."""
    return float(MODEL.invariant_values(chain, [(0.0, side * THROUGH, 0.0)])["E"][0])


def scene(chain: Chain, ways) -> scenes.Scene:
    """Both surfaces, the plane e = 0 and trajectories."""
    made = scenes.Scene([(-REACH, REACH)] * 3, view=(22.0, -55.0))
    plane(made, chain, n=60, lift=0.0)
    for side in (-1.0, 1.0):
        nodes = (side * np.linspace(0.02, REACH, 13)[:: int(side)], np.linspace(-REACH, REACH, 15), np.linspace(-REACH, REACH, 17))
        energy = MODEL.invariant_values(chain, lattice(*nodes))["E"].reshape([len(values) for values in nodes])
        made.surface(scenes.level_surface(nodes, energy, level(chain, side))[0], "#ececec")
    orbits(made, ways)
    return made


def predicted(chain: Chain, start) -> float:
    """Rate at which e grows close to the plane: less the curvature of the loss across it."""
    return -float(MODEL.hessian(chain, [(0.0, *start[1:])])[0, 0, 0])


def rates(axis, chain: Chain, way) -> None:
    """|e| along a trajectory as far as the box reaches, and its prediction."""
    times, states = way.sample()
    inside = (np.abs(states[:, 0]) <= REACH) & (np.abs(states[:, 0]) >= NEAR)
    times, e = times[inside], np.abs(states[inside, 0])
    axis.plot(times, e, color=ORBITS[way.label], linewidth=1.6)
    axis.plot(times, e[0] * np.exp(predicted(chain, states[0]) * times), **PREDICTION)


def draw(name: str):
    """The 1 x 3 figure."""
    figure, axes = scenes.new_figure("ABC", 11.4, 4.2, "AB", width_ratios=(1.0, 1.0, 0.75))
    for chain, (letter, axis) in zip(CHAINS, axes.items()):
        ways = [trajectory(chain, start, MODEL) for start in starts(chain)]
        scene(chain, ways).paint(axis, NAMES)
        axis.set_title(f"({letter.lower()}) {heading(chain)}", fontsize=9.5)
        rates(axes["C"], chain, ways[1])
    axes["C"].set(yscale="log", xlabel="flow time", ylabel="$|e|$")
    axes["C"].set_yticks(TICKS, map(str, TICKS), minor=False)
    axes["C"].minorticks_off()
    axes["C"].set_title("(c) growth and decay", fontsize=9.5)
    names = ("local minima on $e=0$", "maxima on $e=0$", "orbit to a global minimum", "orbit to a local minimum")
    plots.key(figure, entries(*names) | {"prediction": PREDICTION}, columns=5)
    return figure
