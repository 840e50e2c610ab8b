"""Integrated flows as an independent check: networks in double precision, numerical gradients, arc length.

Nothing of the derivation is used: the loss is summed over explicit logits, the bias follows its own
minimum, gradients are central differences, and orbits are followed by the classical Runge-Kutta method
with unit speed, which changes no orbit and takes slow passages in its stride.
"""

from __future__ import annotations

import numpy as np


class NumericNetwork:
    """Loss and descent direction of a network for many (e, w) at once, or many (e, w, a) with linear attention.

    Parameters
    ----------
    p : float
    q : float or None
        Two symbols switched with p and q, or, if None, `states` symbols left with probability p.
    states : int
    """

    def __init__(self, p, q=None, states=2):
        self.p, self.q, self.states = float(p), q if q is None else float(q), int(states)
        self.bias = 0.0

    def logits(self, e, w, a=None):
        """Logits of shape (n, 2): after 0 and 1, or of the current and of another symbol."""
        if self.q is not None:
            alpha = np.array([1.0, -1.0, -1.0])
            embedding = e[:, None] / np.sqrt(3) * alpha
            k = 2 / np.sqrt(3 * 2)
            out = []
            for x in (0, 1):
                y = x * embedding - embedding / 2
                if a is not None:  # linear attention at the first position, with matrices that are multiples of ααᵀ
                    query = key = (y @ alpha)[:, None] * alpha
                    value = (4 * a / 3**3.5 * (y @ alpha))[:, None] * alpha
                    y = y + ((query * key).sum(axis=1) / np.sqrt(3) * (value @ alpha))[:, None] * alpha
                h = np.maximum(0.0, k * np.abs(w) * (y @ alpha))[:, None] * np.ones(2)
                z = y + k * w[:, None] * h.sum(axis=1, keepdims=True) * alpha
                out.append((embedding * z).sum(axis=1))
            return np.stack(out, axis=1)
        n = self.states
        corners = np.sqrt(n / (n - 1)) * (np.eye(n) - 1 / n)
        y = e[:, None] * corners[0]
        h = np.maximum(0.0, 2 * np.abs(w)[:, None] / np.sqrt(n) * (y @ corners.T))
        z = y + 2 * w[:, None] / np.sqrt(n) * (h @ corners)
        return e[:, None] * (z @ corners[:2].T)

    def loss(self, bias, *theta):
        """Cross-entropy in nats at a given bias (which S symbols do not need)."""
        logits = self.logits(*theta)
        if self.q is None:
            gap = logits[:, 0] - logits[:, 1]
            return np.logaddexp(gap, np.log(self.states - 1)) - (1 - self.p) * gap
        p, q = self.p, self.q
        zero, one = logits[:, 0] + bias, logits[:, 1] + bias
        after_zero = (1 - p) * np.logaddexp(0, zero) + p * np.logaddexp(0, -zero)
        after_one = q * np.logaddexp(0, one) + (1 - q) * np.logaddexp(0, -one)
        return (q * after_zero + p * after_one) / (p + q)

    def follow_bias(self, steps, *theta):
        """Move the bias to its minimum by Newton steps in the mean of two logistic curves."""
        if self.q is None:
            return
        p, q = self.p, self.q
        logits = self.logits(*theta)
        for _ in range(steps):
            zero, one = (1 / (1 + np.exp(-(logits[:, x] + self.bias))) for x in (0, 1))
            excess = q * (zero - p) + p * (one - (1 - q))
            self.bias = self.bias - np.clip(excess / (q * zero * (1 - zero) + p * one * (1 - one)), -1, 1)

    def direction(self, theta, h=1e-6):
        """Unit vectors of steepest descent at points of shape (n, 2) or (n, 3)."""
        self.follow_bias(4, *theta.T)
        moves = h * np.eye(theta.shape[1])
        field = -np.stack([self.loss(self.bias, *(theta + v).T) - self.loss(self.bias, *(theta - v).T) for v in moves], axis=1)
        return field / np.maximum(np.linalg.norm(field, axis=1, keepdims=True), 1e-30)


def outcomes(network: NumericNetwork, starts, unigram, bigram, steps=400, step=0.03):
    """Follow orbits and say where they end: "global", "local", "saddle", or None where it is not clear.

    A step along which the direction turns sharply, on which e changes sign, or that would not lower the
    loss is not taken but halved: orbits come to rest on the set that they reach first, instead of bouncing
    along it. An end with e = 0 is a local minimum if the loss rises on both sides of it, else a saddle.
    """
    theta = np.array(starts, dtype=float)
    network.bias = np.zeros(len(theta))
    network.follow_bias(60, *theta.T)
    size = np.full((len(theta), 1), step)
    lowest = network.loss(network.bias, *theta.T)
    for _ in range(steps):
        k1 = network.direction(theta)
        k2 = network.direction(theta + size / 2 * k1)
        k3 = network.direction(theta + size / 2 * k2)
        k4 = network.direction(theta + size * k3)
        trial = theta + size / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        network.follow_bias(4, *trial.T)
        loss = network.loss(network.bias, *trial.T)
        better = (loss < lowest) & ((k1 * k4).sum(axis=1) > 0.95) & (trial[:, 0] * theta[:, 0] > 0)
        theta[better], lowest[better] = trial[better], loss[better]
        size[~better] /= 2
    share = (lowest - bigram) / (unigram - bigram)
    rises = []
    for side in (0.02, -0.02):
        beside = np.concatenate([np.full((len(theta), 1), side), theta[:, 1:]], axis=1)
        network.follow_bias(8, *beside.T)
        rises.append(network.loss(network.bias, *beside.T) - unigram)
    found = []
    for part, up, down, at in zip(share, *rises, np.abs(theta[:, 0])):
        if part < 0.1:
            found.append("global")
        elif at < 1e-3 and min(abs(up), abs(down)) > 1e-7:
            found.append("local" if up > 0 and down > 0 else "saddle")
        else:
            found.append(None)
    return found
