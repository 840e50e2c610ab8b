"""Gradient descent and Adam on the manifold of the exact reduction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import mpmath
from mpmath import fdot, mpf
from sympy import Abs, Matrix, expand, expand_power_base, sqrt

from landscape.symbolic import symbols as s
from landscape.symbolic.algebra import cancelled
from landscape.symbolic.manifold import Place
from landscape.symbolic.networks import Network, adam, descend, directions, projected
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symmetry import BATCH

BATCHES = (BATCH, ((1, 1, 0, 1), (0, 0, 1, 0)), BATCH)
RATE, MOMENTUM, DECAY, GUARD = mpf(3) / 8, mpf(3) / 4, mpf(1) / 16, mpf(1) / 64
ADAM_RATE, BETAS = mpf(1) / 16, (mpf(3) / 4, mpf(7) / 8)


@dataclass(frozen=True)
class Run:
    """Three steps of an optimiser, in the network of actual matrices and in the one with d = r = 1."""

    place: Place
    adaptive: bool

    def counts(self, network: Network) -> list:
        """For each array the number of its entries."""
        return [mpf(span.stop - span.start) for span in network.spans.values()]

    def steps(self, network: Network, theta: list, scales: list) -> list[dict]:
        """The run of a network; rate and epsilon of each array are multiplied by its scale."""
        if not self.adaptive:
            return list(descend(network, theta, BATCHES, RATE, MOMENTUM, DECAY))
        spread = [scale for scale, span in zip(scales, network.spans.values()) for _ in range(span.stop - span.start)]
        rates, guards = ([size * scale for scale in spread] for size in (ADAM_RATE, GUARD))
        return list(adam(network, theta, BATCHES, rates, guards, BETAS, ADAM_RATE * DECAY))

    @cached_property
    def whole(self) -> list[dict]:
        return self.steps(self.place.network, self.place.theta, [mpf(1)] * len(self.place.network.shapes))

    def differences(self) -> list:
        """After the last step: the largest entry off the manifold, and the largest difference to one dimension."""
        roots = [mpmath.sqrt(count) for count in self.counts(self.place.network)]
        along, off = projected(self.place.network, self.place.alpha, self.whole[-1]["theta"])
        alone = self.steps(self.place.alone, self.place.coordinates, roots)[-1]["theta"]
        return [max(map(abs, off)), max(abs(u - v) for u, v in zip(along, alone))]


@dataclass(frozen=True)
class Array:
    """One array of a run, at one step."""

    run: Run
    name: str
    step: int

    def coordinate(self, kind: str) -> mpf:
        network = self.run.place.network
        unit, state = directions(network, self.run.place.alpha)[self.name], self.run.whole[self.step]
        return fdot(unit, state[kind][network.spans[self.name]])

    def point(self) -> dict:
        state, span = self.run.whole[self.step], self.run.place.network.spans[self.name]
        found = {s.coordinate: self.coordinate("before"), s.decay: DECAY, s.entries: mpf(span.stop - span.start)}
        if not self.run.adaptive:
            return found | {
                s.velocity: self.coordinate("velocity"), s.coordinate_slope: self.coordinate("slopes"), s.rate: RATE,
                s.momentum: MOMENTUM,
            }
        return found | {
            s.first_moment: self.coordinate("first"), s.second_moment: sum(state["second"][span]), s.rate: ADAM_RATE,
            s.guard: GUARD,
        }


STARTS = (
    Place(Network(3, 2, 3), (1, -1, -1), (12, -9, 5, -7, 19, 14, -11, 13, 20, -9, 3)),
    Place(Network(2, 3, 3, "softmax", False), (-1, 1), (-14, 6, 11, 9, 15, -18, 12, 10, -17, 21, -7, -5)),
)
DESCENTS, ADAMS = (tuple(Run(start, adaptive) for start in STARTS) for adaptive in (False, True))


def _arrays(runs) -> tuple[Array, ...]:
    return tuple(Array(run, name, step) for run in runs for step, name in enumerate(("embedding", "inner", "value"))) + (
        Array(runs[0], "bias", 2), Array(runs[1], "head", 1), Array(runs[0], "query", 1),
    )


def optimisers(chapter: Chapter) -> None:
    """Gradient descent and Adam on an array of the manifold, in its coordinate."""
    root = sqrt(s.entries)  # every entry of an array is ± its coordinate over this root
    inside = [symbol / root for symbol in (s.coordinate, s.velocity, s.coordinate_slope)]
    entry = inside[0] - s.rate * (s.momentum * inside[1] + inside[2] + s.decay * inside[0])
    step = s.coordinate - s.rate * (s.momentum * s.velocity + s.coordinate_slope + s.decay * s.coordinate)
    change = cancelled(root * entry - step)
    chapter.add(
        "descent_step",
        "One step of gradient descent with momentum $\\beta$ (velocity $V_m$) and weight decay $\\lambda$, in the "
        "coordinate $\\theta$ of any array, of gradient $\\gamma$: linear, so the number of entries drops out.",
        r"\theta'", expand(root * entry), change,
        Check("steps of networks of actual matrices, entry by entry, with numerical gradients", cases=_arrays(DESCENTS),
              values=Array.point, reference=lambda array: array.coordinate("theta")),
    )
    chapter.add(
        "descent_run",
        "Hence training by gradient descent on the manifold is training of the transformer with $d=r=1$ at the same "
        "rate: the part off the manifold, and the difference to one dimension.",
        r"\left(\|\theta_{\mathrm{off}}\|,\ \|\theta_{\mathrm{on}}-\theta_1\|\right)",
        Matrix([sum(chapter["tangent"]), change]), Matrix([*chapter["tangent"], change]),
        Check("three steps with momentum and decay in networks of actual matrices, softmax attention", cases=DESCENTS,
              values=lambda run: {}, reference=Run.differences),
    )
    _adam(chapter, root)


def _adam(chapter: Chapter, root) -> None:
    moment, square = s.first_moment / root, s.second_moment / s.entries
    theta = s.coordinate / root

    def rule(value, first, second, rate, guard):
        return value * (1 - s.rate * s.decay) - rate * first / (sqrt(second) + guard)

    entry = expand_power_base(root * rule(theta, moment, square, s.rate, s.guard))
    alone = rule(s.coordinate, s.first_moment, s.second_moment, root * s.rate, root * s.guard)
    update = s.coordinate * (1 - s.rate * s.decay) - cancelled(s.coordinate * (1 - s.rate * s.decay) - entry)
    change = cancelled(entry - alone)
    chapter.add(
        "adam_step",
        "One step of Adam with decoupled decay $\\lambda$, with the corrected moments $M_1,M_2$ of the coordinate's "
        "gradient (the recursions for the moments are linear in the gradient and its square, so an entry has $\\pm "
        "M_1/\\sqrt{n_i}$ and $M_2/n_i$). All entries have one size, so all move by one size: for "
        "$\\alpha\\in\\{\\pm1\\}^d$ Adam keeps the manifold. In the coordinate of an array with $n_i$ entries it is the "
        "Adam of one dimension with rate $\\sqrt{n_i}\\,\\eta$ and epsilon $\\sqrt{n_i}\\,\\epsilon_A$, while the decay "
        "stays $1-\\eta\\lambda$ (decay in the gradient stays $\\lambda$): $n_i=d$ for $\\mathbf e,\\mathbf "
        "p_n,\\mathbf c$, $d^2$ for the attention matrices, $rd$ for $W_1,W_2$ and 1 for $b$. Different arrays have "
        "different rates, so it is not the Adam of the transformer with $d=r=1$.",
        r"\theta'", update, change,
        Check("steps of Adam in networks of actual matrices, entry by entry, with numerical gradients", cases=_arrays(ADAMS),
              values=Array.point, reference=lambda array: array.coordinate("theta")),
    )
    chapter.add(
        "adam_run",
        "A run of Adam on the manifold against that of the transformer with $d=r=1$ with these rates and epsilons: the "
        "part off the manifold, and the difference.",
        r"\left(\|\theta_{\mathrm{off}}\|,\ \|\theta_{\mathrm{on}}-\theta_1\|\right)",
        Matrix([sum(chapter["tangent"]), change]), Matrix([*chapter["tangent"], change]),
        Check("three steps in networks of actual matrices, softmax attention", cases=ADAMS, values=lambda run: {},
              reference=Run.differences),
    )
    one, other = s.entry_sizes
    moves = [-s.rate * s.coordinate_slope / (Abs(s.coordinate_slope) * size + s.guard) for size in (one, other)]
    unequal = moves[0] - moves[1]
    chapter.add(
        "adam_unequal",
        "If $|\\alpha_1|\\ne|\\alpha_2|$ Adam leaves the multiples of $\\alpha$ in its first step: the embedding's "
        "gradient is $\\gamma\\alpha$, and its entries move by different multiples of $\\alpha$'s. Shown is the "
        "difference of the multiples for two entries with $|\\alpha_j|$ as given; at $\\epsilon_A=0$ all entries move "
        "by $\\eta$.",
        r"\frac{\Delta\mathbf e_1}{\alpha_1}-\frac{\Delta\mathbf e_2}{\alpha_2}",
        unequal, Matrix([
            unequal.subs(other, one),
            cancelled(unequal - s.rate * s.coordinate_slope * Abs(s.coordinate_slope) * (one - other) / _denominator(one, other)),
        ]),
        Check("the first step of Adam in networks with unequal entries of α, with numerical gradients", cases=UNEQUAL,
              values=_unequal_point, reference=_unequal_step),
    )


def _denominator(one, other):
    return (Abs(s.coordinate_slope) * one + s.guard) * (Abs(s.coordinate_slope) * other + s.guard)


UNEQUAL = (
    Place(Network(3, 2, 3), (1, -2, -1), (12, -9, 5, -7, 19, 14, -11, 13, 20, -9, 3)),
    Place(Network(2, 3, 3), (-3, 2), (-14, 6, 11, 9, 15, -18, 12, 10, -17, 21, -5)),
)


def _unequal_point(place: Place) -> dict:
    slope = projected(place.network, place.alpha, place.network.gradient(place.theta, BATCH))[0][0]
    size = slope / mpmath.sqrt(fdot(place.alpha, place.alpha))
    return {s.coordinate_slope: size, s.rate: ADAM_RATE, s.guard: GUARD} | dict(zip(s.entry_sizes, map(abs, map(mpf, place.alpha))))


def _unequal_step(place: Place):
    count = len(place.theta)
    step = next(adam(place.network, place.theta, BATCHES, [ADAM_RATE] * count, [GUARD] * count, BETAS, 0))
    moves = [(step["theta"][j] - step["before"][j]) / place.alpha[j] for j in (0, 1)]
    return moves[0] - moves[1]
