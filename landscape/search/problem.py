"""The loss in units in which every threshold of the search is a pure number."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

SAME = 1e-6  # zeros closer than this are one
STEP = 1e-2  # length of a trial step; isolated degenerate points closer than this are one
STRIDE = 5e-2  # longest step of a walk, and the radius over which the size of the Hessian is measured
GROUND = 1e-8  # eigenvalues below this, in units of the problem, do not guide a step along a set
NULL = 1e-6  # an eigenvalue is zero below this share of the size of the Hessian around


@dataclass(frozen=True)
class Problem:
    """The loss in units of `unit` and in coordinates in which the box around `centre` is [-1, 1]^d."""

    functions: tuple  # loss, gradient and Hessian in the coordinates of the user
    centre: np.ndarray
    half: np.ndarray
    unit: float = 1.0

    def place(self, u):
        """Points in the coordinates of the user."""
        return self.centre + self.half * u

    def _values(self, order, u):
        with np.errstate(all="ignore"):
            return np.asarray(self.functions[order](self.place(u)), dtype=np.float64) / self.unit

    def loss(self, u):
        return self._values(0, u)

    def gradient(self, u):
        return self._values(1, u) * self.half

    def hessian(self, u):
        return self._values(2, u) * np.multiply.outer(self.half, self.half)

    def spectrum(self, u):
        """Eigenvalues, smallest in size first, and eigenvectors as columns; zeros where the Hessian is not finite."""
        matrices = self.hessian(u)
        matrices[~np.isfinite(matrices).all(axis=(1, 2))] = 0.0
        values, vectors = np.linalg.eigh(matrices)
        order = np.argsort(np.abs(values), axis=1)
        return np.take_along_axis(values, order, axis=1), np.take_along_axis(vectors, order[:, None, :], axis=2)

    def measured(self, sample) -> Problem:
        """The problem in units of the size of the derivatives over a sample; 0 where the loss does not vary on it."""
        sizes = np.fmax(*(np.abs(f(sample)).reshape(len(sample), -1).max(axis=1) for f in (self.gradient, self.hessian)))
        values = np.abs(self.loss(sample))
        rounding = np.finfo(float).eps * np.max(values, where=np.isfinite(values), initial=0.0)
        sizes = sizes[np.isfinite(sizes) & (sizes > rounding)]
        return dataclasses.replace(self, unit=float(np.median(sizes)) if len(sizes) else 0.0)


def norm(vectors):
    return np.linalg.norm(vectors, axis=-1)


def ring(u, radius, axes=None):
    """Points at a distance from each point along axes (rows), both ways; shape (n, 2 d, d)."""
    axes = radius * (np.eye(u.shape[1])[None] if axes is None else axes)
    return u[:, None, :] + np.concatenate([axes, -axes], axis=1)


def at_each(function, places):
    """A function at places of shape (n, m, d); shape (n, m, ...)."""
    n, m, d = places.shape
    values = function(places.reshape(n * m, d))
    return values.reshape(n, m, *values.shape[1:])
