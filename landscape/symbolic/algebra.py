"""Reductions that the derivations use: rational functions of p, q and S, their logarithms, and sigmoids."""

from __future__ import annotations

from sympy import (
    Add, Mul, Rational, Symbol, cancel, cosh, diff, exp, expand, factor_list, fraction, log, sinh, together,
)

from landscape.symbolic.primitives import elementary, sigmoid
from landscape.symbolic.symbols import p, q, states


def upright(expression):
    """Write σ(-x) as 1 - σ(x)."""
    return expression.replace(sigmoid, lambda x: 1 - sigmoid(-x) if x.could_extract_minus_sign() else sigmoid(x))


def inverse_variance(x):
    """1 / (σ(x) σ(-x)), as a sum of positive terms that overflows to infinity where the product underflows."""
    y = Symbol("y", real=True)
    in_powers = expand(cancelled(1 / elementary(diff(sigmoid(y), y))))
    return expand(in_powers.replace(exp, lambda z: cosh(z) + sinh(z))).subs(y, x)


def cancelled(expression):
    """A rational expression over one denominator, in lowest terms."""
    return cancel(together(expression))


def _positive_factors(expression):
    """A positive rational expression as a constant and pairs (irreducible positive factor, power)."""
    inside = {p: Rational(1, 3), q: Rational(1, 5), states: 7}
    product, pairs = Rational(1), []
    for part, side in zip(fraction(cancelled(expression)), (1, -1)):
        constant, factors = factor_list(part)
        product *= constant**side
        for polynomial, power in factors:
            positive = polynomial.subs(inside) > 0
            product *= 1 if positive else (-1) ** power
            pairs.append((polynomial if positive else expand(-polynomial), side * power))
    return product, pairs


def factored(expression):
    """A rational expression as a product of factors that are positive for p, q < 1 (or near it)."""
    constant, pairs = _positive_factors(expression)
    return constant * Mul(*(polynomial**power for polynomial, power in pairs))


def _split_logarithm(argument):
    """Logarithm of a positive rational expression as a sum over its irreducible factors."""
    constant, pairs = _positive_factors(argument)
    return log(constant) + Add(*(power * log(polynomial) for polynomial, power in pairs))


def vanishing(expression):
    """Zero if an expression in logarithms of rational expressions of p, q and S is zero."""
    return cancelled(expand(expression.replace(log, _split_logarithm)))
