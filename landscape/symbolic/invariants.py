"""Chapter: the conserved quantity of the canonical flow, and the separatrix as one of its level sets."""

from __future__ import annotations

from functools import cache

import mpmath
from mpmath import mpf
from sympy import Matrix, Piecewise, diff, exp, expand, integrate, log, simplify, sqrt

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.canonical import Setting, settings
from landscape.symbolic.layers import reduce_signs
from landscape.symbolic.primitives import elementary, expm1
from landscape.symbolic.steps import Chapter, Check, Kernel
from landscape.symbolic.symbols import curvature, e, log_ratio, scale, sign_w, size_w, w


def _field_ratio(s: Setting, along, side):
    """2 e (∂κ/∂e) / (∂κ/∂w) of a network: how e² changes with w on an orbit, at the given w."""
    return 2 * side * mpmath.diff(s.gap, (side, along), (1, 0)) / mpmath.diff(s.gap, (side, along), (0, 1))


@cache
def orbit_rise(s: Setting, start, end):
    """Change of e² along an orbit from one w to another, by quadrature of a network's numerical field."""
    side = mpmath.sign(s.e) or mpf(1)
    with mpmath.workdps(24):
        return mpmath.quad(lambda along: _field_ratio(s, along, side), [start, end], maxdegree=5)


def invariant(gap: Chapter, derivatives: Chapter, sets: Chapter) -> Chapter:
    """E = e² - G(w), its minimum at the saddle, the margin E - E_sad, and forms that keep their digits."""
    chapter = Chapter(
        "canonical-invariant",
        "The invariant and the separatrix",
        "Along the flow $\\dot e:\\dot w=\\kappa_e:\\kappa_w$ whatever the chain. The ansatz $E=e^2-G(w)$ turns $\\dot E=0$ into "
        "a quadrature for $G$.",
        settles="*Claim*: gradient flow on the canonical slice can be drawn as a phase portrait (Figure 2 of the paper); for "
        "larger alphabets that is hard to characterise, as there are more parameters (authors). *Settled*: every orbit is "
        "a level set of one function in closed form, and so is the separatrix. *Beyond*: the same for $S$ symbols on the "
        "simplex slice, on each side of $e=0$.",
    )
    kappa_e, kappa_w = derivatives["gap_gradient"]
    inner = settings(("0.5", "0.75"), ("1.5", "1.25"), ("0.5", "-0.5"), ("-1", "-1.25"), ("1", "-0.625"), ("-1", "0.5"))
    branches = {}
    for branch in (1, -1):
        slope_of_g = cancelled((2 * e * kappa_e / kappa_w).subs(sign_w, branch)).subs(w, branch * size_w)
        branches[branch] = expand(integrate(expand(slope_of_g * branch), size_w))
    merged = expand(sum((1 + branch * sign_w) / 2 * value for branch, value in branches.items()))
    g = reduce_signs(merged).subs(log(size_w), log(w**2) / 2).subs(size_w**2, w**2)
    chapter.add(
        "G",
        "$G'(w)=2e\\,\\kappa_e/\\kappa_w$ depends on $w$ alone. The constant is chosen to make $G(\\pm1)=1$ in both branches.",
        "G(w)",
        g,
        Matrix([
            cancelled(diff(g.subs(sign_w, branch), w) - (2 * e * kappa_e / kappa_w).subs(sign_w, branch)) for branch in (1, -1)
        ]),
        Check("1 plus the quadrature of a network's numerical field from w = ±1", cases=inner, values=Setting.point,
              reference=lambda s: 1 + orbit_rise(s, mpmath.sign(s.w), s.w), tolerance=1e-13),
    )
    energy = e**2 - g
    chapter.add(
        "E",
        "The invariant, for every chain: $\\nabla E\\cdot\\nabla\\kappa=0$.",
        "E(e,w)",
        energy,
        Matrix([
            cancelled((diff(energy, e) * kappa_e + diff(energy, w) * kappa_w).subs(sign_w, branch)) for branch in (1, -1)
        ]),
        Check("e² less the quadrature of a network's numerical field from w = ±1", cases=inner, values=Setting.point,
              reference=lambda s: s.e**2 - 1 - orbit_rise(s, mpmath.sign(s.w), s.w), tolerance=1e-13),
    )
    saddle = sets["saddle"]
    lowest = simplify(elementary(g.subs(sign_w, -1).subs(w, saddle)))
    chapter.add(
        "G_min",
        "On $w<0$ the function $G$ has one minimum, at the saddle: $G'(w_s)=0$ and $G''>0$. So $E_{\\text{sad}}=-G_{\\min}$.",
        r"G_{\min}=G(w_s)",
        lowest,
        Matrix([simplify(diff(g.subs(sign_w, -1), w).subs(w, saddle))]),
        Check("1 plus the quadrature of a network's numerical field from w = -1 to where its gap changes sign",
              cases=inner, values=Setting.point,
              reference=lambda s: 1 + orbit_rise(s, mpf(-1), -1 / mpmath.sqrt(s.constants[1])), tolerance=1e-13),
    )
    below = settings(("0.5", "-0.5"), ("1", "-1.25"), ("0.75", "-0.25"), ("-1.5", "-1.5"), ("0.25", "-0.875"), ("-0.5", "-0.4"))
    threshold = g.subs(sign_w, -1) - lowest
    in_ratio = threshold.subs(w, -exp(log_ratio / 2) / sqrt(curvature))
    in_ratio = expand(simplify(elementary(in_ratio)))
    in_ratio = cancelled(in_ratio)
    chapter.add(
        "threshold",
        "The value of $e^2$ at which $E=E_{\\text{sad}}$, for $w<0$: the separatrix is the curve $e^2=G(w)-G_{\\min}$.",
        r"e^2_{\text{sep}}(w)=G(w)-G_{\min}",
        threshold,
        simplify(threshold.subs(w, saddle)),
        Check("quadrature of a network's numerical field from the saddle along the separatrix", cases=below,
              values=Setting.point,
              reference=lambda s: orbit_rise(s, -1 / mpmath.sqrt(s.constants[1]), s.w), tolerance=1e-13),
    )
    compact = (expm1(log_ratio) - log_ratio) / curvature
    chapter.add(
        "threshold_in_s",
        "In $s=\\log(cw^2)$ the difference keeps its digits near the saddle ($s=0$) and for $w\\to0^-$. The separatrix is "
        "$w=-e^{s/2}/\\sqrt c$, $e=\\pm\\sqrt{(e^s-1-s)/c}$.",
        r"e^2_{\text{sep}}(s)",
        compact,
        cancelled(elementary(compact) - in_ratio),
        Check("quadrature of a network's numerical field from the saddle along the separatrix", cases=below,
              values=lambda s: {**s.point(), log_ratio: mpmath.log(s.constants[1] * s.w**2)},
              reference=lambda s: orbit_rise(s, -1 / mpmath.sqrt(s.constants[1]), s.w), tolerance=1e-13),
    )
    margin = e**2 - compact
    chapter.add(
        "margin",
        "$E-E_{\\text{sad}}$ for $w<0$: where an orbit crosses the line $w=w_s$, its $e^2$ is this number.",
        r"E(e,w)-E_{\text{sad}}",
        margin,
        cancelled(elementary(margin).subs(log_ratio, 2 * log(size_w) + log(curvature))
                  - (energy.subs(sign_w, -1).subs(w, -size_w) + lowest)),
        Check("e² less the quadrature of a network's numerical field from the saddle", cases=below,
              values=lambda s: {**s.point(), log_ratio: mpmath.log(s.constants[1] * s.w**2)},
              reference=lambda s: s.e**2 - orbit_rise(s, -1 / mpmath.sqrt(s.constants[1]), s.w), tolerance=1e-13),
    )
    spread = e**2 + sum(abs(term) for term in compact.expand().as_ordered_terms())
    sensitivity = abs(diff(compact, log_ratio).replace(exp, lambda x: expm1(x) + 1))
    rounding = spread + sensitivity.simplify() * (abs(log(curvature)) + 2 * abs(log(-w)))
    lets = ((log_ratio, log(curvature) + 2 * log(-w)),)
    sign = ((sign_w, Piecewise((1, w > 0), (-1, w < 0), (0, True))),)
    chapter.results["kernels"] = (
        Kernel("slope_factor", (w, curvature), (cancelled(derivatives["gap_gradient"][0] / (2 * scale * e)),),
               "B = 1 + c w|w|: on e = 0 its sign tells minima from maxima.", sign),
        Kernel("invariant", (e, w, curvature), (energy.subs(log(w**2), 2 * log(abs(w))),), "Conserved quantity E; NaN at w = 0, where it tends to infinities of both signs.", sign),
        Kernel("threshold", (w, curvature), (compact,), "e² on the separatrix, for w < 0.", lets),
        Kernel("margin_scale", (e, w, curvature), (rounding,),
               "Size of the terms of E - E_sad and of what rounding s moves it by, for w < 0.", lets),
    )
    return chapter

