"""Basin maps by flow: labels, attractors and times of a grid of starts, with refinement along the boundaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from landscape.flows import flow
from landscape.landscapes import Landscape
from landscape.outcomes import Ends, Label

ISOLATED = 1e-4  # ends closer than this, in units of 1 + |θ|, are one point
LINKED = 0.02  # ends on continua closer than this share of their extent are one set


@dataclass(frozen=True)
class FlowMap:
    """What the flows of a grid of starts came to; arrays have the shape of the grid.

    Attributes
    ----------
    labels, outcomes : ndarray of int8
    times : ndarray
        Flow time at the end.
    attractors : ndarray of int16
        Which connected set of ends a flow came to, as a row of `points`; -1 where it did not converge.
    computed : ndarray of bool
        Whether the flow was followed; else the values are those of the surroundings, which agree.
    points : ndarray of shape (k, d)
        An end on each attractor.
    """

    labels: np.ndarray
    outcomes: np.ndarray
    times: np.ndarray
    attractors: np.ndarray
    computed: np.ndarray
    points: np.ndarray


def flow_map(
    landscape: Landscape, nodes: Mapping[str, np.ndarray], fixed: Mapping[str, float], coarse: int = 1, progress: Callable | None = None,
    **options,
) -> FlowMap:
    """Follow the flows of a grid of starts.

    Parameters
    ----------
    landscape : Landscape
    nodes : dict of str to ndarray
        The gridded coordinates.
    fixed : dict of str to float
        All other coordinates.
    coarse : int
        1 follows every start. With k > 1, every k-th node is followed first, and then all nodes of the cells between
        them whose corners do not agree, and of the cells next to those. What fits between nodes can be missed.
    progress : callable, optional
        Called with numbers of starts done and to do.
    **options
        For `landscape.flow`.
    """
    shape = tuple(len(values) for values in nodes.values())
    starts = grid_points(landscape, nodes, fixed)
    lattice = np.ones(shape, dtype=bool) if coarse == 1 else _lattice(shape, coarse)
    found = _Found(landscape, starts, shape)
    found.follow(lattice, progress, options)
    if coarse > 1:
        _refine(found, shape, coarse, progress, options)
    ends = found.ends()
    attractors, points = group(ends)
    return FlowMap(
        ends.labels.reshape(shape), ends.outcomes.reshape(shape), ends.times.reshape(shape), attractors.reshape(shape),
        found.computed.copy(), points,
    )


def grid_points(landscape: Landscape, nodes: Mapping[str, np.ndarray], fixed: Mapping[str, float]) -> np.ndarray:
    """All starts of a grid in the order of its last coordinate first, shape (n, d)."""
    mesh = np.meshgrid(*nodes.values(), indexing="ij")
    return landscape.place({**dict(zip(nodes, (values.ravel() for values in mesh))), **fixed})


class _Found:
    """The ends of those starts of a grid that have been followed."""

    def __init__(self, landscape: Landscape, starts: np.ndarray, shape):
        self.landscape, self.starts, self.shape = landscape, starts, shape
        self.computed = np.zeros(shape, dtype=bool)
        self.columns: dict[str, np.ndarray] = {}

    def follow(self, chosen: np.ndarray, progress, options) -> None:
        """Follow the starts of a mask that have not been followed."""
        rows = np.flatnonzero(chosen & ~self.computed)
        if not rows.size:
            return
        ends = flow(self.landscape, self.starts[rows], progress=progress, **options)
        for name, values in vars(ends).items():
            if name not in self.columns:
                self.columns[name] = np.zeros((len(self.starts), *values.shape[1:]), dtype=values.dtype)
            self.columns[name][rows] = values
        self.computed.ravel()[rows] = True

    def copy(self, sources: np.ndarray) -> None:
        """Give starts that are not followed what the start with a given number has."""
        rows = np.flatnonzero(~self.computed)
        for name, values in self.columns.items():
            if name != "starts":
                values[rows] = values[sources.ravel()[rows]]

    def ends(self) -> Ends:
        return Ends(**self.columns)


def _marks(n: int, coarse: int) -> np.ndarray:
    return np.unique(np.append(np.arange(0, n, coarse), n - 1))


def _lattice(shape, coarse: int) -> np.ndarray:
    """Every coarse-th node along each axis, and the last one."""
    lattice = np.zeros(shape, dtype=bool)
    lattice[np.ix_(*(_marks(n, coarse) for n in shape))] = True
    return lattice


def _refine(found: _Found, shape, coarse: int, progress, options) -> None:
    """Follow the nodes of the cells in which more than one basin is seen; fill the others."""
    from scipy.ndimage import binary_dilation

    marks = [_marks(n, coarse) for n in shape]
    corners = np.arange(len(found.starts)).reshape(shape)[np.ix_(*marks)]
    mixed = binary_dilation(_disagreeing(found, corners), np.ones((3,) * len(shape), dtype=bool))
    chosen = np.zeros(shape, dtype=bool)
    for cell in np.argwhere(mixed):
        chosen[tuple(slice(mark[i], mark[i + 1] + 1) for mark, i in zip(marks, cell))] = True
    found.follow(chosen, progress, options)
    nearest = [mark[np.abs(np.arange(n)[:, None] - mark).argmin(axis=1)] for n, mark in zip(shape, marks)]
    found.copy(np.arange(len(found.starts)).reshape(shape)[np.ix_(*nearest)])


def _disagreeing(found: _Found, corners: np.ndarray) -> np.ndarray:
    """Which cells of a lattice have corners whose flows end in different ways.

    They do if labels differ, or ends on isolated points; on continua, ends of neighbours follow on each other, and are
    taken to lie on different ones if they are further apart than the starts are, by half and more.
    """
    labels, nullity, ends = (found.columns[name][corners] for name in ("labels", "nullity", "ends"))
    starts, size = found.starts[corners], 1.0 + np.nanmax(np.abs(found.columns["ends"]))
    cells = tuple(n - 1 for n in corners.shape)
    views = [tuple(slice(c, c + n) for c, n in zip(corner, cells)) for corner in np.ndindex(*(2,) * len(cells))]
    mixed, first = np.zeros(cells, dtype=bool), views[0]
    for view in views[1:]:
        apart = np.linalg.norm(ends[view] - ends[first], axis=-1)
        before = np.linalg.norm(starts[view] - starts[first], axis=-1)
        allowed = np.where((nullity[view] == 0) & (nullity[first] == 0), ISOLATED * size, 1.5 * before)
        mixed |= (labels[view] != labels[first]) | (apart > allowed)
    return mixed


def group(ends: Ends) -> tuple[np.ndarray, np.ndarray]:
    """Connected sets of ends: isolated points, and continua whose ends follow closely on each other.

    Returns
    -------
    attractors : ndarray of int16, shape (n,)
        Which set each end is on; -1 for a flow that did not converge.
    points : ndarray of shape (k, d)
        An end on each set.
    """
    attractors, points = np.full(len(ends.labels), -1, dtype=np.int16), []
    reached = (ends.labels == Label.GLOBAL) | (ends.labels == Label.LOCAL)
    for label in (Label.GLOBAL, Label.LOCAL):
        for isolated in (True, False):
            rows = np.flatnonzero(reached & (ends.labels == label) & ((ends.nullity == 0) == isolated))
            if not rows.size:
                continue
            places = ends.ends[rows]
            extent = np.ptp(places, axis=0).max()
            size = ISOLATED * (1.0 + np.abs(places).max()) if isolated else max(LINKED * extent, ISOLATED)
            sets = _connected(places, size)
            for number in range(sets.max() + 1):
                attractors[rows[sets == number]] = len(points)
                points.append(places[np.flatnonzero(sets == number)[0]])
    return attractors, np.array(points).reshape(len(points), ends.ends.shape[1])


def _connected(places: np.ndarray, size: float) -> np.ndarray:
    """Which connected set each place is in, if places in neighbouring cells of a given size are connected."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    cells, inverse = np.unique(np.floor(places / size), axis=0, return_inverse=True)
    pairs = cKDTree(cells).query_pairs(1.5, p=np.inf, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(cells), len(cells)))
    return connected_components(graph, directed=False)[1][inverse.ravel()]
