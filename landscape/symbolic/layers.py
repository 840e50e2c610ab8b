"""The layers of the one-layer transformer on the canonical manifold, for symbolic dimensions.

On the manifold every vector is a multiple of one fixed direction and every matrix is an outer product
of two, so a layer acts on the multiples; the squared lengths of the directions (d and r) stay symbols.
For many symbols the directions are the S corners of a regular simplex, and a vector that treats all
corners but one alike has two coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from sympy import Expr, Max, Rational, Symbol, expand, sqrt

from landscape.symbolic.symbols import e, hidden, sign_e, sign_w, size_e, size_w, states, w, width


@dataclass(frozen=True)
class Direction:
    """A fixed vector of which only the squared length matters. ReLU keeps it if its entries are equal."""

    name: str
    square: Expr
    constant: bool = False


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
        if other.direction != self.direction:
            raise ValueError("The inner product of different directions is not known.")
        return self.size * other.size * self.direction.square

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

    def __matmul__(self, ray: Ray) -> Ray:
        return Ray(self.output, self.size * ray.inner(Ray(self.input, 1)))


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


def binary_logit(x: int, embedding: Ray, position: Ray, first: Outer, second: Outer) -> Expr:
    """Logit of the next symbol after the symbol x, without the bias: embedding, position, MLP, tied head."""
    y = embedding.scaled(x) + position
    z = y + second @ (first @ y).relu()
    return embedding.inner(z)


def canonical_binary(branch: tuple[int, int]) -> tuple[Expr, Expr]:
    """Logits after 0 and 1 on the canonical slice, in a branch of signs of e and w."""
    e_value, w_value = branch[0] * size_e, branch[1] * size_w
    embedding = Ray(ALPHA, e_value / sqrt(width))
    k = 2 / sqrt(hidden * width)
    first, second = Outer(ONES, ALPHA, k * size_w), Outer(ALPHA, ONES, k * w_value)
    position = embedding.scaled(Rational(-1, 2))
    return tuple(expand(binary_logit(x, embedding, position, first, second)) for x in (0, 1))


def canonical_simplex(branch: tuple[int, int]) -> tuple[Expr, Expr]:
    """Logits of the current and of any other symbol for S symbols: simplex embedding, S hidden units."""
    more = Symbol("m", positive=True)  # S - 1, so that ReLU can tell the sign of what it gets
    e_value, w_value = branch[0] * size_e, branch[1] * size_w
    embedding = Corners(e_value, 0)
    inward, outward = 2 * size_w / sqrt(states), 2 * w_value / sqrt(states)
    hidden_units = embedding.products().scaled(inward)
    hidden_units = Corners(hidden_units.on.subs(states, 1 + more), hidden_units.off.subs(states, 1 + more)).relu()
    z = embedding + hidden_units.scaled(outward)
    logits = z.products().scaled(e_value)
    return logits.on.subs(more, states - 1), logits.off.subs(more, states - 1)


def merge(branches: dict[tuple[int, int], Expr]) -> Expr:
    """One expression in e, w and their signs σ that equals each branch's where the signs are the branch's."""
    total = 0
    for (branch_e, branch_w), expression in branches.items():
        chosen = (1 + branch_e * sign_e) * (1 + branch_w * sign_w) / 4
        total += chosen * expression.subs({size_e: sign_e * e, size_w: sign_w * w})
    return reduce_signs(total)


def reduce_signs(expression: Expr) -> Expr:
    """Use σ² = 1 for both signs."""
    expression = expand(expression)
    for sign in (sign_e, sign_w):
        expression = sum(
            coefficient * sign ** (power % 2)
            for (power,), coefficient in expression.as_poly(sign).terms()
        ) if expression.has(sign) else expression
    return expand(expression)


def all_branches(layers) -> dict[tuple[int, int], tuple[Expr, Expr]]:
    """The logits of a model in each of the four branches of signs of e and w."""
    return {branch: layers(branch) for branch in product((1, -1), repeat=2)}
