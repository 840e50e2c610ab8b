"""Chapters: where a start ends, without integrating, and how fast it gets there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import mpmath
import numpy as np
from mpmath import mpf
from sympy import And, Or, Piecewise, diff, exp, limit, log, series, simplify, sqrt

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.canonical import EVERYWHERE, Setting, settings
from landscape.symbolic.critical_sets import HESSIAN, moved_to_optimum
from landscape.symbolic.integration import NumericNetwork, outcomes
from landscape.symbolic.primitives import elementary
from landscape.symbolic.references import minimised_loss, softmax_loss
from landscape.symbolic.invariants import orbit_rise
from landscape.symbolic.steps import Chapter, Check, Kernel
from landscape.symbolic.symbols import bend, curvature, curvature_across, e, log_ratio, scale, sign_w, slope, target, w

# (p, q or None, states): both sides of the threshold, two symbols and five.
CHAINS = ((0.5, 0.8, 2), (0.2, 0.3, 2), (0.9, None, 5), (0.3, None, 5))


@cache
def integrated_starts(count: int = 90) -> tuple[dict, ...]:
    """Random starts with the outcome of their integrated orbit, for each of `CHAINS`."""
    generator = np.random.default_rng(2406)
    found = []
    for p_, q_, states_ in CHAINS:
        network = NumericNetwork(p_, q_, states_)
        starts = generator.uniform((-2, -2.5), (2, 1.5), size=(count, 2))
        star = mpmath.log((1 - p_) * ((1 - q_) / (p_ * q_) if q_ else (states_ - 1) / p_))
        phi = (lambda k: minimised_loss(k, mpf(p_), mpf(q_))) if q_ else (lambda k: softmax_loss(k, states_, mpf(p_)))
        ends = outcomes(network, starts, float(phi(mpf(0))), float(phi(star)))
        for (e_, w_), outcome in zip(starts.tolist(), ends):
            if outcome is not None:
                setting = Setting(mpf(e_), mpf(w_), mpf(p_), q_, None if q_ else states_)
                found.append({"setting": setting, "target": int(mpmath.sign(star)), "end": outcome})
    return tuple(found)


def exact_limits(derivatives: Chapter, sets: Chapter, conserved: Chapter) -> Chapter:
    """The rule that gives the limit of any start."""
    chapter = Chapter(
        "canonical-limits",
        "Exact limits",
        "Three facts decide the limit of a start. The gap moves monotonically towards $\\kappa^*$. $w$ moves monotonically and "
        "cannot cross $w=0$, and $e$ cannot cross $e=0$, where the flow stands still. $E$ is conserved. Write "
        "$\\tau=\\operatorname{sgn}\\kappa^*$ and $B=1+c\\,w|w|$, whose sign is that of $\\kappa$.",
        settles="*Claim*: the conditions for global and for local convergence can be characterised precisely, and a start close "
        "enough to a global minimum reaches it (summary); $(1,-1)$ lies in the region that does, and at $(p,q)=(0.5,0.8)$ "
        "starts around $(-1,-1)$ end in global minima, those around $(0,-0.5)$, $(0,0.5)$ and $(0,0)$ in local ones "
        "(authors). *Settled*: yes, on the slice, by two inequalities in which closeness plays no part; all starts within "
        "0.1 of the points named end as claimed. *Beyond*: every start, the separatrix included, and $S$ symbols, where "
        "for $S\\ge3$ an open set of starts ends in saddles.",
    )
    gap_gradient = derivatives["gap_gradient"]
    where = {"cases": settings(*EVERYWHERE[:4]), "values": Setting.point}

    def slopes(function, s):
        return [mpmath.diff(function, (s.e, s.w), o) for o in ((1, 0), (0, 1))]

    gap_rate = -slope * gap_gradient.dot(gap_gradient)
    chapter.add(
        "gap_rate", "Along the flow the gap moves towards $\\kappa^*$ and stops only there or on $e=0$.", r"\dot\kappa", gap_rate,
        simplify(gap_rate + derivatives["gradient"].dot(gap_gradient)),
        Check("numerical gradients of the minimised loss and of the gap of a network",
              reference=lambda s: -sum(a * b for a, b in zip(slopes(s.loss, s), slopes(s.gap, s))), **where),
    )
    w_rate = -derivatives["gradient"][1]
    chapter.add(
        "w_rate",
        "$\\dot w$ has the sign of $-\\varphi'$ on both sides of $w=0$ (as $\\sigma_ww=|w|$): $w$ falls while $\\kappa>\\kappa^*$ and "
        "rises while $\\kappa<\\kappa^*$.",
        r"\dot w", w_rate,
        simplify(w_rate + slope * gap_gradient[1]),
        Check("numerical gradient of the minimised loss of a network", reference=lambda s: -slopes(s.loss, s)[1], **where),
    )
    integrated = Check(
        "orbits of networks with two and five symbols, integrated in arc length with numerical gradients (double precision)",
        cases=integrated_starts(),
        values=lambda case: {**_numbers(case["setting"]), target: case["target"]},
        reference=lambda case: case["end"] == "global",
    )
    b = cancelled(sets["hessian_on_line"][0] / (2 * scale * slope))
    margin = elementary(conserved["margin"]).subs(log_ratio, log(curvature * w**2))
    rule = Or(target * b > 0, And(w < 0, margin > 0))
    chapter.add(
        "reaches_optimum",
        "If $\\tau B>0$ the gap has the sign of $\\kappa^*$: between it and $\\kappa^*$ there is no critical point, and the start is "
        "global. Else the gap has to cross 0, at $B=0$, that is at $w=w_s<0$: the orbit gets there if $w<0$ and "
        "$E-E_{\\text{sad}}$, its $e^2$ at $w_s$, is positive. If that is negative, or $w\\ge0$, the orbit ends on $e=0$ with "
        "$\\tau B<0$. If it is zero it ends in the saddle. Starts on $e=0$ are critical themselves.",
        r"\text{global for } e\ne0,\ \kappa^*\ne0 \text{ iff}", rule, None,
        integrated,
    )
    across = log(curvature / curvature_across)
    depth = elementary(conserved["threshold_in_s"]).subs(log_ratio, across)
    gap_to_minima = Piecewise((depth, target * across > 0), (0, True))
    chapter.add(
        "half_stable_depth",
        "For $S\\ge3$ symbols $c$ is another number, $c_\\times$, across $e=0$. Part of the line then attracts from one side and "
        "repels on the other. With $s=\\log(c/c_\\times)$ at its far end, an orbit that ends at $w$ on the line has "
        "$E-E_{\\text{sad}}=-(e^s-1-s)/c$ with $s=\\log(cw^2)$, so this is how far below $E_{\\text{sad}}$ the half-stable part "
        "reaches; it is 0 if $c=c_\\times$.",
        r"h", gap_to_minima,
        simplify(depth.subs(curvature_across, curvature)),
        Check("quadrature of a network's numerical field between the two points of e = 0 where its gap changes sign on "
              "either side", cases=_SIDES, values=lambda s: {**_numbers(s), target: _target_of(s)},
              reference=_measured_depth, tolerance=1e-13),
    )
    chapter.results["kernels"] = (
        Kernel("half_stable_depth", (curvature, curvature_across, target), (conserved["threshold_in_s"],),
               "How far below the saddle's E the half-stable part of e = 0 reaches.",
               ((log_ratio, Piecewise((across, target * across > 0), (0, True))),)),
    )
    local = And(target * b < 0, Or(w >= 0, margin < -gap_to_minima))
    chapter.add(
        "reaches_local_minimum",
        "A start that is not global ends in a local minimum if its end is one seen from both sides; else it ends on the "
        "half-stable part of the line, a saddle from which a push across $e=0$ leads down.",
        r"\text{local for } e\ne0,\ \kappa^*\ne0 \text{ iff}", local, None,
        replace(integrated, reference=lambda case: case["end"] == "local"),
    )
    return chapter


_SIDES = tuple(
    Setting(mpf(side), mpf("-0.5"), p=mpf(p_), states=n) for side in (1, -1) for p_, n in (("0.9", 3), ("0.25", 3), ("0.9", 5))
)


def _target_of(s: Setting) -> int:
    return int(mpmath.sign(mpmath.log((1 - s.p) * (s.states - 1) / s.p)))


def _measured_depth(s: Setting):
    here = -1 / mpmath.sqrt(s.constants[1])
    there = -1 / mpmath.sqrt(replace(s, e=-s.e).constants[1])
    half_stable = _target_of(s) * (here - there) > 0
    return orbit_rise(s, here, there) if half_stable else mpf(0)


def _numbers(s: Setting) -> dict:
    return {
        e: s.e, w: s.w, sign_w: mpmath.sign(s.w), curvature: s.constants[1],
        curvature_across: replace(s, e=-s.e).constants[1],
    }


def speeds(derivatives: Chapter, sets: Chapter, conserved: Chapter) -> Chapter:
    """Rates of approach: exponential to the minima, algebraic to the saddle."""
    chapter = Chapter(
        "canonical-speeds",
        "Speeds",
        "How fast a start approaches its limit: an exponential rate is the eigenvalue of the Hessian across the set.",
        settles="*Claim*: none; summary and replies say where training ends, not how fast it gets there. *Beyond*: the "
        "exponential rates into both kinds of minima, and the approach to the saddle along the separatrix, which is "
        "algebraic.",
    )
    on_optimum = sets["hessian_on_optimum"]
    across = simplify(on_optimum[0] + on_optimum[2]).subs(sign_w**2, 1)
    kappa_e, kappa_w = derivatives["gap_gradient"]
    chapter.add(
        "rate_global", "To a global minimum: $\\varphi''(\\kappa^*)\\|\\nabla\\kappa\\|^2$, the trace of a Hessian of rank one.",
        r"\lambda_{\text{global}}", across,
        simplify((across - bend * (kappa_e**2 + kappa_w**2)).expand().subs(sign_w**2, 1)),
        Check("trace of the numerical Hessian of the minimised loss of a network on the curve of global minima",
              cases=tuple(moved_to_optimum(s) for s in settings(("1", "-1"), ("-1", "0.5"), ("1", "-1.5"))),
              values=Setting.point,
              reference=lambda s: sum(mpmath.diff(s.loss, (s.e, s.w), HESSIAN[i]) for i in (0, 2)), tolerance=1e-12),
    )
    local_rate = sets["hessian_on_line"][0]
    chapter.add(
        "rate_local", "Into (or, where negative, away from) the line $e=0$.", r"\lambda_{e=0}", local_rate,
        simplify(local_rate - diff(derivatives["gradient"][0], e).subs(e, 0)),
        Check("−ė/e of a network at e = 1e-25, from the numerical gradient of its minimised loss",
              cases=settings(("1e-25", "0.5"), ("-1e-25", "-1.25"), ("1e-25", "-0.75"), ("1e-25", "-0.25")),
              values=lambda s: s.point(mpf(0)),
              reference=lambda s: mpmath.diff(lambda x: s.loss(x * mpf("1e-25"), s.w), mpmath.sign(s.e)) / s.e / mpf("1e-25"),
              tolerance=1e-10),
    )
    e_squared = elementary(conserved["threshold_in_s"])
    ratio = cancelled(derivatives["gradient"][0] / e).subs(sign_w, -1).subs(w, -exp(log_ratio / 2) / sqrt(curvature))
    leading = limit(series(simplify(ratio) ** 2 / e_squared, log_ratio, 0, 2).removeO(), log_ratio, 0)
    algebraic = sqrt(leading.subs(slope, 1)) * abs(slope)
    chapter.add(
        "rate_saddle",
        "On the separatrix near the saddle $\\dot e=-Ce^2$ with this $C$: the approach is algebraic, $e\\sim1/(Ct)$.",
        r"C=\lim_{e\to0}\,-\dot e/e^2", algebraic,
        simplify(algebraic**2 - leading),
        Check("−ė/e² of a network on the separatrix 1e-14 away from the saddle, from the numerical gradient of its loss",
              cases=settings(("1", "0"), ("-1", "0"), ("1", "0")), values=lambda s: s.point(mpf(0)),
              reference=_saddle_speed, tolerance=1e-9),
    )
    return chapter


def _saddle_speed(s: Setting):
    """Relative speed of e on the separatrix, on the side from which the saddle is approached."""
    c = s.constants[1]
    log_ratio_value = -mpf("1e-14") * mpmath.sign(mpmath.diff(s.phi, mpf(0)))
    along = -mpmath.exp(log_ratio_value / 2) / mpmath.sqrt(c)
    size = mpmath.sqrt((mpmath.expm1(log_ratio_value) - log_ratio_value) / c)
    return mpmath.diff(lambda x: s.loss(x * size, along), mpmath.sign(s.e)) / size / size**2 * mpmath.sign(s.e)
