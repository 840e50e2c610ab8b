"""Critical sets, and what is known of single starts."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from landscape.architectures import Architecture, Bound, find
from landscape.chains import Chain
from landscape.flows import flow
from landscape.landscapes import Landscape, PlainLoss, landscape_of
from landscape.outcomes import Classification, CriticalSet, Label
from landscape.parameters import ParameterError


def critical_sets(chain: Chain | Landscape, architecture: str | Architecture = "canonical") -> list[CriticalSet]:
    """The critical sets of the loss, the bias minimised out.

    Parameters
    ----------
    chain : Chain or Landscape
        A chain, on which the architecture is taken, or a landscape such as a `PlainLoss`.
    architecture : str or Architecture

    Returns
    -------
    list of CriticalSet
        Derived ones for the package's own architectures; for others those that a numeric search finds in their box.
    """
    if isinstance(chain, Landscape):
        return searched_sets(chain)
    return find(architecture).critical_sets(chain)


@functools.lru_cache(maxsize=64)
def _search(landscape: Landscape) -> list:
    """What the numeric searches find in the box of a landscape, off kinks and on them."""
    from landscape.search import critical_search

    landscape = landscape.with_speeds(None)
    box = np.array([landscape.box[name] for name in landscape.parameters])
    found = critical_search(landscape.loss, landscape.gradient, landscape.hessian, box)
    if landscape.kernels.SURFACES == 0:
        return found
    from landscape.kinks import sets_on_kinks

    if isinstance(landscape, PlainLoss):  # which of the minima are global is what this search is needed for
        landscape = dataclasses.replace(landscape, minimum=-math.inf)
    off = [part for part in found if not _jumps(landscape, part.representative, box)]
    return sets_on_kinks(landscape, box, off)


def _jumps(landscape: Landscape, point: np.ndarray, box: np.ndarray) -> bool:
    """Whether the gradient jumps at a point, rather than vanish there."""
    near, middle = 1e-6 * np.ptp(box, axis=1), np.random.default_rng(0).uniform(*box.T, size=(256, len(box)))
    typical = np.nanmedian(np.linalg.norm(landscape.gradient(middle), axis=1))
    steps = np.concatenate([np.diag(near), -np.diag(near)])
    return bool(np.linalg.norm(landscape.gradient(point + steps), axis=1).max() > 1e-2 * typical)


def lowest_minimum(landscape: Landscape) -> float:
    """The loss at the lowest minimum that is found; infinite if there is none."""
    return min((part.loss for part in _search(landscape) if part.kind == "minimum"), default=math.inf)


def searched_sets(landscape: Landscape) -> list[CriticalSet]:
    """The critical sets that `landscape.search` finds in the box of a landscape."""
    return [found for found, _ in sets_with_members(landscape)]


def sets_with_members(landscape: Landscape) -> list[tuple[CriticalSet, np.ndarray]]:
    """The same, each with the points that were met on it, shape (k, d)."""
    parts = _search(landscape)
    words = _kinds(landscape, parts)
    return [
        (CriticalSet(
            name=f"{word} {i + 1}", kind=word, dimension=part.dimension, index=part.index, nullity=part.nullity, loss=float(part.loss),
            equations=("through " if part.dimension else "") + ", ".join(
                f"{name} = {value:.9g}" for name, value in zip(landscape.parameters, part.representative)
            ),
            representative=tuple(part.representative.tolist()), tangent=tuple(map(tuple, part.tangent.tolist())),
        ), part.members)
        for i, (word, part) in enumerate(zip(words, parts))
    ]


def _kinds(landscape: Landscape, parts: list) -> list[str]:
    """What the sets are called: of minima, those are global that the landscape says are."""
    words = {"maximum": "maxima", "saddle": "saddles", "undetermined": "undetermined", "minimum": "local minima"}
    kinds = [words[part.kind] for part in parts]
    minima = [i for i, part in enumerate(parts) if part.kind == "minimum"]
    if not minima:
        return kinds
    lowest = landscape.is_global(np.array([parts[i].representative for i in minima]), 1e-9)
    for i, low in zip(minima, lowest):
        kinds[i] = "global minima" if low else "local minima"
    return kinds


def classify(
    chain: Chain | Landscape, points, architecture: str | Architecture = "canonical", *, method: str | None = None, **options
) -> list[Classification]:
    """Label, gap, loss, invariants, margin and distance of every start.

    Parameters
    ----------
    chain : Chain or Landscape
    points : array_like of shape (n, d) or (d,)
    architecture : str or Architecture
    method : {"exact", "flow"}, optional
        How limits are found: by the exact rule, or by following the flow. By default exactly where there is a rule.
    **options
        For the flow; see `landscape.flow`.

    Returns
    -------
    list of Classification
        What does not exist or is not finite at a start is None.
    """
    landscape = landscape_of(chain, architecture)
    points = landscape.points("classify", points)
    labels = labels_of(landscape, points, method, **options)
    finite = np.isfinite(points).all(axis=1)
    safe = np.where(finite[:, None], points, 1.0)
    columns = {"kappa": landscape.gap(safe), "loss": landscape.loss(safe)}
    columns |= dict.fromkeys(("margin", "distance"), np.full(len(points), np.nan))
    if isinstance(landscape, Bound) and not landscape.speeds:
        for name in ("margin", "distance"):
            columns[name] = getattr(landscape.architecture, name)(landscape.chain, safe)
    invariants = landscape.invariant_values(safe)

    def number(values, i):
        return float(values[i]) if finite[i] and math.isfinite(values[i]) else None

    return [
        Classification(
            at=tuple(points[i].tolist()),
            label=Label(int(labels[i])).word,
            invariants={name: number(values, i) for name, values in invariants.items()},
            **{name: number(values, i) for name, values in columns.items()},
        )
        for i in range(len(points))
    ]


def labels_of(landscape: Landscape, points: np.ndarray, method: str | None = None, **options) -> np.ndarray:
    """Codes of the limits of points of shape (n, d), by the method asked for or the exact one where there is one; int8, shape (n,)."""
    if chosen_method(landscape, method) == "exact":
        return landscape.architecture.limit(landscape.chain, points)
    return flow(landscape, points, **options).labels


def chosen_method(landscape: Landscape, method: str | None) -> str:
    """The method asked for, or the exact one where there is an exact rule.

    Raises
    ------
    ParameterError
        If the method is unknown, or exact where there is no rule.
    """
    exact = isinstance(landscape, Bound) and landscape.architecture.is_exact and not landscape.speeds
    if method not in (None, "exact", "flow"):
        raise ParameterError("method", "landscape", "'exact' or 'flow'", method)
    if method == "exact" and not exact:
        why = "with speeds other than 1 limits" if landscape.speeds else "its limits"
        raise ParameterError("method", landscape.name, f"'flow', as {why} are not known in closed form", method)
    return method or ("exact" if exact else "flow")
