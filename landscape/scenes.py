"""Draws surfaces and curves in three dimensions and computes nothing.

Facets and pieces of lines of a scene are painted together from back to front, so that what lies behind is hidden, and the
projection has no perspective, so that a line can be lifted off its surface without being moved in the picture.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

LIFT = 0.025  # of the box: by how much lines are nearer to the eye than the facets they lie on
SLIVER = 0.02  # of the median area: smaller facets are not painted
HEAD = 0.055  # length of the heads of arrows
ZOOM = 1.05  # of the picture in its panel
LIGHT = np.array([-0.3, -0.5, 0.8])
SHADE = 0.28  # how much darker a facet is that the light does not meet


def new_figure(rows: str, width: float, height: float, spaces: str, **options):
    """A figure of panels named by letters, as in "AB;CD"; those in `spaces` are three-dimensional.

    Returns the figure and its axes by letter; `options` are those of `Figure.subplot_mosaic`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplot_mosaic(rows, per_subplot_kw={name: {"projection": "3d"} for name in spaces}, **options)


class Scene:
    """What is to be painted in a box, seen from one side.

    Parameters
    ----------
    box : sequence of three (low, high)
        Of the horizontal, the depth and the vertical axis.
    view : (float, float)
        Elevation and azimuth of the eye in degrees.
    aspect : (float, float, float)
        Lengths of the axes in the picture.
    """

    def __init__(self, box, view=(25.0, -60.0), aspect=(1.0, 1.0, 1.0)):
        self.box, self.view, self.aspect = np.array(box, dtype=np.float64), view, np.array(aspect)
        self.parts: list[tuple] = []  # polygons of one kind, their colours and the width of their edges
        elevation, azimuth = np.radians(view)
        eye = np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
        self._scale = np.ptp(self.box, axis=1) / self.aspect
        self._towards = eye * self._scale

    def surface(self, facets, color: str, lift: float = 0.0) -> None:
        """Add polygons, each an array (k, 3), cut off at the box and shaded."""
        inside = [polygon for facet in facets if len(polygon := _cut(facet, self.box)) > 2]
        areas = np.array([np.linalg.norm(self._normal(polygon)) for polygon in inside])
        kept = [polygon for polygon, area in zip(inside, areas) if area > SLIVER * np.median(areas)]
        if kept:
            self.parts.append(([polygon + lift * LIFT * self._towards for polygon in kept], self._shaded(kept, color), 0.6))

    def line(self, points, color: str, linewidth: float = 1.5, lift: float = 1.0, head: float | None = None) -> None:
        """Add a curve of shape (n, 3), in pieces; what is outside the box or not finite is left out.

        `head` is the share of its length at which it carries the head of an arrow.
        """
        points = np.asarray(points, dtype=np.float64)
        points = points[np.isfinite(points).all(axis=1)]
        self.segments(np.stack([points[:-1], points[1:]], axis=1), color, linewidth, lift)
        if head is not None and len(points) > 1:
            self._head(points[self._inside(points)], color, head, lift)

    def segments(self, pairs, color: str, linewidth: float = 1.5, lift: float = 1.0) -> None:
        """Add straight pieces of shape (n, 2, 3)."""
        pairs = np.asarray(pairs, dtype=np.float64).reshape(-1, 2, 3)
        pairs = pairs[self._inside(pairs).all(axis=1)]
        if len(pairs):
            self.parts.append((list(pairs + lift * LIFT * self._towards), _rgba(color, len(pairs)), linewidth))

    def _inside(self, points: np.ndarray) -> np.ndarray:
        slack = 1e-9 * np.ptp(self.box, axis=1)
        return ((points >= self.box[:, 0] - slack) & (points <= self.box[:, 1] + slack)).all(axis=-1)

    def _head(self, points: np.ndarray, color: str, share: float, lift: float) -> None:
        """The head of an arrow along a curve, flat in the picture."""
        seen = points / self._scale
        gone = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(seen, axis=0), axis=1))])
        if not len(gone) or gone[-1] < 2.0 * HEAD:
            return
        tip, tail = (np.array([np.interp(share * gone[-1] + back, gone, column) for column in seen.T]) for back in (HEAD / 2, -HEAD / 2))
        eye = self._towards / self._scale
        along = (tip - tail) - eye * np.dot(tip - tail, eye)
        if np.linalg.norm(along) > 0.3 * HEAD:
            along *= HEAD / np.linalg.norm(along)
            across = 0.4 * np.cross(eye, along)
            corners = np.array([tip, tip - along + across, tip - 0.75 * along, tip - along - across]) * self._scale
            self.parts.append(([corners + 2.0 * lift * LIFT * self._towards], _rgba(color, 1), 0.4))

    def paint(self, axis, labels) -> None:
        """Paint everything on a 3-D axis with the names of its three directions."""
        from mpl_toolkits.mplot3d.proj3d import proj_transform

        axis.set_proj_type("ortho")
        axis.view_init(*self.view)
        for name, (low, high) in zip("xyz", self.box):
            getattr(axis, f"set_{name}lim")(low, high, view_margin=0.0)
        axis.set_box_aspect(self.aspect, zoom=ZOOM)
        axis.grid(False)
        for side, bounds, label, pad in zip((axis.xaxis, axis.yaxis, axis.zaxis), self.box, labels, (-6, -6, -7)):
            side.pane.set_facecolor("white")
            side.pane.set_edgecolor("#cccccc")
            side.set_tick_params(labelsize=7, pad=-3)
            side.set_ticks(_ticks(*bounds))
            side.set_label_text(label, fontsize=9)
            side.labelpad = pad
        polygons = [polygon for part in self.parts for polygon in part[0]]
        ends = np.cumsum([len(polygon) for polygon in polygons])[:-1]
        flat = np.column_stack(proj_transform(*np.concatenate(polygons).T, axis.get_proj()))
        depths = [float(piece[:, 2].mean()) for piece in np.split(flat, ends)]
        order = np.argsort(depths, kind="stable")[::-1]
        flat = np.split(flat[:, :2], ends)
        colours = np.concatenate([part[1] for part in self.parts])[order]
        widths = np.concatenate([np.full(len(part[0]), part[2]) for part in self.parts])[order]
        axis.add_collection(
            _painted()([flat[i] for i in order], closed=False, facecolors=colours, edgecolors=colours, linewidths=widths, capstyle="round"),
            autolim=False,
        )

    def _normal(self, polygon: np.ndarray) -> np.ndarray:
        """Normal of a polygon in the picture, as long as twice its area."""
        seen = polygon / self._scale
        return np.cross(seen[1:-1] - seen[0], seen[2:] - seen[0]).sum(axis=0)

    def _shaded(self, polygons, color: str) -> np.ndarray:
        normals = np.array([self._normal(polygon) for polygon in polygons])
        meets = np.abs(normals @ LIGHT) / (np.linalg.norm(normals, axis=1) * np.linalg.norm(LIGHT))
        found = _rgba(color, len(polygons))
        found[:, :3] *= (1.0 - SHADE + SHADE * meets)[:, None]
        return found


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, none so near the ends that labels of two axes could meet."""
    from matplotlib.ticker import MaxNLocator

    edge = 0.04 * (high - low)
    return [tick for tick in MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) if low + edge <= tick <= high - edge]


def _rgba(color: str, count: int) -> np.ndarray:
    from matplotlib.colors import to_rgba

    return np.tile(to_rgba(color), (count, 1))


@functools.cache
def _painted():
    """The class of collections that are projected and in order already; a 3-D axis asks every collection for its depth."""
    from matplotlib.collections import PolyCollection

    class Painted(PolyCollection):
        def do_3d_projection(self):
            return 0.0

    return Painted


def mesh(points) -> list[np.ndarray]:
    """Quadrilaterals of a net of points of shape (n, m, 3); those with a corner that is not finite are left out."""
    points = np.asarray(points, dtype=np.float64)
    corners = np.stack([points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]], axis=2).reshape(-1, 4, 3)
    return list(corners[np.isfinite(corners).all(axis=(1, 2))])


def level_surface(nodes, values, level: float, others=()) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Where a function on a grid has a value: facets, and other functions at their corners.

    Parameters
    ----------
    nodes : sequence of three ndarray
    values : ndarray of shape (len(nodes[0]), len(nodes[1]), len(nodes[2]))
        Cells with a corner that is not finite are left out.
    others : sequence of ndarray, of the same shape

    Returns
    -------
    facets : list of ndarray of shape (3, 3) or (4, 3)
        Of the tetrahedra into which cells are cut.
    found : list of ndarray of shape (3, k) or (4, k)
        The k others at the corners of the facets.
    """
    fields = np.stack([*np.meshgrid(*nodes, indexing="ij"), *others, values - level], axis=-1)
    pieces = []
    for order in itertools.permutations(np.eye(3, dtype=int)):  # along the edges from the lowest to the highest corner
        corners = np.cumsum([np.zeros(3, dtype=int), *order], axis=0)
        tetrahedra = np.stack([fields[tuple(slice(o, o + n - 1) for o, n in zip(at, values.shape))] for at in corners], axis=-2)
        tetrahedra = tetrahedra.reshape(-1, 4, fields.shape[-1])
        tetrahedra = tetrahedra[np.isfinite(tetrahedra[..., -1]).all(axis=1)]
        over = tetrahedra[..., -1] > 0.0
        tetrahedra = np.take_along_axis(tetrahedra, np.argsort(over, axis=1, kind="stable")[..., None], axis=1)
        for count, edges in ((1, ((0, 3), (1, 3), (2, 3))), (2, ((0, 2), (0, 3), (1, 3), (1, 2))), (3, ((0, 1), (0, 2), (0, 3)))):
            cut = tetrahedra[over.sum(axis=1) == count]
            low, high = (cut[:, [edge[side] for edge in edges]] for side in (0, 1))
            share = low[..., -1:] / (low[..., -1:] - high[..., -1:])
            pieces.extend(((1.0 - share) * low + share * high)[..., :-1])
    return [piece[:, :3] for piece in pieces], [piece[:, 3:] for piece in pieces]


def level_lines(facets, values, level: float) -> np.ndarray:
    """Pieces of the curve on a surface where a function known at the corners of its facets has a value; shape (n, 2, 3)."""
    pieces = []
    for facet, at in zip(facets, values):
        over = at - level
        crossed = np.flatnonzero((over > 0.0) != (np.roll(over, -1) > 0.0))
        if np.isfinite(over).all() and len(crossed) == 2:
            after = (crossed + 1) % len(facet)
            share = (over[crossed] / (over[crossed] - over[after]))[:, None]
            pieces.append((1.0 - share) * facet[crossed] + share * facet[after])
    return np.array(pieces).reshape(-1, 2, 3)


def _cut(polygon: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The part of a convex polygon inside a box, side by side of the box."""
    if ((polygon >= box[:, 0]) & (polygon <= box[:, 1])).all():
        return polygon
    for i, sign in itertools.product(range(3), (1.0, -1.0)):
        depth = sign * (polygon[:, i] - box[i, 0 if sign > 0.0 else 1])
        kept = []
        for j in range(len(polygon)):
            here, there = depth[j - 1], depth[j]
            if here * there < 0.0:
                share = here / (here - there)
                kept.append((1.0 - share) * polygon[j - 1] + share * polygon[j])
            if there >= 0.0:
                kept.append(polygon[j])
        polygon = np.array(kept).reshape(-1, 3)
    return polygon
