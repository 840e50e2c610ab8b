"""Euclidean distance to the boundary of the global basin of the canonical landscape.

The boundary is the separatrix, w = -exp(s/2)/sqrt(c) and e² = threshold(s), with s < 0 above the chain's
threshold and s > 0 below it; and, where c differs across e = 0, the piece of e = 0 between the two saddles.
"""

import math

from landscape.kernels.canonical import threshold
from landscape.kernels.compile import kernel

SAMPLES = 256
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@kernel
def _squared(t, size, w, target, c):
    """Squared distance from (size, w), size >= 0, to the point of the separatrix at s = ±t²."""
    along = -math.exp(0.5 * target * t * t) / math.sqrt(c)
    across = math.sqrt(max(threshold(along, c), 0.0))
    return (size - across) ** 2 + (w - along) ** 2


@kernel
def _to_branch(size, w, target, c):
    """Distance from (size, w) to the branch on the side of positive e; `size` may be negative."""
    saddle = -1.0 / math.sqrt(c)
    bound = math.hypot(size, w - saddle)
    if target < 0:
        furthest = c * (abs(size) + bound) ** 2 + 1.0
    else:
        furthest = max(2.0 * math.log(math.sqrt(c) * (abs(w) + bound)), 0.0)
    step = math.sqrt(furthest) / SAMPLES
    best, where = _squared(0.0, size, w, target, c), 0
    for i in range(1, SAMPLES + 1):
        found = _squared(i * step, size, w, target, c)
        if found < best:
            best, where = found, i
    low, high = max(where - 1, 0) * step, (where + 1) * step
    for _ in range(64):
        inner = high - GOLDEN * (high - low)
        outer = low + GOLDEN * (high - low)
        if _squared(inner, size, w, target, c) < _squared(outer, size, w, target, c):
            high = outer
        else:
            low = inner
    return math.sqrt(min(best, _squared(0.5 * (low + high), size, w, target, c)))


@kernel
def distance_to_separatrix(e, w, target, upper, lower):
    """Distance to the boundary for constants c = `upper` at e > 0 and `lower` at e < 0; NaN where there is none."""
    if target == 0 or not (math.isfinite(e) and math.isfinite(w)):
        return math.nan
    nearest = min(_to_branch(e, w, target, upper), _to_branch(-e, w, target, lower))
    if upper != lower:
        ends = -1.0 / math.sqrt(upper), -1.0 / math.sqrt(lower)
        beside = min(max(w, min(ends)), max(ends))
        nearest = min(nearest, math.hypot(e, w - beside))
    return nearest
