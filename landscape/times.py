"""Where a start ends and how long it takes, by quadrature along its orbit instead of integrating the flow.

The formulas are those of derivations/canonical-times.md, compiled in `landscape.kernels.canonical_times`.
"""

from __future__ import annotations

import numpy as np

from landscape import parameters
from landscape.architectures import Architecture, find
from landscape.chains import BinaryChain, Chain, SymmetricChain
from landscape.parameters import ParameterError

MEASURES = ("distance", "loss")
LARGEST = 1e6  # of larger coordinates E, a difference of squares, keeps too few digits


def arrival_time(
    chain: Chain, points, architecture: str | Architecture = "canonical", *, within: float = 1e-6, measure: str = "distance"
) -> np.ndarray:
    """Flow time until every start is close to its limit for good.

    Parameters
    ----------
    chain : BinaryChain or SymmetricChain
        With probabilities strictly inside (0, 1).
    points : array_like of shape (n, 2) or (2,)
        Starts (e, w).
    architecture : str or Architecture
        ``"canonical"``; no other has orbits in closed form.
    within : float
        At least 1e-100: how close. The time counts from the start to the last moment at which the start is farther away.
    measure : {"distance", "loss"}
        What `within` is compared with: the Euclidean distance in (e, w) to `limit_point`, or the loss less that of the
        limit, in nats.

    Returns
    -------
    ndarray of shape (n,)
        Flow time with dθ/dt = -∇L. It is 0 for starts that are close already, or at rest (on e = 0, or with κ = κ*), and
        inf for starts that are not finite. Starts on the separatrix, as far as rounding can tell, take the time to the
        saddle, which is finite for every `within`.

    Raises
    ------
    ParameterError
        If an argument is not as said above, or a finite coordinate exceeds 1e6.

    Notes
    -----
    The relative error is about 1e-10, for |e| down to the smallest floats too. Next to the separatrix the time is as
    sensitive to the start as E - E_sad is, which has to be computed from terms of order 1: the relative error grows to
    about 1e-16 / |E - E_sad|.

    Examples
    --------
    >>> from landscape import BinaryChain, arrival_time
    >>> arrival_time(BinaryChain(0.5, 0.8), [(1, -1), (0.3, 0.5), (0, 1)], within=1e-3).round(3)
    array([ 3.673, 27.514,  0.   ])
    """
    from landscape.kernels.times import DISTANCE, EXCESS, arrival_many

    within = parameters.real("arrival_time", "within", within)
    if not within >= 1e-100:
        raise ParameterError("within", "arrival_time", "at least 1e-100", within)
    if measure not in MEASURES:
        raise ParameterError("measure", "arrival_time", f"one of {', '.join(MEASURES)}", measure)
    points, labels, models = _prepared("arrival_time", chain, points, architecture)
    return arrival_many(points, labels, within, EXCESS if measure == "loss" else DISTANCE, *models)


def limit_point(chain: Chain, points, architecture: str | Architecture = "canonical") -> np.ndarray:
    """Where every start ends: on the curve κ = κ* or on the line e = 0.

    Parameters
    ----------
    chain : BinaryChain or SymmetricChain
        With probabilities strictly inside (0, 1).
    points : array_like of shape (n, 2) or (2,)
        Starts (e, w).
    architecture : str or Architecture
        ``"canonical"``.

    Returns
    -------
    ndarray of shape (n, 2)
        Limits under gradient flow, to the accuracy that the start allows. Starts at rest, and those that are not finite,
        are handed back. A start on the separatrix, as far as rounding can tell, ends in the saddle.

    Raises
    ------
    ParameterError
        As `arrival_time`.
    """
    from landscape.kernels.times import limit_point_many

    return limit_point_many(*_with_models("limit_point", chain, points, architecture))


def _with_models(owner, chain, points, architecture) -> tuple:
    points, labels, models = _prepared(owner, chain, points, architecture)
    return points, labels, *models


def _prepared(owner: str, chain: Chain, points, architecture) -> tuple:
    """Checked points, labels of their limits, and what the kernels take of the chain on either side of e = 0."""
    from landscape.canonical import Canonical
    from landscape.kernels import canonical_times
    from landscape.kernels.orbits import Model

    model = find(architecture)
    if not isinstance(model, Canonical):
        raise ParameterError("architecture", owner, "canonical", model.name)
    if not isinstance(chain, (BinaryChain, SymmetricChain)):
        raise ParameterError("chain", owner, "a BinaryChain or a SymmetricChain", chain)
    chain.require_interior(owner)
    points = model.points(owner, points)
    largest = np.max(np.abs(points), initial=0.0, where=np.isfinite(points))
    if largest > LARGEST:
        raise ParameterError("points", owner, f"at most {LARGEST:g} in size where finite", float(largest))
    around = getattr(canonical_times, f"constants_{chain.kind}")(*chain.kernel_parameters)
    star = float(chain.kappa_star)
    sides = tuple(Model(*model.constants(chain, side), star, *(float(value) for value in around)) for side in (1, -1))
    return points, model.limit(chain, points), sides
