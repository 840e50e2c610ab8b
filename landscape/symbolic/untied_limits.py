"""What the flow with a head of its own keeps, and where it ends; part of the chapter `untied`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import mpmath
import numpy as np
from mpmath import mpf
from sympy import And, Matrix, Or, Symbol, diff, expand, integrate, log, sqrt

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.canonical import Setting
from landscape.symbolic.integration import NumericNetwork, PlaneNetwork, outcomes_on_plane, outcomes_untied
from landscape.symbolic.invariants import orbit_rise
from landscape.symbolic.layers import reduce_signs
from landscape.symbolic.primitives import elementary
from landscape.symbolic.references import minimised_loss, softmax_loss
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import curvature, curvature_across, e, head, log_ratio, sign_e, sign_w, slope, target, w

LENGTH = Symbol("x", real=True)  # √(e² + c²), with a sign, on the planes e = ±c
PLANE = Symbol("sigma_p", real=True)  # +1 on e = c, -1 on e = -c
SMALLER = Symbol("m", positive=True)  # the smaller of |e| and |c|


def add_invariants(chapter: Chapter, kappa, invariant: Chapter, places) -> None:
    """e² - c², e² + c² - G(w), and the two planes on which the landscape is a canonical one."""
    kappa_e, kappa_c, kappa_w = chapter["gap_gradient"]
    everywhere = {"cases": places, "values": lambda s: s.point()}
    rate = cancelled(2 * e * kappa_e / kappa_c)
    difference = e**2 - integrate(rate, head)
    chapter.add(
        "difference",
        "The flow keeps this, for every chain: from the ansatz $e^2-X(c_h)$, what is left for $X'$ depends on $c_h$ alone. It holds "
        "across $e=0$ too, as $c$ does not enter.",
        "D(e,c_h)", difference,
        Matrix([diff(rate, e), diff(rate, w), expand(diff(difference, e) * kappa_e + diff(difference, head) * kappa_c)]),
        Check("e² less a quadrature in c of the numerical field of a network with a head of its own", reference=_difference,
              tolerance=1e-13, **everywhere),
    )
    g = invariant["G"]
    rates = [cancelled(((diff(g, w) * kappa_w - 2 * e * kappa_e) / kappa_c).subs(sign_w, side)) for side in (1, -1)]
    energy = e**2 + integrate(rates[0], head) - g
    gradient = (kappa_e, kappa_c, kappa_w)
    chapter.add(
        "E",
        "And this, from the ansatz $e^2+X(c_h)-G(w)$ with the [canonical $G$](canonical-invariant.md). For $S\\ge3$ symbols it jumps "
        "where $e$ changes its sign, as $G$ holds $c$.",
        "E(e,c_h,w)", energy,
        Matrix([
            rates[0] - rates[1], diff(rates[0], e), diff(rates[0], w),
            *(cancelled(sum(diff(energy, symbol) * entry for symbol, entry in zip((e, head, w), gradient)).subs(sign_w, side))
              for side in (1, -1)),
        ]),
        Check("e² less 1 and quadratures, in w from ±1 and in c from 0, of the numerical field of a network", reference=_energy,
              tolerance=1e-12, **{**everywhere, "cases": places[1:5]}),
    )
    planes = [kappa.subs({e: LENGTH / sqrt(2), head: side * LENGTH / sqrt(2)}) for side in (1, -1)]
    chapter.add(
        "planes",
        "$D=0$ is the two planes $e=c_h=x/\\sqrt2$ and $e=-c_h=x/\\sqrt2$; the gradient is tangent to them. On the first the gap is the "
        "canonical one with $A/2$ in place of $A$, and $E$ is the canonical $x^2-G$. On the second it is the negative of that: "
        "$e=-c_h$ is a canonical landscape with $-\\kappa^*$ in place of $\\kappa^*$.",
        r"\left(\kappa\big|_{e=c_h},\ \kappa\big|_{e=-c_h}\right)", Matrix(planes),
        Matrix([
            expand((kappa_e - side * kappa_c).subs({e: LENGTH / sqrt(2), head: side * LENGTH / sqrt(2)})) for side in (1, -1)
        ]),
        Check("the gap of a network with a head of its own at e = x/√2 and c = ±x/√2", cases=places,
              values=lambda s: {**s.point(), LENGTH: s.at[0]},
              reference=lambda s: [s.gap(s.at[0] / mpmath.sqrt(2), side * s.at[0] / mpmath.sqrt(2), s.at[2]) for side in (1, -1)]),
    )
    rates = [-2 * slope * e * kappa_e, -2 * slope * head * kappa_c, -slope * kappa_w]
    chapter.add(
        "rates",
        "How $e^2$, $c_h^2$ and $w$ change. The squares change alike, by $-2\\varphi_1\\kappa$: **as long as $\\tau\\kappa<0$ both fall**, "
        "and $w$ moves towards $w_s$ if $w<0$, towards $0^+$ if $w>0$.",
        r"\left(\tfrac{d}{dt}e^2,\ \tfrac{d}{dt}c_h^2,\ \dot w\right)", Matrix([expand(entry) for entry in rates]),
        Matrix([expand(entry + 2 * slope * kappa) for entry in rates[:2]]),
        Check("numerical gradient of the minimised loss of a network", reference=_rates, **everywhere),
    )


def _difference(place):
    e_, c_, w_ = place.at

    def along(at):
        return 2 * e_ * mpmath.diff(place.gap, (e_, at, w_), (1, 0, 0)) / mpmath.diff(place.gap, (e_, at, w_), (0, 1, 0))

    with mpmath.workdps(24):
        return e_**2 - mpmath.quad(along, [mpf(0), c_], maxdegree=3)


def _energy(place):
    e_, c_, w_ = place.at

    def slope_in(k, *at):
        return mpmath.diff(place.gap, at, tuple(int(i == k) for i in range(3)))

    def along_w(at):
        return 2 * (e_ * slope_in(0, e_, c_, at) + c_ * slope_in(1, e_, c_, at)) / slope_in(2, e_, c_, at)

    def along_c(at):  # G' is the field's at the place itself, and κ_w / κ_c that at the other heads
        return (along_w(w_) * slope_in(2, e_, at, w_) - 2 * e_ * slope_in(0, e_, at, w_)) / slope_in(1, e_, at, w_)

    with mpmath.workdps(24):
        first = mpmath.quad(along_w, [mpmath.sign(w_), w_], maxdegree=5)
        return e_**2 - 1 - first + mpmath.quad(along_c, [mpf(0), c_], maxdegree=3)


def _rates(place):
    e_, c_, _ = place.at
    by_e, by_c, by_w = place.slopes(place.loss)
    return [-2 * e_ * by_e, -2 * c_ * by_c, -by_w]


# (p, q or None, states) on both sides of the threshold, with the largest |e| and the range of w of random starts.
CHAINS = (
    (0.5, 0.8, 2, 1.4, (-2, 1)), (0.2, 0.3, 2, 1.4, (-2, 1)), (0.9, None, 3, 0.6, (-1.5, -0.6)), (0.3, None, 5, 0.8, (-2.5, -0.7)),
)


@cache
def integrated_starts(on_planes: bool = False) -> tuple[dict, ...]:
    """Random starts, everywhere or on the two planes e = ±c, with the outcome of their integrated orbit, for each of `CHAINS`."""
    generator, found = np.random.default_rng(203), []
    for p_, q_, states_, furthest, (low, high) in CHAINS:
        starts = generator.uniform((-furthest, -1.4, low), (furthest, 1.4, high), size=(60 if on_planes else 110, 3))
        planes = np.sign(starts[:, 1]) if on_planes else np.zeros(len(starts))
        star = mpmath.log((1 - p_) * ((1 - q_) / (p_ * q_) if q_ else (states_ - 1) / p_))
        phi = (lambda k: minimised_loss(k, mpf(p_), mpf(q_))) if q_ else (lambda k: softmax_loss(k, states_, mpf(p_)))
        losses = float(phi(mpf(0))), float(phi(star))
        if on_planes:
            lengths = np.sqrt(2) * starts[:, 0]
            starts[:, 1] = planes * starts[:, 0]
            ends = outcomes_on_plane(PlaneNetwork(planes, p_, q_, states_), np.column_stack([lengths, starts[:, 2]]), *losses)
        else:
            ends = outcomes_untied(NumericNetwork(p_, q_, states_), starts, *losses)
        for (e_, c_, w_), plane, outcome in zip(starts.tolist(), planes.tolist(), ends):
            if outcome is not None:
                setting = Setting(mpf(e_), mpf(w_), mpf(p_), q_, None if q_ else states_)
                found.append({"setting": setting, "head": mpf(c_), "target": int(mpmath.sign(star)), "end": outcome, "plane": plane})
    return tuple(found)


def _numbers(case: dict) -> dict:
    s = case["setting"]
    return {
        e: s.e, head: case["head"], w: s.w, sign_e: mpmath.sign(s.e), sign_w: mpmath.sign(s.w), curvature: s.constants[1],
        curvature_across: replace(s, e=-s.e).constants[1], target: case["target"], PLANE: case["plane"],
        LENGTH: mpmath.sqrt(2) * abs(s.e), SMALLER: min(abs(s.e), abs(case["head"])),
    }


_SIDES = tuple(Setting(mpf(side), mpf("-0.5"), p=mpf(p_), states=n) for side in (1, -1) for p_, n in (("0.9", 3), ("0.25", 4)))


def _measured_depth(s: Setting):
    here, there = (-1 / mpmath.sqrt(replace(s, e=side).constants[1]) for side in (s.e, -s.e))
    return orbit_rise(s, here, there)


def _below(e_, w_, p_, states_=None) -> Setting:
    chain = {"p": mpf(p_), "states": states_} if states_ else {"p": mpf(p_), "q": mpf("0.8")}
    return Setting(mpf(e_), mpf(w_), **chain)


def add_limits(chapter: Chapter, invariant: Chapter) -> None:
    """Which factor of the gap vanishes first, and what that makes of a start."""
    t = elementary(invariant["threshold_in_s"]).subs(log_ratio, log(curvature * w**2))
    compact = 2 * SMALLER**2 - t
    energy = chapter["E"].subs(sign_w, -1)
    chapter.add(
        "race",
        "$w<0$. Let $m$ be the smaller of $|e|$ and $|c_h|$. $E+G_{\\min}-|D|$ is this, in the notation $T(w)=G(w)-G_{\\min}$ of "
        "[the separatrix](canonical-invariant.md): $R=2m^2-T(w)$. The flow keeps it, $T\\ge0$ vanishes at $w_s$ alone. So while "
        "$\\tau\\kappa<0$: if $R>0$ then $B$ vanishes while $m>0$; if $R<0$, or $w\\ge0$, the smaller of the two vanishes while $B\\ne0$; "
        "if $R=0$ the orbit ends where both vanish, on one of the saddle lines.",
        r"R(m,w)", compact,
        Matrix([
            cancelled(reduce_signs(expand((energy + invariant["G_min"] - (large**2 - small**2)).subs(small, SMALLER)
                                          - compact).replace(log, lambda x: log(x.subs(w, sqrt(w**2)))).subs(
                log(curvature * w**2), log(curvature) + log(w**2)).expand()))
            for large, small in ((e, head), (head, e))
        ]),
        Check("2m² less the quadrature of a network's numerical field from where its gap vanishes", cases=[
                  _below("0.75", "-0.5", "0.5"), _below("0.5", "-1.25", "0.5"), _below("0.375", "-1.5", "0.9", 3),
                  _below("-0.625", "-0.25", "0.9", 3)],
              values=lambda s: {**s.point(), SMALLER: abs(s.e)},
              reference=lambda s: 2 * s.e**2 - orbit_rise(s, -1 / mpmath.sqrt(s.constants[1]), s.w), tolerance=1e-13),
    )
    on_plane = (2 * SMALLER**2 - compact).subs(SMALLER, LENGTH)
    b = 1 + curvature * sign_w * w**2
    integrated = "orbits of networks with two, three and five symbols, integrated in arc length with numerical gradients (double precision)"
    chapter.add(
        "planes_end_in_saddles",
        "On the planes $e=\\sigma_pc_h$, $x\\ne0$. What would be local minima of the canonical landscape is the saddle line $e=c_h=0$ here: "
        "with $\\tau\\sigma_pB<0$ the start ends on it if $w\\ge0$ or $x^2\\le T(w)$ (with equality, in the point where the lines meet). "
        "All others on the planes are global.",
        r"\text{saddle for } e=\sigma_pc_h\ne0 \text{ iff}",
        And(target * PLANE * b < 0, Or(w >= 0, LENGTH**2 - on_plane < 0)), None,
        Check(integrated, cases=integrated_starts(True), values=_numbers, reference=lambda case: case["end"] == "saddle"),
    )
    depth = elementary(invariant["threshold_in_s"]).subs(log_ratio, log(curvature / curvature_across))
    chapter.add(
        "kink_depth",
        "$S\\ge3$ symbols. Let $c_\\times$ be $c$ across $e=0$ and $h=T(-1/\\sqrt{c_\\times})$. On $e=0$, $c_h\\ne0$, $L_e$ is "
        "$\\varphi'(0)Ac_hB$, with the $B$ of the side. Between the zeros $-1/\\sqrt{c_-}<w<-1/\\sqrt{c_+}$ of the two $B$ is negative "
        "for $e>0$ and positive for $e<0$: **for $\\tau c_h>0$ the loss rises on both sides, and the whole piece of the plane $e=0$ is a "
        "bad local minimum at the unigram loss**; for $\\tau c_h<0$ it falls on both sides, a ridge. On it all tangential derivatives "
        "vanish, so that the flow does not slide but stands still. Two symbols have $h=0$, and no such piece.",
        "h", depth, depth.subs(curvature_across, curvature),
        Check("quadrature of a network's numerical field between the two points of e = 0 where its gap changes sign on either side",
              cases=_SIDES, values=_sides_numbers, reference=_measured_depth, tolerance=1e-13),
    )
    race = compact
    generic = integrated_starts()
    stuck = And(target * sign_e * head * b < 0, e**2 - head**2 < 0, sign_e * b < 0, w < 0, race < 0, race > -depth)
    chapter.add(
        "reaches_local_minimum",
        "If $e$ vanishes first the orbit meets $e=0$ where $T=-R$, on the same side of $w_s$. It is held there if this is between the "
        "two zeros of $B$: if $w$ was on that side of $w_s$, and $-R<h$. Else $B$ has one sign on both sides of $e=0$, $e$ changes its sign "
        "and with it $\\kappa$. Here $m=|e|$.",
        r"\text{local for } ec_hB\ne0,\ e^2\ne c_h^2 \text{ iff}", stuck, None,
        Check(integrated, cases=generic, values=_numbers, reference=lambda case: case["end"] == "local"),
    )
    free = Or(
        target * sign_e * head * b > 0, e**2 - head**2 > 0, sign_e * b > 0, w >= 0, race > 0, race < -depth,
    )
    chapter.add(
        "reaches_optimum",
        "If $\\tau\\kappa>0$ the gap keeps its sign and goes to $\\kappa^*$, as orbits are bounded ($\\kappa$, $D$ and $E$ are, which keeps "
        "$w$ from 0 and from infinity). A start with $\\kappa=0$ that is not critical gets $\\tau\\kappa>0$ at once. If $\\tau\\kappa<0$ the gap "
        "changes its sign as soon as one factor vanishes alone. So **with two symbols every start is global but for a set of measure zero**: "
        "the critical lines, and the starts with $\\tau\\kappa<0$ and $w<0$ on $R=0$, or with $\\tau\\kappa<0$ on the planes $e=\\pm c_h$ with "
        "$w\\ge0$ or $R\\le0$; those end in saddles. With $S\\ge3$ symbols the local minima on the kink have an open basin.",
        r"\text{global for } ec_hB\ne0,\ e^2\ne c_h^2,\ R\notin\{0,-h\} \text{ iff}", free, None,
        Check(integrated, cases=generic, values=_numbers, reference=lambda case: case["end"] == "global"),
    )


def _sides_numbers(s: Setting) -> dict:
    return {curvature: s.constants[1], curvature_across: replace(s, e=-s.e).constants[1]}
