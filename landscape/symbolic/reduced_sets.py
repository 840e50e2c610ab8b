"""Chapter: critical sets of the reduced landscape, its kinks, and where the canonical slice leads near the plateau."""

from __future__ import annotations

import mpmath
from mpmath import mpf
from sympy import Matrix, Rational, cancel, diff, expand, factor, log, solve, sqrt

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.primitives import elementary, softplus
from landscape.symbolic.reduced import CHAINS, WEIGHTS, gated_logits, gates, network_gap, network_loss, slope_at
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import (
    across, bias, e, first_weight, gate, gate_one, gate_zero, p, pace, position, q, ratio, second_weight, slope, variance, w,
)

PRODUCT = first_weight * second_weight

# Points of the plateau e = u = 0: with the gates open and closed, 1 + w_1 w_2 of both signs, both chains.
PLATEAU = tuple(
    dict(zip((e, position, first_weight, second_weight, across), map(mpf, ("0", *values, "0")))) | dict(zip((p, q), CHAINS[i % 2]))
    for i, values in enumerate((
        ("0.5", "1.25", "-0.875"), ("0.75", "1.5", "-1.25"), ("-0.5", "1.5", "0.75"), ("-0.75", "-0.875", "1.5"), ("1.25", "-0.5", "0.75"),
    ))
)
# Points of the kink e + c = 0 with e > 0 > c and w_1 > 0: ReLU is closed after a 0, and opens after a 1.
KINK = tuple(
    dict(zip((e, position, first_weight, second_weight, across), map(mpf, (a, f"-{a}", b, c, "0")))) | dict(zip((p, q), CHAINS[i % 2]))
    | {pace: mpf(s)}
    for i, (a, b, c, s) in enumerate((("0.5", "1.5", "-1.75", "0.0625"), ("0.375", "2", "-1.25", "0.25"), ("0.75", "1.25", "-2.5", "1")))
)


def reduced_sets(chain: Chapter, model: Chapter) -> Chapter:
    """Types of the critical sets, the sliding on the kink, and the thresholds along the canonical slice."""
    chapter = Chapter(
        "reduced-critical-sets",
        "The reduced landscape: critical sets, sliding, thresholds",
        "Away from global minima only the plateau $e=u=0$ is critical ([reduced](reduced.md)), where the loss is the unigram loss "
        "whatever $c,w_1,w_2$ are. What it does to its surroundings depends on the gate $A_y=[w_1c>0]$, the same after both symbols "
        "there, and on $w_1w_2$. $\\varphi_1$ is $\\varphi'$ at the gap.",
        settles="*Claim*: which starts end in local minima is decided by the regions of the canonical picture, in the full model "
        "too (authors). *Settled*: local minima remain on either side of $p+q=1$ when positions and both MLP matrices are "
        "trained on their own, but the regions move: their thresholds depend on the sign of $e$ and on the number of "
        "positions. *Beyond*: these thresholds to first order in $e$, and a plateau on which the flow slides for a time "
        "in proportion to the number of positions.",
    )
    _plateau(chapter, chain)
    _sliding(chapter, model)
    _thresholds(chapter, model)
    chapter.results["sets"] = _table(chapter)
    return chapter


def _plateau(chapter: Chapter, chain: Chapter) -> None:
    """The Hessian on e = u = 0 with the bias kept, and minimised out."""
    logits = [logit.subs({gate_zero: gate, gate_one: gate}) + bias for logit in gated_logits()]
    loss = sum(
        weight * softplus(-(2 * y - 1) * logits[x])
        for x, y, weight in ((0, 0, q * (1 - p)), (0, 1, q * p), (1, 0, p * q), (1, 1, p * (1 - q)))
    ) / (p + q)

    def entry(*symbols):
        return cancelled(elementary(diff(loss, *symbols)).subs({e: 0, across: 0}).subs(bias, log(p / q)))

    spread, excess = entry(bias, bias), chain["slope_at_zero"]  # v and φ′(0): all the chain enters through

    def named(value):
        """An entry in terms of v and φ′(0), as p + q - 1 = φ′(0)/v."""
        return factor(variance * cancelled(value / spread).subs(q, slope / variance + 1 - p))

    plain = [entry(e, e), entry(e, bias), spread, entry(across, across)]
    hessian = [named(value) for value in plain]
    flat = [entry(a, b) for a in (e, bias, across) for b in WEIGHTS[1:]] + [entry(a, b) for a in WEIGHTS[1:] for b in WEIGHTS[1:]]
    at = {"cases": PLATEAU, "values": lambda s: {
        **s, gate: gates(s)[gate_zero], slope: slope_at(mpf(0), s), variance: s[p] * s[q] / (s[p] + s[q]) ** 2}}
    chapter.add(
        "hessian_kept",
        "With the bias as a parameter, $v=\\sigma(b)\\sigma(-b)=pq/(p+q)^2$ and $\\varphi_1=\\varphi'(0)$. All entries with $c$, $w_1$ or $w_2$ vanish, as SymPy finds: these directions run along "
        "the plateau.",
        r"(L_{ee},\ L_{eb},\ L_{bb},\ L_{uu})\big|_{e=u=0,\,b=\log(p/q)}", Matrix(hessian),
        Matrix(flat + [cancelled(told.subs({slope: excess, variance: spread}) - value) for told, value in zip(hessian, plain)]),
        Check("second numerical derivatives of the cross-entropy of a network", reference=_kept, tolerance=1e-12, **at),
    )
    reduced = factor(cancel(hessian[0] - hessian[1] ** 2 / hessian[2]))
    chapter.add(
        "hessian_on_plateau",
        "With the bias at its minimiser (the Schur complement): $2\\varphi'(0)(1+A_yw_1w_2)$ along $\\hat\\alpha$, and $2\\varphi'(0)$ "
        "across. A positive pair makes the plateau a line of minima (the kernel of the Hessian is its tangent space), a negative "
        "entry makes it a strict saddle. **Across, the sign is that of $p+q-1$ alone.**",
        r"(L_{ee},\ L_{uu})\big|_{e=u=0,\,b=b^*(\theta)}", Matrix([reduced, hessian[3]]),
        Matrix([cancel(reduced - 2 * slope * (1 + gate * PRODUCT)), cancel(hessian[3] - 2 * slope)]),
        Check("second numerical derivatives of the cross-entropy of a network, and the bias eliminated from them",
              reference=lambda s: _schur(_kept(s)), tolerance=1e-12, **at),
    )


def _kept(point):
    """Second derivatives in (e, b) and in u of a network's loss on the plateau; within a branch, as gates are open or closed."""
    best = mpmath.log(point[p] / point[q])

    def loss(e_, b_, u_):
        return network_loss(point, {e: e_, across: u_}, bias=b_)

    start = (mpf(0), best, mpf(0))
    return [mpmath.diff(loss, start, order) for order in ((2, 0, 0), (1, 1, 0), (0, 2, 0), (0, 0, 2))]


def _schur(entries):
    return [entries[0] - entries[1] ** 2 / entries[2], entries[3]]


def _sliding(chapter: Chapter, model: Chapter) -> None:
    """What the two sides of the kink e + c = 0 do to a flow on it."""
    gradient = model["gradient"].subs({across: 0, gate_zero: 0, position: -e})
    stream = -(gradient[0] + pace * gradient[1])
    sides = Matrix([factor(expand(stream.subs(gate_one, opened))) for opened in (0, 1)])
    at = {"cases": KINK, "values": lambda s: {**s, slope: slope_at(network_gap(s), s)}}
    chapter.add(
        "kink",
        "At $e+c=0$ with $e>0$, $w_1>0$ ReLU closes after a 1. How fast $y_1=e+c$ changes on the closed and on the open side, if "
        "the position moves $s_c$ times as fast as the rest ($s_c=1/N$ for positions of their own). Where $\\varphi_1<0$ the closed "
        "side pushes towards the kink, and so does the open one iff $w_1w_2(1+s_c)<-2$: then the flow slides along it.",
        r"(\dot y_1^{\text{closed}},\ \dot y_1^{\text{open}})", sides,
        Matrix([expand(sides[1] - sides[0] + slope * e * PRODUCT * (1 + pace))]),
        Check("one-sided numerical derivatives of the cross-entropy of a network, minimised over the bias",
              reference=lambda s: [_stream_rate(s, side) for side in (-1, 1)], tolerance=1e-9, **at),
    )
    share = cancelled(sides[0] / (sides[0] - sides[1]))
    slide = factor(cancelled(share * -gradient[0].subs(gate_one, 1) + (1 - share) * -gradient[0].subs(gate_one, 0)))
    chapter.add(
        "slide",
        "The mean of the two sides that stays on the kink (Filippov). While it slides, ReLU lets nothing through, the weights "
        "rest, and $\\kappa=e^2$ grows to $\\kappa^*$: **not a trap, but a plateau of a length in proportion to $1/s_c=N$**, at "
        "losses $\\varphi(e^2)$.",
        r"\dot e\big|_{\text{sliding}}", slide,
        cancelled(share * sides[1] + (1 - share) * sides[0]),
        Check("the same mean of one-sided numerical derivatives of the cross-entropy of a network", reference=_slide, tolerance=1e-9, **at),
    )


def _one_sided(point, symbol, side):
    return mpmath.diff(lambda value: network_loss(point, {symbol: value}), point[symbol], direction=side)


def _stream_rate(point, side):
    return -(_one_sided(point, e, side) + point[pace] * _one_sided(point, position, side))


def _slide(point):
    closed, opened = (_stream_rate(point, side) for side in (-1, 1))
    share = closed / (closed - opened)
    return -(share * _one_sided(point, e, 1) + (1 - share) * _one_sided(point, e, -1))


def _thresholds(chapter: Chapter, model: Chapter) -> None:
    """Near the plateau the flow is homogeneous in (e, c), and its direction obeys a Riccati equation."""
    gradient = model["gap_gradient"].subs(across, 0)
    found = {}
    for name, opened, words in (("e > 0", gate_one, "After a start with $e>0$, $c<0$: open after a 1 only."),
                                ("e < 0", gate_zero, "After a start with $e<0$, $c>0$: open after a 0 only.")):
        other = gate_zero if opened is gate_one else gate_one
        kappa_e, kappa_c = (gradient[i].subs({opened: 1, other: 0, position: -ratio * e}) for i in (0, 1))
        found[name] = expand(cancelled((-pace * kappa_c - ratio * kappa_e) / e))
        sign = 1 if name == "e > 0" else -1
        chapter.add(
            "ratio_positive" if sign > 0 else "ratio_negative",
            words + " For $e,c\\to0$ the weights rest and $\\varphi_1=\\varphi'(0)$. In the time $\\tau=-\\varphi_1t$, which runs "
            "backwards if $p+q>1$, the ratio $\\rho=-c/e$ obeys a Riccati equation; the canonical slice starts at $\\rho=\\tfrac12$.",
            r"\frac{d\rho}{d\tau}", found[name],
            cancelled(found[name] + (pace * kappa_c + ratio * kappa_e) / e),
            Check("numerical derivatives of the gap of a network", cases=_rays(sign), reference=_ratio_rate),
        )
    half = Rational(1, 2)
    on_slice = {ratio: half, second_weight: 2 * w, first_weight: -2 * w}  # w < 0
    for name, side, text in (
        ("threshold_below", "e < 0",
         "$p+q<1$. With $e>0$ the ratio ends where $e$ grows: global. With $e<0$ it grows to 1, where both gates open and $e$ "
         "decays for good as $1+w_1w_2<0$, iff $d\\rho/d\\tau>0$ at the start: **local iff $e<0$, $s_c<\\tfrac14$ and $w$ is below this**, "
         "to first order in $e$."),
        ("threshold_above", "e > 0",
         "$p+q>1$, $e>0$. The ratio grows past 1, where both gates close and $e$ decays, iff $d\\rho/d\\tau<0$ at the start: "
         "**local iff $w$ is above this**, if $s_c<\\tfrac14$."),
    ):
        condition = found[side].subs(on_slice)
        root = next(r for r in solve(condition, w) if r.subs(pace, 0) < 0)
        root = -1 / sqrt(expand(cancelled(1 / root**2)))
        chapter.add(
            name, text, r"w_{\text{threshold}}", root, cancelled(condition.subs(w, root)),
            Check("bisection of the numerical rate of the ratio of a network on the canonical slice",
                  cases=[{pace: mpf(s), e: mpf(1 if side == "e > 0" else -1) / 2} for s in ("0.0625", "0.125", "0.00390625")],
                  reference=_turning),
        )
    both = next(r for r in solve((1 + PRODUCT).subs(on_slice), w) if r < 0)
    chapter.add(
        "threshold_open",
        "$p+q>1$ otherwise ($e<0$, or $s_c\\ge\\tfrac14$): the ratio comes to where both gates are open, or $|e|$ grows. With both open "
        "$e$ decays iff $1+w_1w_2>0$: **local iff $w$ is above this.**",
        r"w_{\text{threshold}}", both, cancelled((1 + PRODUCT).subs(on_slice).subs(w, both)),
        Check("bisection of the gap of a network on e = 1, c = 1 with the slice's weights, where it changes sign",
              cases=[{pace: mpf(1)}],
              reference=lambda s: mpmath.findroot(
                  lambda x: network_gap(dict(zip((*WEIGHTS, across), (mpf(1), mpf(1), 2 * abs(x), 2 * x, mpf(0))))),
                  (mpf(-1), mpf(-1) / 10), solver="anderson", tol=1e-90)),
    )


def _rays(sign):
    return tuple(
        dict(zip((e, ratio, first_weight, second_weight, pace), map(mpf, (sign * mpf(size), part, first, second, s))))
        for size, part, first, second, s in (
            ("0.5", "0.5", "1.5", "-0.75", "0.0625"), ("0.25", "0.375", "1.25", "0.5", "0.25"), ("0.75", "0.875", "2", "-1.5", "1"),
        )
    )


def _ratio_rate(point):
    start = {**point, position: -point[ratio] * point[e], across: mpf(0)}
    rates = [mpmath.diff(lambda v: network_gap(start, {symbol: v}), start[symbol]) for symbol in (e, position)]
    return (-point[pace] * rates[1] - point[ratio] * rates[0]) / point[e]


def _turning(point):
    """The w < 0 at which the ratio of a start on the slice neither grows nor falls."""
    def rate(along):
        return _ratio_rate({**point, ratio: mpf(1) / 2, first_weight: 2 * abs(along), second_weight: 2 * along})

    return mpmath.findroot(rate, (mpf(-3), mpf(-1) / 10), solver="anderson", tol=1e-60)


def _table(chapter: Chapter) -> list[dict]:
    """Pieces of the plateau by gate and sign of 1 + w_1 w_2, with the number of negative eigenvalues on both sides of p + q = 1."""
    along, over = chapter["hessian_on_plateau"]
    rows = []
    for opened, open_sign, where in ((0, 1, "w1 c < 0"), (1, 1, "w1 c > 0, w1 w2 > -1"), (1, -1, "w1 c > 0, w1 w2 < -1")):
        probe = {gate: opened, first_weight: 1, second_weight: Rational(open_sign, 2) if open_sign > 0 else -2}
        index = {}
        for side, sign in (("below", -1), ("above", 1)):  # of φ′(0)
            values = [entry.subs(probe).subs(slope, sign) for entry in (along, over)]
            index[side] = {"along": int(bool(values[0] < 0)), "across": int(bool(values[1] < 0))}
        rows.append({"equations": where, "index": index})
    return rows
