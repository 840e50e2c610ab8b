"""From a sequence to its chain: transition probabilities with intervals, and whether the theory applies to it.

Everything here is of first-order chains with the two transition laws of `landscape.chains`. Whether a sequence is
one of these is tested by likelihood ratios, each against the next larger model: order one against order two, equal
rates against one law for each symbol, one law throughout against one for each half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from landscape import parameters
from landscape.chains import BinaryChain, Chain, SymmetricChain
from landscape.parameters import ParameterError

SMALL = 5.0  # expected counts below which the law of a likelihood ratio is not trusted
DOUBT = 0.01  # a p-value below it is a warning


@dataclass(frozen=True)
class Rate:
    """A probability with its Wilson interval: `seen` of `of` steps were such a transition."""

    value: float
    low: float
    high: float
    seen: int
    of: int


@dataclass(frozen=True)
class Test:
    """A likelihood-ratio test: what it asks, twice the log ratio, degrees of freedom, p-value; None where counts are too small."""

    __test__ = False  # a class whose name looks like a test's

    question: str
    statistic: float
    degrees: int
    p_value: float | None


@dataclass(frozen=True)
class Estimate:
    """The first-order chain that fits a sequence best.

    Attributes
    ----------
    chain : BinaryChain or SymmetricChain
    symbols : tuple
        What stands for 0, 1, ... in the sequence, in sorted order.
    rates : dict of str to Rate
        ``p`` and ``q`` of a BinaryChain, ``p`` of a SymmetricChain.
    level : float
        Of the intervals.
    transitions : ndarray of int64, shape (S, S)
        How often each symbol (row) was followed by each.
    tests : dict of str to Test
        ``order``, ``halves`` and, for S >= 3, ``symmetry``.
    warnings : tuple of str
        Where the theory may not apply; empty if nothing speaks against it.
    """

    chain: Chain
    symbols: tuple
    rates: dict[str, Rate]
    level: float
    transitions: np.ndarray
    tests: dict[str, Test]
    warnings: tuple[str, ...]


def estimate(sequences, level: float = 0.95) -> Estimate:
    """The chain of one or more sequences by maximum likelihood, with intervals and tests of what the theory assumes.

    Parameters
    ----------
    sequences : array_like of shape (n,) or (m, n), or a list of such of unequal lengths
        Symbols: integers or words. What stands between two sequences is no transition. Two different symbols make a
        `BinaryChain`, more a `SymmetricChain`.
    level : float in (0, 1)
        Of the Wilson intervals of the rates.

    Raises
    ------
    ParameterError
        If there are fewer than two symbols, or one of them is never followed by another.
    """
    owner = "estimate"
    level = parameters.probability(owner, "level", level)
    if not 0.0 < level < 1.0:
        raise ParameterError("level", owner, "a float in (0, 1)", level)
    symbols, coded = _coded(owner, sequences)
    states = len(symbols)
    triples = np.zeros((states, states, states), dtype=np.int64)
    pairs = np.zeros((2, states, states), dtype=np.int64)  # of each half
    for part in coded:
        np.add.at(triples, (part[:-2], part[1:-1], part[2:]), 1)
        middle = (len(part) - 1) // 2
        for half, steps in enumerate((slice(None, middle), slice(middle, None))):
            np.add.at(pairs[half], (part[:-1][steps], part[1:][steps]), 1)
    transitions = pairs.sum(axis=0)
    for symbol, row in zip(symbols, transitions):
        if not row.sum():
            raise ParameterError("sequences", owner, f"such that every symbol is followed by another ({symbol!r} is not)", _shown(sequences))
    rates, chain = _fitted(transitions, level)
    tests = {"order": _order(triples), "halves": _alike("one law throughout against one for each half", pairs)}
    if states > 2:
        tests["symmetry"] = _symmetry(transitions)
    return Estimate(chain, symbols, rates, level, transitions, tests, tuple(_warnings(rates, tests)))


def read_sequences(path: str | Path) -> list[list[str]]:
    """Sequences from a text file: a line each, or one symbol on every line.

    The symbols of a line are separated by spaces, tabs, commas or semicolons; without any of these each character is one.

    Raises
    ------
    OSError
        If the file cannot be read.
    ParameterError
        If it is not UTF-8 text, or holds nothing.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ParameterError("file", "read_sequences", "text in UTF-8", str(path)) from None
    lines = [line.translate(str.maketrans(",;", "  ")).split() for line in text.splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        raise ParameterError("file", "read_sequences", "a file with symbols", str(path))
    if len(lines) > 1 and all(len(line) == 1 for line in lines) and len({line[0] for line in lines}) <= len(lines) // 2:
        return [[line[0] for line in lines]]
    return [list(line[0]) if len(line) == 1 else line for line in lines]


def _coded(owner: str, sequences) -> tuple[tuple, list[np.ndarray]]:
    """The symbols in order, and every sequence in their numbers."""
    if isinstance(sequences, str) or not isinstance(sequences, (Sequence, np.ndarray)) or not len(sequences):
        raise ParameterError("sequences", owner, "a sequence of symbols, or a list of such", _shown(sequences))
    nested = [isinstance(part, (Sequence, np.ndarray)) and not isinstance(part, (str, bytes)) and np.ndim(part) > 0 for part in sequences]
    if any(nested) and not all(nested):
        raise ParameterError("sequences", owner, "either symbols or sequences of symbols, not both", _shown(sequences))
    parts = [np.asarray(part) for part in sequences] if all(nested) else [np.asarray(sequences)]
    if any(part.ndim != 1 or part.dtype.kind not in "iubUS" for part in parts) or len({part.dtype.kind in "US" for part in parts}) > 1:
        raise ParameterError("sequences", owner, "integers or words", _shown(sequences))
    symbols, numbers = np.unique(np.concatenate(parts), return_inverse=True)
    if len(symbols) < 2:
        raise ParameterError("sequences", owner, "of at least two different symbols", _shown(sequences))
    return tuple(symbols.tolist()), np.split(numbers, np.cumsum([len(part) for part in parts])[:-1])


def _shown(value, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."


def _fitted(transitions: np.ndarray, level: float) -> tuple[dict[str, Rate], Chain]:
    leaving = transitions.sum(axis=1) - np.diag(transitions)
    if len(transitions) == 2:
        rates = {name: _rate(leaving[k], transitions[k].sum(), level) for k, name in enumerate("pq")}
        return rates, BinaryChain(rates["p"].value, rates["q"].value)
    rates = {"p": _rate(leaving.sum(), transitions.sum(), level)}
    return rates, SymmetricChain(len(transitions), rates["p"].value)


def _rate(seen, of, level: float) -> Rate:
    from scipy.stats import binomtest

    found = binomtest(int(seen), int(of)).proportion_ci(level, method="wilson")
    return Rate(float(seen / of), float(found.low), float(found.high), int(seen), int(of))


def _order(triples: np.ndarray) -> Test:
    """Whether the symbol before the last one matters, given the last."""
    return _alike("order one against order two", triples)


def _alike(question: str, tables: np.ndarray) -> Test:
    """Whether tables (k, S, S) of transitions, or of the last two of three symbols, have the same laws row by row."""
    rows = tables.sum(axis=2, keepdims=True)
    pooled = tables.sum(axis=0)
    expected = rows * (pooled / np.maximum(pooled.sum(axis=1, keepdims=True), 1))
    # of each row of the pooled table: (tables that have it - 1) (symbols that follow it - 1)
    degrees = int((((rows[..., 0] > 0).sum(axis=0) - 1).clip(0) * ((pooled > 0).sum(axis=1) - 1).clip(0)).sum())
    return _judged(question, tables, expected, degrees)


def _symmetry(transitions: np.ndarray) -> Test:
    """Whether every symbol is left at one rate, to all others alike."""
    states, rows = len(transitions), transitions.sum(axis=1, keepdims=True)
    p = 1.0 - np.trace(transitions) / transitions.sum()
    law = np.where(np.eye(states, dtype=bool), 1.0 - p, p / (states - 1))
    degrees = states * (states - 1) - 1
    return _judged("one rate for all transitions against one law for each symbol", transitions, rows * law, degrees)


def _judged(question: str, seen: np.ndarray, expected: np.ndarray, degrees: int) -> Test:
    from scipy.special import xlogy
    from scipy.stats import chi2

    statistic = max(0.0, float(2.0 * (xlogy(seen, seen) - xlogy(seen, np.where(seen > 0, expected, 1.0))).sum()))
    trusted = degrees > 0 and bool((expected[expected > 0] >= SMALL).all())
    return Test(question, statistic, degrees, float(chi2.sf(statistic, degrees)) if trusted else None)


def _warnings(rates: dict[str, Rate], tests: dict[str, Test]):
    against = {
        "order": "The symbol before the last one matters: the sequence is of order two or higher, and what is derived for first-order chains does not apply.",
        "halves": "The two halves have different transition laws: the sequence is not stationary.",
        "symmetry": "Transitions are not symmetric: the chain on S symbols is more than its one rate p.",
    }
    for name, test in tests.items():
        if test.p_value is None:
            yield f"Too few transitions to test {test.question}."
        elif test.p_value < DOUBT:
            yield f"{against[name]} (p-value {test.p_value:.2g})"
    for name, rate in rates.items():
        if rate.value in (0.0, 1.0):
            yield f"{name} = {rate.value:g} was estimated from {rate.of} steps; at that end the optimal gap is infinite or the chain stops. The interval is [{rate.low:.3g}, {rate.high:.3g}]."
