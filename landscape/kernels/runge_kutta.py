"""One step of the explicit Runge-Kutta method of landscape.kernels.dop853, for points of any dimension."""

import math

from landscape.kernels.compile import kernel
from landscape.kernels.dop853 import ERRORS, EXTENSION, STAGES, WEIGHTS


@kernel
def advance(stage, y, h, k, out):
    """Where the slopes k lead from y in a step h: the point of a stage, and for STAGES the end of the step."""
    for i in range(y.size):
        total = 0.0
        for j in range(stage):
            total += WEIGHTS[stage, j] * k[j, i]
        out[i] = y[i] + h * total


@kernel
def step_error(k, h, i):
    """Error estimate of coordinate i, from those of orders 5 and 3."""
    five, three = 0.0, 0.0
    for j in range(STAGES):
        five += ERRORS[0, j] * k[j, i]
        three += ERRORS[1, j] * k[j, i]
    size = math.hypot(five, 0.1 * three)
    return h * five * (five / size) if size > 0.0 else size


@kernel
def extend(y, z, h, k, c):
    """Coefficients c of shape (8, d) of the continuous extension from y to z, once all the slopes are there."""
    for i in range(y.size):
        change = z[i] - y[i]
        c[0, i], c[1, i], c[2, i] = y[i], change, h * k[0, i] - change
        c[3, i] = 2.0 * change - h * (k[STAGES, i] + k[0, i])
        for row in range(EXTENSION.shape[0]):
            total = 0.0
            for j in range(EXTENSION.shape[1]):
                total += EXTENSION[row, j] * k[j, i]
            c[4 + row, i] = h * total


@kernel
def interpolate(c, x, out):
    """The continuous extension at the part x of a step, from 0 to 1."""
    for i in range(out.size):
        total = 0.0
        for row in range(7, 0, -1):
            total = (c[row, i] + total) * (x if row % 2 else 1.0 - x)
        out[i] = c[0, i] + total
