"""Products of matrices and vectors of unspecified sizes, as words in letters that do not commute."""

from __future__ import annotations

from sympy import Add, Expr, Mul, Symbol, expand


def letter(name: str) -> Symbol:
    """A matrix or a column vector."""
    return Symbol(name, commutative=False)


def transposed(expression: Expr) -> Expr:
    """The transpose of a sum of words: their letters transposed and in reverse."""
    terms = []
    for term in Add.make_args(expand(expression)):
        numbers, letters = term.args_cnc()
        terms.append(Mul(*numbers, *(_turned(one) for one in reversed(letters))))
    return Add(*terms)


def _turned(one: Symbol) -> Symbol:
    return letter(one.name[:-1] if one.name.endswith("'") else one.name + "'")


def shortened(expression: Expr, orthogonal: tuple[Symbol, ...]) -> Expr:
    """Use O'O = 1 for the given letters until nothing changes."""
    expression, before = expand(expression), None
    while expression != before:
        before = expression
        for one in orthogonal:
            expression = expand(expression.subs(_turned(one) * one, 1))
    return expression
