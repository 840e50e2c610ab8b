"""Chapter: the reduced landscape, in which positions and both MLP weights move on their own, and what lies across it."""

from __future__ import annotations

from itertools import product

import mpmath
from mpmath import mpf
from sympy import Integer, Matrix, Max, Rational, Symbol, diff, expand, factor, sqrt

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.layers import ALPHA, ONES, Direction, Outer, Ray, binary_logit
from landscape.symbolic.references import CHAINS, best_bias, cross_entropy, manifold_logits, newton
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import (
    across, bias, e, first_weight, gate_one, gate_zero, hidden, p, pace, position, q, second_weight, sign_w, slope, w, width,
)

GATES = (gate_zero, gate_one)
BRANCHES = tuple(product((0, 1), repeat=2))
WEIGHTS = (e, position, first_weight, second_weight)
NAMES = {e: "e", position: "c", first_weight: "w1", second_weight: "w2", bias: "b", across: "u"}
ALONG = Direction("along", Rational(1), constant=True)  # d = r = 1
ACROSS = Direction("across", Rational(1))


def gated_logits() -> tuple:
    """Logits after 0 and 1 without the bias, for symbolic d and r; the gate A_x says whether ReLU is open after x."""
    embedding, stay = Ray(ALPHA, e / sqrt(width)), Ray(ALPHA, position / sqrt(width))
    first = Outer(ONES, ALPHA, first_weight / sqrt(hidden * width))
    second = Outer(ALPHA, ONES, second_weight / sqrt(hidden * width))
    found = []
    for x, gate in enumerate(GATES):
        y = embedding.scaled(x) + stay
        z = y + second @ (first @ y).scaled(gate)
        skipped = Ray(ACROSS, across).inner(Ray(ACROSS, x * across))  # W_1 maps it to zero
        found.append(expand(embedding.inner(z) + skipped))
    return tuple(found)


def relu_logits(with_across: bool) -> tuple:
    """Logits after 0 and 1 of the transformer with d = r = 1, with ReLU as a maximum; the source of the kernels."""
    embedding, stay = Ray(ALONG, e), Ray(ALONG, position)
    first, second = Outer(ALONG, ALONG, first_weight), Outer(ALONG, ALONG, second_weight)
    return tuple(
        binary_logit(x, embedding, stay, first, second) + (x * across**2 if with_across else 0) for x in (0, 1)
    )


def kernel_texts() -> dict[str, str]:
    """The modules of kernels of `reduced` and `transverse`, by name: loss with the bias as a parameter, by their logits."""
    from landscape.symbolic.modules import logits_module

    found = {}
    for name, parameters in (("reduced", (*WEIGHTS, bias)), ("transverse", (*WEIGHTS, bias, across))):
        names = [NAMES[symbol] for symbol in parameters]
        renamed = {symbol: Symbol(NAMES[symbol], real=True) for symbol in parameters}
        rows = [(Integer(0), (logit + bias).xreplace(renamed)) for logit in relu_logits(across in parameters)]
        found[name] = logits_module(name, names, rows)
    return found


def _opened(expression, x):
    """A maximum as its argument times the gate."""
    return expression.replace(Max, lambda *arguments: GATES[x] * sum(arguments))


# --- numbers -----------------------------------------------------------------------------------------------

# A point in each of the four branches of the gates, for w_1 > 0 and for w_1 < 0.
PLACES = tuple(
    dict(zip((e, position, first_weight, second_weight, across), map(mpf, values))) | dict(zip((p, q), CHAINS[i % 2]))
    for i, values in enumerate((
        ("0.75", "0.5", "1.25", "-0.875", "0.5"), ("0.75", "-1.5", "0.625", "-1.5", "-0.25"), ("1.25", "-0.5", "1.5", "0.75", "0.375"),
        ("-1.25", "0.5", "0.875", "1.125", "0.25"), ("0.875", "0.25", "-1.25", "0.5", "-0.5"), ("-1.5", "0.625", "-0.75", "-1.25", "0.75"),
    ))
)


def gates(point) -> dict:
    """Which of the two gates are open at a point: those where W_1 y is positive."""
    streams = (point[position], point[e] + point[position])
    return {gate: int(point[first_weight] * y > 0) for gate, y in zip(GATES, streams)}


def network_gap(point, change=()) -> mpf:
    """Gap of a network of matrices at a point, some of whose coordinates may be moved: {symbol: value}."""
    moved = {**point, **dict(change)}
    zero, one = manifold_logits(*(moved[symbol] for symbol in (*WEIGHTS, across)))
    return one - zero


def network_loss(point, change=(), bias=None) -> mpf:
    """Cross-entropy of the network, with its bias given or minimised out."""
    moved = {**point, **dict(change)}
    logits = manifold_logits(*(moved[symbol] for symbol in (*WEIGHTS, across)))
    law = (moved[p], moved[q])
    if bias is None:
        bias = newton(lambda b: cross_entropy([logit + b for logit in logits], *law), best_bias(logits[1] - logits[0], *law) - logits[0])
    return cross_entropy([logit + bias for logit in logits], *law)


def slope_at(gap, point) -> mpf:
    """φ′ at a gap, from the definition of the loss: what the next symbol's probability after a 1 is too large by."""
    bias = best_bias(gap, point[p], point[q])
    return point[p] / (point[p] + point[q]) * (1 / (1 + mpmath.exp(-gap - bias)) - 1 + point[q])


def _numbers(point) -> dict:
    """The symbols of a step at a point: coordinates, gates, and φ′ at the network's gap."""
    return {**point, **gates(point), slope: slope_at(network_gap(point), point)}


def _derivative(function, point, symbol, direction=0):
    return mpmath.diff(lambda value: function(point, {symbol: value}), point[symbol], direction=direction)


def reduced(canonical: Chapter) -> Chapter:
    """Logits, gap, gradient and the identity that leaves no critical points but κ = κ* and e = 0."""
    chapter = Chapter(
        "reduced",
        "The reduced landscape",
        "On the manifold of the [exact reduction](exact-reduction.md), without attention, and in orthonormal coordinates: "
        "$\\mathbf e=e\\,\\hat\\alpha$, $\\mathbf p_n=c\\,\\hat\\alpha$, $W_1=w_1\\hat{\\mathbf 1}\\hat\\alpha^\\top$, "
        "$W_2=w_2\\hat\\alpha\\hat{\\mathbf 1}^\\top$ with unit vectors $\\hat\\alpha\\in\\mathbb R^d$, "
        "$\\hat{\\mathbf 1}\\in\\mathbb R^r$; besides it a part of the embedding across $\\hat\\alpha$, of length $u$ (this is the "
        "`transverse` landscape; with $u=0$ it is `reduced`). The gate $A_x\\in\\{0,1\\}$ says whether ReLU is open after "
        "the symbol $x$: $A_0=[w_1c>0]$, $A_1=[w_1(e+c)>0]$. $\\varphi_1$ is $\\varphi'$ at the gap.",
        settles="*Claim*: the canonical model has the dynamics of the full model from a start of rank one; $W_1$ and $W_2$ start "
        "constant but are trained with all else (authors). *Settled*: without attention and with equal positions, "
        "training from such a start has four parameters besides the bias, $(e,c,w_1,w_2)$; $w_1^2-w_2^2$ is conserved, "
        "but the position leaves $-e/2$ at once. The canonical flow is that of a model whose positions are tied to the "
        "embedding. *Beyond*: all critical points: global minima and the plateau of zero embedding, no others.",
    )
    everywhere = {"cases": PLACES, "values": _numbers}
    logits = gated_logits()
    chapter.add(
        "logits",
        "SymPy carries the forward pass for symbolic $d$ and $r$; neither is left. $W_1$ maps the part across to zero, so it "
        "passes the skip connection and meets itself in the tied head: it adds $u^2$ after a 1, whatever the MLP does.",
        r"(\ell_0-b,\ \ell_1-b)",
        Matrix(logits),
        Matrix([expand(logit - _opened(closed, x)) for x, (logit, closed) in enumerate(zip(logits, relu_logits(True)))]),
        Check("a network with d = 3, r = 2 and α = (1, -1, -1), multiplied out",
              reference=lambda s: manifold_logits(*(s[symbol] for symbol in (*WEIGHTS, across))), **everywhere),
    )
    gap = expand(logits[1] - logits[0])
    chapter.add(
        "gap", "The gap.", r"\kappa", gap,
        expand(gap - _opened(relu_logits(True)[1], 1) + _opened(relu_logits(True)[0], 0)),
        Check("a network of matrices, multiplied out", reference=network_gap, **everywhere),
    )
    on_slice = {position: -e / 2, first_weight: 2 * sign_w * w, second_weight: 2 * w, across: 0}
    opened = [gap.subs(on_slice).subs({gate_zero: 1 - side, gate_one: side}) for side in (1, 0)]
    merged = factor(expand(opened[0]))
    chapter.add(
        "slice",
        "The canonical slice is $c=-e/2$, $w_1=2|w|$, $w_2=2w$, $u=0$: one gate is open there, whichever sign $e$ has, and the "
        "gap is the canonical one.",
        r"\kappa(e,\,-e/2,\,2|w|,\,2w)", merged,
        Matrix([expand(value - canonical["gap_binary"]) for value in opened]),
        Check("a network of matrices on the slice, multiplied out",
              cases=[{e: mpf(a), w: mpf(b), sign_w: mpmath.sign(mpf(b))} for a, b in (("0.75", "0.5"), ("-1.25", "-0.625"), ("0.5", "-1.5"))],
              reference=lambda s: network_gap(dict(zip((*WEIGHTS, across), (s[e], -s[e] / 2, 2 * abs(s[w]), 2 * s[w], mpf(0)))))),
    )
    directions = (*WEIGHTS, across)
    gradient = Matrix([diff(gap, symbol) for symbol in directions])
    chapter.add(
        "gap_gradient", "Its gradient within a branch; it jumps where a gate closes, unless $e=0$.",
        r"\nabla_{(e,c,w_1,w_2,u)}\kappa", gradient,
        Matrix([expand(diff(gradient[i], directions[j]) - diff(gradient[j], directions[i])) for i in range(5) for j in range(i)]),
        Check("numerical derivatives of the gap of a network",
              reference=lambda s: [_derivative(network_gap, s, symbol) for symbol in directions], **everywhere),
    )
    scaling = expand(e * gradient[0] + position * gradient[1] - first_weight * gradient[2] - second_weight * gradient[3] + across * gradient[4])
    target = 2 * (e**2 + across**2)
    chapter.add(
        "scaling",
        "Scale the whole embedding and the positions by $\\lambda$ and both MLP weights by $1/\\lambda$: the MLP's part of the "
        "logits stays, the skip connection's grows. So $\\nabla\\kappa=0$ only where the embedding vanishes: **away from kinks the "
        "critical points are $\\kappa=\\kappa^*$ and $e=u=0$, and no others.** Along a kink the same holds: there "
        "$\\kappa$ is one of the two branches' and the identity is the same.",
        r"\frac{d}{d\lambda}\kappa(\lambda e,\lambda c,w_1/\lambda,w_2/\lambda,\lambda u)\Big|_{\lambda=1}", target,
        expand(scaling - target),
        Check("numerical derivative of a network's gap along this scaling", reference=_scaled, **everywhere),
    )
    _descent(chapter, gap)
    _off_the_slice(chapter, on_slice)
    return chapter


def _scaled(point):
    def along(factor):
        powers = dict(zip((*WEIGHTS, across), (1, 1, -1, -1, 1)))
        return network_gap(point, {symbol: point[symbol] * factor**power for symbol, power in powers.items()})

    return mpmath.diff(along, mpf(1))


def _descent(chapter: Chapter, gap) -> None:
    """The gradient of the loss, and what the flow keeps."""
    gradient = slope * chapter["gap_gradient"]
    chapter.add(
        "gradient", "The gradient of the loss, the bias at its minimiser: the gap is all it depends on.",
        r"\nabla_{(e,c,w_1,w_2,u)}L", gradient,
        Matrix([expand(entry - slope * diff(gap, symbol)) for entry, symbol in zip(gradient, (*WEIGHTS, across))]),
        Check("numerical derivatives of the cross-entropy of a network, minimised over the bias", cases=PLACES[:4], values=_numbers,
              reference=lambda s: [_derivative(network_loss, s, symbol) for symbol in (*WEIGHTS, across)]),
    )
    ratio = cancelled(gradient[3] / gradient[2])
    chapter.add(
        "balance",
        "The flow keeps $w_1^2-w_2^2$, also with the bias as a parameter, since ReLU is homogeneous. With speeds it keeps "
        "$w_1^2/s_1-w_2^2/s_2$. On the canonical slice the difference is 0.",
        r"\frac{dw_2}{dw_1}", ratio,
        expand(first_weight * gradient[2] - second_weight * gradient[3]),
        Check("numerical derivatives of the cross-entropy of a network at a bias of its own", cases=[s for s in PLACES if any(gates(s).values())],
              values=_numbers,
              reference=lambda s: (
                  _derivative(lambda *a: network_loss(*a, bias=mpf("0.3")), s, second_weight)
                  / _derivative(lambda *a: network_loss(*a, bias=mpf("0.3")), s, first_weight))),
    )


# Points of the canonical slice, the chains, and the speed of the position, for e > 0 and for e < 0.
SLICE = tuple(
    {e: mpf(a), w: mpf(b), sign_w: mpmath.sign(mpf(b)), p: law[0], q: law[1], pace: mpf(s)}
    for (a, b, s), law in zip((("0.75", "0.5", "1"), ("1.25", "-0.875", "0.25"), ("0.5", "-1.5", "0.0625")), (*CHAINS, CHAINS[0]))
)


def _full(place) -> dict:
    """A place of the slice as a point of the reduced landscape."""
    at = (place[e], -place[e] / 2, 2 * abs(place[w]), 2 * place[w], mpf(0))
    return dict(zip((*WEIGHTS, across), at)) | {p: place[p], q: place[q]}


def _off_the_slice(chapter: Chapter, on_slice: dict) -> None:
    """How fast the flow leaves c = -e/2."""
    rate = -(pace * chapter["gradient"][1] + chapter["gradient"][0] / 2)
    rates = [factor(expand(rate.subs(on_slice).subs({gate_zero: 1 - side, gate_one: side}))) for side in (1, 0)]
    chapter.add(
        "slice_left",
        "How fast the flow leaves the canonical slice, for $e>0$ and for $e<0$, if the position moves $s_c$ times as fast as the rest. "
        "It vanishes for at most one $w$ on each side: **the canonical slice is not kept by training, only $w_1=\\pm w_2$ is.** The "
        "canonical flow is that of a model whose positions are tied to $-\\mathbf e/2$.",
        r"\tfrac{d}{dt}\left(c+\tfrac e2\right)\Big|_{\text{slice}}", Matrix(rates),
        Matrix([
            expand(found + slope * e * (1 + (2 + side * (1 + 4 * pace)) * sign_w * w**2)) for found, side in zip(rates, (1, -1))
        ]),
        Check("numerical derivatives of the cross-entropy of a network on the slice, minimised over the bias, at e and at -e",
              cases=SLICE, values=lambda s: s | {slope: slope_at(network_gap(_full(s)), _full(s))}, reference=_leaving),
    )


def _leaving(place) -> list:
    found = []
    for side in (1, -1):
        at = _full(place | {e: side * place[e]})
        rate = -(place[pace] * _derivative(network_loss, at, position) + _derivative(network_loss, at, e) / 2)
        found.append(rate * side)  # the rate is odd in e, and the right side is taken at e > 0
    return found
