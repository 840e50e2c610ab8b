"""Orbits of the canonical flow: where they end, seen from points at which no digits are lost.

An `Anchor` is a point of an orbit: e² = u, 1 + c w|w| = b, c w² = r, κ - κ* = gap, on the side σ of w = 0. Everything
else on the orbit is a function of ξ = log(w²/w_0²) counted from there: see derivations/canonical-times.md.
"""

import math
from collections import namedtuple

from landscape.kernels.canonical import kappa, margin_scale, slope_factor, threshold
from landscape.kernels.canonical_times import gap_change, gap_growth, orbit_factor, orbit_square
from landscape.kernels.compile import kernel
from landscape.kernels.labels import GLOBAL, ROUNDING
from landscape.kernels.stable import above_tangent

Anchor = namedtuple("Anchor", ["u", "b", "r", "gap", "sigma"])

# What lies between a start and its limit: `way` is ξ at the limit, counted from the start, and `saddle` that at the
# crossing of the saddle's w, 0 if there is none; anchors at the start, at that crossing and at the limit, and w there.
Orbit = namedtuple("Orbit", ["way", "saddle", "start", "middle", "end", "w"])

# The landscape: A and c on the start's side of e = 0, κ* and the constants of φ′ around it.
Model = namedtuple("Model", ["A", "c", "star", "a0", "a1", "a2", "a3"])


@kernel
def square(xi, at, model):
    """e² on the orbit through an anchor."""
    return orbit_square(xi, at.u, at.b, at.r, at.sigma, model.c)


@kernel
def excess_gap(xi, at, model):
    """κ - κ* on the orbit through an anchor."""
    if abs(xi) < 1.0:
        return at.gap + gap_change(xi, at.u, at.b, at.r, at.sigma, model.c, model.A)
    return model.A * square(xi, at, model) * orbit_factor(xi, at.b, at.r, at.sigma) - model.star


@kernel
def _moved(xi, at, model):
    """The anchor further on."""
    return Anchor(
        square(xi, at, model), orbit_factor(xi, at.b, at.r, at.sigma), at.r * math.exp(xi), excess_gap(xi, at, model), at.sigma
    )


@kernel
def _to_optimum(at, direction, furthest, model):
    """ξ at κ = κ*, counted from an anchor and no further than `furthest`, by Newton's method in a bracket."""
    low, high = 0.0, min(1.0, furthest)
    while high < furthest and direction * at.sigma * excess_gap(direction * high, at, model) < 0.0:
        low, high = high, min(2.0 * high, furthest)
    x = low
    for _ in range(400):
        value = direction * at.sigma * excess_gap(direction * x, at, model)
        if value == 0.0:
            return direction * x
        low, high = (x, high) if value < 0.0 else (low, x)
        here = _moved(direction * x, at, model)
        rise = at.sigma * gap_growth(here.u, here.b, here.r, here.sigma, model.c, model.A)
        new = x - value / rise
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - x) <= 2e-16 * abs(new):
            return direction * new
        x = new
    return direction * x


@kernel
def _to_line(at, model):
    """ξ at e = 0, counted from an anchor: Newton's method on a convex function, from the side where it is monotone."""
    x = 0.0
    for _ in range(2000):
        value = square(x, at, model)
        step = model.c * value / (at.sigma * orbit_factor(x, at.b, at.r, at.sigma))
        new = x - step
        if value <= 0.0 or not math.isfinite(new) or abs(new - x) <= 2e-16 * abs(new):
            return new if math.isfinite(new) else x
        x = new
    return x


@kernel
def _turning(depth, side):
    """s = log(cw²) where an orbit `depth` below the separatrix, in units of 1/c, meets e = 0: e^s - 1 - s = depth."""
    s = side * math.sqrt(2.0 * depth) if depth < 1.0 or side > 0.0 else -1.0 - depth
    if side > 0.0 and depth > 1.0:
        s = 1.0 + math.log(1.0 + depth) * 1.5
    for _ in range(100):
        step = (above_tangent(s) - depth) / math.expm1(s)
        s -= step
        if abs(step) <= 2e-16 * abs(s):
            break
    return s


@kernel
def find_orbit(e, w, label, model):
    """The orbit of a start that moves (finite, e != 0, κ != κ*) and has this label."""
    c = model.c
    sigma = 1.0 if w >= 0.0 else -1.0
    start = Anchor(e * e, slope_factor(w, c), c * w * w, kappa(e, w, model.A, c) - model.star, sigma)
    direction = -sigma if start.gap > 0.0 else sigma  # κ falls if it is above κ*, and grows with σξ
    if w < 0.0 and direction * (start.r - 1.0) <= 0.0 and model.star * start.b <= 0.0:  # towards the saddle's w, and κ* not before it
        above = e * e - threshold(w, c)
        s = math.log(c) + 2.0 * math.log(-w)
        if abs(above) <= ROUNDING * margin_scale(e, w, c):
            return _onto_saddle(s, start, model)
        if above > 0.0 and (label == GLOBAL or model.star == 0.0):
            return _past_saddle(above, s, direction, start, model)
        if above < 0.0:
            return _back_from_saddle(above, s, direction, w, start, model)
    if label == GLOBAL and model.star != 0.0:
        crossing = math.log(start.r) if w < 0.0 and direction * (start.r - 1.0) < 0.0 else math.inf  # where B = 0
        way = _to_optimum(start, direction, abs(crossing) if start.r > 0.0 else 1e300, model)
        return Orbit(way, 0.0, start, start, _at_optimum(way, start, model), w * math.exp(0.5 * way))
    way = _to_line(start, model)
    return Orbit(way, 0.0, start, start, _on_line(way, start, model), w * math.exp(0.5 * way))


@kernel
def _at_optimum(way, start, model):
    """The anchor at κ = κ*: of e² and B the one that rounding disturbs less, and the other from κ*."""
    moved = _moved(way, start, model)
    product = model.star / model.A
    noise_of_b = (1.0 + abs(way)) * moved.r
    noise_of_u = start.u + (start.r + moved.r + abs(way)) / model.c
    if moved.u > 0.0 and noise_of_u * abs(moved.b) < noise_of_b * moved.u:
        return Anchor(moved.u, product / moved.u, moved.r, 0.0, start.sigma)
    return Anchor(abs(product / moved.b), moved.b, moved.r, 0.0, start.sigma)


@kernel
def _on_line(way, start, model):
    """The anchor at e = 0, where κ = 0."""
    return Anchor(0.0, orbit_factor(way, start.b, start.r, start.sigma), start.r * math.exp(way), -model.star, start.sigma)


@kernel
def _crossing(above, model):
    """The anchor at the saddle's w, where e² is what the start is above the separatrix."""
    return Anchor(above, 0.0, 1.0, -model.star, -1.0)


@kernel
def _onto_saddle(s, start, model):
    """The separatrix."""
    end = _crossing(0.0, model)
    return Orbit(-s, 0.0, start, end, end, -1.0 / math.sqrt(model.c))


@kernel
def _past_saddle(above, s, direction, start, model):
    """An orbit that crosses the saddle's w, or at κ* = 0 ends there."""
    middle = _crossing(above, model)
    if model.star == 0.0:
        return Orbit(-s, 0.0, start, middle, middle, -1.0 / math.sqrt(model.c))
    beyond = _to_optimum(middle, direction, 1e300, model)
    moved = _moved(beyond, middle, model)
    end = Anchor(moved.u, moved.b, moved.r, 0.0, -1.0)
    return Orbit(beyond - s, -s, start, middle, end, -math.exp(0.5 * beyond) / math.sqrt(model.c))


@kernel
def _back_from_saddle(above, s, direction, w, start, model):
    """An orbit that ends on e = 0 before the saddle's w; near the saddle its end is known from E - E_sad alone."""
    end_s = _turning(-above * model.c, -direction)
    if abs(end_s) < 0.5 * abs(s):
        end = Anchor(0.0, -math.expm1(end_s), math.exp(end_s), -model.star, -1.0)
        return Orbit(end_s - s, 0.0, start, end, end, -math.exp(0.5 * end_s) / math.sqrt(model.c))
    way = _to_line(start, model)
    return Orbit(way, 0.0, start, start, _on_line(way, start, model), w * math.exp(0.5 * way))
