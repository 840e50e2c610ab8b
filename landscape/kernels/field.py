"""The field of gradient flow, made for the kernels of one landscape; across kinks it is Filippov's.

A kink is a surface s_j(θ) = 0 across which the gradient jumps. `signs[j]` says on which side of it the flow
is, +1 or -1, and which smooth branch of the gradient is followed, whatever rounding makes of s_j itself; 0
says that the flow slides along the surface. The loss is continuous, so on surfaces it has one gradient along
them, the same in every branch: the flow slides with the part of any branch that is tangent to them.
"""

import math
from typing import NamedTuple

import numpy as np

from landscape.kernels.compile import kernel

STAY, PLUS, MINUS = 0, 1, -1


class Field(NamedTuple):
    """The kernels that `field` makes, and the numbers of parameters and of surfaces."""

    dimension: int
    surfaces: int
    drive: object
    natural_signs: object
    values: object
    settle: object
    project: object
    basis: object
    push: object


def field(model) -> Field:
    """The kernels of the flow of a landscape, from the generated kernels of its module."""
    gradient_at, surfaces_at, normals_at = model.gradient_at, model.surfaces_at, model.normals_at
    dimension, surfaces = model.DIMENSION, model.SURFACES

    @kernel
    def basis(theta, signs, constants, out, held):
        """Orthonormal normals of the surfaces slid along, then tangents; returns the number of normals.

        `held` is a surface that is left out, or -1. Rows of `out`, shape (d, d).
        """
        normals = np.empty((max(surfaces, 1), dimension))
        count = 0
        if surfaces > 0:
            normals_at(theta, signs, constants, normals)
            for j in range(surfaces):
                if signs[j] == 0.0 and j != held:
                    count = _append(out, count, normals[j])
        rank = count
        for i in range(dimension):
            if count < dimension:
                unit = np.zeros(dimension)
                unit[i] = 1.0
                count = _append(out, count, unit)
        return rank

    @kernel
    def drive(theta, signs, constants, out):
        """-∇L in the branch of `signs`, less its parts along the normals of the surfaces slid along."""
        gradient_at(theta, signs, constants, out)
        sliding = False
        for j in range(surfaces):
            sliding = sliding or signs[j] == 0.0
        for i in range(dimension):
            out[i] = -out[i]
        if sliding:
            rows = np.empty((dimension, dimension))
            for r in range(basis(theta, signs, constants, rows, -1)):
                along = 0.0
                for i in range(dimension):
                    along += rows[r, i] * out[i]
                for i in range(dimension):
                    out[i] -= along * rows[r, i]

    @kernel
    def values(theta, signs, constants, out):
        """The functions s_j whose zeros are the kinks, shape (max(surfaces, 1),)."""
        if surfaces > 0:
            surfaces_at(theta, signs, constants, out)

    @kernel
    def natural_signs(theta, constants, signs):
        """The signs of the s_j at a point, 0 on a surface; inner ones first, since outer ones can depend on them."""
        found = np.empty(max(surfaces, 1))
        for j in range(surfaces):
            values(theta, signs, constants, found)
            signs[j] = 1.0 if found[j] > 0.0 else -1.0 if found[j] < 0.0 else 0.0

    @kernel
    def push(theta, signs, constants, j):
        """How fast the flow on the + side and on the - side of a surface moves towards larger s_j."""
        rows, normals = np.empty((dimension, dimension)), np.empty((surfaces, dimension))
        normals_at(theta, signs, constants, normals)
        side, flow = signs.copy(), np.empty(dimension)
        speeds = np.empty(2)
        for k in range(2):
            side[j] = 1.0 - 2.0 * k
            gradient_at(theta, side, constants, flow)
            for r in range(basis(theta, signs, constants, rows, j)):
                along = 0.0
                for i in range(dimension):
                    along += rows[r, i] * flow[i]
                for i in range(dimension):
                    flow[i] -= along * rows[r, i]
            speeds[k] = 0.0
            for i in range(dimension):
                speeds[k] -= normals[j, i] * flow[i]
        return speeds[0], speeds[1]

    @kernel
    def settle(theta, signs, constants, on):
        """Decide for every surface that the point is on whether the flow leaves it to a side or slides along it.

        The flow slides where both sides push towards the surface. Where both push away it may stay or leave to
        either side; it stays, and `judge` tells that such a place does not attract. Returns whether a sign changed.
        """
        before = signs.copy()
        for j in range(surfaces):
            if on[j]:
                signs[j] = 0.0
        for _ in range(surfaces):
            changed = False
            for j in range(surfaces):
                if on[j] and signs[j] == 0.0:
                    above, below = push(theta, signs, constants, j)
                    if above > 0.0 and below >= 0.0:
                        signs[j] = 1.0
                    elif below < 0.0 and above <= 0.0:
                        signs[j] = -1.0
                    changed = changed or signs[j] != 0.0
            if not changed:
                break
        for j in range(surfaces):
            if signs[j] != before[j]:
                return True
        return False

    @kernel
    def project(theta, signs, constants):
        """Move a point onto the surfaces that the flow slides along, by Newton's steps along their normals."""
        normals, found = np.empty((max(surfaces, 1), dimension)), np.empty(max(surfaces, 1))
        for _ in range(4):
            for j in range(surfaces):
                if signs[j] == 0.0:
                    normals_at(theta, signs, constants, normals)
                    values(theta, signs, constants, found)
                    square = 0.0
                    for i in range(dimension):
                        square += normals[j, i] ** 2
                    if square > 0.0:
                        for i in range(dimension):
                            theta[i] -= found[j] / square * normals[j, i]

    return Field(dimension, surfaces, drive, natural_signs, values, settle, project, basis, push)


@kernel
def finite(point):
    """Whether all coordinates are finite."""
    for i in range(point.size):
        if not math.isfinite(point[i]):
            return False
    return True


@kernel
def size_of(point):
    """The largest coordinate, without its sign."""
    largest = 0.0
    for i in range(point.size):
        largest = max(largest, abs(point[i]))
    return largest


@kernel
def _append(rows, count, vector):
    """Add the part of a vector across the first `count` orthonormal rows as a row, unless nothing is left of it."""
    rest = vector.copy()
    for _ in range(2):
        for r in range(count):
            along = 0.0
            for i in range(rest.size):
                along += rows[r, i] * rest[i]
            for i in range(rest.size):
                rest[i] -= along * rows[r, i]
    size, whole = 0.0, 0.0
    for i in range(rest.size):
        size += rest[i] ** 2
        whole += vector[i] ** 2
    if not size > 1e-20 * whole:
        return count
    for i in range(rest.size):
        rows[count, i] = rest[i] / math.sqrt(size)
    return count + 1
