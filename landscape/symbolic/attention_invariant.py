"""Chapter: the second invariant of the flow with linear attention, by a Riccati equation and Airy's functions."""

from __future__ import annotations

import mpmath
from mpmath import mpf
from sympy import (
    Function, Integer, Matrix, Symbol, airyai, airyaiprime, airybi, airybiprime, cancel, diff, dsolve, expand, gammasimp, limit, log, pi,
    simplify, solve, sqrt,
)

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.attention_networks import CASES, Case, those
from landscape.symbolic.attention_sets import network_gap
from landscape.symbolic.primitives import elementary
from landscape.symbolic.steps import Chapter, Check, Kernel
from landscape.symbolic.symbols import airy_argument as z
from landscape.symbolic.symbols import attention as a
from landscape.symbolic.symbols import curvature, difference, e, far, log_ratio, ratio, sign_w, w

ORDER = 12  # terms of the expansions far out


def attention_invariant(gap: Chapter, sets: Chapter, canonical: Chapter, invariant: Chapter) -> Chapter:
    """The Riccati equation of the orbits, its solution, J, and forms that keep their digits."""
    chapter = Chapter(
        "attention-invariant",
        "With linear attention: the second invariant",
        "A flow in three dimensions needs two invariants for its orbits to be known. Besides [$E$](attention-critical-sets.md#5-e) there "
        "is $J$: the orbits in $(e,a)$ do not depend on $w$, and obey a Riccati equation that Airy's functions solve. "
        "$u=e^2$, $m=u-4a^2$.",
        settles="*Claim*: none; summary and replies have no second invariant. *Settled*: one energy leaves the orbits open in three "
        "dimensions. *Beyond*: with $J$ every orbit is known, for every chain.",
    )
    kappa_e, _, kappa_a = sets["gap_gradient"]
    square = e**2 - 4 * a**2
    rate = cancelled(kappa_a / (diff(square, e) * kappa_e + diff(square, a) * kappa_a))
    riccati = expand(rate.subs(e, sqrt(difference + 4 * a**2)))
    chapter.add(
        "riccati", "The rate of $a$ against $m$ is $u/4$: neither $w$ nor the chain is left.", r"\frac{da}{dm}", riccati,
        Matrix([diff(rate, w), expand(rate - riccati.subs(difference, square))]),
        Check("numerical derivatives of the gap of networks with linear attention", cases=CASES,
              values=lambda c: {a: a_of(c), difference: c.e**2 - 4 * a_of(c) ** 2}, reference=_measured_rate),
    )
    size = Symbol("k", positive=True)
    scaled = expand(-(size**2) * riccati.subs({difference: -size * z, a: ratio / size}))
    (found,) = solve([scaled.coeff(z) - 1, scaled.coeff(ratio, 2) + 1], [size], dict=True)
    k = found[size]
    coordinates = Matrix([-square / k, k * a])
    chapter.add(
        "airy_coordinates",
        "In these multiples of $-m$ and $a$ the equation is $d\\rho/dz=z-\\rho^2$, which has no constants.",
        r"(z,\ \rho)", coordinates,
        Matrix([expand(scaled.subs(size, k) - (z - ratio**2))]),
        Check("the factor at which the numerical field of a network obeys dρ/dz = z - ρ²", cases=CASES, values=place_of, reference=measured_scale),
    )
    squared = expand(k * (ratio**2 - z))
    in_airy = Matrix([squared, expand(1 + ratio / k * squared)])
    back = {z: coordinates[0], ratio: coordinates[1]}
    chapter.add(
        "stream",
        "$e^2$ and the factor $f=1+ae^2$ of the stream in these coordinates: starts are at $z<\\rho^2$, and the plane $e=0$ is the "
        "parabola $z=\\rho^2$.",
        r"(e^2,\ f)", in_airy,
        Matrix([expand(in_airy[0].subs(back) - e**2), expand(in_airy[1].subs(back) - (1 + a * e**2))]),
        Check("e² and the factor that the attention of networks multiplies the stream by", cases=CASES,
              values=lambda c: dict(zip((z, ratio), measured_scale(c))), reference=lambda c: [c.e**2, 1 + c.added()]),
    )
    j = _second_invariant(chapter)
    _rise(chapter, j)
    _tails(chapter)
    _excess(chapter, sets["E"], canonical["constants_binary"][1], invariant)
    chapter.results["kernels"] = _kernels(chapter, k, coordinates, in_airy)
    return chapter


def _second_invariant(chapter: Chapter):
    """J, as the constant of the general solution."""
    psi, t = Function("psi"), Symbol("t", real=True)
    general = dsolve(psi(t).diff(t, 2) - t * psi(t), psi(t)).rhs
    constants = sorted(general.free_symbols - {t}, key=str)
    of_ai = next(c for c in constants if general.coeff(c).has(airyai))
    of_bi = next(c for c in constants if c != of_ai)
    negative = Symbol("J", real=True)
    solution = general.subs({of_ai: -negative, of_bi: 1})
    (j,) = solve((ratio * solution - diff(solution, t)).subs(t, z), negative)
    top, bottom = cancel(j).as_numer_denom()
    if bottom.coeff(airyaiprime(z)) != -1:  # the form in which both parts are ρ times a function less its derivative
        top, bottom = expand(-top), expand(-bottom)
    chapter.add(
        "J",
        "With $\\rho=\\psi'/\\psi$ the equation is Airy's, $\\psi''=z\\psi$. On every orbit $\\psi=\\mathrm{Bi}-J\\,\\mathrm{Ai}$ up to a factor, so "
        "the flow keeps this number, for every chain; it passes through infinity where $\\psi$ is $\\mathrm{Ai}$. New, as far as we "
        "know.",
        "J", top / bottom,
        Matrix([
            cancel(diff(j, z) + diff(j, ratio) * (z - ratio**2)),
            expand(top - (ratio * airybi(z) - airybiprime(z))), expand(bottom - (ratio * airyai(z) - airyaiprime(z))),
        ]),
        Check("the power series of the solution of ψ'' = zψ through the place of a network, and the values at 0 of Airy's functions by "
              "the Gamma function", cases=those(lambda case: abs(a_of(case)) < 1), values=lambda c: dict(zip((z, ratio), measured_scale(c))),
              reference=lambda c: by_series(*measured_scale(c))),
    )
    return top / bottom


def _rise(chapter: Chapter, j) -> None:
    """How J grows along the plane e = 0."""
    _, bottom = j.as_numer_denom()
    wronskian = airyai(z) * airybiprime(z) - airyaiprime(z) * airybi(z)
    constant = gammasimp(limit(wronskian, z, 0))
    numerator = expand(diff(j, ratio) * bottom**2)
    rise = constant / bottom**2
    chapter.add(
        "rise",
        "Across orbits $J$ grows with $\\rho$, by Wronski's determinant $1/\\pi$. On the parabola $J_z=0$, so that from end to end of the "
        "plane $e=0$ too **$J$ grows strictly with $a$**: which of two orbits ends at the larger $a$ is seen from $J$ alone.",
        r"\frac{\partial J}{\partial\rho}", rise,
        Matrix([cancel(diff(wronskian, z)), constant - 1 / pi, expand(cancelled(numerator) - wronskian), expand(diff(j, z).subs(z, ratio**2).together().as_numer_denom()[0])]),
        Check("numerical derivative along the parabola z = ρ²", cases=[{z: mpf(x) ** 2, ratio: mpf(x)} for x in ("0.5", "-0.75", "1.25", "-1.5")],
              reference=lambda at: mpmath.diff(lambda x: numeric_j(x**2, x), at[ratio])),
    )


def _tails(chapter: Chapter) -> None:
    """Ai'/Ai and Bi'/Bi far out, from the Riccati equation."""
    def residue(series):  # of ρ = -√z s(x), x = z^(-3/2), in the equation divided by z
        return expand(series**2 - far * (series - 3 * far * diff(series, far)) / 2 - 1)

    series, unknown = Integer(1), Symbol("c_n", real=True)
    for n in range(1, ORDER + 1):
        trial = series + unknown * far**n
        series = trial.subs(unknown, solve(residue(trial).coeff(far, n), unknown)[0])
    tail = series - 1
    chapter.add(
        "tail",
        "Far out, with $x=z^{-3/2}$: $\\mathrm{Ai}'/\\mathrm{Ai}=-\\sqrt z\\,(1+t(x))$ and $\\mathrm{Bi}'/\\mathrm{Bi}=\\sqrt z\\,(1+t(-x))$. Next to "
        "$\\rho=\\mp\\sqrt z$ the parts of $J$ cancel, and this is what is left.",
        "t(x)+O(x^{%d})" % (ORDER + 1), tail,
        Matrix([residue(series).coeff(far, n) for n in range(ORDER + 1)]),
        Check("Airy's functions themselves at z = 100 and 150; Bi for negative x", cases=[(side, mpf(at)) for at in (100, 150) for side in (1, -1)],
              values=lambda c: {far: c[0] / mpmath.sqrt(c[1]) ** 3}, reference=_measured_tail, tolerance=5e-32),
    )


def _excess(chapter: Chapter, energy, c, invariant: Chapter) -> None:
    """E - E_sad without the logarithms' cancellation."""
    threshold = elementary(invariant["threshold"]).subs({curvature: c, log_ratio: log(c * w**2)})
    lowest = invariant["G_min"].subs(curvature, c)
    excess = expand(e**2 - 2 * a**2 - threshold)
    chapter.add(
        "excess",
        "$E-E_{\\text{sad}}$ for $w<0$ is $e^2-2a^2$ less the [threshold without attention](canonical-invariant.md), $G(w)-G_{\\min}\\ge0$: it is "
        "what $e^2-2a^2$ is where an orbit meets $B=0$.",
        r"E-E_{\text{sad}}", excess,
        simplify((energy.subs(sign_w, -1) + lowest - excess).subs(w, -Symbol("omega", positive=True)).expand(force=True)),
        Check("e² - 2a² less a quadrature of the numerical field of networks from where the gap changes sign to w", cases=[case for case in CASES if case.w < 0],
              values=lambda k: {e: k.e, w: k.w, a: a_of(k)}, reference=lambda k: k.e**2 - 2 * a_of(k) ** 2 - measured_threshold(k, k.w), tolerance=1e-12),
    )


def _kernels(chapter: Chapter, k, coordinates, in_airy) -> tuple[Kernel, ...]:
    gap_between = e**2 / k
    from_end = cancelled(2 * ratio**2 / k**2)
    return (
        Kernel("airy_coordinates", (e, a), (coordinates[0], coordinates[1], gap_between),
               "z, ρ and ρ² - z of a start."),
        Kernel("stream_factor", (e, a), (1 + a * e**2,), "f = 1 + a e²: what attention multiplies the stream by."),
        Kernel("end_term", (ratio,), (from_end,), "2a² at the end of an orbit on e = 0, from ρ there."),
        Kernel("tail", (far,), (chapter["tail"],), "t with Ai'/Ai = -√z (1 + t(z^(-3/2))) and Bi'/Bi = √z (1 + t(-z^(-3/2)))."),
    )


# --- numbers -----------------------------------------------------------------------------------------------------


def a_of(case: Case):
    return case.added() / case.e**2


def place_of(case: Case) -> dict:
    return {e: case.e, a: a_of(case)}


def slope_of(case: Case, order):
    return mpmath.diff(lambda *at: network_gap(case, *at), (case.e, case.w, a_of(case)), order)


def _measured_rate(case: Case):
    in_a = slope_of(case, (0, 0, 1))
    return in_a / (2 * case.e * slope_of(case, (1, 0, 0)) - 8 * a_of(case) * in_a)


def measured_scale(case: Case) -> list:
    """(z, ρ) of a network, with the factor that its numerical field asks for."""
    m, a_ = case.e**2 - 4 * a_of(case) ** 2, a_of(case)
    k = mpmath.cbrt(m / (_measured_rate(case) - a_**2))
    return [-m / k, k * a_]


def by_series(at, slope):
    """J of the solution through (z, ρ), continued to 0 by its power series."""
    terms = [mpf(1), slope, at / 2]
    while len(terms) < 200:
        n = len(terms) - 2
        terms.append((at * terms[n] + terms[n - 1]) / ((n + 1) * (n + 2)))
    value = mpmath.polyval(terms[::-1], -at)
    prime = mpmath.polyval([n * term for n, term in enumerate(terms)][:0:-1], -at)
    third = mpf(1) / 3
    ai = 1 / (3 ** (2 * third) * mpmath.gamma(2 * third)), -1 / (3**third * mpmath.gamma(third))
    bi = ai[0] * mpmath.sqrt(3), -ai[1] * mpmath.sqrt(3)
    return (prime * bi[0] - value * bi[1]) / (prime * ai[0] - value * ai[1])


def numeric_j(at, slope):
    """J by mpmath's Airy functions."""
    return (slope * mpmath.airybi(at) - mpmath.airybi(at, 1)) / (slope * mpmath.airyai(at) - mpmath.airyai(at, 1))


def _measured_tail(case):
    side, at = case
    function = mpmath.airyai if side > 0 else mpmath.airybi
    return -side * function(at, 1) / function(at) / mpmath.sqrt(at) - 1


def measured_threshold(case: Case, at):
    """G(w) - G_min of a network: a quadrature of its numerical field, de²/dw at a = 0, from where the gap changes sign."""
    def field(w_):
        def slope_in(order):
            return mpmath.diff(lambda e_, x: network_gap(case, e_, x, mpf(0)), (case.e, w_), order)

        return 2 * case.e * slope_in((1, 0)) / slope_in((0, 1))

    with mpmath.workdps(24):
        saddle = mpmath.findroot(lambda w_: network_gap(case, case.e, w_, mpf(0)), (mpf("-0.9"), mpf("-0.5")), solver="anderson")
        return mpmath.quad(field, [saddle, at], maxdegree=5)
