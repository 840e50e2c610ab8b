"""The layers of the one-layer transformer on the canonical manifold, for symbolic dimensions.

On the manifold every vector is a multiple of one fixed direction and every matrix is an outer product
of two, so a layer acts on the multiples; the squared lengths of the directions (d and r) stay symbols.
Attention acts on the multiples too, whatever its weights are.
For many symbols the directions are the S corners of a regular simplex, and a vector that treats all
corners but one alike has two coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from sympy import Expr, Max, Rational, Symbol, expand, sqrt

from landscape.symbolic.symbols import (
    e, factor, head, hidden, sign_e, sign_f, sign_w, size_e, size_f, size_w, states, w, width,
)


@dataclass(frozen=True)
class Direction:
    """A fixed vector of which only the squared length matters. ReLU keeps it if its entries are equal.

    `products` are its inner products with other directions, by name, where they are known.
    """

    name: str
    square: Expr
    constant: bool = False
    products: tuple[tuple[str, Expr], ...] = ()

    def inner(self, other: Direction) -> Expr:
        if other == self:
            return self.square
        product = dict(self.products).get(other.name, dict(other.products).get(self.name))
        if product is None:
            raise ValueError("The inner product of these directions is not known.")
        return product


ALPHA = Direction("alpha", width)
ONES = Direction("1", hidden, constant=True)


@dataclass(frozen=True)
class Ray:
    """`size` times a direction."""

    direction: Direction
    size: Expr

    def __add__(self, other: Ray) -> Ray:
        if other.direction != self.direction:
            raise ValueError("Rays along different directions do not add up to a ray.")
        return Ray(self.direction, self.size + other.size)

    def scaled(self, factor) -> Ray:
        return Ray(self.direction, factor * self.size)

    def inner(self, other: Ray) -> Expr:
        return self.size * other.size * self.direction.inner(other.direction)

    def outer(self, other: Ray) -> Outer:
        return Outer(self.direction, other.direction, self.size * other.size)

    @property
    def coordinate(self) -> Expr:
        """Along the unit vector."""
        return self.size * sqrt(self.direction.square)

    def relu(self) -> Ray:
        if not self.direction.constant:
            raise ValueError("ReLU acts on the multiple only where all entries of the direction are equal.")
        return Ray(self.direction, Max(self.size, 0))


@dataclass(frozen=True)
class Outer:
    """The matrix `size` · output inputᵀ."""

    output: Direction
    input: Direction
    size: Expr

    def __matmul__(self, other: Ray | Outer) -> Ray | Outer:
        if isinstance(other, Outer):
            return (self @ Ray(other.output, other.size)).outer(Ray(other.input, 1))
        return Ray(self.output, self.size * other.inner(Ray(self.input, 1)))

    def __add__(self, other: Outer) -> Outer:
        if (other.output, other.input) != (self.output, self.input):
            raise ValueError("Outer products of different directions do not add up to one.")
        return Outer(self.output, self.input, self.size + other.size)

    def scaled(self, multiple) -> Outer:
        return Outer(self.output, self.input, multiple * self.size)

    @property
    def T(self) -> Outer:
        return Outer(self.input, self.output, self.size)

    @property
    def coordinate(self) -> Expr:
        """Along the matrix of Frobenius norm 1."""
        return self.size * sqrt(self.output.square) * sqrt(self.input.square)


@dataclass(frozen=True)
class Corners:
    """on · u_x + off · Σ_{j ≠ x} u_j, for the unit corners u of a regular simplex and a fixed symbol x."""

    on: Expr
    off: Expr

    def __add__(self, other: Corners) -> Corners:
        return Corners(self.on + other.on, self.off + other.off)

    def scaled(self, factor) -> Corners:
        return Corners(factor * self.on, factor * self.off)

    def products(self) -> Corners:
        """Inner products with u_x (`on`) and with any other corner (`off`); distinct corners give -1/(S-1)."""
        other = -1 / (states - 1)
        return Corners(
            self.on + (states - 1) * other * self.off, other * self.on + (1 + (states - 2) * other) * self.off
        )

    def relu(self) -> Corners:
        return Corners(Max(self.on, 0), Max(self.off, 0))


def binary_logit(
    x: int, embedding: Ray, position: Ray, first: Outer, second: Outer, reading: Ray | None = None, multiple=1
) -> Expr:
    """Logit of the next symbol after the symbol x, without the bias: embedding, position, attention, MLP, head.

    The head is `reading`, by default the embedding; the attention multiplies the residual stream by `multiple`.
    """
    y = (embedding.scaled(x) + position).scaled(multiple)
    z = y + second @ (first @ y).relu()
    return (reading or embedding).inner(z)


def score(query: Outer, key: Outer, at: Ray, source: Ray) -> Expr:
    """What position n, whose stream is `at`, gives to a position whose stream is `source`."""
    return (query @ at).inner(key @ source) / sqrt(width)


def attended(output: Outer, value: Outer, weights: Sequence, streams: Sequence[Ray]) -> Ray:
    """What the attention adds to the residual stream."""
    values = [(value @ stream).scaled(weight) for weight, stream in zip(weights, streams, strict=True)]
    return output @ reduce(Ray.__add__, values)


def canonical_binary(branch: tuple[int, int]) -> tuple[Expr, Expr]:
    """Logits after 0 and 1 on the canonical slice, in a branch of signs of e and w."""
    return attentive_binary((*branch, 1), tied=True, multiple=1)


def attentive_binary(branch: tuple[int, int, int], tied: bool, multiple=size_f) -> tuple[Expr, Expr]:
    """The same with an attention that multiplies the stream by f, in a branch of signs of e, w and f; any head."""
    e_value, w_value = branch[0] * size_e, branch[1] * size_w
    embedding = Ray(ALPHA, e_value / sqrt(width))
    k = 2 / sqrt(hidden * width)
    first, second = Outer(ONES, ALPHA, k * size_w), Outer(ALPHA, ONES, k * w_value)
    position = embedding.scaled(Rational(-1, 2))
    reading = embedding if tied else Ray(ALPHA, head / sqrt(width))
    return tuple(
        expand(binary_logit(x, embedding, position, first, second, reading, branch[2] * multiple)) for x in (0, 1)
    )


def canonical_simplex(branch: tuple[int, int], tied: bool = True) -> tuple[Expr, Expr]:
    """Logits of the current and of any other symbol for S symbols: simplex embedding, S hidden units, any head."""
    more = Symbol("m", positive=True)  # S - 1, so that ReLU can tell the sign of what it gets
    e_value, w_value = branch[0] * size_e, branch[1] * size_w
    embedding = Corners(e_value, 0)
    inward, outward = 2 * size_w / sqrt(states), 2 * w_value / sqrt(states)
    hidden_units = embedding.products().scaled(inward)
    hidden_units = Corners(hidden_units.on.subs(states, 1 + more), hidden_units.off.subs(states, 1 + more)).relu()
    z = embedding + hidden_units.scaled(outward)
    logits = z.products().scaled(e_value if tied else head)
    return logits.on.subs(more, states - 1), logits.off.subs(more, states - 1)


# The signs of a branch, with the size that goes with each and the parameter that is their product.
SIGNED = ((sign_e, size_e, e), (sign_w, size_w, w), (sign_f, size_f, factor))


def merge(branches: dict[tuple[int, ...], Expr]) -> Expr:
    """One expression in the parameters and their signs σ that equals each branch's where the signs are the branch's."""
    total = 0
    for branch, expression in branches.items():
        chosen = prod((1 + side * sign) / 2 for side, (sign, _, _) in zip(branch, SIGNED))
        total += chosen * expression.subs({size: sign * parameter for sign, size, parameter in SIGNED})
    return reduce_signs(total)


def in_branch(expression: Expr, branch: tuple[int, ...]) -> Expr:
    """A merged expression where the signs are the branch's."""
    values = {}
    for side, (sign, size, parameter) in zip(branch, SIGNED):
        values |= {sign: side, parameter: side * size}
    return expand(expression.subs(values))


def reduce_signs(expression: Expr) -> Expr:
    """Use σ² = 1 for every sign."""
    expression = expand(expression)
    for sign, _, _ in SIGNED:
        expression = sum(
            coefficient * sign ** (power % 2)
            for (power,), coefficient in expression.as_poly(sign).terms()
        ) if expression.has(sign) else expression
    return expand(expression)


def all_branches(layers: Callable, signs: int = 2) -> dict[tuple[int, ...], tuple[Expr, Expr]]:
    """The logits of a model in each branch of the first `signs` signs."""
    return {branch: layers(branch) for branch in product((1, -1), repeat=signs)}
