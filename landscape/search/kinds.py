"""Minimum, maximum or saddle: by the Hessian where it decides, else by probing at small distances."""

from __future__ import annotations

import numpy as np

from landscape.search.problem import SAME, STRIDE, norm
from landscape.search.zeros import SMALL, rounding_of

RADII = np.geomspace(1e-3, 1e-1, 9)  # distances at which a degenerate point is probed
RAYS = 512  # directions in which it is probed, if there are more than two
WITNESSES = 5  # members of a set that must agree on its kind


def kind_of(problem, points):
    """The kind on which members of a set agree, from the Hessian or else from probes; if they do not, undetermined."""
    dimension, index, nullity, d = points.dimension[0], points.index[0], points.nullity[0], points.at.shape[1]
    if nullity == dimension:
        return _verdict(index < d - nullity, index > 0, False)
    chosen = np.unique(np.linspace(0, len(points) - 1, WITNESSES).astype(int))
    kinds = {_probe(problem, points[i : i + 1]) for i in chosen}
    return kinds.pop() if len(kinds) == 1 else "undetermined"


def _verdict(rises, falls, unclear):
    if rises and falls:
        return "saddle"
    if unclear or not (rises or falls):
        return "undetermined"
    return "minimum" if rises else "maximum"


def _probe(problem, point):
    """The kind of a point degenerate across its set: does the loss rise or fall along the null directions?

    The loss is followed where its gradient vanishes in all directions but the null ones. Along each ray, the nearest
    radius counts at which the radial part of the gradient is more than rounding.
    """
    dimension, nullity, d = point.dimension[0], point.nullity[0], point.at.shape[1]
    tangent, null, rest = point.frame[0, :dimension], point.vectors[0, :, :nullity], point.vectors[0, :, nullity:]
    across = np.linalg.svd(null - tangent.T @ (tangent @ null))[0][:, : nullity - dimension]
    rays = _directions(nullity - dimension) @ across.T
    places, settled = _relax(problem, (point.at + RADII[:, None, None] * rays).reshape(-1, d), rest)
    slope = np.sum(problem.gradient(places) * np.tile(rays, (len(RADII), 1)), axis=1)
    left = np.max(np.abs(problem.gradient(point.at) @ null)) / SMALL  # the point itself is known only so well
    clear = settled & (np.abs(slope) > np.maximum(10.0 * rounding_of(problem, places), left))
    signs = np.where(clear, np.sign(slope), 0.0).reshape(len(RADII), -1)
    first = signs[np.argmax(signs != 0.0, axis=0), np.arange(len(rays))]
    rises = point.index[0] < d - nullity or np.any(first > 0)
    return _verdict(rises, point.index[0] > 0 or np.any(first < 0), np.any(first == 0))


def _directions(dimension):
    """Unit vectors all around; shape (n, dimension)."""
    if dimension == 1:
        return np.array([[1.0], [-1.0]])
    rays = np.random.default_rng(0).normal(size=(RAYS, dimension))
    return rays / norm(rays)[:, None]


def _relax(problem, u, rest, iterations: int = 30):
    """Points moved along the columns of `rest` until the gradient has no part along them; and where that worked."""
    start, step = u, np.zeros(len(u))
    for _ in range(iterations if rest.shape[1] else 0):
        slope, matrices = problem.gradient(u) @ rest, rest.T @ problem.hessian(u) @ rest
        usable = np.isfinite(slope).all(axis=1) & np.isfinite(matrices).all(axis=(1, 2))
        inverse = np.linalg.pinv(np.where(usable[:, None, None], matrices, 0.0), hermitian=True)
        move = np.einsum("nij,nj->ni", inverse, np.where(usable[:, None], slope, 0.0)) @ rest.T
        u, step = u - move, np.where(usable, norm(move), np.inf)
    settled = (step < SAME) & (norm(u - start) < STRIDE) & np.isfinite(problem.gradient(u)).all(axis=1)
    return np.where(settled[:, None], u, start), settled
