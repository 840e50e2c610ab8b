"""Chapters, steps and their checks: the form in which every derivation is written down.

A step states an equation (or a condition) whose right side SymPy computed from an earlier step. Two
things vouch for it: a residual that SymPy reduces to zero, and a check by a method that shares nothing
with the derivation (the loss summed from its definition, minimisation, finite differences, a network
of actual matrices, an integrated flow), in arithmetic of 50 digits unless the check says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import mpmath
import sympy
from sympy.logic.boolalg import Boolean

from landscape.symbolic.primitives import elementary

DIGITS = 50
# What mpmath calls otherwise than SymPy.
NUMERIC = ({"airyaiprime": lambda x: mpmath.airyai(x, 1), "airybiprime": lambda x: mpmath.airybi(x, 1)}, "mpmath")


@dataclass
class Check:
    """An independent way to the left side of a step.

    Attributes
    ----------
    method : str
        What is done, in words.
    cases : sequence
        Where the two sides are compared: mappings from Symbol to number, or whatever `values` and
        `reference` take.
    reference : callable
        Takes a case and returns the left side there: a number, a flat sequence of numbers, or a bool.
    values : callable
        Takes a case and returns the numbers of the symbols on the right side; by default the case itself.
    tolerance : float
        Largest error allowed, relative to 1 + |reference|. For conditions, every point must agree.
    """

    method: str
    cases: Sequence
    reference: Callable
    values: Callable[[object], Mapping] = dict
    tolerance: float = 1e-20

    @cached_property
    def references(self) -> list:
        with mpmath.workdps(DIGITS):
            return [_flat(self.reference(case)) for case in self.cases]

    @cached_property
    def points(self) -> list[Mapping]:
        with mpmath.workdps(DIGITS):
            return [self.values(case) for case in self.cases]

    def errors(self, result) -> Iterator:
        """Error of a right side at each point; infinite where it cannot be evaluated."""
        symbols = sorted(set().union(*(point.keys() for point in self.points)), key=str)
        try:
            textbook = [elementary(entry) for entry in entries_of(result)]
        except ValueError:  # a maximum of what is not real
            yield mpmath.inf
            return
        function = sympy.lambdify(symbols, textbook, modules=list(NUMERIC))
        for point, expected in zip(self.points, self.references):
            with mpmath.workdps(DIGITS):
                try:
                    found = function(*(point[symbol] for symbol in symbols))
                    yield max(_difference(a, b) for a, b in zip(found, expected, strict=True))
                except (ZeroDivisionError, OverflowError, TypeError, ValueError, NameError):
                    yield mpmath.inf

    def passes(self, result) -> bool:
        """Whether a right side agrees at every point; stops at the first at which it does not."""
        return all(error <= self.tolerance for error in self.errors(result))


def entries_of(result) -> list:
    """The scalar expressions or conditions that make up a right side."""
    return list(result) if isinstance(result, (sympy.MatrixBase, tuple, list)) else [result]


def _flat(value) -> list:
    return list(value) if isinstance(value, (list, tuple, mpmath.matrix)) else [value]


def _difference(found, expected):
    if isinstance(expected, bool):
        return mpmath.mpf(0) if bool(found) == expected else mpmath.inf
    error = abs(mpmath.mpmathify(found) - expected) / (1 + abs(expected))
    return mpmath.inf if mpmath.isnan(error) else error


@dataclass
class Step:
    """One statement.

    Attributes
    ----------
    name : str
        Short name, unique in its chapter.
    text : str
        Why it holds, for a reader, in Markdown with $TeX$.
    left : str
        TeX of the left side.
    result : Expr, Matrix or Boolean
        The right side, as computed.
    residual : Expr, Matrix or None
        What SymPy reduced to zero; None for a condition assembled from earlier steps.
    check : Check
    """

    name: str
    text: str
    left: str
    result: object
    residual: object
    check: Check

    @property
    def is_condition(self) -> bool:
        return isinstance(self.result, (Boolean, bool))

    @property
    def residual_vanishes(self) -> bool:
        return self.residual is None or all(entry == 0 for entry in entries_of(self.residual))

    @cached_property
    def holds(self) -> bool:
        return self.residual_vanishes and self.check.passes(self.result)


@dataclass(frozen=True)
class Kernel:
    """A numeric function to be generated.

    Attributes
    ----------
    name : str
    arguments : tuple of Symbol
    results : tuple of Expr
        One expression is returned as a float, several as a tuple.
    lets : tuple of (Symbol, Expr)
        Named intermediate values, in order of evaluation.
    summary : str
        First line of the generated docstring.
    """

    name: str
    arguments: tuple
    results: tuple
    summary: str
    lets: tuple = ()


@dataclass
class Chapter:
    """A derivation: its statements in order, and what later chapters and the kernels take from it.

    Attributes
    ----------
    name, title, introduction : str
    steps : list of Step
    results : dict
        Right sides by the name of their step, and what else a chapter hands on.
    settles : str
        Whose claim the chapter is about, what it finds, and what it adds: Markdown with $TeX$, as the introduction.
    """

    name: str
    title: str
    introduction: str
    steps: list[Step] = field(default_factory=list)
    results: dict[str, object] = field(default_factory=dict)
    settles: str = ""

    def add(self, name, text, left, result, residual, check) -> object:
        """State a step; its right side is handed back and kept under its name."""
        self.steps.append(Step(name, text, left, result, residual, check))
        self.results[name] = result
        return result

    def __getitem__(self, name):
        return self.results[name]
