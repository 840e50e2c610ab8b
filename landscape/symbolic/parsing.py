"""From text to SymPy, without ever running the text.

A formula is cut into tokens, read by Python's `ast` (which builds a tree and executes nothing) and rebuilt from a
short list of operations. What is not on the list is refused. So is what would cost more than it says: towers of
powers, numbers of thousands of digits, deep nesting, constants that a float cannot hold.

SymPy's automatic simplification may take hours over what looks harmless (it compares the arguments of a maximum, and
asks whether a nest of functions is real, or where a polynomial changes sign). So it is used on shallow operands only,
such as sqrt(x^2) or exp(-x); on deeper ones functions, powers and branches are built as written. Sums and products are
always collected, and no more than a dozen operations may stand one inside the other.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

import sympy
from sympy import Abs, Add, Expr, Integer, Max, Min, Mul, Piecewise, Pow, Rational, Symbol

from landscape.parameters import ParameterError
from landscape.symbolic.primitives import sigmoid, softplus

LONGEST_TEXT = 10_000  # characters
LONGEST_NUMBER = 100  # characters of one literal
MOST_TOKENS = 3_000
DEEPEST_BRACKETS = 40
DEEPEST = 12  # sums, products, powers and calls, one inside the other; a long sum is one
SHALLOW, SHALLOW_CONSTANT = 2, 4  # levels of the tree of an operand that SymPy may simplify
DEEPEST_CONSTANT = 12  # levels of its tree; SymPy's time to evaluate it grows exponentially with them
DEEPEST_BRANCHES = 3  # abs, sign, max, min, relu and where, one inside the other
MOST_ARGUMENTS = 8  # of max and min
LARGEST_EXPONENT = 64
MOST_BITS = 2**15  # of all numbers together
MOST_BITS_OF_A_ROOT = 1_100
CANCELLED = 1e-10  # a sum of constants this small beside its terms is lost to rounding

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<operator>\*\*|<=|>=|[-+*/^<>(),])|(?P<space>[ \t\r\n]+)"
)
_WORD = re.compile(r"[\w.]+")
_CONSTANTS = {"pi": sympy.pi, "E": sympy.E}
_ELEMENTARY = (
    *(sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.sinh, sympy.cosh, sympy.tanh),
    *(sympy.atan, sympy.asinh, sympy.erf),
)
_SMOOTH = {function.__name__: function for function in (*_ELEMENTARY, sympy.sqrt, softplus, sigmoid)}
_FLOATS = {function: vars(math)[function.__name__] for function in _ELEMENTARY}
# Of constants, because SymPy refuses to compare constants that it cannot evaluate.
_WRITTEN_OUT = {"softplus": lambda u: sympy.log(1 + sympy.exp(u)), "sigmoid": lambda u: 1 / (1 + sympy.exp(-u))}
_COMPARISONS = {ast.Lt: sympy.Lt, ast.LtE: sympy.Le, ast.Gt: sympy.Gt, ast.GtE: sympy.Ge}
_WORDS = {
    ast.IfExp: "a conditional (write where(condition, a, b))",
    ast.Compare: "a comparison outside of where(condition, a, b)",
    ast.Tuple: "a list of values",
    ast.BoolOp: "'and' or 'or'",
    ast.GeneratorExp: "a comprehension",
    ast.Starred: "a starred argument",
    ast.FloorDiv: "the operator //",
    ast.LShift: "the operator <<",
    ast.RShift: "the operator >>",
}


def parse(text: str, symbols: Mapping[str, Symbol], owner: str = "expression") -> Expr:
    """Read a formula.

    Parameters
    ----------
    text : str
        At most 10,000 ASCII characters: decimal numbers (exact: 0.1 is 1/10), the names in `symbols`, the constants
        pi and E, the operators + - * / ** (or ^), round brackets, and the functions exp, log, sqrt, sin, cos, tan,
        sinh, cosh, tanh, atan, asinh, erf, softplus, sigmoid, relu, abs, sign of one argument, max and min of two to
        eight, and where(condition, a, b), whose condition is one comparison by <, <=, > or >=. A constant exponent
        is at most 64 in size. At most twelve operations and calls stand one inside the other (a sum or a product of
        any length is one), and at most three of abs, sign, max, min, relu and where.
    symbols : mapping of str to Symbol
        What each name means. A name here hides the constant of that name; functions are a namespace of their own.
    owner : str
        Whose text it is, for the message of a refusal.

    Returns
    -------
    Expr
        Real and finite where it is constant. Made of + * **, the functions above, Max, Min, Abs, sign, Piecewise.

    Raises
    ------
    ParameterError
        If the text holds anything else, or a constant with no real value (1/0, log(-1)), or one that a float cannot
        hold or tell from zero. The message names it.
    """
    reader = _Reader(symbols, owner)
    source = reader.checked(text)
    try:
        return reader.finished(reader.read(ast.parse(source, mode="eval").body))
    except SyntaxError as error:
        where = f"{_shown(source)} (near character {error.offset})"
        raise ParameterError("text", owner, "a formula without a syntax error", where) from None
    except TypeError:  # SymPy's, where it compares what is not real
        raise ParameterError("text", owner, "real in every comparison", _shown(source)) from None
    except (RecursionError, MemoryError):
        raise ParameterError("text", owner, "nested less deeply", _shown(source)) from None


def _shown(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


class _Reader:
    """Turns one syntax tree into one expression."""

    def __init__(self, symbols: Mapping[str, Symbol], owner: str):
        self.names = {**_CONSTANTS, **symbols}
        self.owner = owner
        self.source = ""
        self.depth = 0
        self.branches = 0
        self.bits = 0
        self.kinds: dict[type, Callable[[ast.AST], Expr]] = {
            ast.Constant: self.number,
            ast.Name: self.name,
            ast.UnaryOp: self.signed,
            ast.BinOp: self.operation,
            ast.Call: self.call,
        }
        self.branching = {
            "abs": (1, 1, self.absolute),
            "sign": (1, 1, self.sign),
            "relu": (1, 1, lambda u: self.extreme(Max, [u, Integer(0)])),
            "max": (2, MOST_ARGUMENTS, lambda *values: self.extreme(Max, values)),
            "min": (2, MOST_ARGUMENTS, lambda *values: self.extreme(Min, values)),
        }

    def refuse(self, requirement: str, value: object):
        raise ParameterError("text", self.owner, requirement, value)

    def said(self, node: ast.AST) -> str:
        """What the text says where the node is."""
        return _shown(self.source[node.col_offset : node.end_col_offset])

    # --- before there is a tree

    def checked(self, text: object) -> str:
        """The text as Python would write it, on one line, if it is made of known tokens and not too long."""
        if not isinstance(text, str):
            self.refuse("a str", text)
        if len(text) > LONGEST_TEXT:
            self.refuse(f"of at most {LONGEST_TEXT} characters", f"{len(text)} characters")
        tokens = self.tokens(text)
        if not tokens:
            self.refuse("a formula", text)
        if len(tokens) > MOST_TOKENS:
            self.refuse(f"of at most {MOST_TOKENS} numbers, names and operators", f"{len(tokens)} of them")
        level = 0
        for token in tokens:
            level += (token == "(") - (token == ")")
            if level > DEEPEST_BRACKETS:
                self.refuse(f"bracketed at most {DEEPEST_BRACKETS} deep", _shown(text))
        self.source = re.sub(r"\s", " ", text.strip()).replace("^", "**")
        return self.source

    def tokens(self, text: str) -> list[str]:
        found, position = [], 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                odd = text[position]
                odd = odd if odd.isascii() and odd.isprintable() else f"U+{ord(odd):04X}"
                allowed = "made of decimal numbers, plain ASCII names and + - * / ** ^ ( ) , < <= > >="
                self.refuse(allowed, f"{odd} at character {position + 1} of {_shown(text)}")
            if match["number"] and _WORD.match(text, match.end()):
                word = _shown(_WORD.match(text, position)[0])
                self.refuse("made of plain decimal numbers, with * between a number and a name", word)
            if not match["space"]:
                found.append(match[0])
            position = match.end()
        return found

    # --- nodes

    def read(self, node: ast.AST) -> Expr:
        """The expression of a node, checked if it is constant."""
        rule = self.kinds.get(type(node))
        if rule is None:
            self.refuse("free of " + _WORDS.get(type(node), f"'{type(node).__name__.lower()}'"), self.said(node))
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"nested at most {DEEPEST} deep", self.said(node))
        found = rule(node)
        if found.is_number:
            self.value(found, node)
        self.depth -= 1
        return found

    def number(self, node: ast.Constant) -> Expr:
        text = self.source[node.col_offset : node.end_col_offset]
        if type(node.value) not in (int, float):
            self.refuse("made of decimal numbers and known names", text)
        size = float(text)
        mantissa = re.split("[eE]", text)[0]
        if len(text) > LONGEST_NUMBER:
            self.refuse(f"made of numbers of at most {LONGEST_NUMBER} characters", _shown(text))
        if math.isinf(size) or (size == 0 and mantissa.strip("0.")):
            self.refuse("made of numbers that a float can hold", text)
        exact = Fraction(text) if size else Fraction(0)
        return self.charged(Rational(exact.numerator, exact.denominator), node)

    def name(self, node: ast.Name) -> Expr:
        if node.id not in self.names:
            self.refuse(f"written in the names {', '.join(sorted(self.names))}", node.id)
        return self.names[node.id]

    def signed(self, node: ast.UnaryOp) -> Expr:
        if not isinstance(node.op, (ast.UAdd, ast.USub)):
            self.refuse("free of 'not'", self.said(node))
        operand = self.read(node.operand)
        return operand if isinstance(node.op, ast.UAdd) else -operand

    def operation(self, node: ast.BinOp) -> Expr:
        """A sum, a product or a power. Long sums and products lean to the left and are read in a loop."""
        for family, combine in (((ast.Add, ast.Sub), self.sum), ((ast.Mult, ast.Div), self.product)):
            if isinstance(node.op, family):
                chain = []
                while isinstance(node, ast.BinOp) and isinstance(node.op, family):
                    chain.append((type(node.op), node.right))
                    node = node.left
                return combine(node, chain[::-1])
        if isinstance(node.op, ast.Pow):
            return self.power(self.read(node.left), self.read(node.right), node)
        return self.refuse("free of " + _WORDS.get(type(node.op), "this operator"), self.said(node))

    def sum(self, first: ast.AST, chain: list) -> Expr:
        terms = [self.read(first)]
        for kind, node in chain:
            term = self.read(node)
            terms.append(term if kind is ast.Add else -term)
        return Add(*terms)

    def product(self, first: ast.AST, chain: list) -> Expr:
        factors = [self.read(first)]
        for kind, node in chain:
            factor = self.read(node)
            factors.append(factor if kind is ast.Mult else self.power(factor, Integer(-1), node))
        return Mul(*factors)

    def power(self, base: Expr, exponent: Expr, node: ast.AST) -> Expr:
        """A power, if neither its exponent nor its digits are too many; that of a branch is taken in each branch."""
        if isinstance(base, Piecewise):
            branches = [(self.power(value, exponent, node), condition) for value, condition in base.args]
            return Piecewise(*branches, evaluate=False)
        if exponent.is_number:
            size = abs(self.value(exponent, node))
            if size * _joined(base) > LARGEST_EXPONENT:
                self.refuse(f"written with constant exponents of at most {LARGEST_EXPONENT}", self.said(node))
            number = base.as_coeff_Mul()[0]
            if not exponent.is_Integer and _bits(number) > MOST_BITS_OF_A_ROOT:
                self.refuse(f"free of roots of numbers of more than {MOST_BITS_OF_A_ROOT} bits", self.said(node))
            self.charge(_bits(number) * math.ceil(size), node)
            if base == 0 and self.value(exponent, node) < 0:
                self.refuse("free of divisions by zero", self.said(node))
        if exponent.is_Integer and isinstance(base, Mul):
            return Mul(*(self.power(factor, exponent, node) for factor in base.args))
        simplify = _shallow(base, exponent)
        power = sympy.exp(exponent, evaluate=simplify) if base == sympy.E else Pow(base, exponent, evaluate=simplify)
        return self.charged(power, node)

    # --- calls

    def call(self, node: ast.Call) -> Expr:
        if not isinstance(node.func, ast.Name):
            self.refuse("free of calls of anything but a function", self.said(node))
        name = node.func.id
        if name not in (*_SMOOTH, *self.branching, "where"):
            known = ", ".join(sorted((*_SMOOTH, *self.branching, "where")))
            self.refuse(f"written with the functions {known}", name)
        if node.keywords:
            self.refuse("free of keyword arguments", self.said(node))
        if name in _SMOOTH:
            return self.smooth(name, node)
        self.branches += 1
        if self.branches > DEEPEST_BRANCHES:
            self.refuse(
                f"free of more than {DEEPEST_BRANCHES} of abs, sign, max, min, relu, where in one another", name
            )
        found = self.where(node) if name == "where" else self.branched(name, node)
        self.branches -= 1
        return found

    def arguments(self, name: str, node: ast.Call, least: int, most: int) -> list[Expr]:
        if not least <= len(node.args) <= most:
            count = f"{least}" if least == most else f"{least} to {most}"
            self.refuse(f"written with {count} argument{'s' * (most > 1)} of {name}", self.said(node))
        return [self.read(argument) for argument in node.args]

    def smooth(self, name: str, node: ast.Call) -> Expr:
        (argument,) = self.arguments(name, node, 1, 1)
        if name == "sqrt":
            return self.power(argument, Rational(1, 2), node)
        if argument.is_number and name in _WRITTEN_OUT:
            return _WRITTEN_OUT[name](argument)
        return _SMOOTH[name](argument, evaluate=_shallow(argument))

    def branched(self, name: str, node: ast.Call) -> Expr:
        least, most, build = self.branching[name]
        return build(*self.arguments(name, node, least, most))

    def where(self, node: ast.Call) -> Expr:
        """Piecewise; a constant condition is decided at once."""
        if len(node.args) != 3:
            self.refuse("written with 3 arguments of where", self.said(node))
        test, *rest = node.args
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in _COMPARISONS:
            self.refuse("written with a single comparison <, <=, > or >= in where", self.said(test))
        left, right = self.read(test.left), self.read(test.comparators[0])
        if left.has(Piecewise) or right.has(Piecewise):
            self.refuse("free of where in the condition of where", self.said(test))
        yes, no = (self.read(value) for value in rest)
        comparison = _COMPARISONS[type(test.ops[0])]
        if left == right or (left.is_number and right.is_number):
            return yes if comparison(self.order(left, right), 0) else no
        return (
            yes if yes == no else Piecewise((yes, comparison(left, right, evaluate=False)), (no, True), evaluate=False)
        )

    def absolute(self, u: Expr) -> Expr:
        if u.is_number:
            return u if self.order(u, Integer(0)) >= 0 else -u
        return Abs(u, evaluate=_shallow(u))

    def sign(self, u: Expr) -> Expr:
        if u.is_number:
            return Integer(self.order(u, Integer(0)))
        return sympy.sign(u, evaluate=_shallow(u))

    def extreme(self, kind: type, values) -> Expr:
        """Max or Min of which the constants are compared here, and nothing else is."""
        constants = [value for value in values if value.is_number]
        others = [value for value in values if not value.is_number]
        best = constants[:1]
        for value in constants[1:]:
            if self.order(value, best[0]) == (1 if kind is Max else -1):
                best = [value]
        return kind(*best, *others, evaluate=False)

    # --- constants

    def order(self, a: Expr, b: Expr) -> int:
        """-1, 0 or 1, as the constant a is less than, the same as or more than b."""
        difference = self.value(a - b, None)
        return (difference > 0) - (difference < 0)

    def value(self, constant: Expr, node: ast.AST | None) -> float:
        """The constant as a float, if it has a real value that a float can hold and tell from zero."""
        place = _shown(str(constant)) if node is None else self.said(node)
        if _depth(constant) > DEEPEST_CONSTANT:
            self.refuse(f"free of constants nested more than {DEEPEST_CONSTANT} deep", place)
        try:
            number = _decimal(constant)
        except (ValueError, ZeroDivisionError, TypeError):
            return self.refuse("free of constants without a real value", place)
        except OverflowError:
            number = math.inf
        except ArithmeticError:
            return self.refuse("free of constants that cancel all but their rounding errors", place)
        if not math.isfinite(number) or (number == 0 and constant != 0):
            self.refuse("free of constants that a float cannot hold or cannot tell from zero", place)
        return number

    def charge(self, bits: int, node: ast.AST) -> None:
        self.bits += bits
        if self.bits > MOST_BITS:
            self.refuse("written with fewer digits in all its numbers together", self.said(node))

    def charged(self, expression: Expr, node: ast.AST) -> Expr:
        self.charge(_bits(expression.as_coeff_Mul()[0]), node)
        return expression

    def finished(self, expression: Expr) -> Expr:
        """The expression, if every number and exponent in it is one that the text could have held."""
        unreal = (sympy.I, sympy.nan, sympy.zoo, sympy.oo, -sympy.oo)
        if expression.has(*unreal):
            self.refuse("real and finite", _shown(str(expression)))
        for number in expression.atoms(Rational):
            self.value(number, None)
        for power in expression.atoms(Pow):
            if power.exp.is_number and abs(self.value(power.exp, None)) > LARGEST_EXPONENT:
                self.refuse(
                    f"of constant exponents of at most {LARGEST_EXPONENT}, once powers are joined", _shown(str(power))
                )
        return expression


def _bits(number: Expr) -> int:
    """Length of a rational number's numerator and denominator."""
    return number.p.bit_length() + number.q.bit_length() if number.is_Rational else 0


def _joined(expression: Expr) -> float:
    """The size that the constant exponents in a base have together, where a further power would be multiplied in."""
    if isinstance(expression, Pow) and expression.exp.is_number:
        return abs(_decimal(expression.exp)) * _joined(expression.base)
    return max(map(_joined, expression.args)) if isinstance(expression, Mul) else 1.0


def _depth(expression: Expr) -> int:
    """Levels of an expression's tree: 1 for a number or a symbol."""
    return 1 + max(map(_depth, expression.args), default=0)


def _shallow(*operands: Expr) -> bool:
    return all(_depth(operand) <= (SHALLOW_CONSTANT if operand.is_number else SHALLOW) for operand in operands)


def _decimal(constant: Expr) -> float:
    """The constant in floats.

    Raises
    ------
    ValueError, TypeError, ZeroDivisionError
        If it has no real value.
    OverflowError
        If it is too large.
    ArithmeticError
        If it is a sum of which rounding leaves nothing.
    """
    if constant.is_Rational:
        return constant.p / constant.q
    if constant in (sympy.pi, sympy.E):
        return math.pi if constant == sympy.pi else math.e
    parts = [_decimal(part) for part in constant.args]
    if isinstance(constant, Add):
        total, size = math.fsum(parts), math.fsum(map(abs, parts))
        if abs(total) <= CANCELLED * size:
            raise ArithmeticError
        return total
    if isinstance(constant, Mul):
        return math.prod(parts)
    if isinstance(constant, Pow):
        return float(parts[0] ** parts[1])
    if type(constant) not in _FLOATS:
        raise ValueError
    return _FLOATS[type(constant)](*parts)
