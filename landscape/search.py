"""A numeric search for the critical sets of a smooth loss: isolated points and continua.

Nothing is known of the loss but its values, gradient and Hessian at points. The search works in coordinates in
which the box is [-1, 1]^d and divides the loss by the size of its derivatives there, so every threshold below is
a pure number: a length in half-widths of the box, or an eigenvalue relative to those of the Hessian around a point.

1. `_settle`: many starts go to zeros of the gradient at once, by Levenberg-Marquardt steps of least norm.
2. `_describe`: at each zero, the eigenvalues of the Hessian, and the directions in which zeros continue.
3. `_connect`: points of a continuum are joined by walking on it from one to another; where an eigenvalue
   vanishes on the way, the walk is cut and the place is found by sectioning.
4. `_kind`: minimum, maximum or saddle, by the Hessian where it decides, else by probing at small distances.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from scipy.stats import qmc

from landscape import parameters
from landscape.parameters import ParameterError

EDGE = 1e-3  # points are reported up to this far outside the box
SAME = 1e-6  # zeros closer than this are one
STEP = 1e-2  # length of a trial step; isolated degenerate points closer than this are one
STRIDE = 5e-2  # longest step of a walk, and the radius over which the size of the Hessian is measured
SMALL = 1e-3  # a gradient smaller than this share of those at a distance STEP is zero
ROUNDING = 1e-9  # radius at which the second difference of the gradient is nothing but rounding
LEAST = 1e-150  # gradients below this are zero: their squares underflow
FLOOR = 1e-10  # damping relative to the largest eigenvalue: what is left along null directions is rounding
NULL = 1e-6  # an eigenvalue is zero below this share of the size of the Hessian around
LEVEL = 1e-7  # losses closer than this may belong to one set
NEIGHBOURS = 6  # nearest neighbours to which each point of a continuum walks
ROUNDS = 6  # rounds in which each connected part walks to the nearest other part
SECTIONS = 34  # each cuts an interval to 3/5 of its length
RADII = np.geomspace(1e-3, 1e-1, 9)  # distances at which a degenerate point is probed
RAYS = 512  # directions in which it is probed, if there are more than two
WITNESSES = 5  # members of a set that must agree on its kind


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
    raw = _Problem((loss, gradient, hessian), box.mean(axis=1), np.ptp(box, axis=1) / 2)
    problem = raw.measured(sample)
    if not problem.unit:
        return _constant(raw, sample)
    zeros = _settle(problem, sample)
    zeros = zeros[(np.abs(zeros) <= 1.0 + EDGE).all(axis=1)]
    zeros = zeros[_is_critical(problem, zeros)]
    if not len(zeros):
        return []
    points = _describe(problem, _distinct(problem, zeros))
    found = [_report(problem, members) for members in _sets(problem, points)]
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
    raw, here = _Problem((loss, gradient, hessian), centre, half), np.zeros((1, len(centre)))
    problem = raw.measured(_ring(here, 1.0)[0])
    if not problem.unit and _constant(raw, here):
        return _constant(raw, here)[0]
    if not problem.unit or not _is_critical(problem, here)[0]:
        raise ParameterError("point", "classify_point", "a critical point of the loss", point)
    return _report(problem, _describe(problem, here))


def _checked_box(box) -> np.ndarray:
    array = np.asarray(box, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or not np.isfinite(array).all() or not (array[:, 0] < array[:, 1]).all():
        raise ParameterError("box", "critical_search", "finite pairs (low, high) with low < high, one a parameter", box)
    return array


@dataclass(frozen=True)
class _Problem:
    """The loss in units of `unit` and in coordinates in which the box around `centre` is [-1, 1]^d."""

    functions: tuple  # loss, gradient and Hessian in the coordinates of the user
    centre: np.ndarray
    half: np.ndarray
    unit: float = 1.0

    def place(self, u):
        """Points in the coordinates of the user."""
        return self.centre + self.half * u

    def _values(self, order, u):
        with np.errstate(all="ignore"):
            return np.asarray(self.functions[order](self.place(u)), dtype=np.float64) / self.unit

    def loss(self, u):
        return self._values(0, u)

    def gradient(self, u):
        return self._values(1, u) * self.half

    def hessian(self, u):
        return self._values(2, u) * np.multiply.outer(self.half, self.half)

    def spectrum(self, u):
        """Eigenvalues, smallest in size first, and eigenvectors as columns; zeros where the Hessian is not finite."""
        matrices = self.hessian(u)
        matrices[~np.isfinite(matrices).all(axis=(1, 2))] = 0.0
        values, vectors = np.linalg.eigh(matrices)
        order = np.argsort(np.abs(values), axis=1)
        return np.take_along_axis(values, order, axis=1), np.take_along_axis(vectors, order[:, None, :], axis=2)

    def measured(self, sample) -> _Problem:
        """The problem in units of the size of the derivatives over a sample; 0 where the loss does not vary on it."""
        sizes = np.fmax(*(np.abs(f(sample)).reshape(len(sample), -1).max(axis=1) for f in (self.gradient, self.hessian)))
        values = np.abs(self.loss(sample))
        rounding = np.finfo(float).eps * np.max(values, where=np.isfinite(values), initial=0.0)
        sizes = sizes[np.isfinite(sizes) & (sizes > rounding)]
        return dataclasses.replace(self, unit=float(np.median(sizes)) if len(sizes) else 0.0)


def _norm(vectors):
    return np.linalg.norm(vectors, axis=-1)


def _ring(u, radius, axes=None):
    """Points at a distance from each point along axes (rows), both ways; shape (n, 2 d, d)."""
    axes = radius * (np.eye(u.shape[1])[None] if axes is None else axes)
    return u[:, None, :] + np.concatenate([axes, -axes], axis=1)


def _at_each(function, places):
    """A function at places of shape (n, m, d); shape (n, m, ...)."""
    n, m, d = places.shape
    values = function(places.reshape(n * m, d))
    return values.reshape(n, m, *values.shape[1:])


# --- zeros of the gradient


def _settle(problem, start, iterations: int = 200):
    """Zeros of the gradient near the starts, as near as its rounding allows; shape of the starts.

    Levenberg-Marquardt on gradient = 0. The damping is the size of the gradient over a trust length, so an eigenvalue
    too small to reach a zero within that length is left alone: steps are of least norm near a continuum, and Newton's
    near an isolated zero, degenerate or not. A step is taken if the next one by the same matrix is shorter, a
    test that narrow curved valleys pass. A start that meets no zero stays where it stalls.
    """
    u = np.array(start)
    slope = problem.gradient(u)
    reach = np.ones(len(u))
    active = np.flatnonzero(np.isfinite(slope).all(axis=1) & (_norm(slope) > LEAST))
    for _ in range(iterations):
        if not active.size:
            break
        inverse = _damped_inverse(*problem.spectrum(u[active]), _norm(slope[active]), reach[active])
        step = -np.einsum("nij,nj->ni", inverse, slope[active])
        trial = u[active] + step
        there = problem.gradient(trial)
        finite = np.isfinite(there).all(axis=1)
        following = _norm(np.einsum("nij,nj->ni", inverse, np.where(finite[:, None], there, 0.0)))
        better = finite & (following < _norm(step))
        u[active[better]], slope[active[better]] = trial[better], there[better]
        reach[active] = np.where(better, np.minimum(2.0 * reach[active], 1.0), reach[active] / 4.0)
        active = active[(_norm(slope[active]) > LEAST) & (_norm(step) > np.where(better, 1e-12, 1e-8))]
    return u


def _damped_inverse(values, vectors, size, reach):
    largest = np.maximum(np.abs(values[:, -1]), size)[:, None]  # divided out, so that no square underflows
    values, size = values / largest, size[:, None] / largest
    damping = (size / reach[:, None]) ** 2 + (FLOOR * values[:, -1:]) ** 2
    return np.einsum("nij,nj,nkj->nik", vectors, values / (values**2 + damping) / largest, vectors)


def _rounding(problem, u):
    """Size of the rounding errors of the gradient: its second differences over very small distances."""
    here = problem.gradient(u)
    largest = np.finfo(float).eps * _norm(here)
    for radius in (ROUNDING, 2 * ROUNDING, 3 * ROUNDING):
        there, back = np.split(_at_each(problem.gradient, _ring(u, radius)), 2, axis=1)
        largest = np.fmax(largest, np.max(_norm(there - 2.0 * here[:, None, :] + back), axis=1, initial=0.0))
    return largest


def _is_critical(problem, u):
    """Whether the gradient, computed anew, is small along each eigenvector against those around, or only rounding."""
    axes = np.swapaxes(problem.spectrum(u)[1], 1, 2)
    here = np.abs(np.einsum("nij,nj->ni", axes, problem.gradient(u)))
    around = _at_each(problem.gradient, _ring(u, STEP, axes))
    around = np.abs(np.einsum("nij,nij->ni", np.concatenate([axes, axes], axis=1), around))
    around = np.where(np.isfinite(around), around, 0.0).reshape(len(u), 2, u.shape[1]).max(axis=1)
    small = ((here <= SMALL * around) | (here <= 10.0 * _rounding(problem, u)[:, None])).all(axis=1)
    return small & np.isfinite(problem.loss(u)) & np.isfinite(problem.hessian(u)).all(axis=(1, 2))


def _distinct(problem, u):
    """One of each cluster of zeros that are the same up to rounding: that of the smallest gradient."""
    cluster = connected_components(cdist(u, u) < SAME)[1]
    order = np.argsort(_norm(problem.gradient(u)), kind="stable")
    return u[order[np.unique(cluster[order], return_index=True)[1]]]


# --- what the Hessian and the neighbourhood say of a zero


@dataclass(frozen=True)
class _Points:
    """Critical points: eigenvalues relative to the Hessian around, and the directions in which their set continues."""

    at: np.ndarray  # (n, d)
    loss: np.ndarray  # (n,)
    values: np.ndarray  # (n, d), smallest in size first
    vectors: np.ndarray  # (n, d, d), columns
    dimension: np.ndarray  # (n,)
    frame: np.ndarray  # (n, d, d), of which the first `dimension` rows span the tangent space

    def __getitem__(self, which):
        return type(self)(*(getattr(self, field.name)[which] for field in dataclasses.fields(self)))

    def __len__(self):
        return len(self.at)

    @property
    def null(self):
        return np.abs(self.values) <= NULL

    @property
    def nullity(self):
        return self.null.sum(axis=1)

    @property
    def index(self):
        return ((self.values < 0) & ~self.null).sum(axis=1)

    def like(self, other):
        """Whether index and nullity are those of other points."""
        return (self.index == other.index) & (self.nullity == other.nullity)

    def alike(self):
        """Whether index and nullity of each two points are the same; shape (n, n)."""
        return (self.index[:, None] == self.index) & (self.nullity[:, None] == self.nullity)

    def gap(self, skipped):
        """Size of the smallest eigenvalue but the `skipped` smallest; infinite if that leaves none."""
        sizes = np.pad(np.abs(self.values), ((0, 0), (0, 1)), constant_values=np.inf)
        return np.take_along_axis(sizes, np.broadcast_to(skipped, len(self))[:, None], axis=1)[:, 0]


def _concatenate(groups):
    """Points of several groups as one, with the fields of the first."""
    fields = [field.name for field in dataclasses.fields(groups[0])]
    return type(groups[0])(*(np.concatenate([getattr(group, name) for group in groups]) for name in fields))


def _look(problem, u) -> _Points:
    """Points with their eigenvalues, taken for isolated."""
    values, vectors = problem.spectrum(u)
    around = np.linalg.norm(_at_each(problem.hessian, _ring(u, STRIDE)), axis=(2, 3))
    around = np.max(around, axis=1, where=np.isfinite(around), initial=0.0)
    size = np.maximum(around, np.abs(values[:, -1]))[:, None]
    values = np.divide(values, size, out=np.zeros_like(values), where=size > 0)
    return _Points(u, problem.loss(u), values, vectors, np.zeros(len(u), dtype=int), np.zeros_like(vectors))


def _describe(problem, u) -> _Points:
    """Points with dimension and tangent: along which null directions do points of the same index and nullity follow?"""
    points = _look(problem, u)
    who, which = np.nonzero(points.null)
    if not len(who):
        return points
    who, which, sign = np.repeat(who, 2), np.repeat(which, 2), np.tile([1.0, -1.0], len(who))
    ends = _settle(problem, u[who] + STEP * sign[:, None] * points.vectors[who, :, which])
    shifts = ends - u[who]
    follows = _is_critical(problem, ends) & (_norm(shifts) < 2.0 * STEP) & _look(problem, ends).like(points[who])
    return _with_frame(points, who, np.where(follows[:, None], shifts, 0.0))


def _with_frame(points, who, shifts):
    """Points with the rank and the span of the steps of about STEP that led from them (`who`, sorted) on their set."""
    slot = np.arange(len(who)) - np.searchsorted(who, who)
    d = points.at.shape[1]
    rows = np.zeros((len(points), max(slot.max() + 1, d), d))
    rows[who, slot] = shifts / STEP
    _, singular, frame = np.linalg.svd(rows, full_matrices=False)
    dimension = (singular > 0.5).sum(axis=1)
    exact = (dimension == points.nullity)[:, None, None]  # then the null space is the tangent space
    frame = np.where(exact, np.swapaxes(points.vectors, 1, 2), frame)
    return dataclasses.replace(points, dimension=dimension, frame=frame)


# --- connected sets


def _link(distance, alike, join):
    """Connected parts of points, by joins of nearest pairs that are alike; index arrays.

    First each point tries its nearest neighbours, alike or not, then each part the nearest others alike. No pair is
    tried twice, and none that is connected already.
    """
    n = len(distance)
    near = np.argsort(np.argsort(distance, axis=1), axis=1) <= NEIGHBOURS
    tried, linked = np.eye(n, dtype=bool), np.eye(n, dtype=bool)
    for candidates, by_part in [(near | near.T, False)] * NEIGHBOURS + [(alike, True)] * ROUNDS:
        part = connected_components(linked)[1]
        open_ = candidates & ~tried & (part[:, None] != part)
        first, second = _nearest(np.where(open_, distance, np.inf), part if by_part else np.arange(n))
        if len(first):
            tried[first, second] = tried[second, first] = True
            linked[first, second] = join(first, second) & alike[first, second]
    return _parts(linked)


def _nearest(distance, owner):
    """The nearest pair of each owner of points, each pair once; infinite distances are none."""
    partner, least = np.argmin(distance, axis=1), np.min(distance, axis=1)
    order = np.argsort(least, kind="stable")
    order = order[np.unique(owner[order], return_index=True)[1]]
    order = order[np.isfinite(least[order])]
    return np.unique(np.sort(np.stack([order, partner[order]]), axis=0), axis=1)


def _parts(linked):
    """Index arrays of the connected parts of a graph."""
    part = connected_components(linked)[1]
    return [np.flatnonzero(part == label) for label in range(part.max() + 1)]


def _walk(problem, start, goal):
    """Walks on the critical set from each start towards its goal: the points passed, and which walks arrive.

    A stride is the part of the way that lies along null directions, then put back on the set. A walk that this moves
    far, or that has nowhere to go, is lost.
    """
    stride = np.minimum(STRIDE, _norm(goal - start) / 4)
    path, lost = [_look(problem, start)], np.zeros(len(start), dtype=bool)
    for _ in range(4 + int(2 * np.max(_norm(goal - start) / stride))):
        here = path[-1].at
        way = goal - here
        null = path[-1].vectors * path[-1].null[:, None, :]
        along = np.einsum("nij,nkj,nk->ni", null, null, way)
        length = _norm(along)
        going = ~lost & (_norm(way) > STEP / 10)
        lost |= going & (length < 0.1 * _norm(way))
        going = np.flatnonzero(going & ~lost)
        if not len(going):
            break
        ahead = here[going] + along[going] * np.minimum(1.0, stride[going] / length[going])[:, None]
        landed = _settle(problem, ahead)
        lost[going] = _norm(landed - ahead) > 0.5 * np.minimum(stride, length)[going] + SAME
        here = here.copy()
        here[going] = landed
        path.append(_look(problem, here))
    return path, ~lost & (_norm(goal - path[-1].at) <= STEP / 10)


def _section(problem, low, high, skipped):
    """The point of the set between each two of its points at which the gap is least."""
    for _ in range(SECTIONS):
        inner = _settle(problem, np.concatenate([low + 0.4 * (high - low), low + 0.6 * (high - low)]))
        left, right = np.split(inner, 2)
        lower = np.less(*np.split(_look(problem, inner).gap(np.tile(skipped, 2)), 2))[:, None]
        low, high = np.where(lower, low, left), np.where(lower, right, high)
    return _look(problem, _settle(problem, (low + high) / 2))


def _doubtful(path, skipped):
    """Where on each walk an eigenvalue may vanish: the points before and after, and whether one seems to at all."""
    walks, last = np.arange(len(path[0])), len(path) - 1
    gap = np.stack([points.gap(skipped) for points in path])
    across = np.arange(path[0].at.shape[1]) >= skipped[:, None]
    negative = np.stack([((points.values < 0) & across).sum(axis=1) for points in path])
    changes = np.vstack([negative[1:] != negative[:-1], np.zeros(len(walks), dtype=bool)])
    turns, turn, lowest = changes.any(axis=0), np.argmax(changes, axis=0), np.argmin(gap, axis=0)
    before = np.where(turns, turn, np.maximum(lowest - 1, 0))
    after = np.where(turns, turn + 1, np.minimum(lowest + 1, last))
    at = np.stack([points.at for points in path])
    dips = np.isfinite(gap).all(axis=0) & (gap.min(axis=0) < 0.5 * gap.max(axis=0))
    return at[before, walks], at[after, walks], turns | dips


@dataclass(frozen=True)
class _Border(_Points):
    """Points of a continuum (its dimension and frame) at which one more eigenvalue vanishes, and how they were met."""

    across: np.ndarray  # (n, d), direction of the walk
    outside: np.ndarray  # (n,), nullity of the continuum

    def plain(self) -> _Points:
        return _Points(*(getattr(self, field.name) for field in dataclasses.fields(_Points)))


def _join(problem, first, second):
    """Which pairs of points a walk joins without an eigenvalue vanishing on it, and the borders on the others."""
    skipped = np.minimum(first.nullity, second.nullity)
    path, arrives = _walk(problem, first.at, second.at)
    low, high, doubtful = _doubtful(path, skipped)
    doubtful = np.flatnonzero(doubtful & arrives)
    if not len(doubtful):
        return arrives, []
    first, skipped, way = first[doubtful], skipped[doubtful], (second.at - first.at)[doubtful]
    middle = _section(problem, low[doubtful], high[doubtful], skipped)
    vanishes = middle.gap(skipped) <= NULL
    arrives[doubtful[vanishes]] = False
    middle = dataclasses.replace(middle, dimension=first.dimension, frame=first.frame)
    return arrives, [_Border(**vars(middle), across=way / _norm(way)[:, None], outside=skipped)[vanishes]]


def _connect(problem, points):
    """The connected sets among points of continua of one dimension and one loss, and the borders met between them."""
    borders = []

    def join(first, second):
        joined, found = _join(problem, points[first], points[second])
        borders.extend(found)
        return joined

    parts = _link(cdist(points.at, points.at), points.alike(), join)
    return [points[part] for part in parts], _concatenate(borders) if borders else []


def _border_sets(problem, border, strays):
    """Connected sets of border points, with their own dimension and tangent; and which strays belong to them.

    Strays are points found otherwise that look like some of the border. They are taken for met as the nearest of it.
    """
    guides = border[np.argmin(cdist(strays.at, border.at), axis=1)]
    met = {"dimension": guides.dimension, "frame": guides.frame, "across": guides.across, "outside": guides.outside}
    every = _concatenate([border, _Border(**vars(strays) | met)])
    distance = cdist(every.at, every.at)

    def join(first, second):
        way = every.at[second] - every.at[first]
        joined = np.ones(len(first), dtype=bool)
        for share in (0.25, 0.5, 0.75):
            ahead = every.at[first] + share * way
            joined &= _on_border(problem, every, first, ahead, _norm(way)[:, None] / 4)[1]
        return joined

    parts = [part for part in _link(distance, every.alike(), join) if part[0] < len(border)]
    taken = np.isin(np.arange(len(strays)) + len(border), np.concatenate(parts))
    return [_border_frame(problem, every[part]) for part in parts], taken


def _on_border(problem, border, who, ahead, reach):
    """Points of a border near given ones, sought the way it was met at points `who`; and whether they are on it."""
    back = reach * border.across[who]
    ends = _section(problem, _settle(problem, ahead - back), _settle(problem, ahead + back), border.outside[who])
    near = _norm(ends.at - ahead) < 2.0 * _norm(back)
    return ends, near & ends.like(border[who]) & (ends.gap(border.outside[who]) <= NULL)


def _border_frame(problem, border) -> _Points:
    """A border with its dimension and tangent: a step along the continuum, then the way back to the border."""
    dimension = border.dimension[0]
    who = np.repeat(np.arange(len(border)), 2 * dimension)
    rays = np.concatenate([border.frame[:, :dimension], -border.frame[:, :dimension]], axis=1)
    ends, follows = _on_border(problem, border, who, border.at[who] + STEP * rays.reshape(len(who), -1), 2.0 * STEP)
    found = _with_frame(border.plain(), who, np.where(follows[:, None], ends.at - border.at[who], 0.0))
    return found[found.dimension == np.argmax(np.bincount(found.dimension))]


def _sets(problem, points):
    """Connected sets of points of constant dimension, index and nullity; the continua of highest dimension first."""
    found = []
    for dimension in range(points.at.shape[1], 0, -1):
        for level in _levels(points[points.dimension == dimension]):
            parts, border = _connect(problem, level)
            found += parts
            if not len(border):
                continue
            if dimension == 1:
                points = _concatenate([points, dataclasses.replace(border.plain(), dimension=0 * border.dimension)])
                continue
            stray = np.flatnonzero((points.dimension < dimension) & _resembles(points, border))
            borders, taken = _border_sets(problem, border, points[stray])
            found += [part for part in borders if part.dimension[0]]
            points = points[np.setdiff1d(np.arange(len(points)), stray[taken])]
            points = _concatenate([points, *(part for part in borders if not part.dimension[0])])
    for level in _levels(points[points.dimension == 0]):
        close = np.where(level.nullity > 0, STEP, 10.0 * SAME)
        found += [level[part] for part in _parts(level.alike() & (cdist(level.at, level.at) <= close[:, None]))]
    return found


def _resembles(points, border):
    """Which points have the loss, index and nullity of some point of a border."""
    same = (points.index[:, None] == border.index) & (points.nullity[:, None] == border.nullity)
    return (same & (np.abs(points.loss[:, None] - border.loss) <= _tolerance(border.loss))).any(axis=1)


def _tolerance(loss):
    return LEVEL + 1e-12 * np.abs(loss)


def _levels(points):
    """Points by loss: no set has members in two of the groups."""
    if not len(points):
        return []
    points = points[np.argsort(points.loss, kind="stable")]
    cuts = 1 + np.flatnonzero(np.diff(points.loss) > _tolerance(points.loss[1:]))
    return [points[part] for part in np.split(np.arange(len(points)), cuts)]


# --- kinds


def _kind(problem, points):
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
    clear = settled & (np.abs(slope) > 10.0 * _rounding(problem, places))
    signs = np.where(clear, np.sign(slope), 0.0).reshape(len(RADII), -1)
    first = signs[np.argmax(signs != 0.0, axis=0), np.arange(len(rays))]
    rises = point.index[0] < d - nullity or np.any(first > 0)
    return _verdict(rises, point.index[0] > 0 or np.any(first < 0), np.any(first == 0))


def _directions(dimension):
    """Unit vectors all around; shape (n, dimension)."""
    if dimension == 1:
        return np.array([[1.0], [-1.0]])
    rays = np.random.default_rng(0).normal(size=(RAYS, dimension))
    return rays / _norm(rays)[:, None]


def _relax(problem, u, rest, iterations: int = 30):
    """Points moved along the columns of `rest` until the gradient has no part along them; and where that worked."""
    start, step = u, np.zeros(len(u))
    for _ in range(iterations if rest.shape[1] else 0):
        slope, matrices = problem.gradient(u) @ rest, rest.T @ problem.hessian(u) @ rest
        usable = np.isfinite(slope).all(axis=1) & np.isfinite(matrices).all(axis=(1, 2))
        inverse = np.linalg.pinv(np.where(usable[:, None, None], matrices, 0.0), hermitian=True)
        move = np.einsum("nij,nj->ni", inverse, np.where(usable[:, None], slope, 0.0)) @ rest.T
        u, step = u - move, np.where(usable, _norm(move), np.inf)
    settled = (step < SAME) & (_norm(u - start) < STRIDE) & np.isfinite(problem.gradient(u)).all(axis=1)
    return np.where(settled[:, None], u, start), settled


# --- the answer in the coordinates of the user


def _report(problem, points) -> NumericSet:
    """A set from its points, the first of them the farthest from a further degeneracy."""
    dimension = int(points.dimension[0])
    merit = -points.gap(points.nullity) if dimension else _norm(problem.gradient(points.at))
    points = points[np.argsort(merit, kind="stable")]
    members = problem.place(points.at if dimension else points.at[:1])
    return NumericSet(
        kind=_kind(problem, points),
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
