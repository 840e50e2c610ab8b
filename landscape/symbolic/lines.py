"""Right sides broken over lines where they would be wider than a page. The text depends only on the expression."""

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy.core.sorting import default_sort_key

LIMIT = 72  # characters of SymPy's plain text: some 400 pt of TeX

Printer = Callable[[object], str]


def width(expression) -> int:
    """About how wide an expression is set, in characters."""
    drawn = sympy.pretty(expression, use_unicode=True, wrap_line=False)
    return max(len(line.rstrip()) for line in drawn.split("\n"))


def broken(expression, tex: Printer) -> str:
    """TeX of an expression, vector or condition, in several lines if it is wide.

    Sums are broken before a term, conditions before an "and" or "or", vectors within their entries. What cannot be broken
    (a single fraction, a choice of cases) stays as `tex` prints it.
    """
    if isinstance(expression, sympy.MatrixBase):
        if expression.cols > 1 or not any(width(entry) > LIMIT for entry in expression):
            return tex(expression)
        entries = r"\\".join(broken(entry, tex) for entry in expression)
        return rf"\left(\begin{{matrix}}{entries}\end{{matrix}}\right)"
    if not isinstance(expression, sympy.Basic) or width(expression) <= LIMIT:
        return tex(expression)
    if isinstance(expression, sympy.Add):
        return _lines(_terms(expression, tex))
    if isinstance(expression, (sympy.And, sympy.Or)):
        return _stacked(_conditions(expression, tex))
    if isinstance(expression, sympy.Mul):
        return _product(expression, tex)
    return tex(expression)


def _terms(expression, tex: Printer) -> list[tuple[str, int]]:
    """Terms of a sum with their signs, and how wide they are."""
    found = []
    for number, term in enumerate(expression.as_ordered_terms()):
        words = broken(term, tex)
        sign = "" if number == 0 or words.startswith("-") else "+ "
        found.append((sign + words, width(term) + 3))
    return found


def _conditions(expression, tex: Printer) -> list[str]:
    """What a condition joins, each with the sign that joins it to the one before."""
    sign = r"\wedge" if isinstance(expression, sympy.And) else r"\vee"
    found = []
    for number, part in enumerate(sorted(expression.args, key=default_sort_key)):
        words = broken(part, tex)
        words = rf"\left({words}\right)" if isinstance(part, (sympy.And, sympy.Or)) else words
        found.append(words if number == 0 else f"{sign} {words}")
    return found


def _product(expression, tex: Printer) -> str:
    """A product of which one factor is a wide sum."""
    wide = [factor for factor in expression.args if isinstance(factor, sympy.Add) and width(factor) > LIMIT / 2]
    if len(wide) != 1:
        return tex(expression)
    return rf"{tex(expression / wide[0])} \left({_lines(_terms(wide[0], tex))}\right)"


def _lines(pieces: list[tuple[str, int]]) -> str:
    """Pieces packed into as few lines as they need."""
    lines: list[list[str]] = [[]]
    used = 0
    for words, size in pieces:
        if lines[-1] and used + size > LIMIT:
            lines.append([])
            used = 0
        lines[-1].append(words)
        used += size
    return _stacked([" ".join(line) for line in lines])


def _stacked(lines: list[str]) -> str:
    """Lines below each other, those after the first indented."""
    return r"\begin{aligned}& " + r" \\ & \quad ".join(lines) + r"\end{aligned}"
