"""Critical points with what the Hessian and the neighbourhood say of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from landscape.search.problem import GROUND, NULL, STEP, STRIDE, at_each, norm, ring
from landscape.search.zeros import is_critical, settle


@dataclass(frozen=True)
class Points:
    """Critical points: eigenvalues relative to the Hessian around, and the directions in which their set continues."""

    at: np.ndarray  # (n, d)
    loss: np.ndarray  # (n,)
    values: np.ndarray  # (n, d), smallest in size first
    vectors: np.ndarray  # (n, d, d), columns
    dimension: np.ndarray  # (n,)
    frame: np.ndarray  # (n, d, d), of which the first `dimension` rows span the tangent space

    def __getitem__(self, which):
        return type(self)(*(getattr(self, field.name)[which] for field in dataclasses.fields(self)))

    def __len__(self):
        return len(self.at)

    @property
    def null(self):
        return np.abs(self.values) <= NULL

    @property
    def nullity(self):
        return self.null.sum(axis=1)

    @property
    def index(self):
        return ((self.values < 0) & ~self.null).sum(axis=1)

    def like(self, other):
        """Whether index and nullity are those of other points."""
        return (self.index == other.index) & (self.nullity == other.nullity)

    def alike(self):
        """Whether index and nullity of each two points are the same; shape (n, n)."""
        return (self.index[:, None] == self.index) & (self.nullity[:, None] == self.nullity)

    def gap(self, skipped):
        """Size of the smallest eigenvalue but the `skipped` smallest; infinite if that leaves none."""
        sizes = np.pad(np.abs(self.values), ((0, 0), (0, 1)), constant_values=np.inf)
        return np.take_along_axis(sizes, np.broadcast_to(skipped, len(self))[:, None], axis=1)[:, 0]


def concatenate(groups):
    """Points of several groups as one, with the fields of the first."""
    fields = [field.name for field in dataclasses.fields(groups[0])]
    return type(groups[0])(*(np.concatenate([getattr(group, name) for group in groups]) for name in fields))


def where(condition, points, others):
    """Points where a condition holds, and others elsewhere."""
    return concatenate([points, others])[np.arange(len(points)) + np.where(condition, 0, len(points))]


def look(problem, u) -> Points:
    """Points with their eigenvalues, taken for isolated."""
    values, vectors = problem.spectrum(u)
    around = np.linalg.norm(at_each(problem.hessian, ring(u, STRIDE)), axis=(2, 3))
    around = np.max(around, axis=1, where=np.isfinite(around), initial=0.0)
    size = np.maximum(around, np.abs(values[:, -1]))[:, None]
    values = np.divide(values, size, out=np.zeros_like(values), where=size > 0)
    return Points(u, problem.loss(u), values, vectors, np.zeros(len(u), dtype=int), np.zeros_like(vectors))


def describe(problem, u) -> Points:
    """Points with dimension and tangent: along which null directions do points of the same index and nullity follow?"""
    points = look(problem, u)
    who, which = np.nonzero(points.null)
    if not len(who):
        return points
    who, which, sign = np.repeat(who, 2), np.repeat(which, 2), np.tile([1.0, -1.0], len(who))
    ends = settle(problem, u[who] + STEP * sign[:, None] * points.vectors[who, :, which], GROUND)
    shifts = ends - u[who]
    follows = is_critical(problem, ends) & (norm(shifts) < 2.0 * STEP) & look(problem, ends).like(points[who])
    return with_frame(points, who, np.where(follows[:, None], shifts, 0.0))


def with_frame(points, who, shifts):
    """Points with the rank and the span of the steps of about STEP that led from them (`who`, sorted) on their set."""
    slot = np.arange(len(who)) - np.searchsorted(who, who)
    d = points.at.shape[1]
    rows = np.zeros((len(points), max(slot.max() + 1, d), d))
    rows[who, slot] = shifts / STEP
    _, singular, frame = np.linalg.svd(rows, full_matrices=False)
    dimension = np.minimum((singular > 0.5).sum(axis=1), points.nullity)
    exact = (dimension == points.nullity)[:, None, None]  # then the null space is the tangent space
    frame = np.where(exact, np.swapaxes(points.vectors, 1, 2), frame)
    return dataclasses.replace(points, dimension=dimension, frame=frame)
