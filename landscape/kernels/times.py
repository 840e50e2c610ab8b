"""The time along an orbit of the canonical flow, by adaptive quadrature in logarithmic variables.

Between a start and its limit the integrand of derivations/canonical-times.md has at most three sharp places: the start (if
it lies near e = 0), the passage of the saddle, and the limit. Around each, ξ is a hyperbolic or exponential function of
the variable of integration, wide enough for the integrand to change over lengths of order 1 only.
"""

import math

import numba
import numpy as np

from landscape.kernels.canonical import kappa, slope_factor
from landscape.kernels.canonical_times import gap_change, line_time, orbit_square, slope_beyond, time_density
from landscape.kernels.compile import kernel
from landscape.kernels.labels import GLOBAL, INVALID, MAXIMUM
from landscape.kernels.orbits import excess_gap, find_orbit, square

GAUSS_X, GAUSS_W = np.polynomial.legendre.leggauss(10)
PANEL_X, PANEL_W = np.polynomial.legendre.leggauss(20)
TOLERANCE = 1e-10  # on the difference of one rule and two halves, whose own error is far smaller
NEAR = 20.0  # |ξ| up to which the end is the point to count from
FAINT = 1e-140  # below it e² underflows; the flow is linear in e there

DISTANCE, EXCESS = 0, 1
AT_START, AT_MIDDLE, TOWARDS_END, AT_END = 0, 1, 2, 3


@kernel
def _slope(gap, model):
    return slope_beyond(gap, model.a0, model.a1, model.a2, model.a3)


@kernel
def _integrand(x, kind, scale, direction, at, model):
    """Time per unit of the variable x of a piece: ξ = ±scale (e^x - 1), ±scale sinh x, ±(scale - e^-x), or ∓e^-x."""
    if kind == AT_START:
        xi, jacobian = direction * scale * math.expm1(x), scale * math.exp(x)
    elif kind == AT_MIDDLE:
        xi, jacobian = direction * scale * math.sinh(x), scale * math.cosh(x)
    elif kind == TOWARDS_END:
        xi, jacobian = direction * (scale - math.exp(-x)), math.exp(-x)
    else:
        xi, jacobian = -direction * math.exp(-x), math.exp(-x)
    return jacobian * time_density(square(xi, at, model), _slope(excess_gap(xi, at, model), model), model.A, model.c)


@kernel
def _rule(low, high, kind, scale, direction, at, model):
    """Gauss-Legendre over an interval."""
    half, mean, total = 0.5 * (high - low), 0.5 * (high + low), 0.0
    for i in range(GAUSS_X.size):
        total += GAUSS_W[i] * _integrand(mean + half * GAUSS_X[i], kind, scale, direction, at, model)
    return half * total


@kernel
def _piece(low, high, kind, scale, direction, at, model):
    """Integral over [low, high], halved until the halves agree with the whole."""
    if not high > low:
        return 0.0
    count = max(1, int(math.ceil((high - low) / 4.0)))
    wholes = np.empty(count)
    width, estimate = (high - low) / count, 0.0
    for i in range(count):
        wholes[i] = _rule(low + i * width, low + (i + 1) * width, kind, scale, direction, at, model)
        estimate += wholes[i]
    total = 0.0
    for i in range(count):
        total += _refined(low + i * width, low + (i + 1) * width, wholes[i], estimate / count, kind, scale, direction, at, model)
    return total


@kernel
def _refined(low, high, whole, share, kind, scale, direction, at, model):
    """One interval, with a stack of those still to be halved."""
    lows, highs, wholes = np.empty(64), np.empty(64), np.empty(64)
    lows[0], highs[0], wholes[0] = low, high, whole
    size, total = 1, 0.0
    while size > 0:
        size -= 1
        low, high, whole = lows[size], highs[size], wholes[size]
        mean = 0.5 * (low + high)
        left = _rule(low, mean, kind, scale, direction, at, model)
        right = _rule(mean, high, kind, scale, direction, at, model)
        settled = abs(left + right - whole) <= TOLERANCE * max(abs(left + right), share)
        if settled or size >= 60 or high - low < 1e-6 or not math.isfinite(left + right):
            total += left + right
        else:
            lows[size], highs[size], wholes[size] = low, mean, left
            lows[size + 1], highs[size + 1], wholes[size + 1] = mean, high, right
            size += 2
    return total


@kernel
def _loss_rise(gap, change, model):
    """φ at κ* + gap + change less φ at κ* + gap, by quadrature of φ′: no digits are lost where it is small."""
    side = 1.0 if change > 0.0 else -1.0
    done, width, total = 0.0, min(1.0, abs(change)), 0.0
    while done < abs(change):
        width = min(width if done < 8.0 else 2.0 * width, abs(change) - done)
        for i in range(PANEL_X.size):
            at = done + 0.5 * width * (1.0 + PANEL_X[i])
            total += 0.5 * width * PANEL_W[i] * _slope(gap + side * at, model)
        if done + width == done:
            break
        done += width
    return side * total


@kernel
def _remains(size, direction, w, orbit, measure, model):
    """How far from its limit the orbit is at |ξ| = size before it: Euclidean distance, or loss above the limit's."""
    xi, end = -direction * size, orbit.end
    if size > 1.0:  # counted from the start
        done = orbit.way + xi
        if measure == EXCESS:
            return _loss_rise(end.gap, excess_gap(done, orbit.start, model) - end.gap, model)
        across = math.sqrt(max(square(done, orbit.start, model), 0.0)) - math.sqrt(end.u)
        return math.hypot(across, w * math.exp(0.5 * done) - orbit.w)
    if measure == EXCESS:
        return _loss_rise(end.gap, gap_change(xi, end.u, end.b, end.r, end.sigma, model.c, model.A), model)
    rise = orbit_square(xi, 0.0, end.b, end.r, end.sigma, model.c)
    both = math.sqrt(max(end.u + rise, 0.0)) + math.sqrt(end.u)
    return math.hypot(rise / both if both > 0.0 else 0.0, orbit.w * math.expm1(0.5 * xi))


@kernel
def _nearest(within, direction, w, orbit, measure, model):
    """|ξ| at which the orbit comes within reach of its limit for good; that of the start if it is within reach already."""
    size = abs(orbit.way)
    outside = -1.0
    while True:
        remains = _remains(size, direction, w, orbit, measure, model)
        if remains > within:
            outside = size
        if remains < 1e-3 * within or size < 1e-300:
            break
        size *= 0.5
    if outside < 0.0:
        return abs(orbit.way)
    low, high = 0.5 * outside, outside
    for _ in range(60):
        mean = 0.5 * (low + high)
        if mean == low or mean == high:
            break
        if _remains(mean, direction, w, orbit, measure, model) > within:
            high = mean
        else:
            low = mean
    return 0.5 * (low + high)


@kernel
def _elapsed(orbit, stop, direction, model):
    """Time from the start to |ξ| = stop before the limit."""
    start, c = orbit.start, model.c
    whole, before = abs(orbit.way), abs(orbit.saddle)
    reach, after = whole - stop, whole - before
    scale = min(1.0, c * start.u / abs(start.b), math.sqrt(2.0 * c * start.u / start.r))
    if orbit.saddle != 0.0:
        first, last = 0.5 * before, 0.5 * after
    else:
        first = 0.5 * whole if scale < 0.25 * whole else 0.0
        last = whole - first
    total = _piece(0.0, math.log1p(min(first, reach) / scale), AT_START, scale, direction, start, model)
    if orbit.saddle != 0.0:
        width = min(1.0, math.sqrt(2.0 * c * orbit.middle.u))
        edge = min(reach - before, after - last)
        total += _piece(-math.asinh(first / width), math.asinh(edge / width), AT_MIDDLE, width, direction, orbit.middle, model)
    if last > NEAR:
        at, way = (start, whole) if orbit.saddle == 0.0 else (orbit.middle, after)
        total += _piece(-math.log(last), -math.log(max(NEAR, stop)), TOWARDS_END, way, direction, at, model)
        last = NEAR
    return total + _piece(-math.log(last), -math.log(stop), AT_END, 1.0, direction, orbit.end, model)


@kernel
def at_rest(e, w, label, model):
    """Whether a start does not move."""
    return e == 0.0 or label == MAXIMUM or kappa(e, w, model.A, model.c) == model.star


@kernel
def arrival(e, w, label, within, measure, model):
    """Time until (e, w) is within reach of its limit for good."""
    if label == INVALID:
        return math.inf
    if at_rest(e, w, label, model):
        return 0.0
    before = 0.0
    if abs(e) < FAINT and slope_factor(w, model.c) != 0.0:
        if label != GLOBAL or model.star == 0.0:
            return 0.0
        pace = line_time(_slope(-model.star, model), model.A, slope_factor(w, model.c))
        before = abs(pace) * math.log(FAINT / abs(e))
        e = math.copysign(FAINT, e)
    orbit = find_orbit(e, w, label, model)
    direction = 1.0 if orbit.way > 0.0 else -1.0
    stop = _nearest(within, direction, w, orbit, measure, model)
    return before + _elapsed(orbit, stop, direction, model) if stop < abs(orbit.way) else 0.0


@kernel
def limit_point(e, w, label, model):
    """Where (e, w) ends."""
    if label == INVALID or at_rest(e, w, label, model):
        return e, w
    if abs(e) < FAINT and slope_factor(w, model.c) != 0.0:
        if label != GLOBAL or model.star == 0.0:
            return 0.0, w
        e = math.copysign(FAINT, e)
    orbit = find_orbit(e, w, label, model)
    return math.copysign(math.sqrt(orbit.end.u), e), orbit.w


@kernel(parallel=True)
def arrival_many(points, labels, within, measure, upper, lower):
    """Arrival times of points of shape (n, 2); `upper` and `lower` are the models for e > 0 and e < 0."""
    out = np.empty(points.shape[0])
    for i in numba.prange(points.shape[0]):
        e, w = points[i, 0], points[i, 1]
        out[i] = arrival(e, w, labels[i], within, measure, upper if e >= 0.0 else lower)
    return out


@kernel
def limit_point_many(points, labels, upper, lower):
    """Limits of points of shape (n, 2), shape (n, 2)."""
    out = np.empty(points.shape)
    for i in range(points.shape[0]):
        e, w = points[i, 0], points[i, 1]
        out[i, 0], out[i, 1] = limit_point(e, w, labels[i], upper if e >= 0.0 else lower)
    return out
