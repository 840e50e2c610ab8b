"""Chapter: how long a start takes, as quadratures in one variable along its orbit, and what they say near the limits."""

from __future__ import annotations

import mpmath
from mpmath import mpf
from sympy import Matrix, Piecewise, Rational, Symbol, diff, exp, expand, expand_log, factor, integrate, limit, log, oo, pi, simplify, sqrt

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.canonical import EVERYWHERE, Setting, settings
from landscape.symbolic.chain_slopes import slopes_beyond_optimum
from landscape.symbolic.critical_sets import moved_to_optimum
from landscape.symbolic.invariants import orbit_rise
from landscape.symbolic.primitives import above_tangent, elementary, expm1
from landscape.symbolic.steps import Chapter, Check, Kernel
from landscape.symbolic.symbols import (
    bend, curvature, e, factor_here, growth, height, ratio_here, rise, scale, sign_w, slope, square, w,
)

WAYS = ("0.25", "-0.5", "-0.75", "-0.125", "0.4", "-0.3")  # ξ at each of the places
NEARBY = mpf("1e-15")


def canonical_times(derivatives: Chapter, conserved: Chapter, rates: Chapter, binary: Chapter, symmetric: Chapter) -> Chapter:
    """Times along orbits."""
    chapter = Chapter(
        "canonical-times",
        "Times",
        "Every orbit is known by $E$, so the time along it is one integral. Let $\\xi=\\log(w^2/w_0^2)$ be counted from any point of "
        "the orbit, at which $e^2=u_0$, $1+c\\,w|w|=B_0$ and $cw^2=r_0$. On the orbit everything is a function of $\\xi$ alone, also on "
        "$w=0$, where $r_0=0$ and $\\xi$ is a formal parameter. With $\\operatorname{exc}(x)=e^x-1-x$ nothing cancels near the point "
        "that is chosen: a start near $e=0$, the crossing of the saddle's $w$, or the limit itself. $\\varphi_1$ and $\\varphi_2$ are "
        "$\\varphi'$ and $\\varphi''$ at the gap of the point. Starts on $e=0$ and on $\\kappa=\\kappa^*$ do not move.",
        settles="*Claim*: none; summary and replies say where training ends, not how long it takes. *Beyond*: the time to come within "
        "any distance of the limit as one integral, the delay next to the separatrix, and the escape from a plateau.",
    )
    places = tuple(zip(settings(*EVERYWHERE), (mpf(way) for way in WAYS)))
    _orbit(chapter, derivatives, conserved, {"cases": places, "values": _anchored})
    slopes_beyond_optimum(chapter, binary, symmetric)
    _near_limits(chapter, rates)
    _near_saddle(chapter, derivatives, rates)
    chapter.results["kernels"] = _kernels(chapter)
    return chapter


def _anchored(case) -> dict:
    """Numbers of the symbols at a place, from the network; `case` is it and ξ."""
    s, way = case
    a, c = s.constants
    return {**s.point(), growth: way, square: s.e**2, factor_here: s.gap(s.e, s.w) / (a * s.e**2), ratio_here: c * s.w**2}


def _rise(s: Setting, way):
    return orbit_rise(s, s.w, s.w * mpmath.exp(way / 2))


def _orbit(chapter, derivatives, conserved, at) -> None:
    """e², B, κ and dt/dξ as functions of ξ."""
    g = conserved["G"]
    here = {factor_here: 1 + curvature * sign_w * w**2, ratio_here: curvature * w**2, square: e**2}
    along = square + (sign_w * factor_here * growth + ratio_here * above_tangent(growth)) / curvature
    moved = g.subs(w, w * exp(growth / 2))
    residual = (elementary(along).subs(here) - e**2 - moved + g)
    chapter.add(
        "orbit_square", "$e^2=E+G(w)$ at $w=w_0e^{\\xi/2}$, with $E$ from the point.", r"e^2(\xi)", along,
        Matrix([_zero(residual.subs(sign_w, side)) for side in (1, -1)]),
        Check("e² at a point plus the quadrature of a network's numerical field from there", tolerance=1e-13,
              reference=lambda case: case[0].e ** 2 + _rise(*case), **at),
    )
    factor = factor_here + sign_w * ratio_here * expm1(growth)
    chapter.add(
        "orbit_factor", "The second factor of the gap. It changes sign at most once, where the orbit passes the saddle.",
        r"B(\xi)=1+c\,w|w|", factor,
        cancelled(elementary(factor).subs(here) - (1 + curvature * sign_w * w**2 * exp(growth))),
        Check("ratio of the gaps of a network with a larger w and with w = 0",
              reference=lambda case: case[0].gap(mpf(1) * mpmath.sign(case[0].e), case[0].w * mpmath.exp(case[1] / 2)) / case[0].constants[0],
              **at),
    )
    change = scale * ((along - square) * factor + square * (factor - factor_here))
    chapter.add(
        "gap_change", "The change of the gap. It has the sign of $\\sigma_w\\xi$: the gap is monotone in $\\xi$.",
        r"\kappa(\xi)-\kappa(0)", change,
        cancelled(elementary(change - scale * (along * factor - square * factor_here))),
        Check("difference of the gaps of a network at two points of an orbit, the second by quadrature", tolerance=1e-13,
              reference=_gap_change, **at),
    )
    # ξ̇ = 2ẇ/w, and |w| = σ_w w.
    w_rate = -derivatives["gradient"][1].subs(e**2, square)
    density = cancelled(w / (2 * w_rate)).subs(1 / sign_w, sign_w)
    chapter.add(
        "time_density", "$\\dot\\xi=2\\dot w/w$. The time between two points is the integral of this, with $\\varphi'$ at $\\kappa(\\xi)$ and "
        "$e^2=e^2(\\xi)$ for $u_0$: **one quadrature**, regular but for the zeros of $\\varphi'$ and of $e^2$ at the limits.",
        r"\frac{dt}{d\xi}", density, cancelled(density * 2 * w_rate / w).subs(sign_w**2, 1) - 1,
        Check("w over twice ẇ, from the numerical gradient of the minimised loss of a network",
              cases=settings(*EVERYWHERE), values=lambda s: {**s.point(), square: s.e**2},
              reference=lambda s: -s.w / (2 * mpmath.diff(s.loss, (s.e, s.w), (0, 1)))),
    )


def _zero(expression):
    """Simplify a difference of logarithms of w², an exponential and powers."""
    return simplify(expand(expand_log(expression.replace(log, lambda x: log(x).expand(force=True)), force=True)))


def _gap_change(case):
    s, way = case
    size = mpmath.sqrt(s.e**2 + _rise(s, way)) * mpmath.sign(s.e)
    return s.gap(size, s.w * mpmath.exp(way / 2)) - s.gap(s.e, s.w)


def _density_along(chapter):
    return chapter["time_density"].subs(square, chapter["orbit_square"])


def _near_limits(chapter, rates) -> None:
    """Logarithmic approaches: to the optimum, to and from the line e = 0, and on w = 0."""
    at_end = {factor_here: 1 + curvature * sign_w * w**2, ratio_here: curvature * w**2, square: e**2}
    small = bend * diff(elementary(chapter["gap_change"]), growth).subs(growth, 0).subs(at_end)
    pace = cancelled(-chapter["time_density"].subs(square, e**2).subs(slope, small))
    pace = factor(cancelled(pace.subs(1 / sign_w, sign_w)).expand().subs(sign_w**2, 1))
    chapter.add(
        "to_optimum",
        "Counted from the limit, $\\varphi'=\\varphi''\\kappa'(\\xi)\\,\\xi$ to leading order, and the distance $\\delta$ is proportional to "
        "$|\\xi|$. So $t=\\frac1{\\lambda}\\log\\frac1\\delta+\\text{const}+o(1)$ with $\\lambda=\\lambda_{\\text{global}}$.",
        r"\lim_{\xi\to0}\,-\xi\,\frac{dt}{d\xi}=\frac1{\lambda_{\text{global}}}", pace,
        _even(cancelled(pace * rates["rate_global"]) - 1),
        Check("distance over speed of a network 1e-15 away from a global minimum, by the numerical gradient of its minimised loss",
              cases=tuple(moved_to_optimum(s) for s in settings(("1", "-1"), ("-1", "0.5"), ("1", "-1.5"))),
              values=Setting.point, reference=_settling, tolerance=1e-12),
    )
    near = elementary(_density_along(chapter).subs(square, 0)).subs(at_end)
    line = _even(cancelled(limit(cancelled(2 * growth * near), growth, 0) * -1))
    chapter.add(
        "near_line",
        "Counted from the limit on $e=0$, $e^2$ is proportional to $\\xi$. Where the line attracts, this is $1/\\lambda_{\\text{local}}$ "
        "and $t=\\frac1{\\lambda_{\\text{local}}}\\log\\frac1\\delta+\\text{const}$. Where it repels, it is negative: a start at a small "
        "$|e_0|$ escapes after $\\frac1{|\\lambda_{e=0}|}\\log\\frac1{|e_0|}+\\text{const}$.",
        r"\lim_{e\to0}\,\frac{dt}{d\log(1/|e|)}=\frac1{\lambda_{e=0}}", line, cancelled(line * rates["rate_local"] - 1),
        Check("e over −ė of a network at e = 1e-15, from the numerical gradient of its minimised loss", tolerance=1e-10,
              cases=settings(("1", "0.5"), ("-1", "-1.25"), ("1", "-0.75"), ("1", "-0.25")), values=lambda s: s.point(mpf(0)),
              reference=lambda s: s.e * NEARBY**2 / mpmath.diff(lambda x: s.loss(x * NEARBY, s.w), s.e)),
    )
    still = {sign_w: 1, ratio_here: 0, factor_here: 1}
    rise = diff(elementary(chapter["orbit_square"]), growth).subs(still)
    alone = cancelled(-2 * square / rise * chapter["time_density"].subs(still))
    chapter.add(
        "on_axis", "On $w=0$ only $e$ moves: $c$ drops out, and $\\xi$ is $c$ times the change of $e^2$. Here $\\varphi_1$ is "
        "$\\varphi'(Ae^2)$.",
        r"\frac{dt}{d\log(1/|e|)}\Big|_{w=0}", alone, cancelled(alone * rates["rate_local"].subs(w, 0)) - 1,
        Check("e over −ė of a network with w = 0, from the numerical gradient of its minimised loss",
              cases=settings(("0.75", "0"), ("-1.25", "0"), ("1.5", "0"), ("-0.3", "0"), ("2", "0"), ("-0.5", "0")),
              values=Setting.point, reference=lambda s: s.e / mpmath.diff(s.loss, (s.e, s.w), (1, 0))),
    )


def _even(expression):
    """An expression in which the sign of w occurs squared or to an odd power, with σ² = 1, over one denominator."""
    sides = [cancelled(expression.subs(sign_w, side)) for side in (1, -1)]
    mean, half = cancelled((sides[0] + sides[1]) / 2), cancelled((sides[0] - sides[1]) / 2)
    if half == 0:
        return mean
    return cancelled(expression.subs(sign_w**2, 1))


def _settling(s: Setting):
    """Distance over speed towards the limit, across the curve of global minima."""
    across = [mpmath.diff(s.gap, (s.e, s.w), order) for order in ((1, 0), (0, 1))]
    norm = mpmath.hypot(*across)
    e_, w_ = (x + NEARBY * d / norm for x, d in zip((s.e, s.w), across))
    slopes = [mpmath.diff(s.loss, (e_, w_), order) for order in ((1, 0), (0, 1))]
    return NEARBY / mpmath.hypot(*slopes)


def _near_saddle(chapter, derivatives, rates) -> None:
    """Algebraic approach on the separatrix, and the delay of a passage beside it."""
    at_saddle = {sign_w: -1, factor_here: 0, ratio_here: 1}
    leading = elementary(chapter["orbit_square"]).subs(at_saddle).series(growth, 0, 3).removeO()
    passing = cancelled(chapter["time_density"].subs(sign_w, -1).subs(square, leading))
    size = Symbol("x", positive=True)
    elapsed = integrate(passing.subs(square, 0).subs(slope, 1), (growth, size, oo)) / abs(slope)
    aside = size / (2 * sqrt(curvature))
    distance = sqrt(cancelled(leading.subs(square, 0).subs(growth, size) + aside**2))
    product = simplify(elapsed * distance)
    chapter.add(
        "to_saddle",
        "Counted from the saddle ($u_0=B_0=0$, $r_0=1$), $e^2\\approx\\xi^2/2c$ and $w-w_s\\approx w_s\\xi/2$ on the separatrix. The time is "
        "algebraic in the distance $\\delta$: $t\\approx\\sqrt{3/2}/(C\\delta)$, which is $1/(Ce)$.",
        r"\lim_{\delta\to0}\,t\,\delta", product,
        simplify((product * rates["rate_saddle"]) ** 2 - Rational(3, 2)),
        Check("δ² over −dδ/dt of a network on the separatrix 1e-14 away from the saddle, from the numerical gradient of its loss",
              cases=settings(("1", "0"), ("-1", "0"), ("1", "0")), values=lambda s: s.point(mpf(0)),
              reference=_slowing, tolerance=1e-9),
    )
    passage = simplify(integrate(passing.subs(square, height).subs(slope, 1), (growth, -oo, oo)) / abs(slope))
    chapter.add(
        "passage",
        "A start off the separatrix, with $m=E-E_{\\text{sad}}>0$, passes the saddle at $e^2=m$. To leading order in $m$ the passage takes "
        "this, which is $\\pi/(C\\sqrt m)$: a start at distance $\\varepsilon$ from the separatrix is **delayed by a multiple of "
        "$\\varepsilon^{-1/2}$**.",
        r"\lim_{m\to0^+}\,\sqrt m\,t", simplify(passage * sqrt(height)),
        simplify((passage * sqrt(height) * rates["rate_saddle"]) ** 2 - pi**2),
        Check("quadrature, at m = 1e-24, of the numerical gradient of a network's loss along the orbit that its numerical field gives",
              cases=settings(("1", "0"), ("-1", "0"), ("1", "0"), ("-1", "0"), ("-1", "0"), ("-1", "0")),
              values=lambda s: s.point(mpf(0)), reference=_passing, tolerance=1e-7),
    )
    turned = sqrt(2 * curvature * height)  # |ξ| at e = 0, from e² = ξ²/2c - |m|; B = ∓ξ to leading order
    slow = cancelled(2 * scale * abs(slope) * turned / sqrt(height))
    chapter.add(
        "slow_end",
        "For $m<0$ the orbit turns back before the saddle and ends on $e=0$ where $|B|\\approx\\sqrt{2c|m|}$, at the rate "
        "$2A|\\varphi'(0)B|$. That is $C\\sqrt{|m|}$: on this side too the time grows like $|m|^{-1/2}$.",
        r"\lim_{m\to0^-}\,\lambda_{\text{local}}/\sqrt{|m|}", slow,
        Matrix([simplify((slow / rates["rate_saddle"]) ** 2 - 1),
                cancelled(leading.subs(square, -height).subs(growth, turned)),
                simplify((slow * sqrt(height)) ** 2 - (rates["rate_local"].subs(sign_w, -1) ** 2).subs(w**2, (1 + turned) / curvature))]),
        Check("−ė/e of a network at e = 1e-15, where its numerical field meets e = 0 on the orbit with m = -1e-24",
              cases=settings(("1", "0"), ("-1", "0"), ("1", "0")), values=lambda s: s.point(mpf(0)), reference=_slow_rate,
              tolerance=1e-10),
    )


def _field_slope(s: Setting, saddle):
    """d²(e²)/dw² of orbits at the saddle, from a network's numerical field next to it."""
    probe, side = mpf("1e-14"), mpmath.sign(s.e)
    along, across = (mpmath.diff(s.gap, (side, saddle + probe), order) for order in ((1, 0), (0, 1)))
    return abs(2 * side * along / across / probe)


def _slow_rate(s: Setting):
    """−ė/e over √|m| at the end of the orbit that misses the saddle by m = -1e-24."""
    depth, side = mpf("1e-24"), mpmath.sign(s.e)
    saddle = -1 / mpmath.sqrt(s.constants[1])
    offset = mpmath.sqrt(2 * depth / _field_slope(s, saddle))
    rates = [mpmath.diff(lambda x: s.loss(x * NEARBY, saddle + d), side) / side / NEARBY**2 for d in (offset, -offset)]
    return max(rates) / mpmath.sqrt(depth)  # one side attracts, the other repels


def _slowing(s: Setting):
    """δ² / −δ̇ on the separatrix, on the side from which the saddle is approached."""
    c = s.constants[1]
    ratio = -mpf("1e-14") * mpmath.sign(mpmath.diff(s.phi, mpf(0)))
    saddle, side = -1 / mpmath.sqrt(c), mpmath.sign(s.e)
    along = -mpmath.exp(ratio / 2) / mpmath.sqrt(c)
    size = mpmath.sqrt((mpmath.expm1(ratio) - ratio) / c)
    slopes = [mpmath.diff(lambda x: s.loss(side * size * x, along), mpf(1)) / size,
              mpmath.diff(lambda x: s.loss(side * size, along * x), mpf(1)) / along]
    distance = mpmath.hypot(size, along - saddle)
    closing = (slopes[0] * size + slopes[1] * (along - saddle)) / distance
    return distance**2 / closing


def _passing(s: Setting):
    """√m times the time to pass the saddle at e² = m."""
    m, c, side = mpf("1e-24"), s.constants[1], mpmath.sign(s.e)
    saddle = -1 / mpmath.sqrt(c)
    with mpmath.workdps(40):
        ratio = _field_slope(s, saddle)
        width = mpmath.sqrt(2 * m / ratio)
        pull = abs(mpmath.diff(s.phi, mpf(0)))

        def speed(angle):
            offset = width * mpmath.tan(angle)
            size = mpmath.sqrt(m + ratio * offset**2 / 2)
            rate = pull * abs(mpmath.diff(lambda x: s.gap(size * side, x), saddle + offset))
            return width / mpmath.cos(angle) ** 2 / rate

        return mpmath.sqrt(m) * mpmath.quad(speed, [-mpmath.pi / 2 + mpf("1e-8"), mpmath.pi / 2 - mpf("1e-8")], maxdegree=4)


def _kernels(chapter) -> tuple:
    """What the compiled quadrature takes; e² along the orbit goes in under the name of u_0 where it is known."""
    around = (growth, square, factor_here, ratio_here, sign_w, curvature)
    near = chapter["orbit_square"] - square
    far = expand(elementary(near).subs(factor_here, 1 + sign_w * ratio_here)).subs(sign_w**2, 1)  # large terms cancel here
    far = cancelled(far - ratio_here * (exp(growth) - 1) / curvature) + ratio_here * expm1(growth) / curvature
    factor_far = expand(elementary(chapter["orbit_factor"]).subs(factor_here, 1 + sign_w * ratio_here))
    factor_there = Piecewise((chapter["orbit_factor"], abs(growth) < 1), (factor_far, True))
    lets = ((rise, Piecewise((near, abs(growth) < 1), (far, True))),)
    change = chapter["gap_change"].subs(near, rise)
    return (
        Kernel("orbit_square", around, (square + rise,), "e² on the orbit through a point, ξ = log(w²/w_0²) further on.", lets),
        Kernel("orbit_factor", (growth, factor_here, ratio_here, sign_w), (factor_there,), "B = 1 + c w|w| there."),
        Kernel("gap_change", (*around, scale), (change,), "κ there less κ at the point.", lets),
        Kernel("gap_growth", (square, factor_here, ratio_here, sign_w, curvature, scale),
               (simplify(diff(elementary(chapter["gap_change"]), growth).subs(growth, 0)),), "dκ/dξ at a point."),
        Kernel("time_density", (square, slope, scale, curvature), (abs(chapter["time_density"].subs(sign_w, 1)),),
               "Time per unit of ξ where e² is u_0 and φ′ is phi_1."),
        Kernel("line_time", (slope, scale, factor_here),
               (chapter["near_line"].subs(sign_w, (factor_here - 1) / (curvature * w**2)).simplify(),),
               "Time per unit of log(1/|e|) on e = 0."),
        *chapter["slope_kernels"],
    )
