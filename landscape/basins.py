"""Basin maps: the label of the limit of every start on a grid, its fractions, and the separatrix.

Nothing here knows an architecture by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from landscape import parameters
from landscape.architectures import Architecture, find
from landscape.chains import Chain
from landscape.critical import chosen_method, labels_of
from landscape.files import replacing
from landscape.flow_maps import FlowMap, flow_map, grid_points
from landscape.landscapes import BOX, Landscape, landscape_of
from landscape.outcomes import Label, Outcome

COUNTED = 2**22  # labels counted at a time, which are made wider for it
NODES = {"exact": 401, "flow": 101}


def grid(landscape: Landscape, axes: Mapping, fixed: Mapping | None = None, *, method: str = "exact") -> tuple[dict, dict]:
    """The nodes of a grid, and the coordinates that are not gridded.

    Parameters
    ----------
    axes : dict of str to (low, high, n) or 1-D array
        Coordinates to grid. Where no more than two are, the others that are not fixed are gridded over the landscape's box.
    fixed : dict of str to float
        All others.

    Returns
    -------
    nodes : dict of str to ndarray, in the order of the parameters
    fixed : dict of str to float
    """
    fixed = {name: parameters.real("basin_map", name, value) for name, value in (fixed or {}).items()}
    needed = landscape.needed((*axes, *fixed))
    free = [name for name in needed if name not in axes and name not in fixed]
    if len(axes) + len(free) <= 2:
        axes = {**axes, **{name: (*landscape.box.get(name, BOX), NODES[method]) for name in free}}
    unknown = [name for name in (*axes, *fixed) if name not in landscape.coordinates]
    twice = [name for name in axes if name in fixed]
    missing = [name for name in needed if name not in axes and name not in fixed]
    if unknown or twice or missing or not 1 <= len(axes) <= 3:
        wanted = f"axes for one to three of {', '.join(landscape.coordinates)} and fixed values for the others"
        raise parameters.ParameterError("axes", "basin_map", wanted, sorted((*axes, *fixed)))
    nodes = {name: parameters.axis("basin_map", name, axes[name]) for name in landscape.coordinates if name in axes}
    return nodes, fixed


def label_grid(chain: Chain | Landscape, axes: Mapping, architecture: str | Architecture = "canonical", fixed: Mapping | None = None):
    """Exact labels on a grid, without the xarray wrapping.

    Parameters
    ----------
    axes : dict of str to (low, high, n) or 1-D array
    fixed : dict of str to float
        Coordinates that are not gridded.

    Returns
    -------
    labels : ndarray of int8, one dimension per gridded parameter
    nodes : dict of str to ndarray
        The coordinates of the grid.
    """
    landscape = landscape_of(chain, architecture)
    chosen_method(landscape, "exact")
    nodes, fixed = grid(landscape, axes, fixed)
    return exact_labels(landscape, nodes, fixed), nodes


def exact_labels(landscape: Landscape, nodes: Mapping[str, np.ndarray], fixed: Mapping[str, float]) -> np.ndarray:
    """Labels on a grid that has been checked; int8, one dimension per node axis."""
    model = landscape.architecture
    if set(nodes) | set(fixed) == set(model.parameters):
        every = {name: nodes[name] if name in nodes else np.array([fixed[name]]) for name in model.coordinates}
        labels = model.label_grid(landscape.chain, every)
    else:
        labels = model.limit(landscape.chain, grid_points(landscape, nodes, fixed))
    return labels.reshape([len(values) for values in nodes.values()])


def basin_map(
    chain: Chain | Landscape, architecture: str | Architecture = "canonical", *, method: str | None = None, fixed: Mapping | None = None,
    coarse: int = 1, options: Mapping | None = None, progress=None, **axes,
):
    """Map the limit of every start on a grid.

    Parameters
    ----------
    chain : Chain or Landscape
        A chain, on which the architecture is taken, or a landscape such as a `PlainLoss`.
    architecture : str or Architecture
    method : {"exact", "flow"}, optional
        By default exact where there is an exact rule.
    fixed : dict of str to float, optional
        Coordinates that are not gridded.
    coarse : int
        For flows: follow every `coarse`-th start first, then all those near boundaries; see `flow_map`.
    options : dict, optional
        For flows; the keyword arguments of `landscape.flow`.
    progress : callable, optional
        For flows; called with numbers of starts done and to do.
    **axes : (low, high, n) or 1-D array
        An axis for each gridded parameter, such as ``e=(-2, 2, 401)``. Up to two are gridded over their box if nothing
        is said of them: with 401 nodes for the exact method, with 101 by flow.

    Returns
    -------
    xarray.Dataset
        Variable ``label`` (int8, CF flags) over the gridded parameters. By flow also ``outcome``, ``time`` (flow time at
        the end), ``attractor`` (which set of ends) and ``computed``. `fractions` counts labels, `landscape.plots` draws.
    """
    landscape = landscape_of(chain, architecture)
    method = chosen_method(landscape, method)
    if method == "exact":
        labels, nodes = label_grid(landscape, axes, fixed=fixed)
        return as_dataset(labels, nodes, landscape, fixed)
    coarse = parameters.count("basin_map", "coarse", coarse, 1)
    nodes, fixed = grid(landscape, axes, fixed, method="flow")
    found = flow_map(landscape, nodes, fixed, coarse, progress, **(options or {}))
    return flow_dataset(found, nodes, landscape, fixed)


def compare(first, second) -> dict:
    """How two maps of the same grid agree.

    Parameters
    ----------
    first, second : xarray.Dataset or ndarray of int8
        Maps or their labels, such as an exact map and one by flow.

    Returns
    -------
    dict
        ``agreement``: share of cells with the same label; ``confusion``: number of cells by label of the first and the
        second map, where there are any.
    """
    if hasattr(first, "data_vars") and hasattr(second, "data_vars"):
        nodes = [{name: dataset[name].values.tolist() for name in dataset["label"].dims} for dataset in (first, second)]
        if nodes[0] != nodes[1]:
            raise parameters.ParameterError("second", "compare", "a map of the same grid", list(nodes[1]))
    one, other = _codes(first), _codes(second)
    if one.shape != other.shape:
        raise parameters.ParameterError("second", "compare", f"a map of shape {one.shape}", other.shape)
    counts: dict[str, dict[str, int]] = {}
    for label in Label:
        row = count_labels(other[one == label.value])
        if any(row.values()):
            counts[label.word] = {word: n for word, n in row.items() if n}
    return {"agreement": float((one == other).mean()), "confusion": counts}


def label_starts(
    chain: Chain | Landscape, starts, architecture: str | Architecture = "canonical", *, method: str | None = None
):
    """Label the limits of starts that come as an xarray Dataset, in whatever shape they have.

    Parameters
    ----------
    starts : xarray.Dataset
        A variable (or coordinate) for each parameter of the architecture; they are broadcast against each other.
    method : {"exact", "flow"}, optional
        By default exact where there is an exact rule.

    Returns
    -------
    xarray.Dataset
        The starts with a variable ``label`` (int8, CF flags) over their dimensions.

    Raises
    ------
    ParameterError
        If a parameter is missing from the Dataset.
    """
    import xarray

    landscape = landscape_of(chain, architecture)
    given = [name for name in landscape.coordinates if name in starts]
    missing = [name for name in landscape.needed(given) if name not in given]
    if missing:
        wanted = ", ".join(landscape.needed(given))
        raise parameters.ParameterError("starts", "label_starts", f"a Dataset that holds {wanted}", list(starts.variables))
    columns = xarray.broadcast(*(starts[name] for name in given))
    points = landscape.place({name: np.asarray(column, dtype=np.float64).ravel() for name, column in zip(given, columns)})
    labels = labels_of(landscape, points, method).reshape(columns[0].shape)
    return starts.assign(label=(columns[0].dims, labels, _flags()))


def _flags() -> dict:
    """CF attributes of an array of label codes."""
    return {
        "long_name": "limit of gradient flow",
        "flag_values": np.array([label.value for label in Label], dtype=np.int8),
        "flag_meanings": " ".join(label.word for label in Label),
    }


def as_dataset(labels: np.ndarray, nodes: Mapping, landscape: Landscape, fixed: Mapping | None = None, method: str = "exact"):
    """Wrap labels on a grid as an xarray Dataset that says how it was made."""
    import xarray

    from landscape import __version__

    coordinates = {
        name: (name, values, {"long_name": f"start value of {name}", "units": "1"}) for name, values in nodes.items()
    }
    made = {
        "title": "Basins of attraction", "Conventions": "CF-1.11", "method": method, **landscape.describe(),
        **{f"fixed_{name}": value for name, value in (fixed or {}).items()}, "source": f"markov-landscape {__version__}",
    }
    return xarray.Dataset({"label": (tuple(nodes), labels, _flags())}, coords=coordinates, attrs=made)


def flow_dataset(found: FlowMap, nodes: Mapping, landscape: Landscape, fixed: Mapping):
    """Wrap a map by flow as an xarray Dataset."""
    dims = tuple(nodes)
    outcomes = {
        "long_name": "how following the flow ended", "flag_values": np.array([outcome.value for outcome in Outcome], dtype=np.int8),
        "flag_meanings": " ".join(outcome.word for outcome in Outcome),
    }
    times = {"long_name": "flow time at the end", "units": "1"}
    attractors = {"long_name": "set of ends, -1 where the flow did not converge to a minimum"}
    computed = {
        "long_name": "whether the flow was followed", "flag_values": np.array([0, 1], dtype=np.int8),
        "flag_meanings": "copied_from_surroundings followed",
    }
    return as_dataset(found.labels, nodes, landscape, fixed, "flow").assign({
        "outcome": (dims, found.outcomes, outcomes), "time": (dims, found.times, times),
        "attractor": (dims, found.attractors, attractors), "computed": (dims, found.computed.astype(np.int8), computed),
        "attractor_point": (("set", "parameter"), found.points, {"long_name": "an end on each set"}),
    }).assign_coords(parameter=list(landscape.parameters))


def write(dataset, path: str | os.PathLike) -> None:
    """Write a basin map to FILE.nc (NetCDF-4) or FILE.zarr, whole or not at all.

    Raises
    ------
    ImportError
        For Zarr without the `scale` extra.
    """
    if Path(path).suffix.lower() == ".zarr":
        with replacing(path) as temporary:
            dataset.to_zarr(temporary, mode="w", consolidated=False)
        return
    encoding = {name: {"zlib": True, "complevel": 4} for name in dataset.data_vars if dataset[name].size > 1000}
    with replacing(path) as temporary:
        dataset.to_netcdf(temporary, engine="h5netcdf", encoding=encoding)


def _codes(labels) -> np.ndarray:
    """Label codes of a map or of an array of them."""
    return labels["label"].values if hasattr(labels, "data_vars") else np.asarray(labels)


def count_labels(labels: np.ndarray) -> dict[str, int]:
    """Number of cells of each label, zeros too, by word."""
    codes = np.ascontiguousarray(labels, dtype=np.int8).reshape(-1).view(np.uint8)
    found = np.zeros(256, dtype=np.int64)
    for start in range(0, codes.size, COUNTED):
        found += np.bincount(codes[start:start + COUNTED], minlength=256)
    return {label.word: int(found[label.value % 256]) for label in Label}


def fractions(labels) -> dict[str, float]:
    """Share of the cells of each label, by word; `labels` is an array of codes or a basin map."""
    values = _codes(labels)
    return {word: count / max(values.size, 1) for word, count in count_labels(values).items()}


def separatrix(
    chain: Chain, architecture: str | Architecture = "canonical", *, reach: float = 2.0, n: int = 400
) -> np.ndarray:
    """The boundary between the global basin and the rest, as a curve.

    Parameters
    ----------
    reach : float
        How far from the origin the branches go, in parameter units.
    n : int
        Points on each of the two branches.

    Returns
    -------
    ndarray of shape (2 n, number of parameters)
        From the end of one branch through the saddle to the end of the other; empty at the threshold.
    """
    reach = parameters.real("separatrix", "reach", reach)
    if reach <= 0.0:
        raise parameters.ParameterError("reach", "separatrix", "positive", reach)
    n = parameters.count("separatrix", "n", n, 2)
    return find(architecture).separatrix(chain, reach, n)
