"""An optimiser without the noise of batches: SGD and AdamW on a population loss, for many starts at once.

The landscape is `reduced` or `transverse`; its coordinates stand for many entries of the full model's weights, which is
how AdamW, acting on entries, comes to have its own rate for each coordinate (`validation.manifold.TwinAdamW`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from landscape import parameters
from landscape.landscapes import Landscape
from landscape.parameters import ParameterError
from validation.manifold import entries
from validation.training import SGD, AdamW
from validation.transformer import TransformerConfig

NAMES = {"e": "embedding", "c": "positions", "w1": "inner", "w2": "outer", "b": "bias", "u": "embedding"}


@dataclass(frozen=True)
class Simulation:
    """What optimisers did.

    Attributes
    ----------
    steps : ndarray of int64, shape (T,)
        Steps done at each look.
    losses : ndarray of float64, shape (n, T)
        Population loss in nats after so many steps; not finite where a start ran away.
    looks : ndarray of float64, shape (n, T, k)
        Points of the landscape.
    """

    steps: np.ndarray
    losses: np.ndarray
    looks: np.ndarray

    @property
    def ends(self) -> np.ndarray:
        """Last points, shape (n, k)."""
        return self.looks[:, -1]


def simulate(
    landscape: Landscape, starts, optimiser: SGD | AdamW, config: TransformerConfig, steps, *, across=None
) -> Simulation:
    """Take the steps of `optimiser` down the population gradient.

    The common position c of N positions gets 1 / N of its gradient at each of them: under SGD it moves by rate / N times
    the gradient, under AdamW as fast as if there were one, for what AdamW divides out is the size of the gradient.

    AdamW mixes e with the part of the embedding that lies across alpha, entry by entry. With u among the parameters, the d
    entries of the embedding are therefore kept, along alpha = (1, ..., 1) without loss of generality, and u is the length of
    what is across: it does not grow in the proportion of its gradient. What is across alpha in other weights is not followed.

    Parameters
    ----------
    landscape : Landscape
        `reduced` or `transverse` on a chain; its own speeds do not enter.
    starts : array_like of shape (n, k) or (n, 2)
        As `landscape.points` takes them.
    config : TransformerConfig
        Of the full model: N, d and r.
    steps : sequence of int
        At which numbers of steps to look, increasing.
    across : ndarray, shape (n, d), optional
        For AdamW, alpha times the part of the embedding across alpha, entry by entry (its length goes before u of
        `starts`). By default u times a unit vector with one half of the entries of one sign.

    Raises
    ------
    ParameterError
        If `steps` does not increase from at least 0, or `across` is of another shape or not across.
    """
    looks = [parameters.count("simulate", "steps", step, 0) for step in steps]
    if not looks or any(late <= early for early, late in zip(looks, looks[1:])):
        raise ParameterError("steps", "simulate", "increasing numbers of steps", list(steps))
    points = landscape.points("simulate", starts)
    if across is not None:
        across = _orthogonal(across, (len(points), config.dimension), np.abs(points).sum(axis=1))
    seen = []
    with np.errstate(over="ignore", invalid="ignore"):
        walker = _Descent(landscape, points, optimiser, config) if isinstance(optimiser, SGD) else _Adam(landscape, points, optimiser, config, across)
        for step in range(looks[-1] + 1):
            if step:
                walker.step()
            if step in looks[len(seen) : len(seen) + 1]:
                seen.append(walker.points.copy())
        losses = np.stack([_finite(landscape.loss, points) for points in seen], axis=1)
    return Simulation(np.array(looks), losses, np.stack(seen, axis=1))


def _orthogonal(across, shape: tuple[int, int], sizes: np.ndarray) -> np.ndarray:
    """The part across alpha = (1, ..., 1), checked to be that but for what rounds off weights of these sizes in float32."""
    found = np.array(across, dtype=np.float64)
    if found.shape == shape:
        with np.errstate(over="ignore", invalid="ignore"):
            along, allowed = np.abs(found.sum(axis=1)), 1e-6 * (np.abs(found).sum(axis=1) + sizes)
        if not (along > allowed).any():  # what is not finite is left to the simulation
            return found
    raise ParameterError("across", "simulate", f"an array of shape {shape} whose rows each add up to zero", across)


def _finite(function, points: np.ndarray) -> np.ndarray:
    """Values of a function of points, NaN where a point is not finite."""
    good = np.isfinite(points).all(axis=1)
    values = function(np.where(good[:, None], points, 0.0))
    return np.where(good.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)


class _Descent:
    """SGD; `points` is where it is."""

    def __init__(self, landscape, points, optimiser: SGD, config):
        self.landscape, self.points = landscape, points.copy()
        self.rates = np.array([optimiser.rate / (config.length if name == "c" else 1) for name in landscape.parameters])

    def step(self) -> None:
        self.points = self.points - self.rates * _finite(self.landscape.gradient, self.points)


class _Adam:
    """AdamW on e, c, w1, w2, b and, where the landscape has u, on the d entries of the embedding in place of e and u."""

    def __init__(self, landscape, points, optimiser: AdamW, config, across):
        self.landscape, self.optimiser, self.points = landscape, optimiser, points.copy()
        self.width, self.names = config.dimension, landscape.parameters
        kept = [name for name in self.names if not self._whole or name not in ("e", "u")]
        self.kept = [self.names.index(name) for name in kept]
        counts = np.array([entries(NAMES[name], config.dimension, config.hidden) for name in kept])
        parts = np.array([config.length if name == "c" else 1 for name in kept])  # gradients are split among positions
        self.scales, self.slack = np.sqrt(counts), np.sqrt(counts) * parts * optimiser.eps
        self.state = points[:, self.kept]
        if self._whole:
            across = self._across(points[:, self.names.index("u")], across)
            entry = points[:, [self.names.index("e")]] / math.sqrt(self.width) + across
            self.state = np.concatenate([self.state, entry], axis=1)
            self.scales = np.append(self.scales, np.ones(self.width))
            self.slack = np.append(self.slack, np.full(self.width, optimiser.eps))
        self.first, self.second, self.count = np.zeros_like(self.state), np.zeros_like(self.state), 0
        self._place()

    @property
    def _whole(self) -> bool:
        """Whether the embedding is kept entry by entry."""
        return "u" in self.names

    def _across(self, lengths: np.ndarray, across) -> np.ndarray:
        if across is not None:
            return np.array(across, dtype=np.float64)
        half = self.width // 2
        signs = np.where(np.arange(self.width) < half, 1.0, -1.0) * (np.arange(self.width) < 2 * half)
        return np.outer(lengths, signs / max(math.sqrt(2 * half), 1.0))

    def _place(self) -> None:
        """The point of the landscape."""
        self.points[:, self.kept] = self.state[:, : len(self.kept)]
        if self._whole:
            entry = self.state[:, len(self.kept) :]
            self.points[:, self.names.index("e")] = entry.sum(1) / math.sqrt(self.width)
            self.points[:, self.names.index("u")] = np.linalg.norm(entry - entry.mean(1, keepdims=True), axis=1)

    def _gradient(self) -> np.ndarray:
        found = _finite(self.landscape.gradient, self.points)
        if not self._whole:
            return found
        entry = self.state[:, len(self.kept) :]
        off = entry - entry.mean(1, keepdims=True)
        length = np.linalg.norm(off, axis=1, keepdims=True)
        unit = np.divide(off, length, out=np.zeros_like(off), where=length > 0.0)
        e, u = (found[:, [self.names.index(name)]] for name in ("e", "u"))
        return np.concatenate([found[:, self.kept], e / math.sqrt(self.width) + u * unit], axis=1)

    def step(self) -> None:
        one, two = self.optimiser.betas
        gradient = self._gradient()
        self.count += 1
        self.first = one * self.first + (1 - one) * gradient
        self.second = two * self.second + (1 - two) * gradient**2
        mean, size = self.first / (1 - one**self.count), np.sqrt(self.second / (1 - two**self.count))
        self.state = (1 - self.optimiser.rate * self.optimiser.weight_decay) * self.state
        self.state -= self.optimiser.rate * self.scales * mean / (size + self.slack)
        self._place()
