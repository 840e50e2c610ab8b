"""The field of gradient flow of a model; across kinks it is Filippov's.

A model is a tuple (gradient, surfaces, normals, constants, roots): the addresses of the generated kernels of a
landscape, the numbers that they take, and the square roots of the speeds of the parameters (none if all are 1).
With speeds s_i a flow is dθ_i/dt = -s_i ∂L/∂θ_i, which is plain gradient flow in ψ_i = θ_i / √s_i; the points of
this module are ψ then, and `slope`, `values` and `normals_at` are in terms of ψ too. A kink is a surface s_j(θ) = 0 across which the gradient jumps.
`signs[j]` says on which side of it the flow is, +1 or -1, and which smooth branch of the gradient it follows,
whatever rounding makes of s_j itself; 0 says that the flow slides along the surface. The loss is continuous, so
on surfaces it has one gradient along them, the same in every branch: the flow slides with the part of any
branch that is tangent to them.
"""

import math

import numpy as np

from landscape.kernels.compile import call, kernel


@kernel
def slope(theta, signs, model, out):
    """∇L in the branch of `signs`."""
    roots = model[4]
    if roots.size == 0:
        call(model[0], theta, signs, model[3], out)
    else:
        call(model[0], roots * theta, signs, model[3], out)
        for i in range(theta.size):
            out[i] *= roots[i]


@kernel
def drive(theta, signs, model, out):
    """-∇L in the branch of `signs`, less its parts along the normals of the surfaces slid along."""
    slope(theta, signs, model, out)
    sliding = False
    for j in range(signs.size):
        sliding = sliding or signs[j] == 0.0
    for i in range(theta.size):
        out[i] = -out[i]
    if sliding:
        rows = np.empty((theta.size, theta.size))
        _remove(rows, basis(theta, signs, model, rows, -1), out)


@kernel
def values(theta, signs, model, out):
    """The functions s_j whose zeros are the kinks, shape (m,)."""
    if signs.size > 0:
        roots = model[4]
        call(model[1], theta if roots.size == 0 else roots * theta, signs, model[3], out)


@kernel
def normals_at(theta, signs, model, out):
    """The gradients of the s_j, shape (m, d)."""
    if signs.size > 0:
        roots = model[4]
        if roots.size == 0:
            call(model[2], theta, signs, model[3], out)
        else:
            call(model[2], roots * theta, signs, model[3], out)
            for j in range(signs.size):
                for i in range(theta.size):
                    out[j, i] *= roots[i]


@kernel
def natural_signs(theta, model, signs):
    """The signs of the s_j at a point, 0 on a surface; inner ones first, since outer ones can depend on them."""
    found = np.empty(signs.size)
    for j in range(signs.size):
        values(theta, signs, model, found)
        signs[j] = 1.0 if found[j] > 0.0 else -1.0 if found[j] < 0.0 else 0.0


@kernel
def basis(theta, signs, model, rows, left_out):
    """Orthonormal normals of the surfaces slid along (but for `left_out`), then tangents, as rows of shape (d, d).

    Returns the number of normals.
    """
    d, count = theta.size, 0
    normals, unit = np.empty((signs.size, d)), np.empty(d)
    if signs.size > 0:
        normals_at(theta, signs, model, normals)
        for j in range(signs.size):
            if signs[j] == 0.0 and j != left_out:
                count = _append(rows, count, normals[j])
    rank = count
    for i in range(d):
        if count < d:
            for a in range(d):
                unit[a] = 1.0 if a == i else 0.0
            count = _append(rows, count, unit)
    return rank


@kernel
def push(theta, signs, model, j):
    """How fast the flow on the + side and on the - side of surface j moves towards larger s_j."""
    d = theta.size
    rows, normals = np.empty((d, d)), np.empty((signs.size, d))
    normals_at(theta, signs, model, normals)
    side, flow, speeds = signs.copy(), np.empty(d), np.empty(2)
    rank = basis(theta, signs, model, rows, j)
    for k in range(2):
        side[j] = 1.0 - 2.0 * k
        slope(theta, side, model, flow)
        _remove(rows, rank, flow)
        speeds[k] = -along(flow, normals[j])
    return speeds[0], speeds[1]


@kernel
def settle(theta, signs, model, on):
    """Decide for every surface that the point is on whether the flow leaves it to a side or slides along it.

    The flow slides where both sides push towards the surface. Where both push away it may stay or leave to
    either side; it stays, and `judge` tells that such a place does not attract. Returns whether a sign changed.
    """
    before = signs.copy()
    for j in range(signs.size):
        if on[j]:
            signs[j] = 0.0
    changed = True
    while changed:
        changed = False
        for j in range(signs.size):
            if on[j] and signs[j] == 0.0:
                above, below = push(theta, signs, model, j)
                if above > 0.0 and below >= 0.0:
                    signs[j] = 1.0
                elif below < 0.0 and above <= 0.0:
                    signs[j] = -1.0
                changed = changed or signs[j] != 0.0
    for j in range(signs.size):
        if signs[j] != before[j]:
            return True
    return False


@kernel
def project(theta, signs, model):
    """Move a point onto the surfaces that the flow slides along, by Newton's steps along their normals."""
    normals, found = np.empty((signs.size, theta.size)), np.empty(signs.size)
    for _ in range(4):
        for j in range(signs.size):
            if signs[j] == 0.0:
                normals_at(theta, signs, model, normals)
                values(theta, signs, model, found)
                square = along(normals[j], normals[j])
                if square > 0.0:
                    for i in range(theta.size):
                        theta[i] -= found[j] / square * normals[j, i]


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
def along(vector, direction):
    """Scalar product of two vectors."""
    total = 0.0
    for i in range(vector.size):
        total += vector[i] * direction[i]
    return total


@kernel
def _remove(rows, count, vector):
    """Take the parts along the first `count` orthonormal rows out of a vector."""
    for r in range(count):
        part = along(rows[r], vector)
        for i in range(vector.size):
            vector[i] -= part * rows[r, i]


@kernel
def _append(rows, count, vector):
    """Add the part of a vector across the first `count` orthonormal rows as a row, unless nothing is left of it."""
    rest = vector.copy()
    _remove(rows, count, rest)
    _remove(rows, count, rest)
    square = along(rest, rest)
    if not square > 1e-20 * along(vector, vector):
        return count
    for i in range(rest.size):
        rows[count, i] = rest[i] / math.sqrt(square)
    return count + 1


@kernel
def on_the_plus_side(points, surfaces, j, model, gradients, levels, normals):
    """Gradient, s_j and its gradient at points (n, d), in the branch on the + side of surface j, into (n, d), (n,), (n, d)."""
    d = points.shape[1]
    signs, found, rows = np.ones(surfaces), np.empty(surfaces), np.empty((surfaces, d))
    for i in range(points.shape[0]):
        natural_signs(points[i], model, signs)
        signs[j] = 1.0
        slope(points[i], signs, model, gradients[i])
        values(points[i], signs, model, found)
        normals_at(points[i], signs, model, rows)
        levels[i] = found[j]
        for a in range(d):
            normals[i, a] = rows[j, a]
