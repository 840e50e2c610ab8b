"""What a flow comes down to: a summary of a trajectory, its table, and files of both."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from landscape.architectures import Bound
from landscape.files import replacing, write_text
from landscape.flows import Trajectory


def summary(way: Trajectory) -> dict:
    """Start, end, label, outcome, time, gap, loss, drift of the invariants and number of steps of a trajectory.

    What has no value is None; the drift is the largest change of any conserved quantity that is known.
    """
    landscape, ends = way.landscape, way.ends
    drifts = [drift for drift in way.invariant_drift().values() if drift is not None] if len(way.coefficients) else []
    valid = way.label != "invalid"
    gap = landscape.architecture.kappa(landscape.chain, way.end)[0] if valid and isinstance(landscape, Bound) else np.nan
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
