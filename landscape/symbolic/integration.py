"""Integrated flows as an independent check: networks in double precision, numerical gradients, arc length.

Nothing of the derivation is used: the loss is summed over explicit logits, the bias follows its own
minimum, gradients are central differences, and orbits are followed by the classical Runge-Kutta method
with unit speed, which changes no orbit and takes slow passages in its stride.
"""

from __future__ import annotations

import numpy as np


class NumericNetwork:
    """Loss and descent direction of a network for many points (e, w) at once, (e, c, w) with a head of its own, or (e, w, a) with attention.

    Parameters
    ----------
    p : float
    q : float or None
        Two symbols switched with p and q, or, if None, `states` symbols left with probability p.
    states : int
    attention : bool
        Whether there is linear attention (two symbols).
    """

    def __init__(self, p, q=None, states=2, attention=False):
        self.p, self.q, self.states = float(p), q if q is None else float(q), int(states)
        self.attention = attention
        self.bias = 0.0

    def logits(self, theta):
        """Logits of shape (n, 2) at points of shape (n, d): after 0 and 1, or of the current and of another symbol."""
        if self.attention:
            e, w, a = theta.T
            head = e
        else:
            e, head, w = theta[:, 0], theta[:, -2], theta[:, -1]  # (e, w) is tied: its head is e
        if self.q is not None:
            alpha = np.array([1.0, -1.0, -1.0])
            embedding, reading = (size[:, None] / np.sqrt(3) * alpha for size in (e, head))
            k = 2 / np.sqrt(3 * 2)
            out = []
            for x in (0, 1):
                y = x * embedding - embedding / 2
                if self.attention:  # linear, at the first position, with matrices that are multiples of ααᵀ
                    query = key = (y @ alpha)[:, None] * alpha
                    value = (4 * a / 3**3.5 * (y @ alpha))[:, None] * alpha
                    y = y + ((query * key).sum(axis=1) / np.sqrt(3) * (value @ alpha))[:, None] * alpha
                h = np.maximum(0.0, k * np.abs(w) * (y @ alpha))[:, None] * np.ones(2)
                z = y + k * w[:, None] * h.sum(axis=1, keepdims=True) * alpha
                out.append((reading * z).sum(axis=1))
            return np.stack(out, axis=1)
        n = self.states
        corners = np.sqrt(n / (n - 1)) * (np.eye(n) - 1 / n)
        y = e[:, None] * corners[0]
        h = np.maximum(0.0, 2 * np.abs(w)[:, None] / np.sqrt(n) * (y @ corners.T))
        z = y + 2 * w[:, None] / np.sqrt(n) * (h @ corners)
        return head[:, None] * (z @ corners[:2].T)

    def loss(self, theta):
        """Cross-entropy in nats at the bias that was followed (which S symbols do not need)."""
        logits = self.logits(theta)
        if self.q is None:
            gap = logits[:, 0] - logits[:, 1]
            return np.logaddexp(gap, np.log(self.states - 1)) - (1 - self.p) * gap
        p, q = self.p, self.q
        zero, one = logits[:, 0] + self.bias, logits[:, 1] + self.bias
        after_zero = (1 - p) * np.logaddexp(0, zero) + p * np.logaddexp(0, -zero)
        after_one = q * np.logaddexp(0, one) + (1 - q) * np.logaddexp(0, -one)
        return (q * after_zero + p * after_one) / (p + q)

    def follow_bias(self, theta, steps):
        """Move the bias to its minimum by Newton steps in the mean of two logistic curves."""
        if self.q is None:
            return
        p, q = self.p, self.q
        logits = self.logits(theta)
        for _ in range(steps):
            zero, one = (1 / (1 + np.exp(-(logits[:, x] + self.bias))) for x in (0, 1))
            excess = q * (zero - p) + p * (one - (1 - q))
            self.bias = self.bias - np.clip(excess / (q * zero * (1 - zero) + p * one * (1 - one)), -1, 1)

    def direction(self, theta, h=1e-6):
        """Unit vectors of steepest descent at points of shape (n, d)."""
        self.follow_bias(theta, 4)
        field = np.stack([self.loss(theta - step) - self.loss(theta + step) for step in h * np.eye(theta.shape[1])], axis=1)
        return field / np.maximum(np.linalg.norm(field, axis=1, keepdims=True), 1e-30)


def descend(network: NumericNetwork, starts, allowed=None, steps=400, step=0.03):
    """Follow orbits, and hand back the last points and losses.

    A step along which the direction turns sharply, that would not lower the loss, or that is not `allowed(trial, theta)`
    is not taken but halved: orbits come to rest on the set that they reach first, instead of bouncing along it.
    """
    theta = np.array(starts, dtype=float)
    network.bias = np.zeros(len(theta))
    network.follow_bias(theta, 60)
    size = np.full((len(theta), 1), step)
    lowest = network.loss(theta)
    for _ in range(steps):
        k1 = network.direction(theta)
        k2 = network.direction(theta + size / 2 * k1)
        k3 = network.direction(theta + size / 2 * k2)
        k4 = network.direction(theta + size * k3)
        trial = theta + size / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        network.follow_bias(trial, 4)
        loss = network.loss(trial)
        better = (loss < lowest) & ((k1 * k4).sum(axis=1) > 0.95)
        if allowed is not None:
            better &= allowed(trial, theta)
        theta[better], lowest[better] = trial[better], loss[better]
        size[~better] /= 2
    return theta, lowest


def sides(network: NumericNetwork, theta, unigram, shift=0.02):
    """By how much the loss rises above the unigram loss from e = 0 to e = shift and to e = -shift."""
    rises = []
    for side in (shift, -shift):
        beside = np.column_stack([np.full(len(theta), side), theta[:, 1:]])
        network.follow_bias(beside, 8)
        rises.append(network.loss(beside) - unigram)
    return rises


def outcomes(network: NumericNetwork, starts, unigram, bigram, steps=400):
    """Follow orbits of the tied network and say where they end: "global", "local", "saddle", or None where it is not clear.

    They cannot cross e = 0. An end with e = 0 is a local minimum if the loss rises on both sides of it, else a saddle.
    """
    theta, lowest = descend(network, starts, lambda trial, theta: trial[:, 0] * theta[:, 0] > 0, steps)
    share = (lowest - bigram) / (unigram - bigram)
    found = []
    for part, up, down, at in zip(share, *sides(network, theta, unigram), np.abs(theta[:, 0])):
        if part < 0.1:
            found.append("global")
        elif at < 1e-3 and min(abs(up), abs(down)) > 1e-7:
            found.append("local" if up > 0 and down > 0 else "saddle")
        else:
            found.append(None)
    return found


class PlaneNetwork(NumericNetwork):
    """A network with a head of its own on the planes e = ±c (`side`, shape (n,)), at points (x, w) with e = x/√2."""

    def __init__(self, side, *chain):
        super().__init__(*chain)
        self.side = side

    def logits(self, theta):
        size = theta[:, 0] / np.sqrt(2)
        return super().logits(np.column_stack([size, self.side * size, theta[:, 1]]))


def outcomes_on_plane(network: PlaneNetwork, starts, unigram, bigram):
    """The same as `outcomes`, where orbits end globally or on x = 0, which is "saddle" whatever is beside it."""
    theta, lowest = descend(network, starts, lambda trial, theta: trial[:, 0] * theta[:, 0] > 0, 260)
    share = (lowest - bigram) / (unigram - bigram)
    return ["global" if part < 0.1 else "saddle" if at < 1e-3 else None for part, at in zip(share, np.abs(theta[:, 0]))]


def outcomes_untied(network: NumericNetwork, starts, unigram, bigram):
    """The same as `outcomes` for a head of its own. Orbits may cross e = 0; one that stops there, but not at c = 0, is held by a kink."""
    theta, lowest = descend(network, starts, steps=260)
    share = (lowest - bigram) / (unigram - bigram)
    found = []
    for part, up, down, (e, c, _) in zip(share, *sides(network, theta, unigram, 1e-4), np.abs(theta)):
        if part < 0.1:
            found.append("global")
        elif max(e, c) < 1e-2:
            found.append("saddle")
        elif e < 1e-5 and min(up, down) > 0:
            found.append("local")
        else:
            found.append(None)
    return found
