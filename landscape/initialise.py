"""Where to start a training so that it reaches the bigram loss, and which starts are safe whatever the chain.

The clearance of a start is its distance to the nearest start that is not global: the boundary of the basin, or the line e = 0,
where nothing moves. A start that is global on both sides of the threshold needs no data to be chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from landscape import parameters
from landscape.architectures import Architecture, architecture as find_architecture
from landscape.chains import BinaryChain, Chain, SymmetricChain
from landscape.outcomes import Label
from landscape.parameters import ParameterError

ANGLES = 2001
SAFE_REGION = "{side}w < 0 and e^2 > (s_e/s_w) (G(w) - G(w_0)), G(w) = w^2 - (2/c) log|w|, w_0 = -1/sqrt(c), c = {c:g}"


@dataclass(frozen=True)
class Recommendation:
    """A start, and why it is one.

    Attributes
    ----------
    chain : Chain
    architecture : str
    start : dict of str to float
        Coordinates by the names of the architecture's parameters.
    mean : tuple of float
        (e, w) of it, as `landscape.pytorch.around_` takes it.
    norm : float
        √(e² + w²).
    margin : float or None
        E - E_sad; None where the start has no saddle to pass.
    distance : float or None
        Clearance in (e, w): the distance to the nearest start that is not global. None at the threshold, where there is none.
    speed_ratio : float
        The start stays global while e moves less than so many times as fast as w (s_e/s_w); inf where speeds do not matter.
    largest_rate : float or None
        SGD at a larger rate overshoots where the start ends: 2 over the largest eigenvalue of the Hessian of `transverse` there,
        positions moving 1/N as fast. None for three or more symbols, and without flows.
    labels : dict of str to str
        What the start's limit is, by architecture: by the exact rule, and by flow for `transverse`, which has the last word on
        real training with two symbols, with position vectors as fast as all else and N times as slow.
    default : Recommendation or None
        The start that needs no data, with its own clearance on this chain; None for the default itself.
    region : str
        The starts that are global on every chain, as an inequality; `safe_starts` evaluates it.
    rank : int
        Rank of the MLP's matrices and of the embedding: 1 for two symbols, S - 1 for S.
    """

    chain: Chain
    architecture: str
    start: dict[str, float]
    mean: tuple[float, float]
    norm: float
    margin: float | None
    distance: float | None
    speed_ratio: float
    largest_rate: float | None
    labels: dict[str, str] = field(repr=False)
    default: Recommendation | None = field(repr=False)
    region: str = field(repr=False)
    rank: int

    @property
    def words(self) -> str:
        """What to do, and what is known of it, in a few sentences."""
        e, w = self.mean
        told = [f"Start at (e, w) = ({e:.4g}, {w:.4g}): landscape.pytorch.around_(model, ({e:.4g}, {w:.4g}), std=0.02)."]
        if self.rank > 1:
            told.append(f"With {self.rank + 1} symbols that is a start of rank {self.rank}.")
        if self.distance is None:
            told.append("At the threshold every start is global.")
        else:
            told.append(f"It is {self.distance:.3g} away from the nearest start that is not global.")
        if math.isfinite(self.speed_ratio):
            told.append(f"It stays global while e moves less than {self.speed_ratio:.3g} times as fast as w.")
        if self.largest_rate is not None:
            told.append(f"SGD settles at its limit at rates below {self.largest_rate:.3g}.")
        others = [name for name, word in self.labels.items() if word != "global"]
        told.append(f"Not so in {', '.join(others)}." if others else f"It is global in {', '.join(self.labels)}.")
        return " ".join(told)


def recommend(
    chain: Chain, architecture: str | Architecture = "canonical", *, norm: float | None = None, positions: int = 64, flow: bool = True
) -> Recommendation:
    """The start of a given norm that is farthest from all that is not global.

    Parameters
    ----------
    chain : BinaryChain or SymmetricChain
        With probabilities strictly inside (0, 1).
    architecture : str or Architecture
        ``canonical``, and what the start is in ``attention`` (a = 0), ``untied`` (c = e), ``reduced`` and ``transverse`` (the
        canonical slice).
    norm : float, optional
        √(e² + w²) of the start; by default that of the start that needs no data: √2 for two symbols, √S for S.
    positions : int
        N, how many positions the model has: with a vector each, they move 1/N as fast.
    flow : bool
        Whether to ask `transverse` too; its integrator takes a minute to compile the first time.

    Returns
    -------
    Recommendation

    Raises
    ------
    ParameterError
        If no start of this norm is global, or the architecture is none of these.

    Notes
    -----
    The maximum of the clearance is taken over the canonical slice, where the basin is known exactly. Of two symbols a start and
    its mirror image in e = 0 are equally far; the one with e > 0 is given unless `transverse` has the other alone global.

    Examples
    --------
    >>> from landscape import BinaryChain, recommend
    >>> told = recommend(BinaryChain(0.5, 0.8))
    >>> [round(value, 2) for value in told.mean], round(told.distance, 2), told.default.mean
    ([0.82, -1.15], 0.82, (1.0, -1.0))
    >>> round(told.largest_rate, 2)  # SGD at a higher rate does not settle where this start leads
    0.87
    """
    if not isinstance(chain, (BinaryChain, SymmetricChain)):
        raise ParameterError("chain", "recommend", "a BinaryChain or a SymmetricChain", chain)
    chain.require_interior("recommend")
    model = find_architecture(architecture)
    positions = parameters.count("recommend", "positions", positions, 1)
    scale = _default_scale(chain)
    positions = positions if flow else 0
    default = _described(chain, model, (scale, -scale), positions, None)
    if norm is None:
        norm = scale * math.sqrt(2.0)
    norm = parameters.real("recommend", "norm", norm)
    if norm <= 0.0:
        raise ParameterError("norm", "recommend", "positive", norm)
    return _described(chain, model, _farthest(chain, norm, positions), positions, default)


def safe_starts(points, states: int = 2, speeds: Mapping[str, float] | None = None) -> np.ndarray:
    """Which starts (e, w) reach the global minimum on every chain, whatever its probabilities.

    Parameters
    ----------
    points : array_like of shape (n, 2) or (2,)
    states : int
        Number of symbols.
    speeds : dict of str to float, optional
        How fast the flow moves e and w; 1 unless given.

    Returns
    -------
    ndarray of bool, shape (n,)
        False for starts that are not finite, or as near to the boundary as rounding can tell.

    Examples
    --------
    >>> from landscape import safe_starts
    >>> safe_starts([(1, -1), (0.1, -1), (1, 1)]), safe_starts((1, -1), speeds={"e": 7})
    (array([ True, False, False]), array([False]))
    """
    states = parameters.count("safe_starts", "states", states, 2)
    canonical = find_architecture("canonical")
    points = parameters.points("safe_starts", "points", points, 2)
    below, above = (SymmetricChain(states, factor * (states - 1) / states) for factor in (0.5, 1.0 + 0.5 / (states - 1)))
    paces = canonical.on(below, speeds).speeds or (1.0, 1.0)
    scaled = points * (math.sqrt(paces[1] / paces[0]), 1.0)  # the separatrix is e²/s_e = (G(w) - G(w_0))/s_w
    return np.all([canonical.limit(chain, scaled) == Label.GLOBAL for chain in (below, above)], axis=0)


def clearance(chain: Chain, points) -> np.ndarray:
    """Distance of starts (e, w) to the nearest one that is not global, 0 for those that are not; inf at the threshold; shape (n,)."""
    canonical = find_architecture("canonical")
    points = canonical.points("clearance", points)
    is_global = canonical.limit(chain, points) == Label.GLOBAL
    if chain.target_sign == 0:
        return np.where(is_global, np.inf, 0.0)
    return np.where(is_global, np.minimum(np.abs(points[:, 0]), canonical.distance(chain, points)), 0.0)


def _default_scale(chain: Chain) -> float:
    """The start (1, -1) in units of the saddle's w for two symbols, where it is the paper's."""
    return math.sqrt(2.0 / find_architecture("canonical").constants(chain)[1])


def _farthest(chain: Chain, norm: float, positions: int) -> tuple[float, float]:
    """The point of largest clearance on a circle."""
    from scipy.optimize import minimize_scalar

    if chain.target_sign == 0:
        return norm / math.sqrt(2.0), -norm / math.sqrt(2.0)

    def at(angle, side):
        return np.stack([side * norm * np.cos(angle), norm * np.sin(angle)], axis=-1)

    found = []
    for side in (1, -1):
        angles = np.linspace(-0.5 * math.pi, 0.5 * math.pi, ANGLES)
        values = clearance(chain, at(angles, side))
        top = int(np.argmax(values))
        near = angles[max(top - 1, 0)], angles[min(top + 1, ANGLES - 1)]
        best = minimize_scalar(lambda angle: -clearance(chain, at(angle, side))[0], bounds=near, method="bounded", options={"xatol": 1e-10})
        better = -best.fun > values[top]
        found.append((max(-best.fun, values[top]), tuple(at(best.x if better else angles[top], side).tolist())))
    (first, point), (second, other) = found
    if max(first, second) <= 0.0:
        least = float(find_architecture("canonical").distance(chain, (0.0, 0.0))[0])
        raise ParameterError("norm", "recommend", f"more than {least:.4g}, the norm of the nearest global start", norm)
    if abs(first - second) > 1e-6 * norm:
        return point if first > second else other
    return point if _is_confirmed(chain, point, positions) or not _is_confirmed(chain, other, positions) else other


def _is_confirmed(chain: Chain, point: tuple[float, float], positions: int) -> bool:
    return all(word == "global" for word in _by_flow(chain, point, positions)[0].values())


def _by_flow(chain: Chain, point: tuple[float, float], positions: int) -> tuple[dict[str, str], float | None]:
    """What `transverse` says of a point of the slice, with positions at either speed, and the largest rate for the slower one.

    Nothing for more than two symbols, or no positions.
    """
    from landscape.flows import flow

    if not isinstance(chain, BinaryChain) or not positions:
        return {}, None
    model, labels, rate = find_architecture("transverse"), {}, None
    for name, pace in (("transverse", 1.0), (f"transverse with {positions} positions", 1.0 / positions)):
        landscape = model.on(chain, {"c": pace})
        found = flow(landscape, [point])
        labels[name] = found.words[0]
        stretch = np.broadcast_to(landscape.stretch, len(model.parameters))
        steepest = float(np.linalg.eigvalsh(landscape.hessian(found.ends)[0] * np.outer(stretch, stretch))[-1])
        rate = 2.0 / steepest if steepest > 0.0 else math.inf
    return labels, rate


def _exact_labels(chain: Chain, point: tuple[float, float]) -> dict[str, str]:
    """What every architecture with an exact rule says of a point of the slice."""
    e, w = point
    attended = {"attention": (e, w, 0.0)} if isinstance(chain, BinaryChain) else {}
    starts = {"canonical": (e, w), **attended, "untied": (e, e, w)}
    return {name: Label(int(find_architecture(name).limit(chain, start)[0])).word for name, start in starts.items()}


def _placed(chain: Chain, model: Architecture, point: tuple[float, float]) -> dict[str, float]:
    """The point of the slice in the parameters of an architecture."""
    e, w = point
    if model.name in ("reduced", "transverse"):
        return dict(zip(model.parameters, model.on(chain).points("recommend", [point])[0].tolist()))
    values = {"canonical": {"e": e, "w": w}, "attention": {"e": e, "w": w, "a": 0.0}, "untied": {"e": e, "c": e, "w": w}}
    if model.name not in values:
        raise ParameterError("architecture", "recommend", "canonical, attention, untied, reduced or transverse", model.name)
    return values[model.name]


def _described(
    chain: Chain, model: Architecture, point: tuple[float, float], positions: int, default: Recommendation | None
) -> Recommendation:
    canonical = find_architecture("canonical")
    e, w = point
    c = canonical.constants(chain, 1 if e > 0.0 else -1)[1]
    by_flow, rate = _by_flow(chain, point, positions)
    margin, away = canonical.margin(chain, point)[0], clearance(chain, point)[0]
    return Recommendation(
        chain, model.name, _placed(chain, model, point), (e, w), math.hypot(e, w), float(margin) if math.isfinite(margin) else None,
        float(away) if math.isfinite(away) else None, _speed_ratio(chain, e, w, c), rate,
        _exact_labels(chain, point) | by_flow, default,
        SAFE_REGION.format(c=c, side="" if c == canonical.constants(chain, -1)[1] else "e > 0, "), 1 if isinstance(chain, BinaryChain) else chain.states - 1,
    )


def _speed_ratio(chain: Chain, e: float, w: float, c: float) -> float:
    """The largest s_e/s_w with which a start that has to pass the saddle's w is global; inf where it has not."""
    from landscape.kernels.canonical import slope_factor, threshold

    if chain.target_sign * slope_factor(w, c) >= 0.0 or chain.target_sign == 0:
        return math.inf
    height = threshold(w, c) if w < 0.0 else math.inf
    return e * e / height if height > 0.0 else math.inf
