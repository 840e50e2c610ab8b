"""Figures of any landscape: basins with convergence times, and trajectories."""

from __future__ import annotations

import numpy as np

from landscape import plots
from landscape.architectures import Bound, architecture
from landscape.critical import sets_with_members
from landscape.flow_maps import grid_points
from landscape.landscapes import Landscape
from landscape.trajectories import Trajectory

SHORTEST = 40  # loss contours are drawn on a grid of at least so many nodes along each axis


def label_map(landscape: Landscape, labels: np.ndarray, nodes: dict, made=None, search: bool = True) -> plots.LabelMap:
    """A basin map ready to be drawn.

    `made` is the Dataset of a map by flow, for its times; `search` asks for the critical sets, where they lie in the plane.
    """
    names = tuple(nodes)
    sets = []
    if search and len(landscape.parameters) == 2:
        sets = [(found.kind, members) for found, members in sets_with_members(landscape)]
    times, whole = None, True
    if made is not None:
        times = np.where(made["outcome"].values == 0, made["time"].values, np.nan)
        whole = bool(made["computed"].values.all())
    title = f"Basins of {landscape.title}" + ("" if made is None else ", by flow")
    curve = np.empty((0, 2))
    if names == ("e", "w") and isinstance(landscape, Bound):  # of this or of the canonical slice of a larger landscape
        reach = max(np.abs(nodes[name]).max() for name in names)
        curve = architecture("canonical").separatrix(landscape.chain, reach=max(reach, 1.0), n=300)
    return plots.LabelMap(title, names, nodes[names[0]], nodes[names[1]], labels, sets, times, whole, curve)


def draw_label_map(found: plots.LabelMap, path, portrait: plots.Portrait | None = None) -> None:
    """Draw a basin map, with its convergence times beside it if they are known; over a portrait, if there is one."""
    panels = 1 if found.times is None else 2
    figure, axes = plots.new_figure(1, panels, 4.8 * panels, 4.9)
    if portrait is None:
        plots.regions(axes[0, 0], found)
        plots.region_legend(figure, found)
    else:
        plots.basins(axes[0, 0], portrait)
        plots.label_outer(axes[:, :1])
        plots.legend(figure, [portrait])
    if panels == 2:
        plots.convergence_times(figure, axes[0, 1], found)
    plots.save(figure, path)


def draw_trajectories(ways: list[Trajectory], path) -> None:
    """Draw trajectories over the level lines of the loss if there are two parameters, and the loss along them."""
    landscape = ways[0].landscape
    names = landscape.parameters
    tracks = []
    for way in ways:
        times, states = way.sample() if len(way.coefficients) else (np.zeros(1), way.ends.starts)
        tracks.append(plots.Track(times, states, landscape.loss(states), way.label))
    figure, axes = plots.new_figure(1, 2, 9.6, 4.4, share_vertical=False, share_horizontal=False)
    if len(names) == 2:
        plots.paths(axes[0, 0], tracks, names, _levels(landscape, tracks))
    else:
        plots.coordinates(axes[0, 0], tracks, names)
    plots.losses(axes[0, 1], tracks)
    plots.save(figure, path)


def _levels(landscape: Landscape, tracks) -> tuple:
    """The loss around the tracks: nodes of both parameters and values."""
    states = np.concatenate([track.states[np.isfinite(track.states).all(axis=1)] for track in tracks])
    low, high = (states.min(axis=0), states.max(axis=0)) if len(states) else (-np.ones(2), np.ones(2))
    edge = 0.15 * max(float((high - low).max()), 0.5)
    nodes = {name: np.linspace(a - edge, b + edge, 4 * SHORTEST) for name, a, b in zip(landscape.parameters, low, high)}
    values = landscape.loss(grid_points(landscape, nodes, {}))
    return (*nodes.values(), values.reshape(4 * SHORTEST, 4 * SHORTEST))
