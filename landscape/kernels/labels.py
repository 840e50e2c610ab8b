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
