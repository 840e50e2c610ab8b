"""The transformer on the manifold, in orthonormal coordinates: forward and backward pass on rays, for symbolic d and r.

On the manifold each array is its coordinate times an array of Frobenius norm 1: α/√d, ααᵀ/d, 1αᵀ/√(rd) or α1ᵀ/√(rd).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import mpmath
from mpmath import fdot, mpf
from sympy import Expr, Integer, Max, div, exp, expand, factor, sqrt

from landscape.symbolic import symbols as s
from landscape.symbolic.layers import ALPHA, ONES, Direction, Outer, Ray, attended
from landscape.symbolic.networks import Network, gradient, lifted, projected


def unit(*directions: Direction) -> Ray | Outer:
    """The vector or matrix of norm 1 along one direction or two."""
    array = Ray(directions[0], 1) if len(directions) == 1 else Outer(*directions, 1)
    return array.scaled(1 / array.coordinate)


SQUARE = unit(ALPHA, ALPHA)
QUERY, KEY, VALUE, OUTPUT = (SQUARE.scaled(symbol) for symbol in (s.query, s.key, s.value, s.output))
INNER, OUTER = unit(ONES, ALPHA).scaled(s.first_weight), unit(ALPHA, ONES).scaled(s.second_weight)
HEAD = unit(ALPHA).scaled(s.head)


def stream(n: int) -> Ray:
    """What enters the layer at position n (from 0), by its coordinate y."""
    return unit(ALPHA).scaled(s.streams[n])


def last_logit(length: int) -> Expr:
    """Logit at the last position, for attention weights ρ; ReLU as a maximum."""
    entering = [stream(n) for n in range(length)]
    after = entering[-1] + attended(OUTPUT, VALUE, s.weights[:length], entering)
    logit = HEAD.inner(after + OUTER @ (INNER @ after).relu()) + s.bias
    root = sqrt(s.hidden)  # ReLU(x/√r) = ReLU(x)/√r
    return expand(logit).replace(Max, lambda *arguments: Max(*(factor(root * one) for one in arguments)) / root)


def scalar_score(here: Expr, there: Expr) -> Expr:
    """The score in the transformer with d = r = 1, whose scores are divided by √d all the same."""
    return s.query * here * s.key * there / sqrt(s.width)


def scalar_logit(entering: list[Expr], weights, opened=None) -> Expr:
    """Logit at the last position of the transformer with d = r = 1; `opened` replaces ReLU within a branch."""
    after = entering[-1] + s.output * sum(rho * s.value * y for rho, y in zip(weights, entering, strict=True))
    before = s.first_weight * after
    active = Max(before, 0) if opened is None else opened * before
    return s.head * (after + s.second_weight * active) + s.bias


def softmax(scores: list[Expr]) -> list[Expr]:
    total = sum(exp(one) for one in scores)
    return [exp(one) / total for one in scores]


@dataclass(frozen=True)
class Gradients:
    """Gradient of the last logit in every array; `streams` in what enters at each position."""

    head: Ray
    query: Outer
    key: Outer
    value: Outer
    output: Outer
    inner: Outer
    outer: Outer
    streams: tuple[Ray, ...]

    @property
    def weights(self) -> tuple[Ray | Outer, ...]:
        return self.head, self.query, self.key, self.value, self.output, self.inner, self.outer


def after_attention() -> Ray:
    """Gradient in the residual stream after the attention: through the skip connection and the MLP."""
    return HEAD + INNER.T @ (OUTER.T @ HEAD).scaled(s.opened)


def through_value(value: Outer, n: int) -> Ray:
    """Gradient in what enters at position n, through the value matrix alone."""
    return (value.T @ (OUTPUT.T @ after_attention())).scaled(s.weights[n])


def backward(length: int) -> Gradients:
    """The backward pass with softmax attention; the gate H is 1 where ReLU is open and 0 where it is closed."""
    entering, weights = [stream(n) for n in range(length)], s.weights[:length]
    last, upper = entering[-1], after_attention()
    mixed = reduce(Ray.__add__, (y.scaled(rho) for y, rho in zip(entering, weights)))  # Σ ρ_i y_i
    before = last + OUTPUT @ (VALUE @ mixed)
    inside = OUTPUT.T @ upper
    by_weight = [inside.inner(VALUE @ y) for y in entering]
    mean = sum(rho * slope for rho, slope in zip(weights, by_weight))
    by_score = [rho * (slope - mean) / sqrt(s.width) for rho, slope in zip(weights, by_weight)]  # softmax, and the 1/√d
    closed = (OUTER.T @ HEAD).scaled(s.opened)
    back = [through_value(VALUE, n) + (KEY.T @ (QUERY @ last)).scaled(by_score[n]) for n in range(length)]
    back[-1] = reduce(Ray.__add__, ((QUERY.T @ (KEY @ y)).scaled(g) for y, g in zip(entering, by_score)), back[-1] + upper)
    return Gradients(
        head=before + OUTER @ (INNER @ before).scaled(s.opened),
        query=reduce(Outer.__add__, ((KEY @ y).scaled(g).outer(last) for y, g in zip(entering, by_score))),
        key=reduce(Outer.__add__, ((QUERY @ last).scaled(g).outer(y) for y, g in zip(entering, by_score))),
        value=inside.outer(mixed),
        output=upper.outer(VALUE @ mixed),
        inner=closed.outer(before),
        outer=HEAD.outer((INNER @ before).scaled(s.opened)),
        streams=tuple(back),
    )


def sorted_slope(slope: Expr) -> Expr:
    """A gradient at two positions as what it shares times the part through the values and that through the scores."""
    slope = expand(slope)
    shared = [s.head * (1 + s.opened * s.first_weight * s.second_weight), Integer(1)]
    for one in shared:
        rest, remainder = div(slope, one, s.head, s.opened)
        if remainder == 0:
            break
    direct, through_scores = expand(rest).as_independent(s.width)  # the scores hold 1/√d
    first, second = s.weights[:2]
    path = factor(expand(through_scores.subs(first, 1 - second))).subs(second - 1, -first)
    return one * (factor(direct) + path)


# --- networks of actual matrices on the manifold ------------------------------------------------------------

NAMED = {
    "embedding": s.e, "query": s.query, "key": s.key, "value": s.value, "output": s.output, "inner": s.first_weight,
    "outer": s.second_weight, "head": s.head, "bias": s.bias, **{f"position {n}": symbol for n, symbol in enumerate(s.positions)},
}


@dataclass(frozen=True)
class Place:
    """A network on the manifold, by its coordinates in sixteenths, and a sequence of which the last position counts.

    `row` replaces the value matrix by α·rowᵀ, which is off the manifold unless the row is a multiple of α.
    """

    network: Network
    alpha: tuple[int, ...]
    sixteenths: tuple[int, ...]
    sequence: tuple[int, ...] = ()
    row: tuple[int, ...] | None = None

    @property
    def coordinates(self) -> list:
        return [mpf(value) / 16 for value in self.sixteenths]

    @property
    def alone(self) -> Network:
        """The network with d = r = 1, of which the scores are divided by the same root."""
        network = self.network
        return Network(1, 1, network.length, network.attention, network.tied, network.width)

    @cached_property
    def theta(self) -> list:
        theta = lifted(self.network, self.alpha, self.coordinates)
        if self.row is not None:
            theta[self.network.spans["value"]] = [mpf(u * v) / 16 for u in self.alpha for v in self.row]
        return theta

    @cached_property
    def trace(self) -> dict:
        return self.network.trace(self.theta, self.sequence)

    @cached_property
    def slopes(self) -> list:
        """Numerical gradient of the logit at the last position."""
        return gradient(lambda theta: self.network.logits(theta, self.sequence)[-1], self.theta)

    def slope(self, *names: str) -> list:
        """Its coordinates in the arrays named."""
        by_name = dict(zip(self.network.shapes, projected(self.network, self.alpha, self.slopes)[0]))
        return [by_name[name] for name in names]

    def along(self, vector) -> mpf:
        """The orthonormal coordinate of a vector of the stream."""
        return fdot(vector, self.alpha) / mpmath.sqrt(fdot(self.alpha, self.alpha))

    def point(self) -> dict:
        """The numbers of the symbols; streams, attention weights and gate as measured."""
        found = dict(zip((NAMED[name] for name in self.network.shapes), self.coordinates))
        found |= {s.width: mpf(self.network.width), s.hidden: mpf(self.network.hidden)}
        found.setdefault(s.head, found[s.e])
        trace = self.trace
        found |= dict(zip(s.streams, map(self.along, trace["stream"]))) | dict(zip(s.weights, trace["weights"][-1]))
        return found | dict(zip(s.symbols_seen, self.sequence)) | {s.opened: mpf(trace["hidden"][-1][0] > 0)}


# Two positions, softmax, a head of its own; ReLU is open at some and closed at others. Coordinates (sixteenths): e, two
# positions, Q, K, V, O, w_1, w_2, head, b.
PAIRS = (
    Place(Network(3, 2, 2, "softmax", False), (1, -1, -1), (12, -9, 5, 19, 14, -11, 13, 20, -9, 15, 3), (0, 1)),
    Place(Network(2, 3, 2, "softmax", False), (-1, 1), (-14, 6, 11, 15, -18, 12, 10, 17, 21, -7, -5), (1, 1)),
    Place(Network(4, 1, 2, "softmax", False), (1, -1, 1, 1), (17, -8, 3, -20, 11, 14, 9, -12, 16, 11, 4), (1, 0)),
)
