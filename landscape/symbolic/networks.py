"""A one-layer transformer on binary symbols, of actual matrices, in arithmetic of any precision: for checks only.

Parameters are one flat list, so that a gradient can be taken number by number and an optimiser is a loop over
numbers. Nothing here knows of rays or of the canonical slice but `directions`, which writes the manifold's unit
arrays down entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import mpmath
from mpmath import fdot, mpf

SPARE_DIGITS = 30


@dataclass(frozen=True)
class Network:
    """Sizes and kinds of a transformer; its parameters are handed in as a flat list.

    Attributes
    ----------
    width, hidden, length : int
        Residual stream d, hidden units r, positions N.
    attention : {"softmax", "linear", "sum"}
        Of the scores of i <= n: their softmax, the scores divided by n, or the scores themselves.
    tied : bool
        Whether the embedding is the head.
    root : int, optional
        The scores are divided by its square root; the width if not given.
    """

    width: int
    hidden: int
    length: int
    attention: str = "softmax"
    tied: bool = True
    root: int | None = None

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each array, in the order in which the flat list holds them."""
        d, r = self.width, self.hidden
        shapes = {"embedding": (d,)} | {f"position {n}": (d,) for n in range(self.length)}
        shapes |= {name: (d, d) for name in ("query", "key", "value", "output")} | {"inner": (r, d), "outer": (d, r)}
        return shapes | ({} if self.tied else {"head": (d,)}) | {"bias": (1,)}

    @cached_property
    def spans(self) -> dict[str, slice]:
        """Where in the flat list each array lies."""
        spans, start = {}, 0
        for name, shape in self.shapes.items():
            spans[name] = slice(start, start + prod(shape))
            start += prod(shape)
        return spans

    def flat(self, arrays: dict[str, Sequence]) -> list:
        """The flat list of arrays given by name, row by row; absent ones are zero."""
        return [value for name, shape in self.shapes.items() for value in arrays.get(name, [mpf(0)] * prod(shape))]

    def arrays(self, theta: Sequence) -> dict[str, list]:
        """Vectors as lists, matrices as lists of rows."""
        found = {}
        for name, shape in self.shapes.items():
            entries = list(theta[self.spans[name]])
            if len(shape) == 2:
                entries = [entries[i : i + shape[1]] for i in range(0, len(entries), shape[1])]
            found[name] = entries
        return found

    def trace(self, theta: Sequence, symbols: Sequence[int]) -> dict[str, list]:
        """The forward pass on a sequence of at most N symbols; each quantity as a list over positions.

        `stream` before the attention, `scores` and `weights` (of i <= n), `attended` (what the attention adds),
        `hidden` (before ReLU), `final`, `logits`.
        """
        of = self.arrays(theta)
        head = of["embedding"] if self.tied else of["head"]
        stream = [[x * u + v for u, v in zip(of["embedding"], of[f"position {n}"])] for n, x in enumerate(symbols)]
        queries, keys, values = ([_apply(of[name], y) for y in stream] for name in ("query", "key", "value"))
        root = mpmath.sqrt(self.root or self.width)
        scores = [[fdot(query, keys[i]) / root for i in range(n + 1)] for n, query in enumerate(queries)]
        weights = [self._weigh(row) for row in scores]
        attended = [_apply(of["output"], _combine(row, values)) for row in weights]
        after = [[u + v for u, v in zip(y, more)] for y, more in zip(stream, attended)]
        hidden = [_apply(of["inner"], u) for u in after]
        active = [[max(h, mpf(0)) for h in unit] for unit in hidden]
        final = [[u + v for u, v in zip(y, _apply(of["outer"], h))] for y, h in zip(after, active)]
        logits = [fdot(head, z) + of["bias"][0] for z in final]
        return {
            "stream": stream, "scores": scores, "weights": weights, "attended": attended, "hidden": hidden,
            "final": final, "logits": logits,
        }

    def _weigh(self, scores: list) -> list:
        if self.attention == "softmax":
            exponentials = [mpmath.exp(score) for score in scores]
            total = sum(exponentials)
            return [value / total for value in exponentials]
        return [score / len(scores) for score in scores] if self.attention == "linear" else scores

    def logits(self, theta: Sequence, symbols: Sequence[int]) -> list:
        """Logit of "the next symbol is 1" at each position."""
        return self.trace(theta, symbols)["logits"]

    def loss(self, theta: Sequence, batch: Sequence[Sequence[int]]):
        """Mean cross-entropy of each next symbol in sequences of at most N + 1 symbols."""
        terms = [
            mpmath.log(1 + mpmath.exp((1 - 2 * y) * logit))
            for symbols in batch for logit, y in zip(self.logits(theta, symbols[:-1]), symbols[1:])
        ]
        return sum(terms) / len(terms)

    def gradient(self, theta: Sequence, batch: Sequence[Sequence[int]]) -> list:
        """Gradient of the loss, by central differences."""
        return gradient(lambda point: self.loss(point, batch), theta)


def _apply(matrix: list, vector: list) -> list:
    return [fdot(row, vector) for row in matrix]


def _combine(weights: list, vectors: list) -> list:
    return [fdot(weights, entries) for entries in zip(*vectors[: len(weights)])]


def gradient(function: Callable, theta: Sequence) -> list:
    """Central differences with a step so small, and digits so many, that the error is below the working precision."""
    digits = mpmath.mp.dps
    with mpmath.workdps(digits + SPARE_DIGITS):
        step = mpf(10) ** (-(digits + SPARE_DIGITS) // 3)
        found = []
        for i, value in enumerate(theta):
            sides = [function([*theta[:i], value + side * step, *theta[i + 1 :]]) for side in (1, -1)]
            found.append((sides[0] - sides[1]) / (2 * step))
    return [+value for value in found]


# --- the manifold, entry by entry --------------------------------------------------------------------


def directions(network: Network, alpha: Sequence) -> dict[str, list]:
    """For each array the one that spans its part of the manifold, with Frobenius norm 1, as a flat list."""
    spanning = {"width": list(alpha), "hidden": [1] * network.hidden}
    along = {
        "inner": ("hidden", "width"), "outer": ("width", "hidden"),
        **{name: ("width", "width") for name in ("query", "key", "value", "output")},
    }
    found = {}
    for name in network.shapes:
        if name == "bias":
            entries = [mpf(1)]
        elif name in along:
            rows, columns = (spanning[axis] for axis in along[name])
            entries = [mpf(u * v) for u in rows for v in columns]
        else:
            entries = [mpf(u) for u in alpha]
        norm = mpmath.sqrt(fdot(entries, entries))
        found[name] = [entry / norm for entry in entries]
    return found


def lifted(network: Network, alpha: Sequence, coordinates: Sequence) -> list:
    """The parameters of a network on the manifold, from its orthonormal coordinates (one number an array)."""
    arrays = directions(network, alpha)
    return [value * entry for value, entries in zip(coordinates, arrays.values(), strict=True) for entry in entries]


def projected(network: Network, alpha: Sequence, theta: Sequence) -> tuple[list, list]:
    """Orthonormal coordinates of the parameters' part on the manifold, and the entries of their part off it."""
    coordinates = [
        fdot(entries, theta[network.spans[name]]) for name, entries in directions(network, alpha).items()
    ]
    return coordinates, [u - v for u, v in zip(theta, lifted(network, alpha, coordinates))]


# --- optimisers: each yields the parameters after every step ----------------------------------------


def descend(network: Network, theta: Sequence, batches: Sequence, rate, momentum, decay):
    """Gradient descent with momentum and weight decay in the gradient, one step a batch.

    Yields
    ------
    dict
        `before`, `velocity` and `slopes` (of the parameters, the momentum and the gradient before the step), `theta`.
    """
    theta, velocity = list(theta), [mpf(0)] * len(theta)
    for batch in batches:
        slopes = network.gradient(theta, batch)
        before = {"before": theta, "velocity": velocity, "slopes": slopes}
        velocity = [momentum * v + g + decay * value for v, g, value in zip(velocity, slopes, theta)]
        theta = [value - rate * v for value, v in zip(theta, velocity)]
        yield before | {"theta": theta}


def adam(network: Network, theta: Sequence, batches: Sequence, rates: Sequence, guards: Sequence, betas, decay):
    """Adam with decoupled weight decay: each number i has its own rate and epsilon, and decays by `decay` a step.

    Yields
    ------
    dict
        `before` (the parameters before the step), `first` and `second` (the moments, corrected), `theta`.
    """
    theta = list(theta)
    first, second = [mpf(0)] * len(theta), [mpf(0)] * len(theta)
    for count, batch in enumerate(batches, 1):
        before, slopes = theta, network.gradient(theta, batch)
        first = [betas[0] * m + (1 - betas[0]) * g for m, g in zip(first, slopes)]
        second = [betas[1] * v + (1 - betas[1]) * g**2 for v, g in zip(second, slopes)]
        means = [m / (1 - betas[0] ** count) for m in first]
        squares = [v / (1 - betas[1] ** count) for v in second]
        theta = [
            value * (1 - decay) - rate * m / (mpmath.sqrt(v) + guard)
            for value, m, v, rate, guard in zip(theta, means, squares, rates, guards, strict=True)
        ]
        yield {"before": before, "first": means, "second": squares, "theta": theta}
