"""Flows with exact answers: one table for every integrator and classifier.

Each problem is a loss of real parameters with the limits of its gradient flow, and its critical sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

import landscape


@dataclass(frozen=True)
class Problem:
    """A loss and what is known of it.

    Attributes
    ----------
    name : str
    loss : str
    parameters : tuple of str
    limit : callable
        Takes starts of shape (n, d); returns the limits of their flows, shape (n, d).
    label : callable
        Takes starts of shape (n, d); returns the words of the limits' labels.
    flow : callable or None
        Takes a start and times; returns the states, where they have a closed form.
    sets : tuple
        Critical sets: (kind, dimension, index, nullity, how many of them).
    edges : tuple of starts
        Starts on the boundaries of the basins, and their labels by `label`.
    """

    name: str
    loss: str
    parameters: tuple[str, ...]
    limit: Callable
    label: Callable
    flow: Callable | None = None
    sets: tuple = ()
    edges: tuple = ()
    box: dict | None = None
    minimum: float | None = None
    starts: tuple = field(default=(-2.0, 2.0))

    @property
    def landscape(self):
        return _landscape(self.name)

    def draw(self, n, seed=0):
        """Random starts, shape (n, d)."""
        low, high = self.starts
        return np.random.default_rng(seed).uniform(low, high, size=(n, len(self.parameters)))


@cache
def _landscape(name):
    problem = BY_NAME[name]
    return landscape.PlainLoss.from_symbolic(
        problem.name, problem.loss, problem.parameters, box=problem.box, minimum=problem.minimum
    )


def _all_global(starts):
    return ["global"] * len(starts)


def _sign_wells(starts):
    """Double wells on every axis: each coordinate goes to the well on its side; 0 stays on the ridge."""
    return np.sign(starts)


def _wells_label(starts):
    words = []
    for start in starts:
        zeros = int(np.sum(start == 0.0))
        words.append("global" if zeros == 0 else "maximum" if np.all(start == 0.0) else "saddle")
    return words


def _well_flow(start, times):
    """x' = x - x³: x(t)² = 1 / (1 + (1/x₀² - 1) e^(-2t)), coordinate by coordinate."""
    x = np.asarray(start, dtype=float)
    decay = np.exp(-2.0 * np.asarray(times))[:, None]
    return np.sign(x) / np.sqrt(1.0 + (1.0 / x**2 - 1.0) * decay)


def _wells(dimension):
    names = ("x", "y", "z")[:dimension]
    points = {0: 2**dimension}
    for index in range(1, dimension + 1):
        points[index] = math.comb(dimension, index) * 2 ** (dimension - index)
    kinds = {0: "global minima", dimension: "maxima"}
    return Problem(
        f"double wells {dimension}", " + ".join(f"({n}^2 - 1)^2/4" for n in names), names, _sign_wells, _wells_label, _well_flow,
        tuple((kinds.get(index, "saddles"), 0, index, 0, count) for index, count in points.items()),
        edges=tuple((0.0,) * k + (0.7,) * (dimension - k) for k in range(1, dimension + 1)), minimum=0.0,
    )


def _saddle_limit(starts):
    return np.stack([np.sign(starts[:, 0]), np.zeros(len(starts))], axis=1)


def _saddle_label(starts):
    return ["saddle" if x == 0.0 else "global" for x in starts[:, 0]]


def _line_limit(starts):
    middle = (starts[:, 0] - starts[:, 1]) / 2
    return np.stack([middle, -middle], axis=1)


def _line_flow(start, times):
    """Only x + y moves, at twice its size."""
    x, y = start
    total = (x + y) * np.exp(-2.0 * np.asarray(times))
    return np.stack([(x - y + total) / 2, (total - x + y) / 2], axis=1)


def _circle_limit(starts):
    return starts / np.linalg.norm(starts, axis=1, keepdims=True)


def _circle_flow(start, times):
    start = np.asarray(start)
    radius = np.linalg.norm(start)
    return start / radius * np.abs(_well_flow([radius], times))


def _quartic_flow(start, times):
    """x' = -x³."""
    return (start[0] / np.sqrt(1.0 + 2.0 * start[0] ** 2 * np.asarray(times)))[:, None]


def _degenerate_saddle_limit(starts):
    """x³ + x⁴ has its minimum at -3/4 and an inflection at 0, which holds what comes from above."""
    return np.where(starts >= 0.0, 0.0, -0.75)


def _valley_flow(start, times):
    """|x| + y²/2: x falls at speed 1 until it is 0 and stays there; y decays."""
    x, y = start
    t = np.asarray(times)
    return np.stack([np.sign(x) * np.maximum(abs(x) - t, 0.0), y * np.exp(-t)], axis=1)


def _corner_flow(start, times):
    """|x| + 2|y|: each coordinate falls at its own speed until it is 0."""
    start, fall = np.asarray(start), np.outer(np.asarray(times), (1.0, 2.0))
    return np.sign(start) * np.maximum(np.abs(start) - fall, 0.0)


def _slide_flow(start, times):
    """2|x| + x - y, from x > 0: x falls at speed 3 to 0 and y rises at speed 1; then the flow slides along x = 0."""
    x, y = start
    t = np.asarray(times)
    fall = 3.0 if x > 0 else 1.0
    return np.stack([np.sign(x) * np.maximum(abs(x) - fall * t, 0.0), y + t], axis=1)


PROBLEMS = (
    _wells(1),
    _wells(2),
    _wells(3),
    Problem(
        "saddle between two wells", "x^4/4 - x^2/2 + y^2/2", ("x", "y"), _saddle_limit, _saddle_label,
        sets=(("global minima", 0, 0, 0, 2), ("saddles", 0, 1, 0, 1)), edges=((0.0, 1.0), (0.0, -0.3)), minimum=-0.25,
    ),
    Problem(
        "line of minima", "(x + y)^2/2", ("x", "y"), _line_limit, _all_global, _line_flow,
        sets=(("global minima", 1, 0, 1, 1),), edges=((0.5, -0.5),), minimum=0.0,
    ),
    Problem(
        "circle of minima", "(x^2 + y^2 - 1)^2/4", ("x", "y"), _circle_limit, _all_global, _circle_flow,
        sets=(("global minima", 1, 0, 1, 1), ("maxima", 0, 2, 0, 1)), minimum=0.0,
    ),
    Problem(
        "quartic minimum", "x^4/4", ("x",), np.zeros_like, _all_global, _quartic_flow,
        sets=(("global minima", 0, 0, 1, 1),), minimum=0.0,
    ),
    Problem(
        "degenerate saddle", "x^3 + x^4", ("x",), _degenerate_saddle_limit,
        lambda starts: ["saddle" if x >= 0 else "global" for x in starts[:, 0]],
        sets=(("global minima", 0, 0, 0, 1), ("saddles", 0, 0, 1, 1)), edges=((0.0,),), minimum=-27 / 256, starts=(-1.5, 1.0),
    ),
    Problem(
        "valley with a kink", "abs(x) + y^2/2", ("x", "y"), np.zeros_like, _all_global, _valley_flow, minimum=0.0,
    ),
    Problem(
        "kinked double well", "abs(abs(x) - 1) + y^2/2", ("x", "y"),
        lambda starts: np.stack([np.sign(starts[:, 0]), np.zeros(len(starts))], axis=1),
        lambda starts: ["saddle" if x == 0.0 else "global" for x in starts[:, 0]], edges=((0.0, 0.4),), minimum=0.0,
    ),
)

PROBLEMS += (
    Problem(
        "lasso", "(x + 2*y - 1)^2/2 + (x - y)^2/2 + 0.7*(abs(x) + abs(y))", ("x", "y"),
        lambda starts: np.tile([1 / 45, 23 / 90], (len(starts), 1)), _all_global,  # 2 x + y = 0.3 and x + 5 y = 1.3
        minimum=0.5 * (1 / 45 + 46 / 90 - 1) ** 2 + 0.5 * (1 / 45 - 23 / 90) ** 2 + 0.7 * (1 / 45 + 23 / 90),
    ),
    Problem(
        "corner of kinks", "abs(x) + 2*abs(y)", ("x", "y"), np.zeros_like, _all_global, _corner_flow,
        edges=((0.5, 0.0), (0.0, -0.5)), minimum=0.0,
    ),
)

# Flows that slide along a kink for ever, so that only states can be compared.
SLIDING = Problem("sliding", "2*abs(x) + x - y", ("x", "y"), np.zeros_like, _all_global, _slide_flow)

BY_NAME = {problem.name: problem for problem in (*PROBLEMS, SLIDING)}
