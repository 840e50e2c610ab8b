"""Loops over grids of the landscape with linear attention: one comparison a start; see derivations/attention-limits.md."""

import math

import numba
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


@kernel(parallel=True)
def label_rows(levels, heights, band):
    """Labels of shape (levels.size, heights.size); UNDECIDED where a level is nearer than `band` to a height, or NaN."""
    out = np.empty((levels.size, heights.size), dtype=np.int8)
    for i in numba.prange(levels.size):
        level = levels[i]
        margin = band * (1.0 + abs(level)) if math.isfinite(level) else 0.0
        for j in range(heights.size):
            if heights[j] > level + margin:
                out[i, j] = LOCAL
            elif heights[j] < level - margin or level == math.inf:
                out[i, j] = GLOBAL
            else:
                out[i, j] = UNDECIDED
    return out
