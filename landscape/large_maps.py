"""Exact maps larger than memory: written to Zarr block by block along their first axis."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from landscape import parameters
from landscape.architectures import Architecture
from landscape.basins import as_dataset, count_labels, exact_labels, grid
from landscape.chains import Chain
from landscape.critical import chosen_method
from landscape.files import replacing
from landscape.landscapes import Landscape, landscape_of

CELLS = 2**26  # in a block; a chunk of the file has at most as many
SIDE = 4096  # of a chunk, at most, along every axis but the first


def label_blocks(landscape: Landscape, nodes: Mapping[str, np.ndarray], fixed: Mapping[str, float], cells: int = CELLS) -> Iterator:
    """Exact labels of a grid in blocks of whole rows of its first axis, at most `cells` starts at a time where a row allows it.

    Yields
    ------
    slice
        Of the first axis.
    ndarray of int8
        The labels of these rows.
    """
    first = next(iter(nodes))
    row = int(np.prod([len(values) for name, values in nodes.items() if name != first], dtype=np.int64))
    step = max(1, cells // max(row, 1))
    for start in range(0, len(nodes[first]), step):
        part = slice(start, min(start + step, len(nodes[first])))
        yield part, exact_labels(landscape, {**nodes, first: nodes[first][part]}, fixed)


def stream_map(
    chain: Chain | Landscape, path: str | os.PathLike, architecture: str | Architecture = "canonical", *, fixed: Mapping | None = None,
    cells: int = CELLS, progress: Callable | None = None, **axes,
) -> dict[str, int]:
    """Write the exact map of a grid to FILE.zarr without ever holding it; `landscape.basin_map` says what its arguments are.

    The file is that of `landscape.basins.write`: `xarray.open_zarr(path, consolidated=False)` opens it, chunk by chunk
    with dask. It is written whole or not at all.

    Parameters
    ----------
    cells : int
        Starts labelled at a time; the memory that is needed beside the axes is a small multiple of it in bytes.
    progress : callable, optional
        Called with the numbers of starts done and to do.

    Returns
    -------
    dict of str to int
        Number of starts with each label, by word.

    Raises
    ------
    ImportError
        Without the `scale` extra.
    ParameterError
        If limits have no exact rule, or the path does not end in .zarr.
    """
    import zarr

    landscape = landscape_of(chain, architecture)
    chosen_method(landscape, "exact")
    cells = parameters.count("stream_map", "cells", cells, 1)
    if Path(path).suffix.lower() != ".zarr":
        raise parameters.ParameterError("path", "stream_map", "a name that ends in .zarr", str(path))
    nodes, fixed = grid(landscape, axes, fixed)
    shape = tuple(len(values) for values in nodes.values())
    empty = as_dataset(np.empty((0,) * len(shape), dtype=np.int8), {name: values[:0] for name, values in nodes.items()}, landscape, fixed)
    counts = dict.fromkeys(count_labels(empty["label"].values), 0)
    with replacing(path) as temporary:
        around = empty.drop_vars(["label", *nodes]).assign_coords({name: (name, values, empty[name].attrs) for name, values in nodes.items()})
        around.to_zarr(temporary, mode="w", consolidated=False)
        array = zarr.open_group(temporary, mode="a").create_array(
            "label", shape=shape, chunks=_chunks(shape, cells), dtype="int8", dimension_names=list(nodes), fill_value=0,
            attributes={name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in empty["label"].attrs.items()},
        )
        for part, labels in label_blocks(landscape, nodes, fixed, _rows(shape, cells)):
            array[part] = labels
            for word, count in count_labels(labels).items():
                counts[word] += count
            if progress is not None:
                progress(part.stop * (int(np.prod(shape)) // shape[0]), int(np.prod(shape)))
    return counts


def _chunks(shape: tuple[int, ...], cells: int) -> tuple[int, ...]:
    """Sides of a chunk: at most SIDE along all axes but the first, and along that as many rows as make up SIDE² starts."""
    others = tuple(min(SIDE, n) for n in shape[1:])
    rows = max(1, min(SIDE * SIDE, cells) // max(1, int(np.prod(others, dtype=np.int64))))
    return (min(shape[0], rows), *others)


def _rows(shape: tuple[int, ...], cells: int) -> int:
    """Starts in a block: whole chunks along the first axis, so that no chunk is written twice."""
    row, rows = int(np.prod(shape[1:], dtype=np.int64)), _chunks(shape, cells)[0]
    return row * rows * max(1, cells // (row * rows))
