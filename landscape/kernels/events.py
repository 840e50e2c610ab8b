"""Where a step of the integrator meets a kink: the first zero of a function along the continuous extension."""

import numpy as np

from landscape.kernels.compile import kernel
from landscape.kernels.field import push, size_of, values
from landscape.kernels.runge_kutta import interpolate

SAMPLES = 8
GOLDEN = 0.3819660112501051  # (3 - sqrt 5) / 2
EDGE = 1e-14  # how far from a surface, in units of 1 + |θ|, a point still counts as on it


@kernel
def height(x, j, c, signs, model):
    """How far the flow still is on its side of surface j.

    While it slides, how firmly both sides push it there, or (on a ridge, where it stays if it was put there)
    away: below zero one of them pushes it across.
    """
    point, found = np.empty(c.shape[1]), np.empty(signs.size)
    interpolate(c, x, point)
    if signs[j] == 0.0:
        above, below = push(point, signs, model, j)
        return max(min(-above, below), min(above, -below))
    values(point, signs, model, found)
    return signs[j] * found[j]


@kernel
def dip(left, right, j, c, signs, model):
    """The place of the smallest height between two places, by golden section; stops once it is below zero."""
    inner, outer = left + GOLDEN * (right - left), right - GOLDEN * (right - left)
    low, high = height(inner, j, c, signs, model), height(outer, j, c, signs, model)
    for _ in range(40):
        if low < 0.0 or high < 0.0:
            break
        if low < high:
            right, outer, high = outer, inner, low
            inner = left + GOLDEN * (right - left)
            low = height(inner, j, c, signs, model)
        else:
            left, inner, low = inner, outer, high
            outer = right - GOLDEN * (right - left)
            high = height(outer, j, c, signs, model)
    return inner if low < high else outer


@kernel
def zero(left, right, j, c, signs, model):
    """The place between two places at which the height changes its sign, by bisection."""
    for _ in range(60):
        middle = 0.5 * (left + right)
        if height(middle, j, c, signs, model) < 0.0:
            right = middle
        else:
            left = middle
    return right


@kernel
def first_zero(j, c, signs, model, edge):
    """Where surface j is met, or 2. A step may begin on a surface that it leaves: that is no meeting."""
    before, last = np.inf, max(height(0.0, j, c, signs, model), 0.0)
    for i in range(1, SAMPLES + 1):
        x = i / SAMPLES
        now = height(x, j, c, signs, model)
        if now < -edge:
            if i == 1 and last <= edge:
                return 0.0
            return zero(x - 1.0 / SAMPLES, x, j, c, signs, model)
        if i > 1 and last < before and last <= now:
            lowest = dip(x - 2.0 / SAMPLES, x, j, c, signs, model)
            if height(lowest, j, c, signs, model) < -edge:
                return zero(x - 2.0 / SAMPLES, lowest, j, c, signs, model)
        before, last = last, now
    return 2.0


@kernel
def search(theta, c, signs, model):
    """The first place in a step at which a surface is met, and which; (1, -1) if there is none."""
    edge = EDGE * (1.0 + size_of(theta))
    place, which = 1.0, -1
    for j in range(signs.size):
        x = first_zero(j, c, signs, model, 0.0 if signs[j] == 0.0 else edge)
        if x <= 1.0 and (which < 0 or x < place):
            place, which = x, j
    return place, which
