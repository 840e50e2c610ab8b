"""Walks on a critical set from point to point, and the places at which an eigenvalue vanishes on them."""

from __future__ import annotations

import numpy as np

from landscape.search.points import look
from landscape.search.problem import GROUND, SAME, STEP, STRIDE, norm
from landscape.search.zeros import settle

SECTIONS = 34  # each cuts an interval to 3/5 of its length


def walk(problem, start, goal):
    """Walks on the critical set from each start towards its goal: the points passed, and which walks arrive.

    A stride is the part of the way that lies along null directions, then put back on the set. A walk that this moves
    far, or that has nowhere to go, is lost.
    """
    stride = np.minimum(STRIDE, norm(goal - start) / 4)
    path, lost = [look(problem, start)], np.zeros(len(start), dtype=bool)
    for _ in range(4 + int(2 * np.max(norm(goal - start) / stride))):
        here = path[-1].at
        way = goal - here
        null = path[-1].vectors * path[-1].null[:, None, :]
        along = np.einsum("nij,nkj,nk->ni", null, null, way)
        length = norm(along)
        going = ~lost & (norm(way) > STEP / 10)
        lost |= going & (length < 0.1 * norm(way))
        going = np.flatnonzero(going & ~lost)
        if not len(going):
            break
        ahead = here[going] + along[going] * np.minimum(1.0, stride[going] / length[going])[:, None]
        landed = settle(problem, ahead, GROUND)
        lost[going] = norm(landed - ahead) > 0.5 * np.minimum(stride, length)[going] + SAME
        here = here.copy()
        here[going] = landed
        path.append(look(problem, here))
    return path, ~lost & (norm(goal - path[-1].at) <= STEP / 10)


def section(problem, low, high, skipped):
    """The point of the set between each two of its points at which the gap is least."""
    for _ in range(SECTIONS):
        inner = settle(problem, np.concatenate([low + 0.4 * (high - low), low + 0.6 * (high - low)]), GROUND)
        left, right = np.split(inner, 2)
        lower = np.less(*np.split(look(problem, inner).gap(np.tile(skipped, 2)), 2))[:, None]
        low, high = np.where(lower, low, left), np.where(lower, right, high)
    return look(problem, settle(problem, (low + high) / 2, GROUND))


def doubtful_places(path, skipped):
    """Where on each walk an eigenvalue may vanish: before, nearest to it and after; and whether one seems to at all."""
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
    return at[before, walks], at[lowest, walks], at[after, walks], turns | dips
