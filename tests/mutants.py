"""Every way of getting one sign wrong in a statement."""

from __future__ import annotations

import sympy
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from landscape.symbolic.symbols import sign_e, sign_w


def sign_mutants(statement):
    """Yield each different statement in which the sign of one subexpression, or one inequality, is flipped.

    Parameters
    ----------
    statement : Expr, Matrix or Boolean

    Yields
    ------
    The same kind of object. Mutants that SymPy writes as the statement itself are left out.
    """
    if isinstance(statement, sympy.MatrixBase):
        for i, entry in enumerate(statement):
            for mutant in sign_mutants(entry):
                changed = statement.copy()
                changed[i] = mutant
                yield changed
        return
    seen = {statement}
    for mutant in _flip(statement):
        if mutant not in seen:
            seen.add(mutant)
            yield mutant


def _flip(node):
    """The node negated (or its inequality reversed), then with each of its arguments flipped in turn."""
    if isinstance(node, Relational):
        yield node.reversedsign.func(node.rhs, node.lhs) if node.func in (sympy.Eq, sympy.Ne) else node.func(node.rhs, node.lhs)
    elif not isinstance(node, (Boolean, sympy.functions.elementary.piecewise.ExprCondPair, sympy.Piecewise)):
        yield -node
    for i, argument in enumerate(node.args):
        if isinstance(argument, sympy.Basic):
            for flipped in _flip(argument):
                arguments = list(node.args)
                arguments[i] = flipped
                try:
                    yield node.func(*arguments)
                except (TypeError, ValueError):
                    continue  # SymPy refuses it: a maximum or a condition over what is no longer real


def equivalent(one, other) -> bool:
    """Whether SymPy can show, in each branch of signs, that two statements say the same."""
    if isinstance(one, sympy.MatrixBase):
        return all(equivalent(a, b) for a, b in zip(one, other))
    if isinstance(one, Boolean):
        return bool(one == other)
    difference = one - other
    branches = [{sign_e: a, sign_w: b} for a in (1, -1) for b in (1, -1)]
    return all(sympy.simplify(sympy.expand(difference.subs(branch))) == 0 for branch in branches)
