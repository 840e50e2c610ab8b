"""Computes what a phase portrait shows of one chain."""

from __future__ import annotations

import numpy as np

from landscape.architectures import architecture
from landscape.basins import label_grid
from landscape.chains import Chain
from landscape.plots import Portrait


def portrait(chain: Chain, title: str, *, e=(-2.0, 2.0, 801), w=(-2.0, 2.0, 801), arrows: int = 19) -> Portrait:
    """The canonical landscape of a chain on a grid, ready to be drawn."""
    labels, nodes = label_grid(chain, {"e": e, "w": w})
    return dress(chain, title, labels, nodes, arrows)


def dress(chain: Chain, title: str, labels: np.ndarray, nodes: dict, arrows: int = 0) -> Portrait:
    """Add to a basin map the curves, sets and (if asked for) arrows that are drawn over it."""
    model = architecture("canonical")
    shape = labels.shape
    points = _grid(nodes["e"], nodes["w"])
    return Portrait(
        title=title, e=nodes["e"], w=nodes["w"], labels=labels,
        kappa=_crossing(chain, model, points).reshape(shape),
        invariant=model.invariant_values(chain, points)["E"].reshape(shape),
        kappa_star=chain.kappa_star,
        separatrix=model.separatrix(chain, reach=max(np.abs(points).max(), 1.0), n=300),
        pieces=model.line_pieces(chain),
        arrows=descent_arrows(chain, model, nodes["e"], nodes["w"], arrows) if arrows else (),
    )


def _crossing(chain: Chain, model, points: np.ndarray) -> np.ndarray:
    """The gap; at the threshold, where it only touches κ* = 0 on e = 0, the gap of a start with the same w and e = ±1."""
    if chain.target_sign:
        return model.kappa(chain, points)
    return model.kappa(chain, np.stack([np.where(points[:, 0] < 0, -1.0, 1.0), points[:, 1]], axis=1))


def descent_arrows(chain: Chain, model, e: np.ndarray, w: np.ndarray, count: int) -> tuple:
    """Unit vectors of steepest descent on a coarse grid inside the axes; critical points are left out."""
    def inside(nodes):
        edge = (nodes[-1] - nodes[0]) / (2 * count)
        return np.linspace(nodes[0] + edge, nodes[-1] - edge, count)

    points = _grid(inside(e), inside(w))
    field = -model.gradient(chain, points)
    length = np.linalg.norm(field, axis=1)
    moving = np.isfinite(length) & (length > 1e-12)
    points, field = points[moving], field[moving] / length[moving, None]
    return points[:, 1], points[:, 0], field[:, 1], field[:, 0]


def _grid(e: np.ndarray, w: np.ndarray) -> np.ndarray:
    rows, columns = np.meshgrid(e, w, indexing="ij")
    return np.stack([rows.ravel(), columns.ravel()], axis=1)
