"""The integrator: follows flows to their ends, which are critical sets that hold them.

A flow needs the same memory however many steps it takes, unless it is recorded.
"""

import math
from typing import NamedTuple

import numpy as np

from landscape.kernels.attraction import MOVING, judge
from landscape.kernels.compile import kernel
from landscape.kernels.field import drive, finite, natural_signs, settle, size_of
from landscape.kernels.steps import TINY, accept, attempt, cut, first_step, make_dense, set_scales, turn, workspace

# The codes of landscape.outcomes.Outcome, as plain numbers: kernels import nothing above them.
CONVERGED, TIME_LIMIT, STEP_LIMIT, DIVERGED, NONFINITE = 0, 1, 2, 3, 4

# What is told of an end, as places in an array of numbers.
TIME, OUTCOME, VERDICT, INDEX, NULLITY, UNSURE, SPEED, STEPS, SLIDING = range(9)
NUMBERS = 9

FOREVER = 1e300
CLOSING = 3.0  # longest step near a critical set, times the fastest rate there: errors must die out with the flow
PATIENCE = 6  # steps for which a rate that has been measured serves
LINGERING = 3  # times in a row that a flow may meet kinks without moving; then it takes a step regardless of them


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


@kernel
def _begin(work, model, settings):
    """Set the branches, the field and the scales at the start; whether they are finite."""
    if not finite(work.y):
        return False
    natural_signs(work.y, model, work.signs)
    for j in range(work.signs.size):
        work.on[j] = work.signs[j] == 0.0
    settle(work.y, work.signs, model, work.on)
    drive(work.y, work.signs, model, work.k[0])
    set_scales(work, model, settings.rtol, settings.atol)
    return finite(work.k[0])


@kernel
def _judged(work, model, settings, h, numbers, known):
    """Whether the flow has arrived, and the longest step to take.

    The question is put if the step is short, and not at every step: an arrival has a field no larger than the
    fastest rate of the last answer allows. `known` keeps that rate, and for how many steps it may serve.
    """
    size, speed = 1.0 + size_of(work.y), size_of(work.k[0])
    near = max(100.0 * settings.tolerance, 1000.0 * settings.rtol) * size
    if settings.tolerance == 0.0 or h * speed > near:
        known[1] = 0.0
        return False, h
    known[1] -= 1.0
    if known[1] > 0.0 and speed > 10.0 * settings.tolerance * known[0] * size:
        return False, min(h, CLOSING / known[0])
    blur = np.empty(work.y.size)
    for i in range(blur.size):
        blur[i] = 10.0 * settings.rtol * (abs(work.y[i]) if work.scale[1, i] == TINY else size)
    verdict, index, nullity, unsure, rate = judge(
        work.y, work.k[0], work.before, work.signs, model, settings.tolerance, blur
    )
    numbers[VERDICT], numbers[INDEX], numbers[NULLITY] = verdict, index, nullity
    numbers[UNSURE] = max(numbers[UNSURE], unsure)
    known[0], known[1] = rate, PATIENCE if rate > 0.0 else 0.0
    return verdict != MOVING, min(h, CLOSING / rate) if rate > 0.0 else h


@kernel
def _store(pieces, count, t, h, c):
    """Keep a step: its beginning, its length and its continuous extension. The array doubles when it is full."""
    if count == pieces.shape[0]:
        larger = np.empty((2 * count + 16, pieces.shape[1]))
        for i in range(count):
            for j in range(pieces.shape[1]):
                larger[i, j] = pieces[i, j]
        pieces = larger
    pieces[count, 0], pieces[count, 1] = t, h
    for row in range(c.shape[0]):
        for i in range(c.shape[1]):
            pieces[count, 2 + row * c.shape[1] + i] = c[row, i]
    return pieces


@kernel
def follow(start, surfaces, model, settings, end, numbers, pieces):
    """Follow one flow to its end.

    Parameters
    ----------
    start : ndarray of shape (d,)
    surfaces : int
        Number of kinks of the model.
    model : tuple
        See landscape.kernels.field.
    settings : Settings
    end : ndarray of shape (d,)
        Receives the end.
    numbers : ndarray of shape (NUMBERS,)
        Receives what is told of the end; see the names of its places above.
    pieces : ndarray of shape (n, 2 + 8 d)
        Where to keep the steps, unless n is 0; a larger array is returned if need be.

    Returns
    -------
    pieces : ndarray
    count : int
        How many pieces there are.
    """
    work, record = workspace(start, surfaces), pieces.shape[0] > 0
    for i in range(numbers.size):
        numbers[i] = 0.0
    t, steps, count, met, calm, known = 0.0, 0, 0, 0, False, np.zeros(2)
    outcome = STEP_LIMIT
    if not _begin(work, model, settings):
        outcome, h = NONFINITE, 0.0
    else:
        h = first_step(work, model)
    while outcome == STEP_LIMIT:
        arrived, h = _judged(work, model, settings, h, numbers, known)
        if arrived:
            outcome = CONVERGED
            break
        if t >= settings.t_max or t >= FOREVER:
            outcome = TIME_LIMIT
            break
        if steps >= settings.max_steps:
            break
        h = min(h, settings.t_max - t, FOREVER)
        error = attempt(work, model, h)
        steps += 1
        if error > 1.0:
            h *= max(0.2, 0.9 * error**-0.125) if math.isfinite(error) else 0.1
            calm = False
            if t + h == t:
                outcome = NONFINITE
            continue
        change = 10.0 if error == 0.0 else min(10.0, max(0.2, 0.9 * error**-0.125))
        part, hit = 1.0, -1
        if surfaces > 0:
            part, hit = cut(work, model, h)
            if part == 0.0 and met == LINGERING:
                part, hit = 1.0, -1
        elif record:
            make_dense(work, model, h)
        met = met + 1 if hit >= 0 and part == 0.0 else 0
        if part > 0.0:
            if record:
                pieces = _store(pieces, count, t, part * h, work.c)
                count += 1
            t = settings.t_max if h == settings.t_max - t and part == 1.0 else t + part * h
            accept(work)
        turn(work, model, hit)
        h = min(h * change, first_step(work, model)) if hit >= 0 else h * (change if calm else min(change, 1.0))
        calm = True
        if size_of(work.y) > settings.radius:
            outcome = DIVERGED
    for i in range(end.size):
        end[i] = work.y[i]
    for j in range(surfaces):
        numbers[SLIDING] += work.signs[j] == 0.0
    numbers[TIME], numbers[OUTCOME], numbers[STEPS], numbers[SPEED] = t, outcome, steps, size_of(work.k[0])
    return pieces, count


@kernel
def follow_many(starts, surfaces, model, settings, ends, numbers):
    """Follow the flows of all starts, shape (n, d), one after the other. Every flow writes a row of its own."""
    nothing = np.empty((0, 0))
    for i in range(starts.shape[0]):
        follow(starts[i], surfaces, model, settings, ends[i], numbers[i], nothing)
