"""The decision which limit a start has with a head of its own: the rule of derivations/untied.md, aware of rounding.

`upper` and `lower` are the constants c of B = 1 + c w|w| for e > 0 and for e < 0, equal for two symbols. As with the tied
head, a start that is nearer to a set of saddle starts than rounding moves it is labelled ``saddle``; so is one whose |e|
and |c| are the same number but for rounding.
"""

import math

import numba
import numpy as np

from landscape.kernels.canonical import half_stable_depth, margin_scale, slope_factor, threshold
from landscape.kernels.compile import kernel
from landscape.kernels.labels import GLOBAL, INVALID, LOCAL, MAXIMUM, ROUNDING, SADDLE, UNDECIDED


@kernel
def limit(e, c, w, target, upper, lower):
    """Label of the limit of (e, c, w)."""
    if not (math.isfinite(e) and math.isfinite(c) and math.isfinite(w)):
        return INVALID
    if target == 0:
        return GLOBAL
    if e == 0.0:
        return _on_plane(c, w, target, upper, lower)
    here, across = (upper, lower) if e > 0.0 else (lower, upper)
    b = slope_factor(w, here)
    if c == 0.0:
        return SADDLE if abs(b) <= ROUNDING else GLOBAL
    if _with_signs(target, e, c) * b >= 0.0:
        return GLOBAL
    return _behind(e, c, w, b, here, across)


@kernel
def _with_signs(target, e, c):
    return target * math.copysign(1.0, e) * math.copysign(1.0, c)


@kernel
def _on_plane(c, w, target, upper, lower):
    """Label of a start on e = 0, where the gradient jumps if `upper` and `lower` differ."""
    above, below = slope_factor(w, upper), slope_factor(w, lower)
    if c == 0.0 or abs(above) <= ROUNDING or abs(below) <= ROUNDING:
        return SADDLE
    if above * below > 0.0:
        return GLOBAL
    return LOCAL if target * c > 0.0 else MAXIMUM


@kernel
def _behind(e, c, w, b, here, across):
    """Label of a start whose gap has the wrong sign, by which of e, c and B vanishes first."""
    near, race, error = min(abs(e), abs(c)), -math.inf, 0.0
    if w < 0.0:
        race, scale = 2.0 * near * near - threshold(w, here), margin_scale(math.sqrt(2.0) * near, w, here)
        if math.isnan(race):
            return UNDECIDED
        error = ROUNDING * scale if math.isfinite(scale) else 0.0
    if race > error:
        return GLOBAL
    if race >= -error or abs(abs(e) - abs(c)) <= ROUNDING * near:
        return SADDLE
    if abs(e) > abs(c) or math.copysign(1.0, e) * b > 0.0:
        return GLOBAL
    depth = half_stable_depth(here, across, math.copysign(1.0, e))
    error += ROUNDING * depth
    if race + depth > error:
        return LOCAL
    return SADDLE if race + depth >= -error else GLOBAL


@kernel
def margin(e, c, w, target, upper, lower):
    """Where e may meet the kink between the zeros of B: negative if it is held there, positive if not; else NaN."""
    if target == 0 or e == 0.0 or c == 0.0 or upper == lower or not (w < 0.0 and math.isfinite(e * c * w)):
        return math.nan
    side = math.copysign(1.0, e)
    here, across = (upper, lower) if e > 0.0 else (lower, upper)
    b = slope_factor(w, here)
    if side * b >= 0.0 or _with_signs(target, e, c) * b >= 0.0:
        return math.nan
    race = 2.0 * e * e - threshold(w, here)
    return max(race, -half_stable_depth(here, across, side) - race, (abs(e) - abs(c)) * (abs(e) + abs(c)))


@kernel
def label_many(points, target, upper, lower):
    """Labels of points of shape (n, 3)."""
    out = np.empty(points.shape[0], dtype=np.int8)
    for i in range(points.shape[0]):
        out[i] = limit(points[i, 0], points[i, 1], points[i, 2], target, upper, lower)
    return out


@kernel
def margin_many(points, target, upper, lower):
    """Margins of points of shape (n, 3)."""
    out = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        out[i] = margin(points[i, 0], points[i, 1], points[i, 2], target, upper, lower)
    return out


@kernel(parallel=True)
def label_grid(e, c, w, target, upper, lower):
    """Labels of a grid, shape (e.size, c.size, w.size). Every thread writes rows of its own."""
    out = np.empty((e.size, c.size, w.size), dtype=np.int8)
    for i in numba.prange(e.size):
        for j in range(c.size):
            for k in range(w.size):
                out[i, j, k] = limit(e[i], c[j], w[k], target, upper, lower)
    return out
