"""What the figures of `attention` in three dimensions share: axes, sets on the plane e = 0, surfaces by level."""

from __future__ import annotations

import numpy as np

from landscape import plots, scenes
from landscape.architectures import architecture
from landscape.attention import SADDLE_W
from landscape.chains import BinaryChain, Chain
from landscape.outcomes import Label

CHAINS = (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8))
MODEL = architecture("attention")
AXES = [1, 2, 0]  # w runs to the right, a into the depth and e upwards, as e and w do in the plane
NAMES = ("$w$", "$a$", "$e$")
SADDLES = {"color": "#7b3f72", "linewidth": 2.6}
PLANE = {"local minima": plots.REGIONS[Label.LOCAL], "maxima": "#c4c4c4"}


def heading(chain: BinaryChain) -> str:
    """The chain and its side of p + q = 1."""
    return f"$p={chain.p:g}$, $q={chain.q:g}$  ($p+q{'<' if chain.regime == 'below' else '>'}1$)"


def lattice(*nodes: np.ndarray) -> np.ndarray:
    """Points (n, 3), in the order e, w, a, of a grid with nodes of w, a and e."""
    w, a, e = (values.ravel() for values in np.meshgrid(*nodes, indexing="ij"))
    return np.stack([e, w, a], axis=1)


def plane(scene: scenes.Scene, chain: Chain, n: int = 24, lift: float = -2.0) -> None:
    """Add the plane e = 0: its minima, its maxima, and the line of saddles between them."""
    (low, high), (near, far), _ = scene.box
    parts = {"local minima": (low, SADDLE_W), "maxima": (SADDLE_W, high)}
    if chain.target_sign < 0:
        parts = dict(zip(parts, reversed(parts.values())))
    for name, (start, end) in parts.items():
        net = np.stack(np.meshgrid(np.linspace(start, end, n), np.linspace(near, far, n), [0.0], indexing="ij"), axis=-1)
        scene.surface(scenes.mesh(net[:, :, 0]), PLANE[name], lift)
    line = np.linspace(near, far, 2 * n)
    scene.line(np.stack([np.full(2 * n, SADDLE_W), line, np.zeros(2 * n)], axis=1), **SADDLES)


def entries(*names: str) -> dict[str, dict]:
    """What legends say of the sets and orbits."""
    known = {
        "local minima on $e=0$": {"facecolor": PLANE["local minima"]},
        "maxima on $e=0$": {"facecolor": PLANE["maxima"]},
        "saddles": SADDLES,
        "global minima": plots.LINES["global minima"],
        "orbit to a global minimum": {"color": ORBITS["global"], "linewidth": 1.4},
        "orbit to a local minimum": {"color": ORBITS["local"], "linewidth": 1.4},
    }
    return {name: known[name] for name in names}


ORBITS = {"global": "#1f4e79", "local": "#d55e00"}


def orbits(scene: scenes.Scene, ways, head: float = 0.5) -> None:
    """Add trajectories, coloured by the label of their limit."""
    for way in ways:
        scene.line(way.sample()[1][:, AXES], ORBITS.get(way.label, "#333333"), 1.4, head=head)
