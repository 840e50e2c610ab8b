"""A one-layer transformer on S symbols, of actual matrices, in arithmetic of any precision: for checks only.

Nothing here knows of the simplex but `corners` and `ansatz`, which write its coordinates down one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import mpmath
from mpmath import fdot, mpf

LAWS = ((3, mpf("0.9")), (3, mpf("0.3")), (5, mpf("0.95")), (5, mpf("0.6")))  # (S, p) on both sides of p = (S - 1)/S


@dataclass(frozen=True)
class SymbolNetwork:
    """Sizes of a transformer with a tied head; its parameters are handed in as arrays by name, row by row.

    Attributes
    ----------
    states, width, hidden : int
        Symbols S, residual stream d, hidden units r.
    length : int
        Positions N; each has a vector of its own.
    attention : {None, "softmax", "linear"}
        Of the scores of i <= n: their softmax, or the scores divided by n.
    """

    states: int
    width: int
    hidden: int
    length: int = 1
    attention: str | None = None

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        d, r = self.width, self.hidden
        matrices = {name: (d, d) for name in ("query", "key", "value", "output")} if self.attention else {}
        return {
            "embedding": (self.states, d), "position": (self.length, d), **matrices, "inner": (r, d), "outer": (d, r),
            "bias": (1, self.states),
        }

    @cached_property
    def size(self) -> int:
        return sum(map(prod, self.shapes.values()))

    def flat(self, arrays: Mapping[str, Sequence]) -> list:
        """One list of all numbers, from arrays given as rows; absent ones are zero."""
        found = []
        for name, (rows, columns) in self.shapes.items():
            found += [mpf(v) for row in arrays[name] for v in row] if name in arrays else [mpf(0)] * (rows * columns)
        return found

    def arrays(self, theta: Sequence) -> dict[str, list]:
        """The arrays as lists of rows."""
        found, start = {}, 0
        for name, (rows, columns) in self.shapes.items():
            found[name] = [list(theta[start + i * columns : start + (i + 1) * columns]) for i in range(rows)]
            start += rows * columns
        return found

    def attended(self, of: dict, streams: Sequence) -> list:
        """What the attention adds at the last of the positions."""
        queries = _apply(of["query"], streams[-1])
        scores = [fdot(queries, _apply(of["key"], y)) / mpmath.sqrt(self.width) for y in streams]
        if self.attention == "softmax":
            raw = [mpmath.exp(score) for score in scores]
            weights = [value / sum(raw) for value in raw]
        else:
            weights = [score / len(scores) for score in scores]
        values = [_apply(of["value"], y) for y in streams]
        return _apply(of["output"], [fdot(weights, entries) for entries in zip(*values)])

    def logits(self, of: dict, symbols: Sequence[int]) -> list:
        """Logits of the S symbols after the last of a sequence."""
        streams = [[u + v for u, v in zip(of["embedding"][x], of["position"][n])] for n, x in enumerate(symbols)]
        y = streams[-1]
        if self.attention:
            y = [u + v for u, v in zip(y, self.attended(of, streams))]
        active = [max(h, mpf(0)) for h in _apply(of["inner"], y)]
        z = [u + v for u, v in zip(y, _apply(of["outer"], active))]
        return [logit + b for logit, b in zip(_apply(of["embedding"], z), of["bias"][0])]

    def loss(self, theta: Sequence, p):
        """Mean cross-entropy of all positions on the symmetric chain, summed over all sequences with their probabilities."""
        of, total = self.arrays(theta), mpf(0)
        for n in range(1, self.length + 1):
            for path in product(range(self.states), repeat=n):
                logits = self.logits(of, path)
                normaliser = mpmath.log(sum(mpmath.exp(logit) for logit in logits))
                total += path_law(path, self.states, p) * sum(
                    transition(path[-1], y, self.states, p) * (normaliser - logit) for y, logit in enumerate(logits)
                )
        return total / self.length

    def slope(self, theta: Sequence, p, direction: Sequence):
        """Derivative of the loss along a direction."""
        return mpmath.diff(lambda t: self.loss([u + t * v for u, v in zip(theta, direction)], p), mpf(0))

    def second(self, theta: Sequence, p, first: Sequence, other: Sequence):
        """Second derivative of the loss along two directions, by central differences with spare digits."""
        digits = mpmath.mp.dps
        with mpmath.workdps(2 * digits):
            step = mpf(10) ** (-digits // 2)

            def at(a, b):
                return self.loss([x + step * (a * u + b * v) for x, u, v in zip(theta, first, other)], p)

            return (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * step**2)

    def second_without_bias(self, theta: Sequence, p, pairs: Sequence) -> list:
        """Second derivatives along pairs of directions, the bias (but for one entry, which is free) eliminated."""
        unit = [[mpf(i == self.size - 1 - j) for i in range(self.size)] for j in range(self.states - 1)]
        inverse = mpmath.matrix([[self.second(theta, p, a, b) for a in unit] for b in unit]) ** -1
        found = []
        for u, v in pairs:
            left, right = ([self.second(theta, p, one, b) for b in unit] for one in (u, v))
            found.append(self.second(theta, p, u, v) - fdot(left, inverse * mpmath.matrix(right)))
        return found


def _apply(matrix: Sequence, vector: Sequence) -> list:
    return [fdot(row, vector) for row in matrix]


def transition(x, y, states: int, p):
    return 1 - p if x == y else p / (states - 1)


def excess(states: int, p):
    """φ′(0): the uniform probability of staying less the right one."""
    return mpf(1) / states - (1 - p)


def path_law(path: Sequence[int], states: int, p):
    """Probability of a path of the stationary chain."""
    return mpmath.fprod(transition(x, y, states, p) for x, y in zip(path, path[1:])) / states


def corners(states: int, width: int) -> list:
    """The S unit corners of a regular simplex, as rows, in the first S - 1 of the coordinates."""
    rows = [[mpf(0)] * width for _ in range(states)]
    for k in range(1, states):
        for j in range(k + 1):
            rows[j][k - 1] = mpmath.sqrt(mpf(states) / (states - 1)) * (1 if j < k else -k) / mpmath.sqrt(mpf(k) * (k + 1))
    return rows


def ansatz(states: int, width: int, e, w_1, w_2) -> dict[str, list]:
    """Embedding e u_x, W_1 = (w_1/√S) U, W_2 = (w_2/√S) Uᵀ."""
    u, root = corners(states, width), mpmath.sqrt(states)
    return {
        "embedding": [[e * v for v in row] for row in u], "inner": [[w_1 / root * v for v in row] for row in u],
        "outer": [[w_2 / root * v for v in column] for column in zip(*u)],
    }
