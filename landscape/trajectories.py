"""A trajectory with dense output: its states, crossings and drift, its summary and table, and files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from landscape.files import replacing, write_text
from landscape.landscapes import Landscape
from landscape.outcomes import Ends, Outcome
from landscape.parameters import ParameterError


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
        if times.ndim != 1:
            raise ParameterError("t", "Trajectory", "a number or a 1-D array", f"an array of shape {times.shape}")
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
        values, periods = self.landscape.invariant_values(self.sample()[1]), self.landscape.periods
        found = {}
        for name, along in values.items():
            change = along - along[0]
            if name in periods:  # an angle may have gone round
                change -= periods[name] * np.round(change / periods[name])
            found[name] = float(np.max(np.abs(change))) if np.isfinite(along).all() else None
        return found


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


def summary(way: Trajectory) -> dict:
    """Start, end, label, outcome, time, gap, loss, drift of the invariants and number of steps of a trajectory.

    What has no value is None; the drift is the largest change of any conserved quantity that is known.
    """
    landscape, ends = way.landscape, way.ends
    drifts = [drift for drift in way.invariant_drift().values() if drift is not None] if len(way.coefficients) else []
    valid = way.label != "invalid"
    gap = landscape.gap(way.end)[0] if valid else np.nan
    return {
        "start": ends.starts[0].tolist(), "end": way.end.tolist(), "label": way.label, "outcome": way.outcome,
        "t": float(ends.times[0]), "kappa": float(gap) if np.isfinite(gap) else None,
        "loss": float(landscape.loss(way.end)[0]) if valid else None, "invariant_drift": max(drifts, default=None),
        "steps": int(ends.steps[0]),
    }


def table(way: Trajectory, per_step: int = 8) -> dict[str, np.ndarray]:
    """Columns t, one for every parameter, and loss, along a trajectory; see `Trajectory.sample`."""
    times, states = way.sample(per_step) if len(way.coefficients) else (np.zeros(1), way.ends.starts)
    columns = {"t": times, **dict(zip(way.landscape.parameters, states.T))}
    return columns | {"loss": way.landscape.loss(states)}


def write(ways: list[Trajectory], path: str | os.PathLike) -> None:
    """Write trajectories one after the other to FILE.csv or FILE.nc, with a column `start` that numbers them."""
    tables = [{"start": np.full(len(columns["t"]), i), **columns} for i, columns in enumerate(map(table, ways))]
    columns = {name: np.concatenate([columns[name] for columns in tables]) for name in tables[0]}
    if Path(path).suffix.lower() == ".csv":
        rows = zip(*(values.tolist() for values in columns.values()))
        write_text(path, "\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows)]) + "\n")
        return
    import xarray

    from landscape import __version__

    attributes = {"title": "Trajectories of gradient flow", "Conventions": "CF-1.11", "source": f"markov-landscape {__version__}"}
    made = xarray.Dataset(
        {name: ("sample", values) for name, values in columns.items()}, attrs=attributes | ways[0].landscape.describe()
    )
    made["t"].attrs = {"long_name": "flow time", "units": "1"}
    with replacing(path) as temporary:
        made.to_netcdf(temporary, engine="h5netcdf")
