"""Has a flow arrived? Whether a critical set is as near as the tolerance says, and what it does to its surroundings.

Nothing but the field itself is used. Its derivatives are central differences within the branch that the flow
follows; what attracts is decided by where the field points along short ways off, to both sides and of several
lengths, so that a set which attracts from one side only, or is degenerate, is seen as such.
"""

import math

import numpy as np

from landscape.kernels.compile import kernel
from landscape.kernels.field import along, basis, drive, natural_signs, project, size_of, slope

MOVING, ATTRACTS, MIXED, REPELS = 0, 1, 2, 3

EPSILON = 2.0**-52
DIFFERENCE = 1e-5  # step of the central differences, in units of 1 + |θ|
ZERO = 1e-7  # an eigenvalue is taken for zero below this part of the largest: the differences are good to about 1e-10


@kernel
def curvature(theta, signs, model, rows, rank, out):
    """Hessian of the loss along the tangents, which are the rows after the first `rank` ones.

    Of two estimates of an entry the smaller one is kept. That keeps exact zeros: a coordinate that is 1e-160
    does not come to be coupled to the others by rounding.
    """
    h = DIFFERENCE * (1.0 + size_of(theta))
    trial, ahead, behind = np.empty(theta.size), np.empty(theta.size), np.empty(theta.size)
    k = theta.size - rank
    for i in range(k):
        _driven_from(theta, h, rows[rank + i], signs, model, trial, ahead)
        _driven_from(theta, -h, rows[rank + i], signs, model, trial, behind)
        for j in range(k):
            entry = 0.0
            for a in range(theta.size):
                entry -= rows[rank + j, a] * (ahead[a] - behind[a]) / (2.0 * h)
            if not math.isfinite(entry):
                return False
            if j >= i:
                out[i, j] = entry
            elif abs(entry) < abs(out[j, i]):
                out[j, i] = entry
            out[i, j] = out[min(i, j), max(i, j)]
    for i in range(k):
        for j in range(i):
            out[i, j] = out[j, i]
    return True


@kernel
def _driven_from(theta, length, direction, signs, model, trial, out):
    """The field off a point in a direction, at the place next to there on the surfaces slid along."""
    for a in range(theta.size):
        trial[a] = theta[a] + length * direction[a]
    project(trial, signs, model)
    drive(trial, signs, model, out)


@kernel
def restoring(theta, signs, model, direction, floor, free=False):
    """+1 if the field along a short way off in a direction points back, -1 if it points away, 0 if neither is seen.

    All along the way it has to do the same: along the tangent of a curved set it can do both, which means nothing.
    The way goes along the surfaces that the flow slides along, unless it is `free` of them.
    """
    size = 1.0 + size_of(theta)
    trial, out, side = np.empty(theta.size), np.empty(theta.size), signs.copy()
    drive(theta, signs, model, out)
    noise = 8.0 * abs(along(out, direction)) + floor
    for radius in (1e-5, 1e-3, 1e-2):
        back, away = False, False
        for part in (0.2, 0.6, 1.0):
            for a in range(theta.size):
                trial[a] = theta[a] + part * radius * size * direction[a]
            if signs.size > 0:
                if not free:
                    project(trial, signs, model)
                natural_signs(trial, model, side)
                for j in range(signs.size):
                    if signs[j] == 0.0 and not free:
                        side[j] = 0.0
            drive(trial, side, model, out)
            force = -along(out, direction)
            back, away = back or force > noise, away or force < -noise
        if back != away:
            return 1 if back else -1
    return 0


@kernel
def surroundings(theta, signs, model, vectors, floor):
    """What the field does around a point: (directions that lead back, directions that lead away).

    The directions are the eigenvectors, between each two of them, and so with the normals of the surfaces slid along.
    """
    d, k = theta.size, vectors.shape[0]
    rows, direction = np.empty((d, d)), np.empty(d)
    rank = basis(theta, signs, model, rows, -1)
    for i in range(k):
        for a in range(d):
            rows[rank + i, a] = vectors[i, a]
    back, away = 0, 0
    for i in range(d):
        for j in range(i + 1):
            for mix in (1.0, -1.0):
                for side in (1.0, -1.0):
                    if i > j or mix > 0.0:
                        for a in range(d):
                            both = (rows[i, a] + mix * rows[j, a]) / math.sqrt(2.0)
                            direction[a] = side * (rows[i, a] if i == j else both)
                        found = restoring(theta, signs, model, direction, floor, j < rank)
                        back += found > 0
                        away += found < 0
    return back, away


@kernel
def leaves(theta, signs, model, direction, floor):
    """Whether the field leads away along a direction, to one side at least."""
    if restoring(theta, signs, model, direction, floor) < 0:
        return True
    return restoring(theta, signs, model, -direction, floor) < 0


@kernel
def spectrum(theta, signs, model):
    """Eigenvalues of the Hessian along the surfaces slid along (or of all of it), and eigenvectors as rows.

    There are fewer than d, and none at all where a derivative is not finite; the last value returned tells that.
    """
    d = theta.size
    rows = np.empty((d, d))
    rank = basis(theta, signs, model, rows, -1)
    k = d - rank
    hessian, vectors = np.zeros((k, k)), np.zeros((k, d))
    if not curvature(theta, signs, model, rows, rank, hessian):
        return np.zeros(k), vectors, False
    values, columns = np.linalg.eigh(hessian)
    for i in range(k):
        for b in range(k):
            for a in range(d):
                vectors[i, a] += columns[b, i] * rows[rank + b, a]
    return values, vectors, True


@kernel
def passes_unseen(flow, values, vectors, top, size, blur):
    """Whether the flow is next to an unstable set, on a side of it that the errors of the coordinates hide."""
    distance = 0.0
    for i in range(values.size):
        if abs(values[i]) > 1e-3 * top:
            distance = max(distance, abs(along(flow, vectors[i])) / (abs(values[i]) * size))
    if distance > 1e-4:
        return False
    for i in range(values.size):
        here, hidden = along(flow, vectors[i]), 0.0
        for a in range(blur.size):
            hidden += abs(vectors[i, a]) * blur[a]
        # far from the set, eigenvalues are off by what its distance makes of the third derivatives
        unstable = values[i] < -max(ZERO, 100.0 * distance) * top
        if unstable and here != 0.0 and abs(here) <= hidden * abs(values[i]):
            return True
    return False


@kernel
def nearest_point(theta, flow, values, vectors, top):
    """The critical point that is nearest, by Newton's step along the directions that are not flat."""
    found = theta.copy()
    for i in range(values.size):
        if abs(values[i]) > ZERO * top:
            for a in range(theta.size):
                found[a] += along(flow, vectors[i]) / values[i] * vectors[i, a]
    return found


@kernel
def judge(theta, flow, before, signs, model, tolerance, blur):
    """Whether the flow has arrived at a critical set, and at what kind of set.

    Parameters
    ----------
    flow, before : ndarray of shape (d,)
        The field here and where the last step began (NaN at the start).
    tolerance : float
        Largest distance to the set, in units of 1 + |θ|.
    blur : ndarray of shape (d,)
        By how much the coordinates may be off after all steps.

    Returns
    -------
    verdict : int
        MOVING, or what the set does to its surroundings: ATTRACTS, MIXED or REPELS.
    index, nullity : int
        Negative and zero eigenvalues of the Hessian (along the surfaces slid along, if any).
    unsure : bool
        Whether the flow passes an unstable set so closely that `blur` hides the side on which it will leave.
    rate : float
        The largest rate, without its sign, at which the flow changes; 0 if it is not known.
    """
    values, vectors, finite = spectrum(theta, signs, model)
    if not finite:
        return MOVING, 0, 0, False, 0.0
    size, rate, far = 1.0 + size_of(theta), size_of(values), False
    held = _held(theta, signs, model)
    top = max(rate, held / size)  # on a kink along which the loss is constant all eigenvalues are rounding
    index, nullity = 0, 0
    for i in range(values.size):
        index += values[i] < -ZERO * top
        nullity += abs(values[i]) <= ZERO * top
        near = tolerance * max(abs(values[i]), ZERO * top) * size + 16.0 * EPSILON * held
        far = far or abs(along(flow, vectors[i])) > near
    if far:
        return MOVING, index, nullity, passes_unseen(flow, values, vectors, top, size, blur), rate
    point, floor = nearest_point(theta, flow, values, vectors, top), 64.0 * EPSILON * top * size
    back, away = surroundings(point, signs, model, vectors, floor)
    if away > 0:  # it stays only if it is on the set, or comes nearer in every direction in which the set lets go
        for i in range(values.size):
            here, last = along(flow, vectors[i]), along(before, vectors[i])
            if here != 0.0 and not abs(here) < abs(last) and (
                values[i] < ZERO * top or leaves(point, signs, model, vectors[i], floor)
            ):
                return MOVING, index, nullity, passes_unseen(flow, values, vectors, top, size, blur), rate
    return _verdict(back, away), index, nullity, False, rate


@kernel
def _held(theta, signs, model):
    """Size of the gradient that the surfaces slid along hold; 0 if there are none."""
    out = np.zeros(theta.size)
    for j in range(signs.size):
        if signs[j] == 0.0:
            slope(theta, signs, model, out)
            return size_of(out)
    return 0.0


@kernel
def _verdict(back, away):
    if away == 0:
        return ATTRACTS
    return MIXED if back > 0 else REPELS
