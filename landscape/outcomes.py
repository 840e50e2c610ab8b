"""What can become of a start: labels of its limit, their codes in arrays, and result classes."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np


class Label(enum.IntEnum):
    """The limit of a start under gradient flow. The value is the int8 code used in arrays and files."""

    INVALID = -1
    UNDECIDED = 0
    GLOBAL = 1
    LOCAL = 2
    SADDLE = 3
    MAXIMUM = 4

    @property
    def word(self) -> str:
        """The label as the command line and the files spell it."""
        return self.name.lower()


class Outcome(enum.IntEnum):
    """How following a flow ended. The value is the int8 code used in arrays and files."""

    CONVERGED = 0
    TIME_LIMIT = 1
    STEP_LIMIT = 2
    DIVERGED = 3
    NONFINITE = 4

    @property
    def word(self) -> str:
        """The outcome as the command line and the files spell it."""
        return self.name.lower()


@dataclass(frozen=True)
class Classification:
    """What is known of one start.

    Attributes
    ----------
    at : tuple of float
        The start, in the order of the architecture's parameters.
    label : str
        The word of a `Label`.
    kappa : float or None
        The logit gap at the start; None where the start is not finite.
    loss : float or None
        The loss at the start in nats, the bias minimised out.
    invariants : dict of str to (float or None)
        Conserved quantities of the flow; None where one is not finite at this start.
    margin : float or None
        Positive towards the global basin, 0 on the separatrix, None away from the side that holds it.
    distance : float or None
        Euclidean distance to the basin boundary, None where there is none.
    """

    at: tuple[float, ...]
    label: str
    kappa: float | None
    loss: float | None
    invariants: dict[str, float | None]
    margin: float | None
    distance: float | None


@dataclass(frozen=True)
class CriticalSet:
    """A connected family of critical points of the loss with the bias minimised out.

    Attributes
    ----------
    name : str
    kind : str
        "global minima", "local minima", "maxima", "saddle", "saddles" or "undetermined".
    dimension : int
        Dimension of the set itself.
    index, nullity : int
        Morse-Bott index (negative eigenvalues of the Hessian) and nullity (zero eigenvalues), on the set. The
        index is None where the second derivative differs between the two sides of the set.
    loss : float
        Loss on the set, in nats.
    equations : str
        Defining equations and inequalities in the architecture's parameters; a point of the set in words where it was
        found by search.
    representative : tuple of float or None
        A point of the set, where it was found by search.
    tangent : tuple of tuples of float or None
        An orthonormal basis of its tangent space there.
    """

    name: str
    kind: str
    dimension: int
    index: int | None
    nullity: int
    loss: float
    equations: str
    representative: tuple[float, ...] | None = None
    tangent: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True)
class Ends:
    """Where flows ended.

    Attributes
    ----------
    starts, ends : ndarray of shape (n, d)
    labels : ndarray of int8, shape (n,)
        Codes of `Label`. ``UNDECIDED`` stands for every flow that did not converge, and for one that passed an unstable
        set more closely than the errors of the integration allow to tell on which side.
    outcomes : ndarray of int8, shape (n,)
        Codes of `Outcome`.
    times : ndarray of shape (n,)
        Flow time at the end.
    gradients : ndarray of shape (n,)
        Largest entry of the gradient at the end (along the kinks that the flow slides along, if any).
    index, nullity : ndarray of int8, shape (n,)
        Negative and zero eigenvalues of the Hessian at the end; 0 unless converged.
    sliding : ndarray of int8, shape (n,)
        Number of kinks that the flow slides along at the end.
    steps : ndarray of int64, shape (n,)
    """

    starts: np.ndarray
    ends: np.ndarray
    labels: np.ndarray
    outcomes: np.ndarray
    times: np.ndarray
    gradients: np.ndarray
    index: np.ndarray
    nullity: np.ndarray
    sliding: np.ndarray
    steps: np.ndarray

    @property
    def words(self) -> list[str]:
        """The labels in words."""
        return [Label(int(code)).word for code in self.labels]
