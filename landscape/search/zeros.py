"""Zeros of the gradient, from many starts at once, and whether a point is one."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from landscape.search.problem import SAME, STEP, at_each, norm, ring

SMALL = 1e-3  # a gradient smaller than this share of those at a distance STEP is zero
ROUNDING = 1e-9  # radius at which the second difference of the gradient is nothing but rounding
LEAST = 1e-150  # gradients below this are zero: their squares underflow
FLOOR = 1e-10  # damping relative to the largest eigenvalue: what is left along null directions is rounding


def settle(problem, start, ground: float = 0.0, iterations: int = 200):
    """Zeros of the gradient near the starts, as near as its rounding allows; shape of the starts.

    Levenberg-Marquardt on gradient = 0. The damping is the size of the gradient over a trust length, so an eigenvalue
    too small to reach a zero within that length is left alone: steps are of least norm near a continuum, and Newton's
    near an isolated zero, degenerate or not. A step is taken if the next one by the same matrix is shorter, a
    test that narrow curved valleys pass. A start that meets no zero stays where it stalls. Nothing moves along
    eigenvalues below `ground`: where all are small, as at crossings of continua, rounding would lead far along them.
    """
    u = np.array(start)
    slope = problem.gradient(u)
    reach = np.ones(len(u))
    active = np.flatnonzero(np.isfinite(slope).all(axis=1) & (norm(slope) > LEAST))
    for _ in range(iterations):
        if not active.size:
            break
        inverse = _damped_inverse(*problem.spectrum(u[active]), norm(slope[active]), reach[active], ground)
        step = -np.einsum("nij,nj->ni", inverse, slope[active])
        trial = u[active] + step
        there = problem.gradient(trial)
        finite = np.isfinite(there).all(axis=1)
        following = norm(np.einsum("nij,nj->ni", inverse, np.where(finite[:, None], there, 0.0)))
        better = finite & (following < norm(step))
        u[active[better]], slope[active[better]] = trial[better], there[better]
        reach[active] = np.where(better, np.minimum(2.0 * reach[active], 1.0), reach[active] / 4.0)
        active = active[(norm(slope[active]) > LEAST) & (norm(step) > np.where(better, 1e-12, 1e-8))]
    return u


def _damped_inverse(values, vectors, size, reach, ground):
    largest = np.maximum(np.abs(values[:, -1]), size)[:, None]  # divided out, so that no square underflows
    values = np.where(np.abs(values) > ground, values, 0.0) / largest
    size = size[:, None] / largest
    damping = (size / reach[:, None]) ** 2 + (FLOOR * values[:, -1:]) ** 2
    return np.einsum("nij,nj,nkj->nik", vectors, values / (values**2 + damping) / largest, vectors)


def rounding_of(problem, u):
    """Size of the rounding errors of the gradient: its second differences over very small distances."""
    here = problem.gradient(u)
    largest = np.finfo(float).eps * norm(here)
    for radius in (ROUNDING, 2 * ROUNDING, 3 * ROUNDING):
        there, back = np.split(at_each(problem.gradient, ring(u, radius)), 2, axis=1)
        largest = np.fmax(largest, np.max(norm(there - 2.0 * here[:, None, :] + back), axis=1, initial=0.0))
    return largest


def is_critical(problem, u):
    """Whether the gradient, computed anew, is small along each eigenvector against those around, or only rounding."""
    axes = np.swapaxes(problem.spectrum(u)[1], 1, 2)
    here = np.abs(np.einsum("nij,nj->ni", axes, problem.gradient(u)))
    around = at_each(problem.gradient, ring(u, STEP, axes))
    around = np.abs(np.einsum("nij,nij->ni", np.concatenate([axes, axes], axis=1), around))
    around = np.where(np.isfinite(around), around, 0.0).reshape(len(u), 2, u.shape[1]).max(axis=1)
    small = ((here <= SMALL * around) | (here <= 10.0 * rounding_of(problem, u)[:, None])).all(axis=1)
    return small & np.isfinite(problem.loss(u)) & np.isfinite(problem.hessian(u)).all(axis=(1, 2))


def distinct(problem, u):
    """One of each cluster of zeros that are the same up to rounding: that of the smallest gradient."""
    cluster = connected_components(cdist(u, u) < SAME)[1]
    order = np.argsort(norm(problem.gradient(u)), kind="stable")
    return u[order[np.unique(cluster[order], return_index=True)[1]]]
