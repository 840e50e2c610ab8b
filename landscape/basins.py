"""Basin maps: the label of the limit of every start on a grid, its fractions, and the separatrix.

Nothing here knows an architecture by name.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from landscape import parameters
from landscape.architectures import Architecture, find
from landscape.chains import Chain
from landscape.files import replacing
from landscape.outcomes import Label

BOX = (-2.0, 2.0, 401)


def label_grid(chain: Chain, axes: dict, architecture: str | Architecture = "canonical"):
    """Exact labels on a grid, without the xarray wrapping.

    Parameters
    ----------
    axes : dict of str to (low, high, n) or 1-D array
        One entry per parameter of the architecture.

    Returns
    -------
    labels : ndarray of int8, one dimension per parameter
    nodes : dict of str to ndarray
        The coordinates of the grid.
    """
    model = find(architecture)
    missing = [name for name in model.parameters if name not in axes]
    if missing or set(axes) - set(model.parameters):
        wanted = ", ".join(model.parameters)
        raise parameters.ParameterError("axes", "basin_map", f"one axis for each of {wanted}", sorted(axes))
    nodes = {name: parameters.axis("basin_map", name, axes[name]) for name in model.parameters}
    return model.label_grid(chain, nodes), nodes


def basin_map(chain: Chain, architecture: str | Architecture = "canonical", **axes):
    """Map the limit of every start on a grid, exactly.

    Parameters
    ----------
    chain : BinaryChain or SymmetricChain
    architecture : str or Architecture
    **axes : (low, high, n) or 1-D array
        An axis for each parameter, such as ``e=(-2, 2, 401)``; by default (-2, 2, 401).

    Returns
    -------
    xarray.Dataset
        Variable ``label`` (int8, CF flags) over the architecture's parameters; `fractions` counts it,
        `landscape.plots.basins` draws it.
    """
    model = find(architecture)
    labels, nodes = label_grid(chain, {name: BOX for name in model.parameters} | axes, model)
    return as_dataset(labels, nodes, chain, model)


def label_starts(chain: Chain, starts, architecture: str | Architecture = "canonical"):
    """Label the limits of starts that come as an xarray Dataset, in whatever shape they have.

    Parameters
    ----------
    starts : xarray.Dataset
        A variable (or coordinate) for each parameter of the architecture; they are broadcast against each other.

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

    model = find(architecture)
    missing = [name for name in model.parameters if name not in starts]
    if missing:
        wanted = ", ".join(model.parameters)
        raise parameters.ParameterError("starts", "label_starts", f"a Dataset that holds {wanted}", list(starts.variables))
    columns = xarray.broadcast(*(starts[name] for name in model.parameters))
    points = np.stack([np.asarray(column, dtype=np.float64).ravel() for column in columns], axis=1)
    labels = model.limit(chain, points).reshape(columns[0].shape)
    return starts.assign(label=(columns[0].dims, labels, _flags()))


def _flags() -> dict:
    """CF attributes of an array of label codes."""
    return {
        "long_name": "limit of gradient flow",
        "flag_values": np.array([label.value for label in Label], dtype=np.int8),
        "flag_meanings": " ".join(label.word for label in Label),
    }


def as_dataset(labels: np.ndarray, nodes: dict, chain: Chain, model: Architecture):
    """Wrap labels on a grid as an xarray Dataset that says how it was made."""
    import xarray

    from landscape import __version__

    coordinates = {
        name: (name, values, {"long_name": f"start value of {name}", "units": "1"}) for name, values in nodes.items()
    }
    made = {
        "title": "Basins of attraction", "Conventions": "CF-1.11", "architecture": model.name, "method": "exact",
        "chain": type(chain).__name__, **{name: value for name, value in vars(chain).items()},
        "unigram_loss": chain.unigram_loss, "bigram_loss": chain.bigram_loss, "source": f"markov-landscape {__version__}",
    }
    return xarray.Dataset({"label": (tuple(nodes), labels, _flags())}, coords=coordinates, attrs=made)


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
    encoding = {"label": {"zlib": True, "complevel": 4}}
    with replacing(path) as temporary:
        dataset.to_netcdf(temporary, engine="h5netcdf", encoding=encoding)


def count_labels(labels: np.ndarray) -> dict[str, int]:
    """Number of cells of each label, zeros too, by word."""
    found = np.bincount(np.asarray(labels).ravel().astype(np.int64) + 1, minlength=len(Label))
    return {label.word: int(found[label.value + 1]) for label in Label}


def fractions(labels) -> dict[str, float]:
    """Share of the cells of each label, by word; `labels` is an array of codes or a basin map."""
    values = labels["label"].values if hasattr(labels, "data_vars") else np.asarray(labels)
    return {word: count / values.size for word, count in count_labels(values).items()}


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
