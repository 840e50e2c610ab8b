"""A numeric search for the critical sets of a smooth loss: isolated points and continua.

Nothing is known of the loss but its values, gradient and Hessian at points. The search works in coordinates in
which the box is [-1, 1]^d and divides the loss by the size of its derivatives there, so every threshold below is
a pure number: a length in half-widths of the box, or an eigenvalue relative to those of the Hessian around a point.

1. `zeros`: many starts go to zeros of the gradient at once, by Levenberg-Marquardt steps of least norm.
2. `points`: at each zero, the eigenvalues of the Hessian, and the directions in which zeros continue.
3. `connect` and `walks`: points of a continuum are joined by walking on it from one to another; where an eigenvalue
   vanishes on the way, the walk is cut and the place is found by sectioning.
4. `kinds`: minimum, maximum or saddle, by the Hessian where it decides, else by probing at small distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from landscape import parameters
from landscape.parameters import ParameterError
from landscape.search.connect import connected_sets
from landscape.search.kinds import kind_of
from landscape.search.points import describe
from landscape.search.problem import Problem, norm, ring
from landscape.search.zeros import distinct, is_critical, settle

EDGE = 1e-3  # points are reported up to this far outside the box


@dataclass(frozen=True)
class NumericSet:
    """A connected set of critical points on which dimension, index and nullity are constant.

    Attributes
    ----------
    kind : str
        "minimum", "maximum" or "saddle", judged across the set; "undetermined" where rounding hides it.
    dimension : int
        Dimension of the set itself; 0 for an isolated point.
    index, nullity : int
        Negative and zero eigenvalues of the Hessian on the set.
    loss : float
        Loss on the set.
    representative : ndarray of shape (d,)
    tangent : ndarray of shape (dimension, d)
        Orthonormal rows that span the tangent space at the representative.
    members : ndarray of shape (k, d)
        Points found on the set, the representative first.
    """

    kind: str
    dimension: int
    index: int
    nullity: int
    loss: float
    representative: np.ndarray
    tangent: np.ndarray
    members: np.ndarray


def critical_search(loss, gradient, hessian, box, *, starts: int = 400, seed: int = 0) -> list[NumericSet]:
    """The critical sets of a smooth loss that the search meets in a box, by loss.

    Parameters
    ----------
    loss, gradient, hessian : callable
        From points of shape (n, d) to arrays of shape (n,), (n, d) and (n, d, d); not finite outside the domain.
    box : array_like of shape (d, 2)
        Lowest and highest value of each parameter.
    starts : int
        Starts of the search, a scrambled Sobol sequence.
    seed : int
        Seed of the sequence.

    Returns
    -------
    list of NumericSet
        The answer is the same for any positive multiple of the loss. A constant loss is one set of minima of
        dimension d. Continua that cross without a change of the eigenvalues along either are not cut.

    Raises
    ------
    ParameterError
        If the box or the number of starts has no meaning.
    """
    box = _checked_box(box)
    starts = parameters.count("critical_search", "starts", starts, 1)
    sobol = qmc.Sobol(len(box), scramble=True, rng=seed)
    sample = 2.0 * sobol.random_base2(math.ceil(math.log2(starts)))[:starts] - 1.0
    raw = Problem((loss, gradient, hessian), box.mean(axis=1), np.ptp(box, axis=1) / 2)
    problem = raw.measured(sample)
    if not problem.unit:
        return _constant(raw, sample)
    zeros = settle(problem, sample)
    zeros = zeros[(np.abs(zeros) <= 1.0 + EDGE).all(axis=1)]
    zeros = zeros[is_critical(problem, zeros)]
    if not len(zeros):
        return []
    points = describe(problem, distinct(problem, zeros))
    found = [_report(problem, members) for members in connected_sets(problem, points)]
    return sorted(found, key=lambda s: (round(s.loss / problem.unit, 9), -s.dimension, *np.round(s.representative, 6)))


def classify_point(loss, gradient, hessian, point, *, length=1.0) -> NumericSet:
    """Dimension, index, nullity, kind and tangent of the critical set through a known critical point.

    Parameters
    ----------
    loss, gradient, hessian : callable
        As for `critical_search`.
    point : array_like of shape (d,)
    length : float or array_like of shape (d,)
        Distance over which the loss changes its shape, as the half-width of a box around the point.

    Raises
    ------
    ParameterError
        If the gradient does not vanish at the point.
    """
    centre = parameters.points("classify_point", "point", point, np.size(point))[0]
    half = np.broadcast_to(np.asarray(length, dtype=np.float64), centre.shape)
    raw, here = Problem((loss, gradient, hessian), centre, half), np.zeros((1, len(centre)))
    problem = raw.measured(ring(here, 1.0)[0])
    if not problem.unit and _constant(raw, here):
        return _constant(raw, here)[0]
    if not problem.unit or not is_critical(problem, here)[0]:
        raise ParameterError("point", "classify_point", "a critical point of the loss", point)
    return _report(problem, describe(problem, here))


def _checked_box(box) -> np.ndarray:
    array = np.asarray(box, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or not np.isfinite(array).all() or not (array[:, 0] < array[:, 1]).all():
        raise ParameterError("box", "critical_search", "finite pairs (low, high) with low < high, one a parameter", box)
    return array


def _report(problem, points) -> NumericSet:
    """A set from its points, the first of them the farthest from a further degeneracy."""
    dimension = int(points.dimension[0])
    merit = -points.gap(points.nullity) if dimension else norm(problem.gradient(points.at))
    points = points[np.argsort(merit, kind="stable")]
    members = problem.place(points.at if dimension else points.at[:1])
    return NumericSet(
        kind=kind_of(problem, points),
        dimension=dimension,
        index=int(points.index[0]),
        nullity=int(points.nullity[0]),
        loss=float(points.loss[0] * problem.unit),
        representative=members[0],
        tangent=np.linalg.qr((points.frame[0, :dimension] * problem.half).T)[0].T,
        members=members,
    )


def _constant(problem, u) -> list[NumericSet]:
    """All points at which the loss is finite as one set of minima; none if there is no such point."""
    d, loss = u.shape[1], problem.loss(u)
    members = problem.place(u[np.isfinite(loss)])
    lowest = loss[np.isfinite(loss)][:1].tolist()
    return [NumericSet("minimum", d, 0, d, value, members[0], np.eye(d), members) for value in lowest]
