"""The integrator: DOP853 with step control, events on kinks, and the end of a flow at a critical set.

`integrator` makes the drivers for the kernels of one landscape. A trajectory needs the same memory however
many steps it takes, unless it is recorded.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from landscape.kernels.attraction import ATTRACTS, MOVING, attraction
from landscape.kernels.compile import kernel
from landscape.kernels.dop853 import EXTENDED, STAGES
from landscape.kernels.events import crossings
from landscape.kernels.field import field, finite, size_of
from landscape.kernels.runge_kutta import advance, extend, step_error

# The codes of landscape.outcomes.Outcome, as plain numbers: kernels import nothing above them.
CONVERGED, TIME_LIMIT, STEP_LIMIT, DIVERGED, NONFINITE = 0, 1, 2, 3, 4

TINY = 1e-300  # below this a coordinate counts as zero
FOREVER = 1e300


class Settings(NamedTuple):
    """How flows are followed. Times are gradient-flow times.

    Attributes
    ----------
    t_max : float
    rtol, atol : float
        Error allowed in a step: rtol |θ_i| + atol, without atol for coordinates whose zero the flow cannot cross.
    tolerance : float
        Distance to a critical set, in units of 1 + |θ|, at which a flow has arrived; 0 goes on until t_max.
    radius : float
        A flow that leaves the ball of this radius (in the largest coordinate) diverges.
    max_steps : int
    """

    t_max: float
    rtol: float
    atol: float
    tolerance: float
    radius: float
    max_steps: int


class Integrator(NamedTuple):
    """The drivers that `integrator` makes."""

    follow: object
    follow_many: object


def integrator(model) -> Integrator:
    """Drivers for the flow of a landscape, from the generated kernels of its module."""
    flow = field(model)
    judge = attraction(flow)
    search = crossings(flow)
    d, surfaces = flow.dimension, flow.surfaces
    drive, natural_signs, settle, project, values = flow.drive, flow.natural_signs, flow.settle, flow.project, flow.values

    @kernel
    def attempt(theta, h, signs, constants, k, new, scale):
        """One step; returns its error in units of the scale, infinite where the field is not finite."""
        for stage in range(1, STAGES):
            advance(stage, theta, h, k, new)
            drive(new, signs, constants, k[stage])
        advance(STAGES, theta, h, k, new)
        drive(new, signs, constants, k[STAGES])
        worst = 0.0
        for i in range(d):
            if not (math.isfinite(new[i]) and math.isfinite(k[STAGES, i])):
                return math.inf
            allowed = scale[0, i] * max(abs(theta[i]), abs(new[i])) + scale[1, i]
            worst = max(worst, step_error(k, h, i) / allowed)
        return worst if math.isfinite(worst) else math.inf

    @kernel
    def scales(theta, signs, constants, rtol, atol, scale):
        """Relative and absolute error allowed for each coordinate.

        Where the field has no part across the plane θ_i = 0, a flow cannot cross it, and how far it is from it
        matters however near it is: there is no absolute part.
        """
        trial, out = np.empty(d), np.empty(d)
        for i in range(d):
            scale[0, i], scale[1, i] = rtol, atol
            invariant = theta[i] != 0.0
            for stretch in (1.0, 0.7):
                for a in range(d):
                    trial[a] = stretch * theta[a]
                trial[i] = 0.0
                drive(trial, signs, constants, out)
                invariant = invariant and out[i] == 0.0
            if invariant:
                scale[1, i] = TINY

    @kernel
    def first_step(theta, signs, constants, k, scale):
        """A step in which the flow and the change of its speed are small."""
        trial = np.empty(d)
        there, speed, change = 0.0, 0.0, 0.0
        for i in range(d):
            allowed = scale[0, i] * abs(theta[i]) + scale[1, i]
            there, speed = max(there, abs(theta[i]) / allowed), max(speed, abs(k[0, i]) / allowed)
        if speed == 0.0:
            return 1.0
        h = 0.01 * there / speed if there > 1e-5 and speed > 1e-5 else 1e-6
        for i in range(d):
            trial[i] = theta[i] + h * k[0, i]
        drive(trial, signs, constants, k[1])
        for i in range(d):
            allowed = scale[0, i] * abs(theta[i]) + scale[1, i]
            change = max(change, abs(k[1, i] - k[0, i]) / allowed / h)
        bend = max(speed, change)
        return min(100.0 * h, (0.01 / bend) ** 0.125) if math.isfinite(bend) and bend > 0.0 else h

    @kernel
    def store(pieces, count, t, h, c):
        """Keep a step: its beginning, its length and its continuous extension. The array doubles when it is full."""
        if count == pieces.shape[0]:
            larger = np.empty((max(2 * count, 16), pieces.shape[1]))
            for i in range(count):
                for j in range(pieces.shape[1]):
                    larger[i, j] = pieces[i, j]
            pieces = larger
        pieces[count, 0], pieces[count, 1] = t, h
        for row in range(8):
            for i in range(d):
                pieces[count, 2 + row * d + i] = c[row, i]
        return pieces

    @kernel
    def follow(theta, constants, settings, end, numbers, pieces, record):
        """Follow one flow to its end.

        Parameters
        ----------
        theta : ndarray of shape (d,)
            The start.
        settings : Settings
        end : ndarray of shape (d,)
            Receives the end.
        numbers : ndarray of shape (8,)
            Receives time, outcome, verdict, index, nullity, unsure, size of the field, steps.
        pieces : ndarray of shape (n, 2 + 8 d)
            Where to keep the steps if `record`; a larger array is returned if need be.

        Returns
        -------
        pieces : ndarray
        count : int
            How many pieces there are.
        """
        t_max, rtol, atol, tolerance, radius, max_steps = settings
        y, new, spare, blur, before = theta.copy(), np.empty(d), np.empty(d), np.empty(d), np.full(d, np.nan)
        k, c, scale = np.zeros((EXTENDED, d)), np.empty((8, d)), np.empty((2, d))
        signs, on, found = np.ones(max(surfaces, 1)), np.zeros(max(surfaces, 1), dtype=np.bool_), np.empty(max(surfaces, 1))
        t, steps, count, outcome, reached = 0.0, 0, 0, STEP_LIMIT, MOVING
        index, nullity, unsure = 0, 0, False
        if surfaces > 0 and finite(y):
            natural_signs(y, constants, signs)
            for j in range(surfaces):
                on[j] = signs[j] == 0.0
            settle(y, signs, constants, on)
        drive(y, signs, constants, k[0])
        if not (finite(y) and finite(k[0])):
            outcome, max_steps = NONFINITE, 0
        else:
            scales(y, signs, constants, rtol, atol, scale)
        h = min(first_step(y, signs, constants, k, scale), t_max) if max_steps > 0 else 0.0
        grown, stuck = False, 0
        while True:
            if tolerance > 0.0 and outcome != NONFINITE:
                size, speed = 1.0 + size_of(y), size_of(k[0])
                if h * speed <= max(100.0 * tolerance, 1000.0 * rtol) * size:
                    for i in range(d):
                        blur[i] = 10.0 * rtol * (abs(y[i]) if scale[1, i] == TINY else size)
                    reached, index, nullity, doubt = judge(y, k[0], before, signs, constants, tolerance, blur)
                    unsure = unsure or doubt
                    if reached != MOVING:
                        outcome = CONVERGED
                        break
            if steps >= max_steps:
                break
            if t >= t_max or t >= FOREVER:
                outcome = TIME_LIMIT
                break
            h = min(h, FOREVER)
            last = t + h >= t_max
            if last:
                h = t_max - t
            error = attempt(y, h, signs, constants, k, new, scale)
            steps += 1
            if error > 1.0:
                h *= max(0.2, 0.9 * error**-0.125) if math.isfinite(error) else 0.1
                grown = False
                if t + h == t or h < 1e-300:
                    outcome = NONFINITE
                    break
                continue
            following = h * (10.0 if error == 0.0 else min(10.0 if grown else 3.0, max(0.2, 0.9 * error**-0.125)))
            grown = True
            x, hit = 1.0, -1
            if surfaces > 0 or record:
                for stage in range(STAGES + 1, EXTENDED):
                    advance(stage, y, h, k, spare)
                    drive(spare, signs, constants, k[stage])
                extend(y, new, h, k, c)
            if surfaces > 0:
                x, hit = search(y, c, signs, constants)
                if hit >= 0 and 0.0 < x < 1.0:
                    h *= x
                    last = False
                    attempt(y, h, signs, constants, k, new, scale)
                    if record:
                        for stage in range(STAGES + 1, EXTENDED):
                            advance(stage, y, h, k, spare)
                            drive(spare, signs, constants, k[stage])
                        extend(y, new, h, k, c)
            if not (hit >= 0 and x == 0.0):
                if record:
                    pieces = store(pieces, count, t, h, c)
                    count += 1
                t = t_max if last else t + h
                stuck = 0
                for i in range(d):
                    y[i], before[i] = new[i], k[0, i]
                    k[0, i] = k[STAGES, i]
            h = following
            if surfaces > 0:
                if hit >= 0:
                    stuck += 1
                    for j in range(surfaces):
                        on[j] = signs[j] == 0.0
                    on[hit] = True
                    was = signs[hit]
                    signs[hit] = 0.0
                    project(y, signs, constants)
                    signs[hit] = was
                    values(y, signs, constants, found)
                    for j in range(surfaces):
                        on[j] = on[j] or abs(found[j]) <= 1e-14 * (1.0 + size_of(y))
                    settle(y, signs, constants, on)
                    if stuck > 3:
                        signs[hit] = 0.0
                    h = min(h, first_step(y, signs, constants, k, scale))
                else:
                    sliding = False
                    for j in range(surfaces):
                        on[j] = signs[j] == 0.0
                        sliding = sliding or on[j]
                    if sliding:
                        project(y, signs, constants)
                        settle(y, signs, constants, on)
                drive(y, signs, constants, k[0])
            if size_of(y) > radius:
                outcome = DIVERGED
                break
        for i in range(d):
            end[i] = y[i]
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] = t, outcome, reached, index, nullity
        numbers[5], numbers[6], numbers[7] = unsure, size_of(k[0]), steps
        return pieces, count

    @kernel(parallel=True)
    def follow_many(starts, constants, settings, ends, numbers):
        """Follow the flows of all starts, shape (n, d), on all threads. Every flow writes a row of its own."""
        for i in numba.prange(starts.shape[0]):
            follow(starts[i], constants, settings, ends[i], numbers[i], np.empty((0, 2 + 8 * d)), False)

    return Integrator(follow, follow_many)
