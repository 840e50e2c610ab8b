"""Orbits of the full model on the symmetric chain, all parameters free: an independent check in double precision.

Gradients are those of the matrices, by backpropagation; orbits are followed by the classical Runge-Kutta method with unit
speed, which changes no orbit. Nothing here knows that the ansatz is kept.
"""

from __future__ import annotations

from functools import cache

import numpy as np

ARRAYS = ("embedding", "inner", "outer", "bias")
SHORT = 1e-2


def simplex(states: int, width: int) -> np.ndarray:
    """Unit corners of a regular simplex, shape (S, d)."""
    flat = np.eye(states) - 1 / states
    basis = np.linalg.svd(flat)[2][: states - 1]
    return np.sqrt(states / (states - 1)) * np.pad(flat @ basis.T, ((0, 0), (0, width - states + 1)))


def start(states: int, width: int, e, w) -> list[np.ndarray]:
    """Parameters on the ansatz, a model for each of the n values of e and w."""
    e, w = (np.asarray(v, dtype=float)[:, None, None] for v in (e, w))
    u = simplex(states, width)
    return [e * u, 2 * np.abs(w) / np.sqrt(states) * u, 2 * w / np.sqrt(states) * u.T, np.zeros((len(e), states))]


def loss_and_gradient(theta: list[np.ndarray], p: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """Population loss in nats, shape (n,), and gradient of n models with the arrays of `ARRAYS`."""
    embedding, inner, outer, bias = theta
    states = embedding.shape[1]
    chain = np.where(np.eye(states, dtype=bool), 1 - p, p / (states - 1))
    before = embedding @ inner.mT
    active = np.maximum(before, 0)
    final = embedding + active @ outer.mT
    logits = final @ embedding.mT + bias[:, None, :]
    shifted = logits - logits.max(axis=2, keepdims=True)
    log_law = shifted - np.log(np.exp(shifted).sum(axis=2, keepdims=True))
    error = (np.exp(log_law) - chain) / states
    upstream = error @ embedding
    into_hidden = (upstream @ outer) * (before > 0)
    gradient = [
        error.mT @ final + upstream + into_hidden @ inner, into_hidden.mT @ embedding, upstream.mT @ active, error.sum(axis=1),
    ]
    return -(chain * log_law).sum(axis=(1, 2)) / states, gradient


def _norms(arrays: list[np.ndarray]) -> np.ndarray:
    return np.sqrt(sum((a**2).reshape(len(a), -1).sum(axis=1) for a in arrays))


def _moved(theta, size, direction):
    return [a + size.reshape(-1, *[1] * (a.ndim - 1)) * b for a, b in zip(theta, direction)]


def _direction(theta, p):
    gradient = loss_and_gradient(theta, p)[1]
    return _moved([0 * g for g in gradient], -1 / np.maximum(_norms(gradient), 1e-300), gradient)


def follow(theta: list[np.ndarray], p: float, steps: int = 600, step: float = 0.08) -> tuple[list[np.ndarray], np.ndarray]:
    """Follow orbits in arc length; a step that would not lower the loss, turns sharply or turns the embedding round is halved instead.

    Orbits stop where the embedding is shorter than `SHORT`: next to the plateau rounding may grow, and lead off the ansatz.
    """
    size, lowest = np.full(len(theta[0]), step), loss_and_gradient(theta, p)[0]
    for _ in range(steps):
        k1 = _direction(theta, p)
        k2 = _direction(_moved(theta, size / 2, k1), p)
        k3 = _direction(_moved(theta, size / 2, k2), p)
        k4 = _direction(_moved(theta, size, k3), p)
        mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4)]
        trial = _moved(theta, size, mean)
        loss = loss_and_gradient(trial, p)[0]
        turned = sum((a * b).reshape(len(a), -1).sum(axis=1) for a, b in zip(k1, k4))
        onward = (trial[0] * theta[0]).sum(axis=(1, 2)) > 0
        better = (loss < lowest) & (turned > 0.95) & onward & (_norms(theta[:1]) > SHORT)
        theta = [np.where(better.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in zip(theta, trial)]
        lowest, size = np.where(better, loss, lowest), np.where(better, size, size / 2)
    return theta, lowest


@cache
def orbits(count: int = 40) -> tuple[dict, ...]:
    """Random starts on the ansatz with where the full model ends, "global" or "plateau", for 3 and 5 symbols."""
    generator, found = np.random.default_rng(3), []
    for states, p in ((3, 0.9), (3, 0.3), (5, 0.95), (5, 0.5)):
        e, w = generator.uniform((-1.6, -2.6), (1.6, 1.2), size=(count, 2)).T
        ends, loss = follow(start(states, states - 1, e, w), p)
        unigram, bigram = np.log(states), -(1 - p) * np.log(1 - p) - p * np.log(p / (states - 1))
        share = (loss - bigram) / (unigram - bigram)
        for k, (part, length) in enumerate(zip(share, _norms(ends[:1]))):
            end = "global" if part < 0.1 else "plateau" if length <= SHORT else None
            if end:
                found.append({"states": states, "p": p, "e": float(e[k]), "w": float(w[k]), "end": end, "target": 1 if p < (states - 1) / states else -1})
    return tuple(found)
