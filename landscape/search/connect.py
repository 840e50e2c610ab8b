"""Connected sets of critical points: joined by walks, cut where the eigenvalues change."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from landscape.search.points import Points, concatenate, look, where, with_frame
from landscape.search.problem import GROUND, NULL, SAME, STEP, norm
from landscape.search.walks import doubtful_places, section, walk
from landscape.search.zeros import settle

CUT = 1e-5  # an eigenvalue that falls below this on a walk may vanish there
LEVEL = 1e-7  # losses closer than this may belong to one set
NEIGHBOURS = 6  # nearest neighbours to which each point of a continuum walks
ROUNDS = 6  # rounds in which each connected part walks to the nearest other part


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


@dataclass(frozen=True)
class _Border(Points):
    """Points of a continuum (its dimension and frame) at which one more eigenvalue vanishes, and how they were met."""

    across: np.ndarray  # (n, d), direction of the walk
    outside: np.ndarray  # (n,), nullity of the continuum

    def plain(self) -> Points:
        return Points(*(getattr(self, field.name) for field in dataclasses.fields(Points)))


def _join(problem, first, second):
    """Which pairs of points a walk joins without an eigenvalue vanishing on it, and the borders on the others."""
    skipped = np.minimum(first.nullity, second.nullity)
    path, arrives = walk(problem, first.at, second.at)
    low, lowest, high, doubtful = doubtful_places(path, skipped)
    doubtful = np.flatnonzero(doubtful & arrives)
    if not len(doubtful):
        return arrives, []
    first, skipped, way = first[doubtful], skipped[doubtful], (second.at - first.at)[doubtful]
    middle = section(problem, low[doubtful], high[doubtful], skipped)
    passed = look(problem, lowest[doubtful])  # a walk may stop at a crossing on its way, and leave it another way
    middle = where(passed.gap(skipped) < middle.gap(skipped), passed, middle)
    arrives[doubtful[middle.gap(skipped) <= CUT]] = False
    vanishes = middle.gap(skipped) <= NULL
    middle = dataclasses.replace(middle, dimension=first.dimension, frame=first.frame)
    return arrives, [_Border(**vars(middle), across=way / norm(way)[:, None], outside=skipped)[vanishes]]


def _connect(problem, points):
    """The connected sets among points of continua of one dimension and one loss, and the borders met between them."""
    borders = []

    def join(first, second):
        joined, found = _join(problem, points[first], points[second])
        borders.extend(found)
        return joined

    parts = _link(cdist(points.at, points.at), points.alike(), join)
    return [points[part] for part in parts], concatenate(borders) if borders else []


def _border_sets(problem, border, strays):
    """Connected sets of border points, with their own dimension and tangent; and which strays belong to them.

    Strays are points found otherwise that look like some of the border. They are taken for met as the nearest of it.
    """
    guides = border[np.argmin(cdist(strays.at, border.at), axis=1)]
    met = {"dimension": guides.dimension, "frame": guides.frame, "across": guides.across, "outside": guides.outside}
    every = concatenate([border, _Border(**vars(strays) | met)])
    distance = cdist(every.at, every.at)

    def join(first, second):
        way = every.at[second] - every.at[first]
        joined = np.ones(len(first), dtype=bool)
        for share in (0.25, 0.5, 0.75):
            ahead = every.at[first] + share * way
            joined &= _on_border(problem, every, first, ahead, norm(way)[:, None] / 4)[1]
        return joined

    parts = [part for part in _link(distance, every.alike(), join) if part[0] < len(border)]
    taken = np.isin(np.arange(len(strays)) + len(border), np.concatenate(parts))
    return [_border_frame(problem, every[part]) for part in parts], taken


def _on_border(problem, border, who, ahead, reach):
    """Points of a border near given ones, sought the way it was met at points `who`; and whether they are on it."""
    back = reach * border.across[who]
    low, high = settle(problem, ahead - back, GROUND), settle(problem, ahead + back, GROUND)
    ends = section(problem, low, high, border.outside[who])
    near = norm(ends.at - ahead) < 2.0 * norm(back)
    return ends, near & ends.like(border[who]) & (ends.gap(border.outside[who]) <= NULL)


def _border_frame(problem, border) -> Points:
    """A border with its dimension and tangent: a step along the continuum, then the way back to the border."""
    dimension = border.dimension[0]
    who = np.repeat(np.arange(len(border)), 2 * dimension)
    rays = np.concatenate([border.frame[:, :dimension], -border.frame[:, :dimension]], axis=1)
    ends, follows = _on_border(problem, border, who, border.at[who] + STEP * rays.reshape(len(who), -1), 2.0 * STEP)
    found = with_frame(border.plain(), who, np.where(follows[:, None], ends.at - border.at[who], 0.0))
    return found[found.dimension == np.argmax(np.bincount(found.dimension))]


def connected_sets(problem, points):
    """Connected sets of points of constant dimension, index and nullity; the continua of highest dimension first."""
    found = []
    for dimension in range(points.at.shape[1], 0, -1):
        for level in _levels(points[points.dimension == dimension]):
            parts, border = _connect(problem, level)
            found += parts
            if not len(border):
                continue
            if dimension == 1:
                points = concatenate([points, dataclasses.replace(border.plain(), dimension=0 * border.dimension)])
                continue
            stray = np.flatnonzero((points.dimension < dimension) & _resembles(points, border))
            borders, taken = _border_sets(problem, border, points[stray])
            found += [part for part in borders if part.dimension[0]]
            points = points[np.setdiff1d(np.arange(len(points)), stray[taken])]
            points = concatenate([points, *(part for part in borders if not part.dimension[0])])
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
