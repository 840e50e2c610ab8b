"""The `attention` architecture, κ = e² (1 + a e²) (1 + 2w|w|): exact limits by two invariants, and the surface between the basins.

The rule is that of derivations/attention-limits.md, aware of rounding.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping

import numpy as np

from landscape import airy
from landscape.architectures import Architecture
from landscape.chains import BinaryChain, Chain, SymmetricChain
from landscape.kernels import attention_labels
from landscape.kernels.attention import airy_coordinates, end_term, stream_factor
from landscape.kernels.labels import ROUNDING
from landscape.outcomes import CriticalSet, Label
from landscape.parameters import ParameterError

SADDLE_W = -1.0 / math.sqrt(attention_labels.CURVATURE)
BAND = 1e-6  # within it of the surface, starts of a map are labelled one by one
SLACK = 1e4 * 2.0**-52  # of positions, for the rounding of Airy's functions


class Attention(Architecture):
    """Three parameters: the embedding e, the MLP weight w and the strength a of linear attention."""

    @property
    def coordinates(self) -> tuple[str, ...]:
        return ("a", "e", "w")

    @property
    def periods(self) -> dict[str, float]:
        return {"arctan J": math.pi}

    def on(self, chain: Chain, speeds: Mapping[str, float] | None = None):
        """The landscape on a chain; on a SymmetricChain that of long sequences, `averaged_attention.Averaged`."""
        if isinstance(chain, SymmetricChain):
            from landscape.averaged_attention import AVERAGED

            return AVERAGED.on(chain, speeds)
        self.require_binary(chain)
        return super().on(chain, speeds)

    def require_binary(self, chain: Chain) -> None:
        """Raise `ParameterError` unless the chain has two symbols: with more there is no exact rule."""
        if not isinstance(chain, BinaryChain):
            raise ParameterError("chain", self.name, "a BinaryChain, for what is known in closed form", chain)

    def kernels(self, chain: Chain):
        self.require_binary(chain)
        return importlib.import_module(f"landscape.kernels.{self.name}_binary")

    def limit(self, chain: Chain, points) -> np.ndarray:
        chain.require_interior("limit")
        self.require_binary(chain)
        points = self.points("limit", points)
        with np.errstate(all="ignore"):
            return _labels(points, chain.target_sign)

    def label_grid(self, chain: Chain, axes: dict[str, np.ndarray]) -> np.ndarray:
        """Exact labels on a grid; int8, of dimensions (a, e, w). One evaluation of Airy's functions for each |e| and a."""
        chain.require_interior("basin_map")
        self.require_binary(chain)
        a, e, w = (np.asarray(axes[name], dtype=np.float64) for name in self.coordinates)
        sizes, where = np.unique(np.abs(e), return_inverse=True)
        with np.errstate(all="ignore"):
            levels = _levels(*(values.ravel() for values in np.meshgrid(sizes, a, indexing="xy")))
            levels = levels.reshape(len(a), len(sizes))[:, where].ravel()
            heights = attention_labels.heights(w, 1.0 + 2.0 * w * np.abs(w), chain.target_sign)
        labels, unsure = np.empty((len(a) * len(e), len(w)), dtype=np.int8), np.empty((len(a) * len(e), 2), dtype=np.int64)
        attention_labels.label_rows(levels, heights, BAND, labels, unsure)
        for row in np.flatnonzero(unsure[:, 1] > unsure[:, 0]):  # starts of one (e, a), one by one
            run = slice(*unsure[row])
            place = np.broadcast_to([e[row % len(e)], a[row // len(e)]], (len(w[run]), 2))
            labels[row, run] = self.limit(chain, np.column_stack([place[:, 0], w[run], place[:, 1]]))
        return labels.reshape(len(a), len(e), len(w))

    def margin(self, chain: Chain, points) -> np.ndarray:
        """E less E on the separating surface for the same J, where w < 0, f > 0 and κ* B < 0; elsewhere NaN."""
        chain.require_interior("margin")
        self.require_binary(chain)
        points = self.points("margin", points)
        with np.errstate(all="ignore"):
            found = _Starts(points, chain.target_sign)
            level = _levels(points[:, 0], points[:, 2], exact=True)
            over = level - attention_labels.thresholds(points[:, 1])
            on_surface = _labels(points, chain.target_sign) == Label.SADDLE
        sides = found.confined & (points[:, 1] < 0.0) & np.isfinite(level)
        return np.where(sides, np.where(on_surface, 0.0, over), np.nan)

    def distance(self, chain: Chain, points) -> np.ndarray:
        """Euclidean distance to the boundary of the global basin, to about 1e-6 of itself; NaN at the threshold."""
        chain.require_interior("distance")
        self.require_binary(chain)
        points = self.points("distance", points)
        if chain.target_sign == 0:
            return np.full(len(points), np.nan)
        with np.errstate(all="ignore"):
            return np.array([_distance(point, chain.target_sign) if np.isfinite(point).all() else np.nan for point in points])

    def invariant_values(self, chain: Chain, points, speeds: tuple[float, ...] = ()) -> dict[str, np.ndarray]:
        """E = e² - 2a² - G(w), NaN at w = 0, and J as the angle arctan J in [-π/2, π/2], whose ends are one place.

        With speeds E is e²/s_e - 2a²/s_a - G/s_w, and J is not given.
        """
        points = self.points("invariants", points)
        e, w, a = points.T
        paces = speeds or (1.0, 1.0, 1.0)
        with np.errstate(all="ignore"):
            energy = e**2 / paces[0] - 2.0 * a**2 / paces[2] - (w**2 + np.sign(w) * np.log(np.abs(w))) / paces[1]
            found = {"E": np.where(w == 0.0, np.nan, energy)}
            return found if speeds else found | {"arctan J": airy.solve(*airy_coordinates(e, a)).angle}

    def critical_sets(self, chain: Chain) -> list[CriticalSet]:
        """The critical sets; derivations/attention-critical-sets.md. Those on a SymmetricChain are searched for."""
        chain.require_interior("critical_sets")
        if isinstance(chain, SymmetricChain):
            return self.on(chain).architecture.critical_sets(chain)
        self.require_binary(chain)
        saddle = f"w = {SADDLE_W:.9g}"
        if chain.target_sign == 0:
            parts = ((2, f"e != 0, {saddle} or a = -1/e^2, not both", 2), (2, "e = 0", 3), (1, f"e != 0, {saddle}, a = -1/e^2", 3))
            return [CriticalSet("global minima", "global minima", d, 0, nullity, chain.bigram_loss, where) for d, where, nullity in parts]
        below = chain.target_sign > 0
        local, maxima = ("w < ", "w > ") if below else ("w > ", "w < ")
        loss = chain.unigram_loss
        return [
            CriticalSet("global minima", "global minima", 2, 0, 2, chain.bigram_loss, f"kappa(e, w, a) = {chain.kappa_star:.9g}"),
            CriticalSet("local minima", "local minima", 2, 0, 2, loss, f"e = 0, {local}{SADDLE_W:.9g}"),
            CriticalSet("maxima", "maxima", 2, 1, 2, loss, f"e = 0, {maxima}{SADDLE_W:.9g}"),
            CriticalSet("saddle line", "saddles", 1, 0, 3, loss, f"e = 0, {saddle}"),
            CriticalSet("saddle curve", "saddles", 1, 1, 1, loss, f"e != 0, {saddle}, a = -1/e^2"),
        ]

    def separatrix(self, chain: Chain, reach: float, n: int) -> np.ndarray:
        """Points of the surface between the basins over a grid of (e, a) with n values of e in [-reach, reach] and n of a.

        Where it has no w (the orbit of (e, a) meets f = 0), there is no point. The cylinder over w >= 0 is not part of it.
        """
        chain.require_interior("separatrix")
        self.require_binary(chain)
        sign = chain.target_sign
        if sign == 0:
            return np.empty((0, 3))
        axis = np.linspace(-reach, reach, n)
        e, a = (values.ravel() for values in np.meshgrid(axis, axis, indexing="ij"))
        with np.errstate(all="ignore"):
            w = surface(e, a, sign)
        points = np.stack([e, w, a], axis=1)
        return points[np.isfinite(w)]

    def separatrix_residual(self, chain: Chain, curve: np.ndarray) -> float:
        """Largest |E - E_sep| over points of the surface."""
        with np.errstate(all="ignore"):
            over = _levels(curve[:, 0], curve[:, 2], exact=True) - attention_labels.thresholds(curve[:, 1])
        return float(np.max(np.abs(over), initial=0.0))


def surface(e: np.ndarray, a: np.ndarray, target: int) -> np.ndarray:
    """w of the surface between the basins over points (e, a), by Lambert's W; NaN where there is none."""
    from scipy.special import lambertw

    level = np.where(e == 0.0, 0.0, _levels(e, a, exact=True))
    c = attention_labels.CURVATURE
    branch = 0 if target < 0 else -1
    excess = -lambertw(-np.exp(-1.0 - c * level), branch).real - 1.0  # of c w² over 1, its value on the line of saddles
    # the exponential loses digits close to the branch point; Newton's method on x - log(1 + x) = c m brings them back
    excess = np.where(c * level < 1e-4, target * np.sqrt(2.0 * c * level), excess)
    for _ in range(5):
        step = (excess - np.log1p(excess) - c * level) * (1.0 + excess) / excess
        excess = np.where(excess == 0.0, 0.0, excess - step)
    return np.where(np.isfinite(level) & (level >= 0.0), -np.sqrt((1.0 + excess) / c), np.nan)


class _Starts:
    """What the rule asks of starts (n, 3)."""

    def __init__(self, points: np.ndarray, target: int):
        e, w, a = points.T
        self.factor = stream_factor(e, a)
        self.slope = 1.0 + 2.0 * w * np.abs(w)
        self.on_curve = (np.abs(self.factor) <= ROUNDING * (1.0 + np.abs(a * e**2))) & (np.abs(self.slope) <= ROUNDING)
        self.confined = (e != 0.0) & (target * self.slope < 0.0) & (self.factor > 0.0)


def _labels(points: np.ndarray, target: int) -> np.ndarray:
    """Labels of points (n, 3) from the sign of κ*."""
    e, w, a = points.T
    found = np.full(len(points), int(Label.GLOBAL), dtype=np.int8)
    if target != 0:
        start = _Starts(points, target)
        found[start.confined] = _confined(points[start.confined])
        found[start.on_curve & (e != 0.0)] = Label.SADDLE
        rest = np.where(target * start.slope < 0.0, Label.LOCAL, Label.MAXIMUM)
        at_rest = np.where(np.abs(start.slope) <= ROUNDING, Label.SADDLE, rest)
        found = np.where(e == 0.0, at_rest, found).astype(np.int8)
    found[~np.isfinite(points).all(axis=1)] = Label.INVALID
    return found


def _confined(points: np.ndarray) -> np.ndarray:
    """Labels of starts with f > 0 and κ* B < 0, which have to meet f = 0 or B = 0 to be global."""
    e, w, a = points.T
    z, rho, between = airy_coordinates(e, a)
    found = np.full(len(points), int(Label.GLOBAL), dtype=np.int8)
    tried = np.flatnonzero(z > airy.FIRST_ZERO)
    z, rho, between, w = z[tried], rho[tried], between[tried], w[tried]
    orbit = airy.solve(z, rho, between)
    vague = np.abs(orbit.above) <= SLACK * np.where(z > 0.0, between / (np.abs(rho) + np.sqrt(np.abs(z))), 1.0 + np.abs(rho))
    # the last value of u - 2a² that E allows: on w < 0 the orbit has to end where 2a² is below it
    room = attention_labels.thresholds(w) + 2.0 * a[tried] ** 2 - e[tried] ** 2
    inside, edge = _between_ends(orbit.position, room)
    ends = np.where(w >= 0.0, Label.LOCAL, np.where(edge, Label.SADDLE, np.where(inside, Label.LOCAL, Label.GLOBAL)))
    ends = np.where(orbit.above > 0.0, ends, Label.GLOBAL)
    found[tried] = np.where((w >= 0.0) & vague, Label.UNDECIDED, ends)
    return found


def _between_ends(position: np.ndarray, room: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether J(R², -R) < J < J(R², R) for 2a² = room at ρ = R, and whether rounding cannot tell."""
    width = np.sqrt(np.maximum(room, 0.0) / end_term(1.0))
    low, high = (airy.along(side * width)[0] for side in (-1.0, 1.0))
    slack = SLACK * (1.0 + np.abs(position))
    inside = (room > 0.0) & (low < position) & (position < high)
    return inside, (room > 0.0) & ((np.abs(position - low) <= slack) | (np.abs(position - high) <= slack))


def _levels(e: np.ndarray, a: np.ndarray, exact: bool = False) -> np.ndarray:
    """u - 2a² + 2a_e² of places (e, a): what G(w) - G_min is on the surface between the basins.

    Infinite where orbits meet f = 0 instead of the plane; NaN where starts have to be looked at one by one. To about 1e-8 unless
    `exact`.
    """
    z, rho, between = airy_coordinates(e, a)
    factor = stream_factor(e, a)
    levels = np.full(e.shape, np.inf)
    tried = np.flatnonzero((z > airy.FIRST_ZERO) & (factor > 0.0))
    orbit = airy.solve(z[tried], rho[tried], between[tried])
    last = airy.end(orbit.position) if exact else airy.near_end(orbit.position)
    last = np.where(np.isfinite(orbit.position), last, np.nan)
    if not exact:
        last = np.where(np.abs(last) < airy.TABLE, last, np.nan)
    found = np.where(orbit.above > 0.0, e[tried] ** 2 - 2.0 * a[tried] ** 2 + end_term(last), np.inf)
    unsure = np.abs(orbit.above) <= 1e-9 * (1.0 + np.abs(rho[tried])) if not exact else np.zeros(found.shape, dtype=bool)
    levels[tried] = np.where(unsure, np.nan, found)
    levels[(e == 0.0) | (np.abs(factor) <= ROUNDING * (1.0 + np.abs(a * e**2)))] = np.nan
    return levels


def _distance(point: np.ndarray, target: int) -> float:
    """Distance of one point to the surface, over ever finer grids of (e, a), and to the cylinder over w >= 0."""
    e, w, a = point
    best, centre = math.hypot(e, w - SADDLE_W), np.array([0.0, a])  # the line of saddles
    half, steps = best, np.linspace(-1.0, 1.0, 41)
    middle = np.array([e, a])
    for _ in range(14):
        x, y = (values.ravel() for values in np.meshgrid(middle[0] + half * steps, middle[1] + half * steps))
        apart = np.sqrt((x - e) ** 2 + (surface(x, y, target) - w) ** 2 + (y - a) ** 2)
        apart[np.isnan(apart)] = math.inf
        nearest = int(np.argmin(apart))
        if apart[nearest] < best:
            best, centre = float(apart[nearest]), np.array([x[nearest], y[nearest]])
        middle, half = centre, half / 4.0
    if target > 0:
        return best
    edge_e, edge_a = cylinder()
    apart = np.sqrt((np.concatenate([edge_e, -edge_e]) - e) ** 2 + (np.tile(edge_a, 2) - a) ** 2)
    return min(best, math.hypot(float(apart.min()), min(w, 0.0)))


def cylinder() -> tuple[np.ndarray, np.ndarray]:
    """(e, a), e > 0, on the curve ρ = Ai'/Ai over which the boundary above p + q = 1 is a cylinder for w >= 0."""
    from scipy.special import airye

    z = np.concatenate([airy.FIRST_ZERO + np.geomspace(1e-9, -airy.FIRST_ZERO, 4000)[:-1], np.geomspace(1e-9, 1e3, 8000)])
    ai, ai_prime = np.where(z < 0.0, airy.airy(np.minimum(z, 0.0))[:2], airye(np.maximum(z, 0.0))[:2])
    rho, scale = ai_prime / ai, airy_coordinates(0.0, 1.0)[1]
    return np.sqrt(np.maximum(rho**2 - z, 0.0) * scale), rho / scale


ARCHITECTURES = {"attention": Attention("attention", ("e", "w", "a"), ("E", "arctan J"))}
