"""One step of a flow: DOP853 with its error in units of what is allowed, cut short where it meets a kink."""

import math
from typing import NamedTuple

import numpy as np

from landscape.kernels.compile import kernel
from landscape.kernels.dop853 import EXTENDED, STAGES
from landscape.kernels.events import search
from landscape.kernels.field import drive, finite, project, push, settle, values
from landscape.kernels.runge_kutta import advance, extend, step_error

TINY = 1e-300  # absolute error allowed to a coordinate whose zero the flow cannot cross


class Work(NamedTuple):
    """What a flow carries from step to step.

    Attributes
    ----------
    y, new : ndarray of shape (d,)
        The state, and the one that a step leads to.
    before : ndarray of shape (d,)
        The field where the last step began.
    k : ndarray of shape (EXTENDED, d)
        Slopes; the first is the field at y.
    c : ndarray of shape (8, d)
        Continuous extension of the step.
    scale : ndarray of shape (2, d)
        Relative and absolute error allowed for each coordinate.
    signs : ndarray of shape (m,)
        Branches of the kinks; see landscape.kernels.field.
    on : ndarray of bool, shape (m,)
        Which surfaces the state is on.
    """

    y: np.ndarray
    new: np.ndarray
    before: np.ndarray
    k: np.ndarray
    c: np.ndarray
    scale: np.ndarray
    signs: np.ndarray
    on: np.ndarray


@kernel
def workspace(start, surfaces):
    """The work of a flow at its start."""
    d = start.size
    return Work(
        start.copy(), np.empty(d), np.full(d, np.nan), np.zeros((EXTENDED, d)), np.empty((8, d)), np.empty((2, d)),
        np.ones(surfaces), np.zeros(surfaces, dtype=np.bool_),
    )


@kernel
def set_scales(work, model, rtol, atol):
    """Set the error allowed for each coordinate.

    Where the field has no part across the plane θ_i = 0, a flow cannot cross it, and how far it is from it
    matters however near it is: there is no absolute part.
    """
    d = work.y.size
    trial, out = np.empty(d), np.empty(d)
    for i in range(d):
        work.scale[0, i], work.scale[1, i] = rtol, atol
        invariant = work.y[i] != 0.0
        for stretch in (1.0, 0.7):
            for a in range(d):
                trial[a] = stretch * work.y[a] if a != i else 0.0
            drive(trial, work.signs, model, out)
            invariant = invariant and out[i] == 0.0
        if invariant:
            work.scale[1, i] = TINY


@kernel
def _allowed(work, i, size):
    return work.scale[0, i] * size + work.scale[1, i]


@kernel
def first_step(work, model):
    """A step in which neither the state nor its speed changes much."""
    y, k = work.y, work.k
    there, speed, change = 0.0, 0.0, 0.0
    for i in range(y.size):
        there = max(there, abs(y[i]) / _allowed(work, i, abs(y[i])))
        speed = max(speed, abs(k[0, i]) / _allowed(work, i, abs(y[i])))
    if speed == 0.0:
        return 1.0
    h = 0.01 * there / speed if there > 1e-5 and speed > 1e-5 else 1e-6
    for i in range(y.size):
        work.new[i] = y[i] + h * k[0, i]
    drive(work.new, work.signs, model, k[1])
    for i in range(y.size):
        change = max(change, abs(k[1, i] - k[0, i]) / _allowed(work, i, abs(y[i])) / h)
    bend = max(speed, change)
    return min(100.0 * h, (0.01 / bend) ** 0.125) if math.isfinite(bend) and bend > 0.0 else h


@kernel
def attempt(work, model, h):
    """Try a step; returns its error in units of what is allowed, infinite where the field is not finite."""
    y, new, k = work.y, work.new, work.k
    for stage in range(1, STAGES + 1):
        advance(stage, y, h, k, new)
        drive(new, work.signs, model, k[stage])
    if not (finite(new) and finite(k[STAGES])):
        return math.inf
    worst = 0.0
    for i in range(y.size):
        error = step_error(k, h, i) / _allowed(work, i, max(abs(y[i]), abs(new[i])))
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


@kernel
def make_dense(work, model, h):
    """Compute the continuous extension of a step that has been tried."""
    point = np.empty(work.y.size)
    for stage in range(STAGES + 1, EXTENDED):
        advance(stage, work.y, h, work.k, point)
        drive(point, work.signs, model, work.k[stage])
    extend(work.y, work.new, h, work.k, work.c)


@kernel
def cut(work, model, h):
    """Shorten a step that has been tried to the first kink that it meets.

    Returns
    -------
    part : float
        The part of the step that is left; 0 if the flow is on the kink already.
    hit : int
        Which kink is met, or -1.
    """
    make_dense(work, model, h)
    part, hit = search(work.y, work.c, work.signs, model)
    if 0.0 < part < 1.0:
        attempt(work, model, part * h)
        make_dense(work, model, part * h)
    return part, hit


@kernel
def accept(work):
    """Go to the end of a step that has been tried."""
    for i in range(work.y.size):
        work.y[i], work.before[i], work.k[0, i] = work.new[i], work.k[0, i], work.k[STAGES, i]


@kernel
def turn(work, model, hit):
    """After a step: put the flow on the kink that it has met, if any, and decide on which side of it, or along it, it goes on."""
    signs, on, y = work.signs, work.on, work.y
    touching, leaving = hit >= 0, hit >= 0 and signs[hit] == 0.0
    for j in range(signs.size):
        on[j] = signs[j] == 0.0 or j == hit
        touching = touching or on[j]
    if not touching:
        return
    if hit >= 0:
        signs[hit] = 0.0
    project(y, signs, model)
    if hit >= 0:
        found, size = np.empty(signs.size), 1.0
        for i in range(y.size):
            size = max(size, 1.0 + abs(y[i]))
        values(y, signs, model, found)
        for j in range(signs.size):
            on[j] = on[j] or abs(found[j]) <= 1e-14 * size
    settle(y, signs, model, on)
    if leaving and signs[hit] == 0.0:  # one side has just stopped pushing, as far as rounding can tell
        above, below = push(y, signs, model, hit)
        signs[hit] = 1.0 if above + below > 0.0 else -1.0
    drive(y, signs, model, work.k[0])
