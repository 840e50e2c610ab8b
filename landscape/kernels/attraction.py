"""Has a flow arrived? Whether a critical set is as near as the tolerance says, and what it does to its surroundings.

Nothing but the field itself is used. Its derivatives are central differences within the branch that the flow
follows; what attracts is decided by following the field a little way off, to both sides, at several distances,
so that a set which attracts from one side only, or is degenerate, is seen as such.
"""

import math

import numpy as np

from landscape.kernels.compile import kernel
from landscape.kernels.field import Field, size_of

MOVING, ATTRACTS, MIXED, REPELS = 0, 1, 2, 3

EPSILON = 2.0**-52
DIFFERENCE = 1e-5  # step of the central differences, in units of 1 + |θ|
ZERO = 1e-7  # an eigenvalue is taken for zero below this part of the largest: the differences are good to about 1e-10


def attraction(field: Field):
    """The kernel `judge` of a field."""
    d, surfaces = field.dimension, field.surfaces
    drive, natural_signs, basis, push = field.drive, field.natural_signs, field.basis, field.push

    @kernel
    def curvature(theta, signs, constants, rows, rank, out):
        """Hessian of the loss along the tangents, which are the rows after the first `rank` ones.

        Of two estimates of an entry the smaller one is kept. That keeps exact zeros: a coordinate that is 1e-160
        does not come to be coupled to the others by rounding.
        """
        h = DIFFERENCE * (1.0 + size_of(theta))
        trial, ahead, behind = np.empty(d), np.empty(d), np.empty(d)
        k = d - rank
        for i in range(k):
            for a in range(d):
                trial[a] = theta[a] + h * rows[rank + i, a]
            drive(trial, signs, constants, ahead)
            for a in range(d):
                trial[a] = theta[a] - h * rows[rank + i, a]
            drive(trial, signs, constants, behind)
            for j in range(k):
                entry = 0.0
                for a in range(d):
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
    def restoring(theta, signs, constants, direction, floor):
        """+1 if the field a little way off in a direction points back, -1 if it points away, 0 if neither is seen."""
        size = 1.0 + size_of(theta)
        trial, out, side = np.empty(d), np.empty(d), signs.copy()
        drive(theta, signs, constants, out)
        here = along(out, direction)
        for radius in (1e-5, 1e-3, 1e-2):
            for a in range(d):
                trial[a] = theta[a] + radius * size * direction[a]
            if surfaces > 0:
                natural_signs(trial, constants, side)
                for j in range(surfaces):
                    if signs[j] == 0.0:
                        side[j] = 0.0
            drive(trial, side, constants, out)
            back = -along(out, direction)
            if math.isfinite(back) and abs(back) > 8.0 * abs(here) + floor:
                return 1 if back > 0.0 else -1
        return 0

    @kernel
    def surroundings(theta, signs, constants, vectors, k, floor):
        """What the field does around a point: (directions that lead back, directions that lead away)."""
        back, away = 0, 0
        direction = np.empty(d)
        for i in range(k):
            for j in range(i + 1):
                for mix in (1.0, -1.0):
                    for side in (1.0, -1.0):
                        if i > j or mix > 0.0:
                            for a in range(d):
                                both = (vectors[i, a] + mix * vectors[j, a]) / math.sqrt(2.0)
                                direction[a] = side * (vectors[i, a] if i == j else both)
                            found = restoring(theta, signs, constants, direction, floor)
                            back += found > 0
                            away += found < 0
        for j in range(surfaces):
            if signs[j] == 0.0:
                above, below = push(theta, signs, constants, j)
                back += (above < 0.0) + (below > 0.0)
                away += (above > 0.0) + (below < 0.0)
        return back, away

    @kernel
    def leaves(theta, signs, constants, direction, floor):
        """Whether the field leads away along a direction, to one side at least."""
        if restoring(theta, signs, constants, direction, floor) < 0:
            return True
        return restoring(theta, signs, constants, -direction, floor) < 0

    @kernel
    def judge(theta, flow, before, signs, constants, tolerance, blur):
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
        """
        size = 1.0 + size_of(theta)
        rows = np.empty((d, d))
        rank = basis(theta, signs, constants, rows, -1)
        k = d - rank
        hessian = np.zeros((k, k))
        if not curvature(theta, signs, constants, rows, rank, hessian):
            return MOVING, 0, 0, False
        values, columns = np.linalg.eigh(hessian)
        vectors = np.zeros((k, d))
        for i in range(k):
            for b in range(k):
                for a in range(d):
                    vectors[i, a] += columns[b, i] * rows[rank + b, a]
        top = max(abs(values[0]), abs(values[-1])) if k > 0 else 0.0
        nearest, far = theta.copy(), False
        index, nullity, distance = 0, 0, 0.0
        for i in range(k):
            here, scale = along(flow, vectors[i]), max(abs(values[i]), ZERO * top)
            index += values[i] < -ZERO * top
            nullity += abs(values[i]) <= ZERO * top
            far = far or abs(here) > tolerance * scale * size
            if abs(values[i]) > 1e-3 * top:
                distance = max(distance, abs(here) / (scale * size))
            if abs(values[i]) > ZERO * top:
                for a in range(d):
                    nearest[a] += here / values[i] * vectors[i, a]
        unsure = False
        for i in range(k):
            if distance < 1e-4 and values[i] < -max(ZERO, 100.0 * distance) * top:
                here, spread = along(flow, vectors[i]), 0.0
                for a in range(d):
                    spread += abs(vectors[i, a]) * blur[a]
                unsure = unsure or (here != 0.0 and abs(here) <= spread * abs(values[i]))
        if far:
            return MOVING, index, nullity, unsure
        floor = 64.0 * EPSILON * top * size
        back, away = surroundings(nearest, signs, constants, vectors, k, floor)
        if away > 0:
            for i in range(k):
                here, last = along(flow, vectors[i]), along(before, vectors[i])
                if here != 0.0 and not abs(here) < abs(last) and (
                    values[i] < ZERO * top or leaves(nearest, signs, constants, vectors[i], floor)
                ):
                    return MOVING, index, nullity, unsure
            unsure = False
        return _verdict(back, away), index, nullity, unsure

    return judge


@kernel
def along(vector, direction):
    """Scalar product of two vectors."""
    total = 0.0
    for i in range(vector.size):
        total += vector[i] * direction[i]
    return total


@kernel
def _verdict(back, away):
    if away == 0:
        return ATTRACTS
    return MIXED if back > 0 else REPELS
