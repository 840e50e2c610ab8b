"""Gradient flow dθ/dt = -∇L: where starts lead, one or a million, and single trajectories with dense output.

The only thing used is the generated gradient. A flow has ended when it is at a critical *set* as nearly as the
tolerance says and cannot get away from it: a slow passage by a saddle, or a start next to an unstable set, is
followed on. What the set does to its surroundings is then looked at afresh, and is what the label says.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np

from landscape import parameters
from landscape.landscapes import Landscape, landscape_of
from landscape.outcomes import Ends, Label, Outcome
from landscape.parameters import ParameterError
from landscape.trajectories import Trajectory

CHUNK = 256  # starts that a thread takes at a time
PART = 4096  # starts that an executor gets at a time


@functools.lru_cache(maxsize=256)
def _addresses(kernels) -> tuple[int, int, int]:
    """Addresses of the kernels of a landscape that the integrator calls."""
    from landscape.kernels.compile import address

    return tuple(address(getattr(kernels, name)) for name in ("gradient_at", "surfaces_at", "normals_at"))


def as_model(landscape: Landscape) -> tuple:
    """The number of kinks of a landscape, and it as the integrator takes it."""
    kernels = landscape.kernels
    roots = np.sqrt(np.array(landscape.speeds, dtype=np.float64))
    return kernels.SURFACES, (*_addresses(kernels), np.array(landscape.constants, dtype=np.float64), roots)


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

    pool, done = ThreadPoolExecutor(numba.get_num_threads()), 0
    try:
        for future in [pool.submit(take, first) for first in chunks]:
            done += future.result()
            if progress is not None:
                progress(done, total)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def flow(
    chain, points, architecture="canonical", *, t_max: float | None = None, rtol: float = 1e-8, atol: float | None = None,
    tolerance: float = 1e-9, radius: float = 1e8, max_steps: int = 100_000, progress: Callable | None = None,
    executor: Executor | None = None,
) -> Ends:
    """Follow the gradient flow of many starts to their ends, on all cores.

    Lengths are measured in units of 1 + |θ|: parameters are expected to be scaled so that the landscape has no features
    much smaller than 1e-3. The method is explicit: where rates differ by a factor of 1e5 or more, or a degenerate
    direction lies beside a steep one, a flow may end at `max_steps`, undecided.

    Parameters
    ----------
    chain : Chain or Landscape
        A chain, on which the architecture is taken, or a landscape: a `PlainLoss`, or an architecture on a chain with
        speeds of its own for some parameters (`Landscape.with_speeds`).
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
    executor : concurrent.futures.Executor, optional
        Where parts of the starts are followed instead of in the threads of this process; see `landscape.executors`.

    Returns
    -------
    Ends
        The same for any number of threads, and on any executor.

    Raises
    ------
    ParameterError
    """
    from landscape.kernels.integrate import NUMBERS, follow_many

    landscape = landscape_of(chain, architecture)
    starts = landscape.points("flow", points)
    settings = _settings("flow", t_max, rtol, atol, tolerance, radius, max_steps)
    if executor is not None and len(starts):
        return _elsewhere(executor, landscape, starts, progress, (t_max, rtol, atol, tolerance, radius, max_steps))
    surfaces, model = as_model(landscape)
    ends, numbers = np.empty_like(starts), np.empty((len(starts), NUMBERS))
    inside = _inside(landscape, starts) / landscape.stretch

    def take(first):
        part = slice(first, first + CHUNK)
        follow_many(inside[part], surfaces, model, settings, ends[part], numbers[part])
        return min(first + CHUNK, len(starts)) - first

    _share(take, range(0, len(starts), CHUNK), len(starts), progress)
    return _ends(landscape, starts, ends * landscape.stretch, numbers, settings.tolerance)


def _elsewhere(executor: Executor, landscape: Landscape, starts: np.ndarray, progress: Callable | None, options: tuple) -> Ends:
    """The ends of starts that an executor follows part by part."""
    from landscape.executors import done

    parts, reached = np.split(starts, range(PART, len(starts), PART)), 0
    found: dict[int, Ends] = {}
    for number, ends in done(executor, _part, ((landscape, part, options) for part in parts)):
        found[number] = ends
        reached += len(ends.labels)
        if progress is not None:
            progress(reached, len(starts))
    columns = {name: np.concatenate([vars(found[number])[name] for number in range(len(parts))]) for name in vars(found[0])}
    return Ends(**columns)


def _part(landscape: Landscape, starts: np.ndarray, options: tuple) -> Ends:
    t_max, rtol, atol, tolerance, radius, max_steps = options
    return flow(landscape, starts, t_max=t_max, rtol=rtol, atol=atol, tolerance=tolerance, radius=radius, max_steps=max_steps)


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
    inside = _inside(landscape, starts)[0] / landscape.stretch
    pieces, count = follow(inside, *as_model(landscape), settings, ends[0], numbers[0], np.empty((16, 2 + 8 * d)))
    kept = pieces[:count]
    times = np.append(kept[:, 0], numbers[0, 0]) if count else np.zeros(1)
    found = _ends(landscape, starts, ends * landscape.stretch, numbers, settings.tolerance)
    return Trajectory(landscape, found, times, kept[:, 2:].reshape(count, 8, d) * landscape.stretch)


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
