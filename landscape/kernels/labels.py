"""The decision which limit a start has: the rule of derivations/canonical-limits.md, aware of rounding.

A start whose margin is smaller than what rounding moves it by lies on the separatrix as far as double
precision can tell, and is labelled ``saddle``.
"""

import math

from landscape.kernels.canonical import half_stable_depth, margin_scale, slope_factor, threshold
from landscape.kernels.compile import kernel

# The codes of landscape.outcomes.Label, as plain numbers: kernels import nothing above them.
INVALID, UNDECIDED, GLOBAL, LOCAL, SADDLE, MAXIMUM = -1, 0, 1, 2, 3, 4

ROUNDING = 4 * 2.0**-52


@kernel
def limit(e, w, target, c, across):
    """Label of the limit of (e, w); `c` is the constant on its side of e = 0, `across` that of the other."""
    if not (math.isfinite(e) and math.isfinite(w)):
        return INVALID
    if target == 0:
        return GLOBAL
    if e == 0.0:
        return _at_rest(target * slope_factor(w, c), target * slope_factor(w, across))
    b = slope_factor(w, c)
    if target * b > 0.0:
        return GLOBAL
    if w >= 0.0:
        return LOCAL
    return _behind(e, w, target, c, across)


@kernel
def _at_rest(here, across):
    """Label of a start on e = 0, from the signs of κ* B on both sides."""
    if abs(here) <= ROUNDING or abs(across) <= ROUNDING or here * across < 0.0:
        return SADDLE
    return LOCAL if here < 0.0 else MAXIMUM


@kernel
def _behind(e, w, target, c, across):
    """Label of a start that has to pass the saddle to become global."""
    above = e * e - threshold(w, c)
    scale = margin_scale(e, w, c)
    if math.isnan(above):
        return UNDECIDED
    error = ROUNDING * scale if math.isfinite(scale) else 0.0
    if above > error:
        return GLOBAL
    if above >= -error:
        return SADDLE
    depth = half_stable_depth(c, across, target)
    if above < -depth - error:
        return LOCAL
    return SADDLE


@kernel
def margin(e, w, target, c):
    """E - E_sad where the separatrix can be met (w < 0, e != 0, κ* B <= 0), 0 if rounding cannot tell; else NaN."""
    if target == 0 or e == 0.0 or not (w < 0.0 and math.isfinite(e) and math.isfinite(w)):
        return math.nan
    if target * slope_factor(w, c) > 0.0:
        return math.nan
    above = e * e - threshold(w, c)
    scale = margin_scale(e, w, c)
    return 0.0 if math.isfinite(scale) and abs(above) <= ROUNDING * scale else above


FINEST, LARGEST = 1e-9, 1e100  # grids whose rows are labelled in runs


@kernel
def in_runs(e, w):
    """Whether rows of a grid may be labelled run by run: w increases by more than rounding blurs, and nothing overflows."""
    largest = 0.0
    for i in range(e.size):
        if not abs(e[i]) <= LARGEST:
            return False
    for j in range(w.size):
        if not abs(w[j]) <= LARGEST:
            return False
        largest = max(largest, abs(w[j]))
    for j in range(w.size - 1):
        if not w[j + 1] - w[j] > FINEST * (1.0 + largest):
            return False
    return True


@kernel
def label_row(e, w, target, c, across, near, out):
    """Labels of the starts with one e over an increasing axis of w: runs, whose ends are looked for from the index `near` on.

    Along w the label changes in one order: local, saddle, global below the threshold, and the reverse above it. Returns
    where the first run ends, which the next row will not be far from.
    """
    if e == 0.0 or target == 0:
        for j in range(w.size):
            out[j] = limit(e, w[j], target, c, across)
        return near
    first, last = (LOCAL, GLOBAL) if target > 0 else (GLOBAL, LOCAL)
    left = _turn(e, w, target, c, across, first, True, 0, near)
    right = left
    if left < w.size and limit(e, w[left], target, c, across) != last:
        right = _turn(e, w, target, c, across, last, False, left, left)
    out[:left] = first
    out[left:right] = SADDLE
    out[right:] = last
    return left


@kernel
def _turn(e, w, target, c, across, code, leaves, low, near):
    """The first index from `low` on at which the label is no more `code` (`leaves`), or is `code`; w.size if there is none.

    Steps that double lead away from `near`, then it is bisected.
    """
    high, step = w.size, 1
    near = min(max(near, low), high - 1)
    if (limit(e, w[near], target, c, across) == code) != leaves:
        high = near
        while high - step >= low and (limit(e, w[high - step], target, c, across) == code) != leaves:
            high -= step
            step *= 2
        low = max(low, high - step + 1)
    else:
        low = near + 1
        while low + step - 1 < high and (limit(e, w[low + step - 1], target, c, across) == code) == leaves:
            low += step
            step *= 2
        high = min(high, low + step - 1)
    while low < high:
        middle = (low + high) // 2
        if (limit(e, w[middle], target, c, across) == code) != leaves:
            high = middle
        else:
            low = middle + 1
    return low
