"""Primitives that keep their digits from -1e308 to 1e308. The generated kernels are built from them."""

import math

from landscape.kernels.compile import kernel


@kernel
def softplus(x):
    """log(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@kernel
def sigmoid(x):
    """1 / (1 + e^-x)."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    small = math.exp(x)
    return small / (1.0 + small)


@kernel
def asinh_exp_excess(x):
    """asinh(e^x) - max(x, 0)."""
    if x <= 0.0:
        return math.asinh(math.exp(x))
    return math.log1p(math.sqrt(1.0 + math.exp(-2.0 * x)))


@kernel
def above_tangent(x):
    """e^x - 1 - x, to full relative accuracy."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    term = 0.5 * x * x
    total = term
    for n in range(3, 16):
        term *= x / n
        total += term
    return total
