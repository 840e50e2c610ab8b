"""Draws results and computes nothing. w runs along the horizontal axis, e along the vertical.

Figures are made without pyplot, so that no backend is ever chosen for the user.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from landscape.files import replacing
from landscape.outcomes import Label

# Regions in light tints of the Okabe-Ito palette, lines in its full colours: they differ in lightness too.
REGIONS = {
    Label.GLOBAL: "#cfe8f7",
    Label.LOCAL: "#f9d5a7",
    Label.SADDLE: "#d9c2d6",
    Label.MAXIMUM: "#9a9a9a",
    Label.UNDECIDED: "#ffffff",
    Label.INVALID: "#444444",
}
REGION_NAMES = {
    Label.GLOBAL: "to a global minimum",
    Label.LOCAL: "to a local minimum",
    Label.SADDLE: "to a saddle",
}
LINES = {
    "global minima": {"color": "#0072b2", "linewidth": 2.2},
    "local minima": {"color": "#d55e00", "linewidth": 3.2},
    "maxima": {"color": "#333333", "linewidth": 1.6, "linestyle": (0, (1, 1.5))},
    "half-stable saddles": {"color": "#7b3f72", "linewidth": 3.2, "linestyle": (0, (3, 1))},
}
SADDLE = {"marker": "D", "markersize": 6.5, "markerfacecolor": "white", "color": "black", "linestyle": "none"}
SEPARATRIX = {"color": "black", "linewidth": 1.4, "linestyle": (0, (5, 2))}


@dataclass(frozen=True)
class Portrait:
    """What there is to draw of one landscape.

    Attributes
    ----------
    title : str
    e, w : ndarray
        Grid of starts.
    labels : ndarray of int8, shape (e.size, w.size)
    kappa, invariant : ndarray, shape (e.size, w.size)
        Gap (or, where kappa_star is 0, a multiple of it that changes sign where it vanishes off e = 0) and conserved quantity on the grid; what is not finite is left out of the drawing.
    kappa_star : float
    separatrix : ndarray of shape (n, 2)
    pieces : list of (name, low, high)
        Pieces of the line e = 0 in w.
    arrows : tuple of ndarray
        (w, e, dw, de) of the descent direction on a coarse grid.
    """

    title: str
    e: np.ndarray
    w: np.ndarray
    labels: np.ndarray
    kappa: np.ndarray
    invariant: np.ndarray
    kappa_star: float
    separatrix: np.ndarray
    pieces: list = field(default_factory=list)
    arrows: tuple = ()


def new_figure(
    rows: int, columns: int, width: float, height: float, *, share_horizontal: bool | str = True, share_vertical: bool | str = True
):
    """A figure with an Agg canvas and a grid of axes that share their scales, all of them or those of a "row" or "col"."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=share_horizontal, sharey=share_vertical)
    return figure, axes


def save(figure, path: str | os.PathLike) -> None:
    """Write a figure whole or not at all; the suffix chooses PNG, SVG or PDF. Files carry no date."""
    suffix = os.fspath(path).rsplit(".", 1)[-1].lower()
    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[suffix]
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=200, metadata=metadata)


def basins(axis, portrait: Portrait) -> None:
    """Basins of attraction, with the separatrix and the critical sets."""
    shade(axis, portrait.labels, (portrait.w[0], portrait.w[-1], portrait.e[0], portrait.e[-1]))
    _sets(axis, portrait)
    _frame(axis, portrait)


def shade(axis, labels: np.ndarray, extent: tuple) -> None:
    """Colour a map of labels."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    codes = [label.value for label in Label]
    colours = ListedColormap([REGIONS[label] for label in Label])
    norm = BoundaryNorm(np.arange(codes[0] - 0.5, codes[-1] + 1), colours.N)
    axis.imshow(labels, origin="lower", extent=extent, cmap=colours, norm=norm, aspect="auto", interpolation="nearest")


def flow(axis, portrait: Portrait, levels: int = 16, shaded: bool = False) -> None:
    """Directions of gradient flow on the level lines of the invariant, along which it runs, over the basins if `shaded`."""
    if shaded:
        shade(axis, portrait.labels, (portrait.w[0], portrait.w[-1], portrait.e[0], portrait.e[-1]))
    for rows, columns in _quarters(portrait):
        energy = np.ma.masked_invalid(portrait.invariant[rows][:, columns])
        heights = contour_levels(energy, levels)
        if len(heights):
            axis.contour(
                portrait.w[columns], portrait.e[rows], energy, levels=heights, colors="#9a9a9a", linewidths=0.6, linestyles="solid",
            )
    if len(portrait.arrows):
        w, e, dw, de = portrait.arrows
        axis.quiver(
            w, e, dw, de, color="#1f4e79", angles="xy", pivot="mid", scale=26, width=0.0042, headwidth=4.5, headlength=5,
            zorder=3,
        )
    _sets(axis, portrait)
    _frame(axis, portrait)


def _quarters(portrait: Portrait) -> list:
    """Rows and columns that share level lines: all, or the quadrants where the invariant differs between e > 0 and e < 0."""
    if all(name != "half-stable saddles" for name, _, _ in portrait.pieces):
        return [(slice(None), slice(None))]
    return [(rows, columns) for rows in (portrait.e >= 0.0, portrait.e <= 0.0) for columns in (portrait.w <= 0.0, portrait.w >= 0.0)]


def contour_levels(values: np.ma.MaskedArray, count: int) -> np.ndarray:
    """Finite, strictly increasing levels spread evenly over the values; none for constant data."""
    finite = values.compressed()
    if finite.size == 0:
        return np.empty(0)
    return np.unique(np.quantile(finite, np.linspace(0.02, 0.98, count)))[: count if finite.min() < finite.max() else 0]


def _sets(axis, portrait: Portrait) -> None:
    """The separatrix, the curve of global minima and the pieces of the line e = 0."""
    span = (portrait.w[0], portrait.w[-1])
    for name, low, high in portrait.pieces:
        if name == "saddle":
            axis.plot([low], [0.0], zorder=6, **SADDLE)
        elif max(low, span[0]) < min(high, span[1]):
            axis.plot([max(low, span[0]), min(high, span[1])], [0.0, 0.0], zorder=5, solid_capstyle="butt", **LINES[name])
    if portrait.kappa.min() < portrait.kappa_star < portrait.kappa.max():
        style = LINES["global minima"]
        axis.contour(
            portrait.w, portrait.e, portrait.kappa, levels=[portrait.kappa_star], colors=[style["color"]],
            linewidths=[style["linewidth"]], linestyles="solid", zorder=5,
        )
    if len(portrait.separatrix):
        axis.plot(portrait.separatrix[:, 1], portrait.separatrix[:, 0], zorder=4, **SEPARATRIX)


def _frame(axis, portrait: Portrait) -> None:
    axis.set_xlim(portrait.w[0], portrait.w[-1])
    axis.set_ylim(portrait.e[0], portrait.e[-1])
    axis.set_title(portrait.title, fontsize=9.5)


def between(first: str, last: str, count: int) -> list:
    """So many colours in even steps from one to another."""
    from matplotlib.colors import to_rgb

    low, high = (np.array(to_rgb(color)) for color in (first, last))
    return [tuple(low + (high - low) * share) for share in np.linspace(0.0, 1.0, count)]


def label_outer(axes) -> None:
    """Name the parameters on the outer axes only."""
    for axis in axes[-1, :]:
        axis.set_xlabel("$w$ (MLP weight)")
    for axis in axes[:, 0]:
        axis.set_ylabel("$e$ (embedding)")


def key(figure, entries: dict[str, dict], columns: int = 4) -> None:
    """A legend below the panels: styles by text, of regions (with a facecolor) and of lines and points."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(edgecolor="#777777", label=text, **style) if "facecolor" in style else Line2D([], [], label=text, **style)
        for text, style in entries.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)


def legend(figure, portraits, columns: int = 4) -> None:
    """One legend below the panels, of the regions and sets that occur in them."""
    present = set().union(*(np.unique(portrait.labels).tolist() for portrait in portraits))
    pieces = {name for portrait in portraits for name, _, _ in portrait.pieces}
    entries = {text: {"facecolor": REGIONS[label]} for label, text in REGION_NAMES.items() if label.value in present}
    entries |= {name: style for name, style in LINES.items() if name in pieces | {"global minima"}}
    if "saddle" in pieces:
        entries["saddle"] = SADDLE | {"markersize": 6.0}
    if any(len(portrait.separatrix) for portrait in portraits):
        entries["separatrix"] = SEPARATRIX
    key(figure, entries, columns)


@dataclass(frozen=True)
class Route:
    """The path of a training run: steps, e, w and losses, each of shape (k,), and the predicted way, (e, w) of shape (m, 2)."""

    steps: np.ndarray
    e: np.ndarray
    w: np.ndarray
    losses: np.ndarray
    predicted: np.ndarray | None = None


_RING = {"marker": "o", "markerfacecolor": "none", "markersize": 13}
ROUTES = ("black", "#7b3f72", "#00664f", "#8c5a00", "#b03060", "#3b4cc0")


def routes(axis, found: list[Route]) -> None:
    """Paths of trainings over a basin map; a dot marks the start, a star the end, a ring the predicted end."""
    from matplotlib.lines import Line2D

    for number, route in enumerate(found):
        colour = ROUTES[number % len(ROUTES)]
        axis.plot(route.w, route.e, color=colour, linewidth=1.2, zorder=7)
        axis.plot(route.w[:1], route.e[:1], marker="o", color=colour, markersize=4.5, zorder=8)
        axis.plot(route.w[-1:], route.e[-1:], marker="*", color=colour, markersize=9, zorder=8)
        if route.predicted is not None:
            axis.plot(route.predicted[:, 1], route.predicted[:, 0], color=colour, linewidth=1.4, linestyle=(0, (1, 1.5)), zorder=7)
            axis.plot(*route.predicted[-1:, ::-1].T, color=colour, zorder=9, **_RING)
    marks = {"path": {}, "start": {"marker": "o", "linestyle": "none", "markersize": 4.5}, "end": {"marker": "*", "linestyle": "none", "markersize": 9}}
    if any(route.predicted is not None for route in found):
        marks |= {"predicted way": {"linestyle": (0, (1, 1.5))}, "predicted end": {"linestyle": "none", **_RING}}
    axis.legend(handles=[Line2D([], [], color=ROUTES[0], label=name, **mark) for name, mark in marks.items()], loc="best", fontsize=8)


def route_losses(axis, found: list[Route], unigram: float, bigram: float) -> None:
    """Losses of trainings against steps, with the two levels."""
    for level, name, colour in ((unigram, "unigram loss", "#d55e00"), (bigram, "bigram loss", "#0072b2")):
        axis.axhline(level, color=colour, linewidth=1.2, linestyle=(0, (5, 2)), label=name)
    for number, route in enumerate(found):
        axis.plot(route.steps, route.losses, color=ROUTES[number % len(ROUTES)], linewidth=1.0)
    axis.set_xlabel("training steps")
    axis.set_ylabel("loss (nats)")
    axis.legend(fontsize=8, frameon=False)
    axis.set_title("Loss", fontsize=9.5)


# --- any landscape ---------------------------------------------------------------------------------------

POINTS = {
    "global minima": {"marker": "o", "color": "#0072b2", "markersize": 5},
    "local minima": {"marker": "o", "color": "#d55e00", "markersize": 5},
    "saddles": {"marker": "D", "color": "black", "markerfacecolor": "white", "markersize": 5},
    "maxima": {"marker": "^", "color": "#333333", "markersize": 5},
    "undetermined": {"marker": "s", "color": "#7b3f72", "markerfacecolor": "white", "markersize": 5},
}
LABEL_LINES = {"global": "#0072b2", "local": "#d55e00", "saddle": "#7b3f72", "maximum": "#333333"}


@dataclass(frozen=True)
class LabelMap:
    """A basin map of any landscape.

    Attributes
    ----------
    title : str
    names : (str, str)
        Parameters on the vertical and the horizontal axis.
    vertical, horizontal : ndarray
        Grid of starts.
    labels : ndarray of int8, shape (vertical.size, horizontal.size)
    sets : list of (kind, ndarray of shape (k, 2))
        Critical sets, by points on them.
    times : ndarray or None
        Flow time until convergence; NaN where there was none.
    whole : bool
        Whether every flow was followed, or those away from boundaries are like their surroundings.
    curve : ndarray of shape (n, 2)
        The canonical separatrix, to compare with.
    """

    title: str
    names: tuple[str, str]
    vertical: np.ndarray
    horizontal: np.ndarray
    labels: np.ndarray
    sets: list
    times: np.ndarray | None = None
    whole: bool = True
    curve: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))


@dataclass(frozen=True)
class Track:
    """A trajectory: times (k,), states (k, d), losses (k,) and the label of its limit."""

    times: np.ndarray
    states: np.ndarray
    losses: np.ndarray
    label: str


def _extent(found: LabelMap) -> tuple:
    return found.horizontal[0], found.horizontal[-1], found.vertical[0], found.vertical[-1]


def regions(axis, found: LabelMap) -> None:
    """Basins of attraction, with points on the critical sets."""
    shade(axis, found.labels, _extent(found))
    for kind, members in found.sets:
        axis.plot(members[:, 1], members[:, 0], linestyle="none", zorder=5, clip_on=True, **POINTS[kind])
    if len(found.curve):
        axis.plot(found.curve[:, 1], found.curve[:, 0], zorder=4, **SEPARATRIX)
    axis.set_xlim(*_extent(found)[:2])
    axis.set_ylim(*_extent(found)[2:])
    axis.set_xlabel(f"${found.names[1]}$")
    axis.set_ylabel(f"${found.names[0]}$")
    axis.set_title(found.title, fontsize=9.5)


def convergence_times(figure, axis, found: LabelMap, label: str = "flow time until convergence") -> None:
    """Flow time of a map, on a logarithmic scale; white where there was none or it is 0."""
    from matplotlib.colors import LogNorm

    times = np.ma.masked_invalid(np.where(found.times > 0.0, found.times, np.nan))
    if times.count():
        low, high = float(times.min()), float(times.max())
        norm = LogNorm(low, high if high > low else 1.01 * low)
        image = axis.imshow(times, origin="lower", extent=_extent(found), cmap="cividis_r", norm=norm, aspect="auto", interpolation="nearest")
        figure.colorbar(image, ax=axis, label=label)
    axis.set_xlabel(f"${found.names[1]}$")
    axis.set_title("Convergence time" + ("" if found.whole else " (coarse away from boundaries)"), fontsize=9.5)


def region_legend(figure, *maps: LabelMap) -> None:
    """One legend of the regions and kinds of sets that occur in maps."""
    names = REGION_NAMES | {Label.MAXIMUM: "at a maximum", Label.UNDECIDED: "undecided", Label.INVALID: "not a valid start"}
    present = set().union(*(np.unique(found.labels).tolist() for found in maps))
    entries = {text: {"facecolor": REGIONS[label]} for label, text in names.items() if label.value in present}
    kinds = {kind for found in maps for kind, _ in found.sets}
    entries |= {kind: {"linestyle": "none", **style} for kind, style in POINTS.items() if kind in kinds}
    if any(len(found.curve) for found in maps):
        entries["canonical separatrix"] = SEPARATRIX
    key(figure, entries)


def paths(axis, tracks: list[Track], names, levels: tuple) -> None:
    """Trajectories in the plane of two parameters, over level lines of the loss; a dot marks the start."""
    vertical, horizontal, values = levels
    loss = np.ma.masked_invalid(values)
    heights = contour_levels(loss, 24)
    if len(heights):
        axis.contour(horizontal, vertical, loss, levels=heights, colors="#b5b5b5", linewidths=0.6)
    for track in tracks:
        colour = LABEL_LINES.get(track.label, "#777777")
        axis.plot(track.states[:, 1], track.states[:, 0], color=colour, linewidth=1.6)
        axis.plot(track.states[:1, 1], track.states[:1, 0], marker="o", color=colour, markersize=5)
        axis.plot(track.states[-1:, 1], track.states[-1:, 0], marker="*", color=colour, markersize=10)
    axis.set_xlabel(f"${names[1]}$")
    axis.set_ylabel(f"${names[0]}$")
    axis.set_title("Trajectories over level lines of the loss (dot: start, star: end)", fontsize=9.5)


def coordinates(axis, tracks: list[Track], names) -> None:
    """Every coordinate against flow time."""
    for number, track in enumerate(tracks):
        for i, name in enumerate(names):
            axis.plot(track.times, track.states[:, i], color=f"C{i}", label=f"${name}$" if number == 0 else None)
    axis.set_xscale("symlog", linthresh=1.0)
    axis.set_xlabel("flow time")
    axis.legend(fontsize=8, frameon=False)
    axis.set_title("Parameters", fontsize=9.5)


def losses(axis, tracks: list[Track]) -> None:
    """Loss against flow time, coloured by the label of the limit."""
    shown = set()
    for track in tracks:
        name = track.label if track.label not in shown else None
        axis.plot(track.times, track.losses, color=LABEL_LINES.get(track.label, "#777777"), linewidth=1.6, label=name)
        shown.add(track.label)
    axis.set_xscale("symlog", linthresh=1.0)
    axis.set_xlabel("flow time")
    axis.set_ylabel("loss")
    axis.legend(fontsize=8, frameon=False, title="limit", title_fontsize=8)
    axis.set_title("Loss along the flow", fontsize=9.5)
