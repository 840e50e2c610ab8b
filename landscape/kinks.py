"""Critical sets on kinks, where the gradient jumps and need not vanish.

On a surface s(θ) = 0 the loss is smooth along it, so its critical points there are those of L + μ s in (θ, μ), in
either branch of L. One is a critical point of the flow if the two sides push against each other, towards the
surface or away from it. Where kinks cross, only minima are found, as ends of flows.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from landscape.flow_maps import group
from landscape.flows import as_model, flow
from landscape.kernels.attraction import MOVING, judge
from landscape.kernels.field import drive, natural_signs, on_the_plus_side, project, push, values
from landscape.landscapes import Landscape
from landscape.outcomes import Ends, Label
from landscape.search import NumericSet, critical_search

STARTS = 150  # of the search on each surface, and of the flows
DIFFERENCE = 1e-5
TOLERANCE = 1e-6  # how near to a critical set a point found by search has to be
KINDS = ("minimum", "saddle", "maximum")  # in the order of the verdicts of landscape.kernels.attraction


def sets_on_kinks(landscape: Landscape, box: np.ndarray, smooth: list[NumericSet]) -> list[NumericSet]:
    """Critical sets on the kinks of a landscape in a box of shape (d, 2), after those where the gradient vanishes.

    Of the latter, points on a kink are judged anew, since the Hessian may jump there.
    """
    found: list[NumericSet] = []
    for part in sorted(smooth, key=lambda part: -part.dimension):
        kept = _afresh(landscape, part)
        if kept is not None and (not _on_kink(landscape, part) or not any(_same(kept, other, box) for other in found)):
            found.append(kept)
    for j in range(landscape.kernels.SURFACES):
        for candidate in _along(landscape, box, j):
            part = _judged(landscape, candidate, j)
            if part is not None and not any(_same(part, other, box) for other in found):
                found.append(part)
    for part in _held(landscape, box):
        if not any(_same(part, other, box) for other in found):
            found.append(part)
    return found


def _on_kink(landscape: Landscape, part: NumericSet) -> bool:
    """Whether the representative of a set is on a kink."""
    surfaces, model = as_model(landscape)
    levels = np.empty(surfaces)
    values(part.representative, np.ones(surfaces), model, levels)
    return bool(np.abs(levels).min() <= 1e-6 * (1.0 + np.abs(part.representative).max()))


def _afresh(landscape: Landscape, part: NumericSet) -> NumericSet | None:
    """A point that the smooth search found, judged by the flow if it is on a kink; None if the flow leaves it there."""
    point = part.representative
    if part.dimension or not _on_kink(landscape, part):
        return part
    found = flow(landscape, point, tolerance=1e-6)
    kinds = {Label.GLOBAL: "minimum", Label.LOCAL: "minimum", Label.SADDLE: "saddle", Label.MAXIMUM: "maximum"}
    if np.abs(found.ends[0] - point).max() > 1e-4 * (1.0 + np.abs(point).max()) or int(found.labels[0]) not in kinds:
        return None
    return dataclasses.replace(part, kind=kinds[Label(int(found.labels[0]))])


def _same(part: NumericSet, other: NumericSet, box: np.ndarray) -> bool:
    """Whether two sets are one: of one kind, and a point of the one is on the other or, on continua, not far along it."""
    distance = np.linalg.norm((other.members - part.representative) / np.ptp(box, axis=1), axis=1).min()
    level = abs(part.loss - other.loss) < 1e-9 * (1.0 + abs(part.loss))
    return part.kind == other.kind and (distance < 1e-4 or (max(part.dimension, other.dimension) > 0 and level and distance < 0.1))


def _along(landscape: Landscape, box: np.ndarray, j: int) -> list[NumericSet]:
    """Critical sets of L + μ s_j, as sets of points (θ, μ)."""
    branch = _Branch(landscape, j)
    slopes, _, normals = branch.derivatives(np.random.default_rng(0).uniform(*box.T, size=(64, len(box))))
    reach = np.nanmax(np.linalg.norm(slopes, axis=1)) / max(np.nanmedian(np.linalg.norm(normals, axis=1)), 1e-300)
    wide = np.vstack([box, [-2.0 * reach, 2.0 * reach]])
    return critical_search(branch.loss, branch.gradient, branch.hessian, wide, starts=STARTS)


class _Branch:
    """L + μ s_j for arrays of points (θ, μ), with L in the branch on the + side of surface j."""

    def __init__(self, landscape: Landscape, j: int):
        self.landscape, self.j = landscape, j
        self.surfaces, self.model = as_model(landscape)

    def derivatives(self, theta):
        """Gradient of L, s_j and its gradient at points of shape (n, d)."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        gradients, levels, normals = np.empty_like(theta), np.empty(len(theta)), np.empty_like(theta)
        on_the_plus_side(theta, self.surfaces, self.j, self.model, gradients, levels, normals)
        return gradients, levels, normals

    def loss(self, points):
        """Equal to L where it matters, on the surface."""
        return self.landscape.loss(points[:, :-1]) + points[:, -1] * self.derivatives(points[:, :-1])[1]

    def gradient(self, points):
        gradients, levels, normals = self.derivatives(points[:, :-1])
        return np.hstack([gradients + points[:, -1:] * normals, levels[:, None]])

    def hessian(self, points):
        """By central differences of the gradient, which is exact in μ."""
        d = points.shape[1] - 1
        out = np.zeros((len(points), d + 1, d + 1))
        for i in range(d):
            step = DIFFERENCE * np.eye(d + 1)[i]
            out[:, i] = (self.gradient(points + step) - self.gradient(points - step)) / (2.0 * DIFFERENCE)
        out[:, :d, :d] = (out[:, :d, :d] + out[:, :d, :d].transpose(0, 2, 1)) / 2.0
        out[:, :d, d] = out[:, d, :d] = self.derivatives(points[:, :-1])[2]
        return out


def _judged(landscape: Landscape, candidate: NumericSet, j: int) -> NumericSet | None:
    """What a candidate is for the flow: None unless both sides of the surface push against each other."""
    surfaces, model = as_model(landscape)
    point, signs = candidate.representative[:-1].copy(), np.ones(surfaces)
    natural_signs(point, model, signs)
    signs[j] = 0.0
    project(point, signs, model)
    above, below = push(point, signs, model, j)
    if not above * below < 0.0:
        return None
    field, blur = np.empty_like(point), np.zeros_like(point)
    drive(point, signs, model, field)
    verdict, index, nullity, _, _ = judge(point, field, np.full_like(point, np.inf), signs, model, TOLERANCE, blur)
    if verdict == MOVING:
        return None
    members = candidate.members[:, :-1].copy()
    members[0] = point
    tangent = candidate.tangent[:, :-1]
    return NumericSet(
        KINDS[verdict - 1], candidate.dimension, int(index), int(nullity), float(landscape.loss(point)[0]), point, tangent, members
    )


def _held(landscape: Landscape, box: np.ndarray) -> list[NumericSet]:
    """Minima on kinks and where they cross, as the ends of flows from all over the box."""
    ends = flow(landscape, np.random.default_rng(0).uniform(*box.T, size=(STARTS, len(box))))
    held = (ends.sliding > 0) & ((ends.labels == Label.GLOBAL) | (ends.labels == Label.LOCAL))
    rows = Ends(**{name: values[held] for name, values in vars(ends).items()})
    sets, _ = group(rows)
    found = []
    for number in range(sets.max(initial=-1) + 1):
        members = rows.ends[sets == number]
        i = np.flatnonzero(sets == number)[0]
        dimension = int(rows.nullity[i]) if np.ptp(members, axis=0).max() > 1e-3 else 0
        found.append(NumericSet(
            "minimum", dimension, int(rows.index[i]), dimension, float(landscape.loss(members[0])[0]), members[0],
            np.zeros((0, members.shape[1])), members,
        ))
    return found
