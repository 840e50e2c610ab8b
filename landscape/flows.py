"""Gradient flow dθ/dt = -∇L: where starts lead, one or a million, and single trajectories with dense output.

The only thing used is the generated gradient. A flow has ended when it is at a critical *set* as nearly as the
tolerance says and cannot get away from it: a slow passage by a saddle, or a start next to an unstable set, is
followed on. What the set does to its surroundings is then looked at afresh, and is what the label says.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from landscape import parameters
from landscape.landscapes import Landscape, landscape_of
from landscape.outcomes import Label, Outcome
from landscape.parameters import ParameterError

CHUNK = 256  # starts that a thread takes at a time


@dataclass(frozen=True)
class Ends:
    """Where flows ended.

    Attributes
    ----------
    starts, ends : ndarray of shape (n, d)
    labels : ndarray of int8, shape (n,)
        Codes of `Label`. ``UNDECIDED`` stands for every flow that did not converge, and for one that passed an unstable
        set more closely than the errors of the integration allow to tell on which side.
    outcomes : ndarray of int8, shape (n,)
        Codes of `Outcome`.
    times : ndarray of shape (n,)
        Flow time at the end.
    gradients : ndarray of shape (n,)
        Largest entry of the gradient at the end (along the kinks that the flow slides along, if any).
    index, nullity : ndarray of int8, shape (n,)
        Negative and zero eigenvalues of the Hessian at the end; 0 unless converged.
    sliding : ndarray of int8, shape (n,)
        Number of kinks that the flow slides along at the end.
    steps : ndarray of int64, shape (n,)
    """

    starts: np.ndarray
    ends: np.ndarray
    labels: np.ndarray
    outcomes: np.ndarray
    times: np.ndarray
    gradients: np.ndarray
    index: np.ndarray
    nullity: np.ndarray
    sliding: np.ndarray
    steps: np.ndarray

    @property
    def words(self) -> list[str]:
        """The labels in words."""
        return [Label(int(code)).word for code in self.labels]


@dataclass(frozen=True)
class Trajectory:
    """One flow with dense output: call it with times for states.

    Attributes
    ----------
    landscape : Landscape
    ends : Ends
        Its end, as arrays of one row.
    times : ndarray of shape (m + 1,)
        Ends of the steps, from 0.
    coefficients : ndarray of shape (m, 8, d)
        Of the continuous extension of order 7, step by step.
    """

    landscape: Landscape
    ends: Ends
    times: np.ndarray
    coefficients: np.ndarray = field(repr=False)

    @property
    def label(self) -> str:
        """The label of the limit, in words."""
        return self.ends.words[0]

    @property
    def outcome(self) -> str:
        """How it ended, in words."""
        return Outcome(int(self.ends.outcomes[0])).word

    @property
    def end(self) -> np.ndarray:
        """The last state, shape (d,)."""
        return self.ends.ends[0]

    def __call__(self, t) -> np.ndarray:
        """States at times between 0 and the last one; shape (d,) for a number, (k, d) for an array.

        Raises
        ------
        ParameterError
            If a time is not in that range.
        """
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        if not np.all((times >= 0.0) & (times <= self.times[-1])):
            raise ParameterError("t", "Trajectory", f"between 0 and {self.times[-1]!r}", t)
        if not len(self.coefficients):
            states = np.repeat(self.ends.starts, len(times), axis=0)
        else:
            step = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.coefficients) - 1)
            part = (times - self.times[step]) / (self.times[step + 1] - self.times[step])
            states = _extension(self.coefficients[step], part)
        return states[0] if np.ndim(t) == 0 else states

    def sample(self, per_step: int = 8) -> tuple[np.ndarray, np.ndarray]:
        """Times and states along the whole trajectory, `per_step` to a step: shapes (k,) and (k, d)."""
        parts = np.arange(per_step) / per_step
        times = (self.times[:-1, None] + np.diff(self.times)[:, None] * parts).ravel()
        times = np.append(times, self.times[-1])
        return times, self(times)

    def crossings(self, function: Callable, *, direction: int = 0, per_step: int = 32) -> tuple[np.ndarray, np.ndarray]:
        """Where a function of the state vanishes along the trajectory.

        Parameters
        ----------
        function : callable
            Takes states of shape (k, d), returns shape (k,).
        direction : {0, 1, -1}
            Only where it grows (1) or falls (-1).
        per_step : int
            Samples in a step; between them, dips that nearly reach zero are followed to their lowest point.

        Returns
        -------
        times : ndarray of shape (k,)
        states : ndarray of shape (k, d)
        """
        times, states = self.sample(per_step)
        found = sorted(_zeros(lambda t: float(function(self(np.array([t])))[0]), times, np.asarray(function(states)), direction))
        times = np.array(found)
        return times, self(times) if len(found) else np.empty((0, self.end.size))

    def invariant_drift(self) -> dict[str, float | None]:
        """Largest change of every conserved quantity along the trajectory; None where it has no value."""
        values = self.landscape.invariant_values(self.sample()[1])
        return {
            name: float(np.max(np.abs(along - along[0]))) if np.isfinite(along).all() else None for name, along in values.items()
        }


def _extension(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The continuous extension for steps with coefficients of shape (k, 8, d) at parts of shape (k,)."""
    total, x = np.zeros_like(c[:, 0]), x[:, None]
    for row in range(7, 0, -1):
        total = (c[:, row] + total) * (x if row % 2 else 1.0 - x)
    return c[:, 0] + total


def _zeros(function, times, values, direction):
    """Places where a sampled function vanishes; dips between samples are searched for zeros too."""
    from scipy.optimize import brentq, minimize_scalar

    def root(left, right):
        rising = function(right) > function(left)
        if direction == 0 or (direction > 0) == rising:
            yield brentq(function, left, right, xtol=1e-300, rtol=8.9e-16)

    for i in range(len(times) - 1):
        if values[i] == 0.0 and i > 0:
            if direction == 0 or direction * (values[i + 1] - values[i - 1]) > 0:
                yield times[i]
        elif values[i] * values[i + 1] < 0.0:
            yield from root(times[i], times[i + 1])
    for i in range(1, len(times) - 1):
        side = np.sign(values[i])
        if side and abs(values[i]) <= min(abs(values[i - 1]), abs(values[i + 1])) and side * values[i - 1] > 0 < side * values[i + 1]:
            low = minimize_scalar(lambda t: side * function(t), bounds=(times[i - 1], times[i + 1]), method="bounded").x
            if side * function(low) < 0.0:
                yield from root(times[i - 1], low)
                yield from root(low, times[i + 1])


@functools.lru_cache(maxsize=256)
def _addresses(kernels) -> tuple[int, int, int]:
    """Addresses of the kernels of a landscape that the integrator calls."""
    from landscape.kernels.compile import address

    return tuple(address(getattr(kernels, name)) for name in ("gradient_at", "surfaces_at", "normals_at"))


def _model(landscape: Landscape) -> tuple:
    """The number of kinks of a landscape, and it as the integrator takes it."""
    kernels = landscape.kernels
    return kernels.SURFACES, (*_addresses(kernels), np.array(landscape.constants, dtype=np.float64))


def _settings(owner, t_max, rtol, atol, tolerance, radius, max_steps):
    from landscape.kernels.integrate import Settings

    values = {"t_max": t_max, "rtol": rtol, "tolerance": tolerance, "radius": radius}
    values = {name: math.inf if value is None else parameters.real(owner, name, value) for name, value in values.items()}
    if not values["t_max"] >= 0.0:
        raise ParameterError("t_max", owner, "at least 0", t_max)
    if not 1e-13 <= values["rtol"] <= 0.1:
        raise ParameterError("rtol", owner, "between 1e-13 and 0.1", rtol)
    if not 0.0 <= values["tolerance"] <= 1e-3:
        raise ParameterError("tolerance", owner, "between 0 and 1e-3", tolerance)
    if not values["radius"] > 0.0:
        raise ParameterError("radius", owner, "positive", radius)
    if values["tolerance"] == 0.0 and math.isinf(values["t_max"]):
        raise ParameterError("tolerance", owner, "positive unless t_max is given", tolerance)
    small = 1e-2 * values["rtol"] if atol is None else parameters.real(owner, "atol", atol)
    if not small > 0.0:
        raise ParameterError("atol", owner, "positive", atol)
    steps = parameters.count(owner, "max_steps", max_steps, 1)
    return Settings(values["t_max"], values["rtol"], small, values["tolerance"], values["radius"], steps)


def _inside(landscape: Landscape, starts: np.ndarray) -> np.ndarray:
    """The starts, with NaN in the place of those at which the loss is not finite."""
    return np.where(np.isfinite(landscape.loss(starts))[:, None], starts, np.nan)


def _share(take: Callable, chunks: range, total: int, progress: Callable | None) -> None:
    """Let threads take chunks in turn; kernels run without the interpreter's lock. An interruption drops what is waiting."""
    import numba

    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        waiting, done = [pool.submit(take, first) for first in chunks], 0
        try:
            for future in waiting:
                done += future.result()
                if progress is not None:
                    progress(done, total)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def flow(
    chain, points, architecture="canonical", *, t_max: float | None = None, rtol: float = 1e-8, atol: float | None = None,
    tolerance: float = 1e-9, radius: float = 1e8, max_steps: int = 100_000, progress: Callable | None = None,
) -> Ends:
    """Follow the gradient flow of many starts to their ends, on all cores.

    Parameters
    ----------
    chain : Chain or Landscape
        A chain, on which the architecture is taken, or a landscape such as a `PlainLoss`.
    points : array_like of shape (n, d) or (d,)
    architecture : str or Architecture
    t_max : float, optional
        Flow time at which to stop; without it, flows are followed until they converge.
    rtol, atol : float
        Error allowed in a step, rtol |θ_i| + atol, with atol = rtol / 100 by default. A coordinate whose zero the flow
        cannot cross is held to rtol |θ_i| alone, so that it matters whether it is 1e-10 or 1e-160.
    tolerance : float
        Distance to a critical set, in units of 1 + |θ|, at which a flow has arrived; with 0, flows go on to `t_max`.
    radius : float
        A flow whose largest coordinate exceeds it has diverged.
    max_steps : int
    progress : callable, optional
        Called with the numbers of starts done and of all starts, from time to time.

    Returns
    -------
    Ends
        The same for any number of threads.

    Raises
    ------
    ParameterError
    """
    from landscape.kernels.integrate import NUMBERS, follow_many

    landscape = landscape_of(chain, architecture)
    starts = landscape.points("flow", points)
    settings = _settings("flow", t_max, rtol, atol, tolerance, radius, max_steps)
    surfaces, model = _model(landscape)
    ends, numbers = np.empty_like(starts), np.empty((len(starts), NUMBERS))
    inside = _inside(landscape, starts)

    def take(first):
        part = slice(first, first + CHUNK)
        follow_many(inside[part], surfaces, model, settings, ends[part], numbers[part])
        return min(first + CHUNK, len(starts)) - first

    _share(take, range(0, len(starts), CHUNK), len(starts), progress)
    return _ends(landscape, starts, ends, numbers, settings.tolerance)


def trajectory(
    chain, start, architecture="canonical", *, t_max: float | None = None, rtol: float = 1e-8, atol: float | None = None,
    tolerance: float = 1e-9, radius: float = 1e8, max_steps: int = 100_000,
) -> Trajectory:
    """Follow the gradient flow of one start and keep the way; the arguments are those of `flow`."""
    from landscape.kernels.integrate import NUMBERS, follow

    landscape = landscape_of(chain, architecture)
    starts = landscape.points("trajectory", start)
    if len(starts) != 1:
        raise ParameterError("start", "trajectory", "one point", f"{len(starts)} points")
    settings = _settings("trajectory", t_max, rtol, atol, tolerance, radius, max_steps)
    ends, numbers = np.empty_like(starts), np.empty((1, NUMBERS))
    d = starts.shape[1]
    pieces, count = follow(_inside(landscape, starts)[0], *_model(landscape), settings, ends[0], numbers[0], np.empty((16, 2 + 8 * d)))
    kept = pieces[:count]
    times = np.append(kept[:, 0], numbers[0, 0]) if count else np.zeros(1)
    found = _ends(landscape, starts, ends, numbers, settings.tolerance)
    return Trajectory(landscape, found, times, kept[:, 2:].reshape(count, 8, d).copy())


def _ends(landscape: Landscape, starts, ends, numbers, tolerance) -> Ends:
    """Labels from what the integrator found at the ends."""
    from landscape.kernels.attraction import ATTRACTS, MIXED, REPELS

    times, outcomes, verdicts, index, nullity, unsure, gradients, steps, sliding = numbers.T
    labels = np.full(len(starts), Label.UNDECIDED, dtype=np.int8)
    labels[(outcomes == Outcome.NONFINITE) & (steps == 0.0)] = Label.INVALID
    ends[labels == Label.INVALID] = starts[labels == Label.INVALID]
    arrived = outcomes == Outcome.CONVERGED
    labels[arrived & (verdicts == MIXED)] = Label.SADDLE
    labels[arrived & (verdicts == REPELS)] = Label.MAXIMUM
    settled = arrived & (verdicts == ATTRACTS) & (unsure == 0.0)
    if settled.any():
        labels[settled] = np.where(landscape.is_global(ends[settled], max(tolerance, 1e-12)), Label.GLOBAL, Label.LOCAL)
    return Ends(
        starts, ends, labels, outcomes.astype(np.int8), times.copy(), gradients.copy(), np.where(arrived, index, 0).astype(np.int8),
        np.where(arrived, nullity, 0).astype(np.int8), sliding.astype(np.int8), steps.astype(np.int64),
    )
