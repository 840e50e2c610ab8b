"""Validation at the public edge: every refusal names the parameter, what it must be and what it got."""

from __future__ import annotations

import math
import numbers

import numpy as np


class ParameterError(ValueError):
    """A parameter has a value that its owner cannot take.

    Attributes
    ----------
    parameter : str
        The name of the refused parameter, so that a command line can name its option.
    """

    def __init__(self, parameter: str, owner: str, requirement: str, value: object):
        super().__init__(f"The {parameter!r} parameter of {owner} must be {requirement}. Got {value!r} instead.")
        self.parameter = parameter
        self.requirement = requirement
        self.value = value


def real(owner: str, name: str, value: object) -> float:
    """Return `value` as a finite float, or raise `ParameterError`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, np.floating, np.integer)):
        raise ParameterError(name, owner, "a finite real number", value)
    number = float(value)
    if not math.isfinite(number):
        raise ParameterError(name, owner, "a finite real number", value)
    return number


def probability(owner: str, name: str, value: object) -> float:
    """Return `value` as a float in [0, 1], or raise `ParameterError`."""
    requirement = "a float in [0, 1]"
    try:
        number = real(owner, name, value)
    except ParameterError:
        raise ParameterError(name, owner, requirement, value) from None
    if not 0.0 <= number <= 1.0:
        raise ParameterError(name, owner, requirement, value)
    return number


def count(owner: str, name: str, value: object, least: int) -> int:
    """Return `value` as an int of at least `least`, or raise `ParameterError`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Integral, np.integer)) or value < least:
        raise ParameterError(name, owner, f"an integer of at least {least}", value)
    return int(value)


def points(owner: str, name: str, value: object, dimension: int) -> np.ndarray:
    """Return `value` as a float64 array of shape (n, dimension), or raise `ParameterError`.

    Entries that are not finite are let through: a start at NaN is labelled ``invalid``, not refused.
    """
    requirement = f"an array of real numbers of shape (n, {dimension}) or ({dimension},)"
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise TypeError
        array = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(name, owner, requirement, value) from None
    if array.ndim == 1 and array.shape == (dimension,):
        array = array.reshape(1, dimension)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise ParameterError(name, owner, requirement, f"an array of shape {array.shape}")
    return array


def axis(owner: str, name: str, value: object) -> np.ndarray:
    """Return a grid axis as a strictly increasing float64 array.

    Parameters
    ----------
    value : (low, high, n) with an integer n >= 2 and low < high, or a 1-D increasing array
        A tuple or list of three is always read as the triple; three nodes are given as an ndarray.

    Raises
    ------
    ParameterError
        If the triple or the array does not describe a finite, strictly increasing axis.
    """
    requirement = "(low, high, n) with finite low < high and an integer n of at least 2, or an increasing 1-D array"
    if isinstance(value, (tuple, list)) and len(value) == 3:
        low, high, n = value
        low, high = real(owner, name, low), real(owner, name, high)
        if not low < high or isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 2:
            raise ParameterError(name, owner, requirement, tuple(value))
        nodes = np.linspace(low, high, int(n))
    else:
        nodes = np.asarray(value)
        if nodes.ndim != 1 or nodes.size < 2 or nodes.dtype.kind not in "fiu":
            raise ParameterError(name, owner, requirement, value)
        nodes = nodes.astype(np.float64)
    if not np.all(np.isfinite(nodes)) or not np.all(np.diff(nodes) > 0):
        raise ParameterError(name, owner, requirement, value)
    return nodes
