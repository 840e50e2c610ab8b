"""Where a step of the integrator meets a kink: the first zero of a function along the continuous extension."""

import numpy as np

from landscape.kernels.compile import kernel
from landscape.kernels.field import Field, size_of
from landscape.kernels.runge_kutta import interpolate

SAMPLES = 8
GOLDEN = 0.3819660112501051  # (3 - sqrt 5) / 2
EDGE = 1e-14  # how far from a surface, in units of 1 + |θ|, a point still counts as on it


def crossings(field: Field):
    """The kernel that finds the first surface met in a step."""
    d, surfaces, values, push = field.dimension, field.surfaces, field.values, field.push

    @kernel
    def height(x, j, c, signs, constants):
        """How far the flow still is on its side of surface j; while it slides, how firmly it is held there."""
        point, found = np.empty(d), np.empty(max(surfaces, 1))
        interpolate(c, x, point)
        if signs[j] == 0.0:
            above, below = push(point, signs, constants, j)
            return min(-above, below)
        values(point, signs, constants, found)
        return signs[j] * found[j]

    @kernel
    def dip(left, right, j, c, signs, constants):
        """The place of the smallest height between two places, by golden section; stops once it is below zero."""
        inner, outer = left + GOLDEN * (right - left), right - GOLDEN * (right - left)
        low, high = height(inner, j, c, signs, constants), height(outer, j, c, signs, constants)
        for _ in range(40):
            if low < 0.0 or high < 0.0:
                break
            if low < high:
                right, outer, high = outer, inner, low
                inner = left + GOLDEN * (right - left)
                low = height(inner, j, c, signs, constants)
            else:
                left, inner, low = inner, outer, high
                outer = right - GOLDEN * (right - left)
                high = height(outer, j, c, signs, constants)
        return inner if low < high else outer

    @kernel
    def zero(left, right, j, c, signs, constants):
        """The place between two places at which the height changes its sign, by bisection."""
        for _ in range(60):
            middle = 0.5 * (left + right)
            if height(middle, j, c, signs, constants) < 0.0:
                right = middle
            else:
                left = middle
        return right

    @kernel
    def first_zero(j, c, signs, constants, edge):
        """Where surface j is met, or 2. A step may begin on a surface that it leaves: that is no meeting."""
        before, last = np.inf, max(height(0.0, j, c, signs, constants), 0.0)
        for i in range(1, SAMPLES + 1):
            x = i / SAMPLES
            now = height(x, j, c, signs, constants)
            if now < -edge:
                if i == 1 and last <= edge:
                    return 0.0
                return zero(x - 1.0 / SAMPLES, x, j, c, signs, constants)
            if i > 1 and last < before and last <= now:
                lowest = dip(x - 2.0 / SAMPLES, x, j, c, signs, constants)
                if height(lowest, j, c, signs, constants) < -edge:
                    return zero(x - 2.0 / SAMPLES, lowest, j, c, signs, constants)
            before, last = last, now
        return 2.0

    @kernel
    def search(theta, c, signs, constants):
        """The first place in a step at which a surface is met, and which; (1, -1) if there is none."""
        edge = EDGE * (1.0 + size_of(theta))
        place, which = 1.0, -1
        for j in range(surfaces):
            x = first_zero(j, c, signs, constants, 0.0 if signs[j] == 0.0 else edge)
            if x <= 1.0 and (which < 0 or x < place):
                place, which = x, j
        return place, which

    return search
