"""From a user's loss, gap or logits to the text of a module of kernels.

Every kink of the expression (the argument of an absolute value, a ReLU, a maximum, a condition) becomes a
surface s_j(θ) = 0 with a sign σ_j. In each branch of the signs the expression is smooth, so derivatives are
taken there and nothing like a delta function ever arises.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mpmath
import sympy
from sympy import Abs, Add, And, Heaviside, Max, Min, Not, Or, Piecewise, Pow, Symbol, exp, log, sign
from sympy.core.relational import Ge, Gt, Le, Lt, Relational

from landscape.parameters import ParameterError
from landscape.symbolic.primitives import elementary, log_sum, sigmoid, softplus

SMOOTH = (
    sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.sinh, sympy.cosh, sympy.tanh, sympy.atan, sympy.asinh,
    sympy.erf, softplus, sigmoid, Abs, sign, Max, Min, Heaviside, Piecewise, sympy.functions.elementary.piecewise.ExprCondPair,
)


def internal_parameters(count: int) -> tuple[Symbol, ...]:
    """The names that parameters have in kernels, so that no name of the user's can collide with anything."""
    return tuple(Symbol(f"theta_{i}", real=True) for i in range(count))


def checked(owner: str, expression, names: Sequence[str], declared: Sequence = ()):
    """A user's expression over the package's own real symbols.

    Parameters
    ----------
    expression : Expr or str
        Text is parsed by `landscape.symbolic.parsing.parse`, which runs no code.
    names : sequence of str
        Names of the parameters, in order.
    declared : sequence of Symbol
        The user's own symbols of these names, if there are any.

    Raises
    ------
    ParameterError
        If a name stands for two symbols with different assumptions, for one that is not simply real, or for none of
        the parameters; or if the expression holds something that has no kernel.
    """
    from landscape.symbolic.parsing import parse

    own = dict(zip(names, internal_parameters(len(names))))
    if isinstance(expression, str):
        try:
            return parse(expression, own, owner)
        except ParameterError as error:
            raise ParameterError("expression", owner, error.requirement, error.value) from None
    expression = sympy.sympify(expression)
    found: dict[str, Symbol] = {}
    for symbol in sorted(expression.free_symbols | set(declared), key=sympy.default_sort_key):
        other = found.setdefault(symbol.name, symbol)
        if other != symbol:
            requirement = f"free of two symbols of the name {symbol.name!r} with different assumptions"
            raise ParameterError(symbol.name, owner, requirement, expression)
        if symbol.name not in own:
            raise ParameterError(symbol.name, owner, f"one of the parameters {', '.join(names)}", symbol.name)
        if symbol.assumptions0 not in (Symbol("any").assumptions0, Symbol("any", real=True).assumptions0):
            raise ParameterError(symbol.name, owner, "a plain or a real symbol, with no other assumption", symbol.assumptions0)
    expression = expression.xreplace({symbol: own[name] for name, symbol in found.items()})
    if expression.has(sympy.I, sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise ParameterError("expression", owner, "real and finite", expression)
    for node in sympy.preorder_traversal(expression):
        if isinstance(node, sympy.Function) and not isinstance(node, SMOOTH) or isinstance(node, (sympy.Derivative, sympy.Integral)):
            raise ParameterError("expression", owner, "made of functions that have a kernel", node)
    return expression


def stable(expression):
    """Write log(1 + e^u) as softplus(u) and 1/(1 + e^u) as sigmoid(-u), which keep their digits."""

    def exponent(node):
        if isinstance(node, Add) and len(node.args) == 2 and sympy.S.One in node.args:
            other = node - 1
            return other.args[0] if isinstance(other, exp) else None
        return None

    expression = expression.replace(
        lambda node: isinstance(node, log) and exponent(node.args[0]) is not None, lambda node: softplus(exponent(node.args[0]))
    )
    return expression.replace(
        lambda node: isinstance(node, Pow) and node.exp == -1 and exponent(node.base) is not None,
        lambda node: sigmoid(-exponent(node.base)),
    )


@dataclass(frozen=True)
class Branches:
    """An expression without kinks in the parameters θ and the signs σ, and the functions whose signs those are.

    `beside` holds other expressions in the same θ and σ.
    """

    expression: sympy.Expr
    signs: tuple[Symbol, ...]
    surfaces: tuple[sympy.Expr, ...]
    beside: tuple[sympy.Expr, ...] = ()


class _Splitter:
    """Replaces what has a kink, innermost first, and collects the surfaces."""

    def __init__(self):
        self.surfaces: list = []

    def side(self, argument):
        """The sign of an argument: a number where it is known, else σ_j."""
        if argument.is_zero:
            return sympy.S.Zero
        if argument.is_positive or argument.is_negative:
            return sympy.S.One if argument.is_positive else sympy.S.NegativeOne
        if argument.is_Mul:  # a surface for each factor, so that its normal vanishes nowhere on it
            return sympy.Mul(*(self.side(factor) for factor in argument.args))
        if argument.could_extract_minus_sign():
            return -self.side(-argument)
        if argument not in self.surfaces:
            self.surfaces.append(argument)
        return Symbol(f"sigma_{self.surfaces.index(argument)}", real=True)

    def larger(self, first, second):
        """The larger of two."""
        side = self.side(first - second)
        return (1 + side) / 2 * first + (1 - side) / 2 * second

    def visit(self, node):
        """A node without its kinks."""
        if not node.args:
            return node
        if isinstance(node, Piecewise):
            return Piecewise(*((self.visit(value), self.condition(where)) for value, where in node.args))
        arguments = [self.visit(argument) for argument in node.args]
        if isinstance(node, Abs):
            return self.side(arguments[0]) * arguments[0]
        if isinstance(node, sign):
            return self.side(arguments[0])
        if isinstance(node, Heaviside):
            return (1 + self.side(arguments[0])) / 2
        if isinstance(node, (Max, Min)):
            flip = 1 if isinstance(node, Max) else -1
            largest = flip * arguments[0]
            for argument in arguments[1:]:
                largest = self.larger(largest, flip * argument)
            return flip * largest
        return node.func(*arguments)

    def condition(self, where):
        """A condition on the signs instead of the parameters."""
        if isinstance(where, (And, Or, Not)):
            return where.func(*(self.condition(part) for part in where.args))
        if not isinstance(where, Relational):
            return where
        if not isinstance(where, (Lt, Le, Gt, Ge)):
            raise ParameterError("expression", "a condition", "made of <, <=, > and >=", where)
        side = self.side(self.visit(where.gts - where.lts))
        return side > 0 if isinstance(where, (Lt, Gt)) else side >= 0


def split(expression, *beside) -> Branches:
    """Take the kinks out of an expression, and out of others beside it."""
    splitter = _Splitter()
    smooth, *others = (stable(splitter.visit(each)) for each in (expression, *beside))
    signs = tuple(Symbol(f"sigma_{j}", real=True) for j in range(len(splitter.surfaces)))
    return Branches(smooth, signs, tuple(splitter.surfaces), tuple(others))


class _Numeric:
    """The branches of an expression as functions of points, at 30 digits."""

    def __init__(self, branches: Branches, parameters, box):
        self.box = box
        arguments = (*parameters, *branches.signs)
        self.draw = random.Random(0)
        self.value = sympy.lambdify(arguments, elementary(branches.expression), "mpmath")
        gradient = [elementary(sympy.diff(branches.expression, parameter)) for parameter in parameters]
        self.gradient = sympy.lambdify(arguments, gradient, "mpmath")
        self.levels = sympy.lambdify(arguments, [elementary(surface) for surface in branches.surfaces], "mpmath")
        self.surfaces = len(branches.surfaces)

    def point(self):
        """A random point of the box."""
        return [mpmath.mpf(self.draw.uniform(*bounds)) for bounds in self.box]

    def signs(self, point):
        """The branch that a point is in."""
        found = [mpmath.mpf(1)] * self.surfaces
        for j in range(self.surfaces):
            found[j] = mpmath.sign(self.levels(*point, *found)[j])
        return found


def confirm(owner: str, expression, branches: Branches, names: Sequence[str], box: Mapping | None = None) -> None:
    """Compare the derivatives in the branches with numerical ones of the expression itself, and branches on their kinks.

    Raises
    ------
    ParameterError
        If they differ, or if the loss is not a real number at any of the points.
    """
    parameters = internal_parameters(len(names))
    shown = str(expression.xreplace({symbol: Symbol(name) for symbol, name in zip(parameters, names)}))
    with mpmath.workdps(30):
        numeric = _Numeric(branches, parameters, [(box or {}).get(name, (-2.0, 2.0)) for name in names])
        _confirm_derivatives(owner, expression, numeric, parameters, shown)
        for j in range(numeric.surfaces):
            _confirm_continuity(owner, numeric, j, shown)


def _confirm_derivatives(owner: str, expression, numeric: _Numeric, parameters, shown: str) -> None:
    textbook, confirmed = sympy.lambdify(parameters, elementary(expression), "mpmath"), 0
    for _ in range(40):
        point = numeric.point()
        try:
            found = numeric.gradient(*point, *numeric.signs(point))
            expected = [
                mpmath.diff(textbook, tuple(point), tuple(int(i == j) for j in range(len(point)))) for i in range(len(point))
            ]
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            continue
        if any(isinstance(mpmath.mpmathify(value), mpmath.mpc) for value in (*expected, *found)):
            continue
        scale = 1 + max(abs(value) for value in expected)
        if any(abs(a - b) > mpmath.mpf(10) ** -8 * scale for a, b in zip(found, expected)):
            raise ParameterError("expression", owner, "continuous, with the derivatives that SymPy gives it", shown)
        confirmed += 1
        if confirmed == 3:
            return
    if not confirmed:
        raise ParameterError("expression", owner, "a real number somewhere in its box", shown)


def _confirm_continuity(owner: str, numeric: _Numeric, j: int, shown: str) -> None:
    """Go to surface j between points on its two sides, and compare the values of both branches there."""
    confirmed = 0
    for _ in range(60):
        ends = [numeric.point(), numeric.point()]
        try:
            if numeric.signs(ends[0])[j] * numeric.signs(ends[1])[j] >= 0:
                continue
            first = numeric.signs(ends[0])[j]
            for _ in range(100):
                middle = [(a + b) / 2 for a, b in zip(*ends)]
                ends[0 if numeric.signs(middle)[j] == first else 1] = middle
            signs = numeric.signs(ends[0])
            values = [numeric.value(*ends[0], *signs[:j], side, *signs[j + 1 :]) for side in (mpmath.mpf(1), mpmath.mpf(-1))]
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            continue
        if any(isinstance(mpmath.mpmathify(value), mpmath.mpc) or not mpmath.isfinite(value) for value in values):
            continue
        if abs(values[0] - values[1]) > mpmath.mpf(10) ** -8 * (1 + abs(values[0])):
            raise ParameterError("expression", owner, "continuous where its conditions and kinks are", shown)
        confirmed += 1
        if confirmed == 3:
            return


def cross_entropy(logits: Sequence[Sequence]) -> tuple:
    """The loss Σ_xy weight_xy (log Σ_z exp l_x(z) - l_x(y)), and its weights, from logits l_x(y) after each symbol x."""
    weights, total = [], sympy.S.Zero
    for x, row in enumerate(logits):
        mass = [Symbol(f"weight_{x}_{y}", real=True) for y in range(len(row))]
        if len(row) == 2:
            losses = [softplus(row[1] - row[0]), softplus(row[0] - row[1])]
        else:
            whole = row[0]
            for entry in row[1:]:
                whole = log_sum(entry, whole)
            losses = [whole - entry for entry in row]
        total += Add(*(weight * loss for weight, loss in zip(mass, losses)))
        weights += mass
    return total, tuple(weights)


def hessian_entries(expression, parameters) -> tuple:
    """The upper triangle of the Hessian, row by row."""
    return tuple(
        sympy.diff(expression, a, b) for i, a in enumerate(parameters) for b in parameters[i:]
    )


