"""Chapter: where a start ends with linear attention, from the two invariants and without integrating."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import mpmath
import numpy as np
from mpmath import mpf
from sympy import And, LambertW, Matrix, Not, Or, Rational, Symbol, airyai, airyaiprime, cancel, diff, exp, expand, expand_log, limit, log, sqrt

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.attention_invariant import a_of, by_series, measured_scale, measured_threshold, numeric_j, slope_of
from landscape.symbolic.attention_networks import CASES, Case, those
from landscape.symbolic.attention_sets import network_gap
from landscape.symbolic.integration import NumericNetwork, outcomes
from landscape.symbolic.references import CHAINS, minimised_loss
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import airy_argument as z
from landscape.symbolic.symbols import attention as a
from landscape.symbolic.symbols import (
    difference, e, excess, factor, far, first_zero, lower_end, ratio, reach, second_invariant, sign_w, slope, slope_factor, target, upper_end, w,
)


@dataclass(frozen=True)
class Orbit:
    """A start (e, w, a), the sign of κ*, and where its integrated orbit ends."""

    start: tuple[float, float, float]
    target: int
    end: str

    def point(self) -> dict:
        """The numbers of the symbols, by their definitions."""
        e_, w_, a_ = map(mpf, self.start)
        k = mpmath.cbrt(mpf(4))
        at, slope_ = -(e_**2 - 4 * a_**2) / k, k * a_
        over = e_**2 - 2 * a_**2 - w_**2 + mpmath.log(abs(w_)) + (1 + mpmath.log(2)) / 2
        width = k * mpmath.sqrt(abs(over) / 2)
        ends = (numeric_j(width**2, -width), numeric_j(width**2, width))
        return {
            w: w_, target: self.target, z: at, ratio: slope_, first_zero: mpmath.airyaizero(1), factor: 1 + a_ * e_**2, slope_factor: 1 + 2 * w_ * abs(w_),
            excess: over, second_invariant: numeric_j(at, slope_), lower_end: ends[0], upper_end: ends[1],
        }


@cache
def integrated_orbits(count: int = 150) -> tuple[Orbit, ...]:
    """Random starts whose orbits of networks with linear attention end clearly, on both sides of p + q = 1."""
    generator = np.random.default_rng(4506)
    found = []
    for p_, q_ in CHAINS:
        network = NumericNetwork(p_, q_, attention=True)
        starts = generator.uniform((-2, -2, -2), (2, 1.5, 2), size=(count, 3))
        star = mpmath.log((1 - p_) * (1 - q_) / (p_ * q_))
        ends = outcomes(network, starts, float(minimised_loss(mpf(0), p_, q_)), float(minimised_loss(star, p_, q_)), steps=700)
        found += [Orbit(tuple(start), int(mpmath.sign(star)), end) for start, end in zip(starts.tolist(), ends) if end]
    return tuple(found)


def attention_limits(sets: Chapter, second: Chapter, canonical: Chapter) -> Chapter:
    """The rule that gives the limit of any start, and the surface between the basins."""
    chapter = Chapter(
        "attention-limits",
        "With linear attention: exact limits",
        "The gap moves monotonically towards $\\kappa^*$. With $\\tau=\\operatorname{sgn}\\kappa^*$: a start with $\\tau\\kappa>0$ is global, and so is one "
        "that comes to $\\kappa=0$ with $\\nabla\\kappa\\ne0$. For $\\tau\\kappa<0$ the question is whether the orbit meets $f=0$ or $B=0$ before $e=0$. "
        "$u=e^2$, $m=u-4a^2$, $z$, $\\rho$ and $J$ are those of [the second invariant](attention-invariant.md).",
        settles="*Claim*: which starts reach the global minimum can be told from where they are, with attention as without (Section "
        "4.1 of the paper, authors). *Settled*: yes, for every start, by comparisons alone. *Beyond*: the surface between the "
        "basins in closed form, and starts from which the flow has no limit.",
    )
    kappa_e, kappa_w, kappa_a = sets["gap_gradient"]
    everywhere = {"cases": CASES, "values": lambda c: c.point() | {e: c.e, w: c.w, slope: mpf(1)}}
    chapter.add(
        "a_rate",
        "$a$ rises while $\\varphi'B<0$: with $\\tau B>0$ it rises and $m$ rises with it, with $\\tau B<0$ both fall.",
        r"\dot a", expand(-slope * kappa_a), expand(slope * kappa_a - slope * e**4 * (1 + 2 * sign_w * w**2)),
        Check("numerical derivative of the gap of networks with linear attention", reference=lambda c: -slope_of(c, (0, 0, 1)), **everywhere),
    )
    stream = 1 + a * e**2
    crossing = cancelled((diff(stream, e) * kappa_e + diff(stream, a) * kappa_a) / kappa_a)
    at_zero = expand(crossing.subs(a, -1 / e**2))
    chapter.add(
        "f_crossing",
        "Along an orbit $df/da$ at $f=0$ is positive: $f$ falls through 0 only while $a$ falls. So a start with $f<0$ and $\\tau B>0$ meets $f=0$ or "
        "$B=0$ ($a\\ge a_0$ keeps it away from $e=0$, where $f=1$) and is global.",
        r"\frac{df}{da}\Big|_{f=0}", at_zero, expand(at_zero - e**2 - 4 / e**4),
        Check("numerical derivatives of the gap of networks moved to f = 0", cases=CASES, values=lambda c: {e: c.e},
              reference=lambda c: _measured_crossing(c)),
    )
    along = cancelled(1 + 4 * a * second["riccati"])
    chapter.add(
        "descent",
        "Where $f>0$ the quantity $u-2a^2$ rises and falls with $m$, by the Riccati equation. It is $E+G$, so an orbit meets $B=0$, where "
        "$G=G_{\\min}$, at most once, and when it has come down to $E-E_{\\text{sad}}$.",
        r"\frac{d(u-2a^2)}{dm}", along, expand(along - stream.subs(e, sqrt(difference + 4 * a**2))),
        Check("numerical derivatives of the gap of networks with linear attention", cases=CASES,
              values=lambda c: {a: a_of(c), difference: c.e**2 - 4 * a_of(c) ** 2}, reference=_measured_descent),
    )
    _rules(chapter, second)
    _surface(chapter, canonical)
    return chapter


def _rules(chapter: Chapter, second: Chapter) -> None:
    """The rule, assembled from the steps before it, and tried on integrated orbits."""
    escapes = Or(factor < 0, z <= first_zero, ratio < airyaiprime(z) / airyai(z))
    orbits = integrated_orbits()
    falling = tuple(orbit for orbit in orbits if orbit.target < 0 < orbit.start[1] and orbit.end in ("global", "local"))
    chapter.add(
        "escapes",
        "With $\\tau B<0$ and $f>0$ an orbit moves to larger $z$ and smaller $\\rho$, until it meets the parabola $z=\\rho^2$, which is $e=0$, or $\\rho\\to-\\infty$ "
        "at a zero of $\\psi$, and $f=0$ before. By Sturm's theorem $\\psi$ has a zero ahead iff $z\\le z_1$, the first zero of "
        "$\\mathrm{Ai}$, or $\\rho<\\mathrm{Ai}'/\\mathrm{Ai}$. ",
        r"\text{global for } w>0,\ \kappa^*<0 \text{ iff}", escapes, None,
        Check("orbits of networks with linear attention, integrated in arc length with numerical gradients (double precision)", cases=falling,
              values=Orbit.point, reference=lambda orbit: orbit.end == "global"),
    )
    tail = second["tail"]
    out = limit(expand(1 - (1 + tail) * ((1 + tail) ** 2 - 1) / far), far, 0)
    chapter.add(
        "divergence",
        "With equality $\\psi$ is $\\mathrm{Ai}$ itself: $z\\to\\infty$, so $a\\to-\\infty$ and $e\\to0$, with this limit of $f$. For $w\\ge0$, where no $B=0$ is on the way, "
        "**such a start has no limit**: it diverges, and its loss tends to the unigram loss.",
        r"\lim_{z\to\infty}f\big|_{\rho=\mathrm{Ai}'/\mathrm{Ai}}", out, out - Rational(1, 2),
        Check("1 + ρ(ρ² - z) with Airy's functions themselves at z = 1e6", cases=[mpf(10) ** 6], values=lambda at: {z: at}, reference=_measured_divergence,
              tolerance=1e-8),
    )
    k = second["airy_coordinates"][1] / a
    width = k * sqrt(-excess / 2)
    below = those(lambda case: case.w < 0 and _over(case) < 0)
    chapter.add(
        "width",
        "Else an orbit with $w\\ge0$ ends on $e=0$. One with $w<0$ ends at $a_e$ there if it has not met $B=0$ before, that is if $-2a_e^2$, the last value of "
        "$u-2a^2$, is still above $X=E-E_{\\text{sad}}$: if $X<0$ and $|\\rho|$ at the end is less than this $R$.",
        "R", width, expand(2 * (width / k) ** 2 + excess),
        Check("k from the field of networks, and X by a quadrature of it", cases=below, values=lambda c: {excess: _over(c)},
              reference=lambda c: measured_scale(c)[1] / a_of(c) * mpmath.sqrt(-_over(c) / 2)),
    )
    ends = Matrix([second["J"].subs({z: reach**2, ratio: side * reach}, simultaneous=True) for side in (-1, 1)])
    chapter.add(
        "J_at_ends", "$J$ of the orbits that end at $\\rho=\\mp R$ on the plane.", "(J_1,\\ J_2)", ends,
        Matrix([cancel(diff(end, reach) - (side * diff(second["J"], ratio) + 2 * reach * diff(second["J"], z)).subs({z: reach**2, ratio: side * reach}, simultaneous=True))
                for side, end in zip((-1, 1), ends)]),
        Check("the solutions of ψ'' = zψ that start at z = R² with ψ'/ψ = ∓R, by their power series", cases=[mpf(x) for x in ("0.5", "1.25", "0.875")],
              values=lambda at: {reach: at}, reference=lambda at: [by_series(at**2, side * at) for side in (-1, 1)]),
    )
    inside = And(excess < 0, lower_end < second_invariant, second_invariant < upper_end)
    local = And(target * slope_factor * factor < 0, Not(escapes), Or(w >= 0, inside))
    integrated = Check(
        "orbits of networks with linear attention, integrated in arc length with numerical gradients (double precision)", cases=orbits,
        values=Orbit.point, reference=lambda orbit: orbit.end == "local",
    )
    chapter.add(
        "reaches_local_minimum",
        "Since $J$ grows along the parabola, that is seen **without finding the end**. With equality the limit is a point of the line $e=0$, $w=-1/\\sqrt2$.",
        r"\text{local for } e\ne0,\ \kappa^*\ne0 \text{ iff}", local, None, integrated,
    )
    outside = And(w < 0, Or(excess >= 0, second_invariant > upper_end, second_invariant < lower_end))
    chapter.add(
        "reaches_optimum",
        "All other starts off $e=0$ are global, but for two sets without volume: starts from which the orbit has no limit, and those whose orbits end on the "
        "[curve of saddles](attention-critical-sets.md#2-curve), between parts of the global basin.",
        r"\text{global for } e\ne0,\ \kappa^*\ne0 \text{ iff}", Or(target * slope_factor * factor >= 0, escapes, outside), None,
        replace(integrated, reference=lambda orbit: orbit.end == "global"),
    )


def _over(case: Case):
    """E - E_sad of a network."""
    return case.e**2 - 2 * a_of(case) ** 2 - measured_threshold(case, case.w)


def _surface(chapter: Chapter, canonical: Chapter) -> None:
    """w on the surface between the basins, from what u - 2a² + 2a_e² is there."""
    c = canonical["constants_binary"][1]
    level = difference  # of the threshold without attention
    size = Symbol("omega", positive=True)  # c w²
    threshold = (size - log(size) - 1) / c
    inverse = expand_log(-(1 + log(size * exp(-size))) / c)  # of the level whose -exp(-1 - c m) is -ω exp(-ω)
    for name, branch, where, places in (
        ("surface_above", 0, "above the line of saddles, for $p+q>1$", ("-0.625", "-0.375", "-0.125")),
        ("surface_below", -1, "below it, for $p+q<1$", ("-0.875", "-1.25", "-1.5")),
    ):
        surface = -sqrt(-LambertW(-exp(-1 - c * level), branch) / c)
        chapter.add(
            name,
            f"The surface between the basins over $(e,a)$ is $G(w)-G_{{\\min}}=u-2a^2+2a_e^2$, with $a_e$ where the orbit with this $J$ ends on $e=0$. Solved for $w$ by Lambert's "
            f"$W$: the branch {where}." + _ENDS[name],
            r"w\big|_{G(w)-G_{\min}=m}", surface, expand(threshold - inverse),
            Check("places w of a network, m by quadrature of its numerical field from the zero of its gap", cases=[(CASES[0], mpf(x)) for x in places],
                  values=lambda at: {level: measured_threshold(*at)}, reference=lambda at: at[1], tolerance=1e-12),
        )


_ENDS = {
    "surface_above": " It meets $e=0$ in that line, goes up to $w=0$ where $\\rho=\\mathrm{Ai}'/\\mathrm{Ai}$, and on from there as the cylinder over this curve.",
    "surface_below": " It meets $e=0$ in that line.",
}


def _measured_crossing(case: Case):
    """df/da of a network along its field where f = 0."""
    at = case.e, case.w, -1 / case.e**2

    def slope_in(order):
        return mpmath.diff(lambda *place: network_gap(case, *place), at, order)

    return 2 * case.e * at[2] * slope_in((1, 0, 0)) / slope_in((0, 0, 1)) + case.e**2


def _measured_descent(case: Case):
    """d(e² - 2a²)/d(e² - 4a²) along the field of a network."""
    in_e, in_a = 2 * case.e * slope_of(case, (1, 0, 0)), a_of(case) * slope_of(case, (0, 0, 1))
    return (in_e - 4 * in_a) / (in_e - 8 * in_a)


def _measured_divergence(at):
    slope_ = mpmath.airyai(at, 1) / mpmath.airyai(at)
    return 1 + slope_ * (slope_**2 - at)
