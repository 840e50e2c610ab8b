"""Functions that keep their digits where their textbook form overflows or cancels.

Each knows its derivative and its textbook form (`elementary`). The kernels print them as calls of
landscape.kernels.stable; the checks at 50 digits use the textbook form, so they share nothing.
"""

from __future__ import annotations

from sympy import Add, Function, Max, Min, asinh, exp, log


class softplus(Function):
    """log(1 + e^x)."""

    nargs = 1

    def fdiff(self, argindex=1):
        return sigmoid(self.args[0])

    @staticmethod
    def textbook(x):
        return log(1 + exp(x))

    def _latex(self, printer, exp=None):
        body = r"\operatorname{softplus}\left(%s\right)" % printer._print(self.args[0])
        return body if exp is None else r"\left[%s\right]^{%s}" % (body, exp)


class sigmoid(Function):
    """1 / (1 + e^{-x})."""

    nargs = 1

    def fdiff(self, argindex=1):
        return sigmoid(self.args[0]) * sigmoid(-self.args[0])

    @staticmethod
    def textbook(x):
        return exp(x) / (1 + exp(x))

    def _latex(self, printer, exp=None):
        power = "" if exp is None else "^{%s}" % exp
        return r"\sigma%s\left(%s\right)" % (power, printer._print(self.args[0]))


class expm1(Function):
    """e^x - 1."""

    nargs = 1

    def fdiff(self, argindex=1):
        return exp(self.args[0])

    @staticmethod
    def textbook(x):
        return exp(x) - 1

    def _latex(self, printer, exp=None):
        body = r"\operatorname{expm1}\left(%s\right)" % printer._print(self.args[0])
        return body if exp is None else r"\left[%s\right]^{%s}" % (body, exp)


class above_tangent(Function):
    """e^x - 1 - x: how far e^x lies above its tangent at 0."""

    nargs = 1

    def fdiff(self, argindex=1):
        return expm1(self.args[0])

    @staticmethod
    def textbook(x):
        return exp(x) - 1 - x

    def _latex(self, printer, exp=None):
        body = r"\operatorname{exc}\left(%s\right)" % printer._print(self.args[0])
        return body if exp is None else r"\left[%s\right]^{%s}" % (body, exp)


class asinh_exp_excess(Function):
    """asinh(e^x) - max(x, 0): bounded by log(1 + sqrt(2)), and it carries the digits that the sum loses."""

    nargs = 1

    @staticmethod
    def textbook(x):
        return asinh(exp(x)) - Max(x, 0)

    def _latex(self, printer, exp=None):
        body = r"\rho\left(%s\right)" % printer._print(self.args[0])
        return body if exp is None else r"\left[%s\right]^{%s}" % (body, exp)


PRIMITIVES = (softplus, sigmoid, expm1, above_tangent, asinh_exp_excess)


def elementary(expression):
    """Write every primitive in its textbook form."""
    for primitive in PRIMITIVES:
        expression = expression.replace(primitive, primitive.textbook)
    return expression


def log_sum(x, y):
    """log(e^x + e^y) with e^y taken out of the sum."""
    return y + softplus(x - y)


def shift_maximum(expression):
    """Move the other terms of a sum into its Max or Min, so that large terms never cancel outside it.

    ``x + Max(u, v)`` becomes ``Max(x + u, x + v)``, and ``x - Max(u, v)`` becomes ``Min(x - u, x - v)``.
    """
    terms = Add.make_args(expression)
    for term in terms:
        factor, rest = term.as_coeff_Mul()
        if isinstance(rest, Max) and factor in (1, -1):
            others = expression - term
            outer = Max if factor == 1 else Min
            return outer(*(others + factor * argument for argument in rest.args))
    return expression
