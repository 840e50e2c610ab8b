"""φ′ around κ*, in one closed form for both chains, that keeps its digits where φ′ vanishes."""

from __future__ import annotations

import mpmath
from mpmath import mpf
from sympy import Piecewise, Poly, Rational, Symbol, expand, exp, factor, log, solve, sqrt

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.primitives import elementary, expm1, sigmoid
from landscape.symbolic.references import minimised_loss, softmax_loss
from landscape.symbolic.steps import Chapter, Check, Kernel
from landscape.symbolic.symbols import beyond, bias, kappa, logit_one, p, q, slope, slope_constants, states

BINARY = tuple({p: mpf(a) / 100, q: mpf(b) / 100, beyond: mpf(z)} for a, b, z in (
    (50, 80, "0.75"), (20, 30, "-1.5"), (90, 35, "-4"), (10, 15, "2.5"), (70, 5, "-0.01")))
SYMMETRIC = tuple({p: mpf(a) / 100, states: mpf(s), beyond: mpf(z)} for a, s, z in (
    (90, 5, "0.75"), (30, 5, "-1.5"), (45, 3, "-4"), (20, 2, "2.5")))
BOOST = Symbol("X", positive=True)  # e^ζ


def slopes_beyond_optimum(chapter: Chapter, binary: Chapter, symmetric: Chapter) -> None:
    """Add φ′(κ* + ζ) of both chains and the constants of the common form."""
    a = slope_constants
    form = expm1(beyond) / (a[0] * exp(beyond) + a[1] + sqrt(a[2] * exp(beyond) + a[3]))
    quadratic = _binary_relation(binary)
    two = _common_constants(quadratic)
    many = _symmetric_constants(symmetric)
    root = Symbol("R", positive=True)
    value = (BOOST - 1) / (two[0] * BOOST + two[1] + root)
    left = Poly(expand(cancelled(quadratic.subs(slope, value)).as_numer_denom()[0]), root).rem(
        Poly(root**2 - two[2] * BOOST - two[3], root))
    rest = left.as_expr()
    chapter.add(
        "slope_binary",
        "Two symbols. The condition on $b^*$ and $\\varphi'=\\pi_1[\\sigma(\\ell_1)-(1-q)]$ give a quadratic for $\\varphi'$ whose "
        "coefficients are linear in $e^{\\zeta}$, $\\zeta=\\kappa-\\kappa^*$. Its small root, rationalised, keeps its digits at "
        "$\\zeta=0$, where $\\varphi'$ vanishes.",
        r"\varphi'(\kappa^*+\zeta)", form.subs(dict(zip(a, two))), cancelled(rest),
        Check("numerical derivative of the minimised cross-entropy", cases=BINARY,
              reference=lambda at: mpmath.diff(lambda k: minimised_loss(k, at[p], at[q]), at[beyond] + _star(at))),
    )
    there = elementary(symmetric["phi_prime"]).subs(kappa, symmetric["kappa_star"] + log(BOOST))
    result = form.subs(dict(zip(a, many)))
    chapter.add(
        "slope_symmetric", "$S$ symbols: the same form without the square root, and without $S$.",
        r"\varphi'(\kappa^*+\zeta)", result,
        cancelled(elementary(result).subs(beyond, log(BOOST)) - there.rewrite(exp).simplify()),
        Check("numerical derivative of the cross-entropy of a softmax", cases=SYMMETRIC,
              reference=lambda at: mpmath.diff(lambda k: softmax_loss(k, at[states], at[p]), at[beyond] + _star(at))),
    )
    tail = exp(-beyond)
    large = -expm1(-beyond) / (a[0] + a[1] * tail + sqrt(a[2] * tail + a[3] * tail**2))
    chapter.results["slope_kernels"] = (
        Kernel("slope_beyond", (beyond, *a), (Piecewise((form, beyond < 0), (large, True)),), "φ′(κ* + ζ), to full relative accuracy."),
        Kernel("constants_binary", (p, q), tuple(two), "The constants of `slope_beyond` for two symbols."),
        Kernel("constants_symmetric", (states, p), tuple(many), "The constants of `slope_beyond` for S symbols."),
    )


def _binary_relation(binary: Chapter):
    """The quadratic in φ′ (the symbol phi_1) with coefficients in X = e^ζ."""
    chance = Symbol("P", positive=True)
    one = solve(binary["phi_prime"].subs(sigmoid(logit_one), chance) - slope, chance)[0]
    gap = binary["kappa_star"].args[0] * BOOST  # e^κ
    odds = one / (1 - one) / gap  # e^b
    condition = binary["stationarity"].subs({exp(bias): Symbol("B"), exp(kappa): Symbol("K")})
    condition = expand(condition.subs(exp(2 * bias), Symbol("B") ** 2))
    return cancelled(condition.subs({Symbol("B"): odds, Symbol("K"): gap})).as_numer_denom()[0]


def _common_constants(quadratic) -> list:
    """a_0 to a_3, from the small root -2 C/(B + √(B² - 4AC)) of A v² + B v + C with C a multiple of X - 1."""
    second, first, zeroth = (factor(term) for term in Poly(expand(quadratic), slope).all_coeffs()[-3:])
    unit = cancelled(-2 * zeroth / (BOOST - 1))
    linear = Poly(cancelled(first / unit), BOOST)
    under = Poly(cancelled((first**2 - 4 * second * zeroth) / unit**2), BOOST)
    return [factor(term) for term in (*linear.all_coeffs(), *under.all_coeffs())]


def _symmetric_constants(symmetric: Chapter) -> list:
    """a_0 and a_1, from φ′ over e^ζ - 1; the root is absent."""
    there = elementary(symmetric["phi_prime"]).subs(kappa, log(exp(symmetric["kappa_star"]) * BOOST))
    inverse = Poly(cancelled((BOOST - 1) / cancelled(there.rewrite(exp))), BOOST)
    zero = Rational(0)
    return [*(factor(term) for term in inverse.all_coeffs()), zero, zero]


def _star(at):
    """κ* of the chain."""
    if states in at:
        return mpmath.log((1 - at[p]) * (at[states] - 1) / at[p])
    return mpmath.log((1 - at[p]) * (1 - at[q]) / (at[p] * at[q]))
