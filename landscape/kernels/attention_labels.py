"""Loops over grids of the landscape with linear attention: one comparison a start; see derivations/attention-limits.md."""

import math

import numpy as np

from landscape.kernels.canonical import threshold
from landscape.kernels.compile import kernel
from landscape.kernels.labels import GLOBAL, LOCAL, UNDECIDED

CURVATURE = 2.0  # c of two symbols


@kernel
def heights(w, slopes, target):
    """What u - 2a² + 2a_e² has to be below for a start with f > 0 to be local; `slopes` holds 1 + 2w|w|."""
    out = np.empty(w.size)
    for j in range(w.size):
        if target * slopes[j] >= 0.0:
            out[j] = -math.inf
        elif w[j] >= 0.0:
            out[j] = math.inf
        else:
            out[j] = threshold(w[j], CURVATURE)
    return out


@kernel
def thresholds(w):
    """G(w) - G_min for an array, NaN for w >= 0."""
    out = np.empty(w.size)
    for j in range(w.size):
        out[j] = threshold(w[j], CURVATURE) if w[j] < 0.0 else math.nan
    return out


@kernel
def label_rows(levels, heights, band, out, unsure):
    """Labels into an array of shape (levels.size, heights.size), each row in runs; `heights` only rises or only falls.

    A start is local where its height is over the level of its row and global where it is under it. In `unsure`, of shape
    (levels.size, 2), are the ends of the run that is nearer than `band` to the level, and UNDECIDED; all of a row at NaN.
    """
    rises = heights.size > 0 and heights[0] < heights[-1]
    for i in range(levels.size):
        level = levels[i]
        margin = band * (1.0 + abs(level)) if math.isfinite(level) else 0.0
        if level == math.inf:
            start, end = (heights.size, heights.size) if rises else (0, 0)
        elif math.isnan(level):
            start, end = 0, heights.size
        else:
            start = np.searchsorted(heights, level - margin) if rises else _first_under(heights, level + margin, True)
            end = np.searchsorted(heights, level + margin, side="right") if rises else _first_under(heights, level - margin, False)
        unsure[i, 0], unsure[i, 1] = start, end
        out[i, :start] = GLOBAL if rises else LOCAL
        out[i, start:end] = UNDECIDED
        out[i, end:] = LOCAL if rises else GLOBAL


@kernel
def _first_under(heights, value, equal):
    """The first index at which heights that fall are under a value, or `equal` to it."""
    low, high = 0, heights.size
    while low < high:
        middle = (low + high) // 2
        if heights[middle] < value or (equal and heights[middle] == value):
            high = middle
        else:
            low = middle + 1
    return low
