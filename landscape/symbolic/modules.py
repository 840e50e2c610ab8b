"""The text of the module of a user's landscape: the derived kernels, in the form that flows and maps take.

The last part of every such module is the same: it gives a loss that is written in single numbers the form
of points, branches and constants, and runs it over arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy

from landscape.codegen import PRIMITIVES, UnprintableError, python_source
from landscape.parameters import ParameterError
from landscape.symbolic.models import (
    Branches, checked, confirm, cross_entropy, hessian_entries, internal_parameters, split,
)
from landscape.symbolic.steps import Kernel

GAP_SYMBOL = sympy.Symbol("theta_0", real=True)  # the gap, as the only parameter of a chain's φ


def loss_module(name: str, names: Sequence[str], loss, declared: Sequence = (), box: Mapping | None = None) -> str:
    """The text of the module of a plain loss of real parameters."""
    parameters = internal_parameters(len(names))
    expression = checked(name, loss, names, declared)
    branches = split(expression)
    confirm(name, expression, branches, names, box)
    return _guarded(name, _assemble, name, names, _derived("loss", branches, parameters), branches, ())


def logits_module(name: str, names: Sequence[str], logits, declared: Sequence = (), box: Mapping | None = None) -> str:
    """The text of the module of an architecture given by its logits, on any chain with as many symbols.

    Parameters
    ----------
    logits : sequence of sequences of Expr or str
        Row x holds the logits after symbol x.
    """
    parameters = internal_parameters(len(names))
    rows = [[checked(name, entry, names, declared) for entry in row] for row in logits]
    if len(rows) < 2 or any(len(row) != len(rows) for row in rows):
        raise ParameterError("logits", name, "a square table: a row of logits after each symbol", logits)
    expression, weights = cross_entropy(rows)
    after = [row[1] - row[0] for row in rows] if len(rows) == 2 else []
    beside = {"kappa": after[1] - after[0], "logit_zero": after[0]} if after else {}
    branches = split(expression, *beside.values())
    trial = dict(zip(weights, (sympy.Rational(i + 1, 7 * len(weights)) for i in range(len(weights)))))
    tried = Branches(branches.expression.subs(trial), branches.signs, branches.surfaces)
    confirm(name, expression.subs(trial), tried, names, box)
    kernels = _derived("loss", branches, parameters, weights)
    for word, value in zip(beside, branches.beside):
        kernels.append(Kernel(word, (*parameters, *branches.signs), (value,), f"{_WORDS[word]}, in the branch of the signs."))
    return _guarded(name, _assemble, name, names, kernels, branches, weights)


def gap_module(name: str, names: Sequence[str], gap, chain, declared: Sequence = (), box: Mapping | None = None) -> str:
    """The text of the module of an architecture given by its gap κ, on the chains of one kind.

    Parameters
    ----------
    chain : Chain
        Says which module has φ, or brings the text of one (`SymbolicChain`).
    """
    parameters = internal_parameters(len(names))
    expression = checked(name, gap, names, declared)
    branches = split(expression)
    confirm(name, expression, branches, names, box)
    constants = tuple(sympy.Symbol(constant, real=True) for constant in chain.kernel_names)
    kernels = _derived("kappa", branches, parameters)
    imported = f"from landscape.kernels.{chain.kind}_chain import phi, phi_prime, phi_second"
    own, imports = (chain.source, "") if chain.source else ("", imported)
    return _guarded(name, _assemble, name, names, kernels, branches, constants, own, imports, True)


def built_in_gap_module(
    name: str, parameters: Sequence, gap, chain, signs: Sequence, kinks: Sequence = (), vocabulary: Sequence = ()
) -> str:
    """The text of the module of a built-in architecture given by its gap.

    Parameters
    ----------
    parameters : sequence of Symbol
        The coordinates of θ, in order.
    gap : Expr
        κ in the parameters and the signs.
    chain : type or Chain
        The class of the chains, which says which module has φ, or a chain that brings the text of one.
    signs : sequence of (Symbol, Symbol)
        Symbols of signs in `gap`, each with the parameter whose sign it is; the gradient is continuous where that vanishes.
    kinks : sequence of (Symbol, Expr)
        Symbols of signs in `gap`, each with the function of the parameters whose sign it is; the gradient jumps there.
    vocabulary : sequence of Symbol
        What `gap` takes of the chain, such as the number of symbols.
    """
    renamed = dict(zip(parameters, internal_parameters(len(parameters))))
    lets = tuple((sign, _sign_of(renamed[parameter])) for sign, parameter in signs)
    sides, surfaces = (tuple(part) for part in zip(*kinks)) if kinks else ((), ())
    branches = Branches(gap.xreplace(renamed), sides, tuple(surface.xreplace(renamed) for surface in surfaces))
    kernels = [
        replace(kernel, lets=lets) for kernel in _derived("kappa", branches, tuple(renamed.values()), tuple(vocabulary))
    ]
    constants = tuple(sympy.Symbol(constant, real=True) for constant in chain.kernel_names)
    imported = f"from landscape.kernels.{chain.kind}_chain import phi, phi_prime, phi_second"
    own, imports = (chain.source, "") if chain.source else ("", imported)
    names = [str(parameter) for parameter in parameters]
    return _assemble(name, names, kernels, branches, constants, own, imports, True, tuple(vocabulary))


def _sign_of(parameter):
    return sympy.Piecewise((1, parameter > 0), (-1, parameter < 0), (0, True))


def chain_source(name: str, gap: str, names: Sequence[str], phi, declared: Sequence = ()) -> str:
    """The text of the kernels of φ of a user's chain, and of its two derivatives."""
    expression = checked(name, phi, (gap, *names), declared)
    branches = split(expression)
    if branches.surfaces:
        raise ParameterError("phi", name, "smooth in the gap", phi)
    inside = {symbol: sympy.Rational(1, 3) for symbol in internal_parameters(1 + len(names))[1:]}
    trial = Branches(branches.expression.subs(inside), (), ())
    confirm(name, expression.subs(inside), trial, (gap,))
    arguments = (GAP_SYMBOL, *internal_parameters(1 + len(names))[1:])
    summaries = {"phi": "Loss at the gap.", "phi_prime": "First derivative of phi.", "phi_second": "Second derivative of phi."}
    kernels = [
        Kernel(kernel, arguments, (sympy.diff(branches.expression, GAP_SYMBOL, order),), summary)
        for order, (kernel, summary) in enumerate(summaries.items())
    ]
    return _guarded(name, lambda: "\n\n".join(python_source(kernel) for kernel in kernels) + "\n\n")


def chain_module(name: str, source: str, constants: Sequence[str]) -> str:
    """The text of a module that holds φ alone, run over arrays of gaps."""
    words = "".join(f", {word}" for word in constants)
    head = [f'"""φ of the chain {name!r}.\n\nGenerated by landscape; do not edit.\n"""', "", "import math", "", "import numpy as np",
            "", "from landscape.kernels.compile import kernel", *_primitives(source)]
    loops = [_CHAIN_LOOP.format(kernel=kernel, words=words) for kernel in ("phi", "phi_prime", "phi_second")]
    return "\n".join(head) + "\n\n\n" + source + "\n\n".join(loops)


def _primitives(text: str) -> list[str]:
    used = [primitive for primitive in PRIMITIVES if f"{primitive}(" in text]
    return [f"from landscape.kernels.stable import {', '.join(used)}"] if used else []


def _guarded(name, build, *arguments) -> str:
    try:
        return build(*arguments)
    except UnprintableError as error:
        raise ParameterError("expression", name, f"made of what has a kernel ({error})", name) from None


def _derived(name: str, branches: Branches, parameters, constants=()) -> list[Kernel]:
    """Kernels of an expression, its gradient and Hessian, its surfaces and their normals."""
    arguments = (*parameters, *branches.signs, *constants)
    f = branches.expression
    found = [
        Kernel(name, arguments, (f,), "The value, in the branch of the signs."),
        Kernel(f"{name}_gradient", arguments, tuple(sympy.diff(f, x) for x in parameters), "First derivatives."),
        Kernel(f"{name}_hessian", arguments, hessian_entries(f, parameters), "Second derivatives: the upper triangle by rows."),
    ]
    if branches.surfaces:
        sides = (*parameters, *branches.signs)
        normals = tuple(sympy.diff(s, x) for s in branches.surfaces for x in parameters)
        found.append(Kernel("surfaces", sides, branches.surfaces, "The functions that vanish on the kinks."))
        found.append(Kernel("normals", sides, normals, "Their gradients, one after the other."))
    return found


def _assemble(name, names, kernels, branches, constants, own="", imports="", has_gap=False, vocabulary=()) -> str:
    """The whole module."""
    d, m = len(names), len(branches.surfaces)
    scalars = [f"theta[{i}]" for i in range(d)] + [f"signs[{j}]" for j in range(m)]
    words = [str(constant) for constant in constants]
    body = "\n\n".join(python_source(kernel) for kernel in kernels) + "\n\n" + own
    values = {
        "dimension": d, "surfaces": m, "names": tuple(names), "scalars": ", ".join(scalars),
        "point": ", ".join(scalars + words), "constants": "".join(f", {word}" for word in words),
        "vocabulary": "".join(f", {word}" for word in vocabulary),
        "unpack": f"    {', '.join(words)} = {', '.join(f'constants[{i}]' for i in range(len(words)))}\n" if words else "",
        "tuple": f"({', '.join(words)}{',' if len(words) == 1 else ''})",
        "gradient": ", ".join(f"out[{i}]" for i in range(d)),
        "triangle": ", ".join(f"out[{i}, {j}]" for i in range(d) for j in range(i, d)),
        "values": ", ".join(f"out[{j}]" for j in range(m)),
        "normals": ", ".join(f"out[{j * d + i}]" for j in range(m) for i in range(d)),
    }
    text = body + "\n\n" + (_GAP if has_gap else _PLAIN).format(**values) + (_KINKS if m else _SMOOTH).format(**values)
    text += _LOOPS.format(**values)
    for kernel in kernels:
        if kernel.name in _WORDS:
            text += _VALUE_LOOP.format(kernel=kernel.name, what=_WORDS[kernel.name], plural=_LOOP_NAMES[kernel.name], **values)
    if has_gap:
        text += _GAP_GRADIENT_LOOP.format(**values)
    head = [f'"""The landscape {name!r} in the parameters {", ".join(names)}, which are theta_0, theta_1, ... here.',
            "", 'Generated by landscape; do not edit.', '"""', "", *(["import math", ""] if "math." in text else []), "import numpy as np", "",
            "from landscape.kernels.compile import kernel"]
    head += [imports] if imports else []
    head += _primitives(text)
    return "\n".join(head) + "\n\n\n" + text


_CHAIN_LOOP = '''@kernel
def {kernel}_many(gaps{words}):
    """`{kernel}` for an array of shape (n,)."""
    out = np.empty(gaps.size)
    for i in range(gaps.size):
        out[i] = {kernel}(gaps[i]{words})
    return out
'''

_PLAIN = '''DIMENSION, SURFACES = {dimension}, {surfaces}


@kernel
def loss_at(theta, signs, constants):
    """Loss at a point, in the branch of the signs."""
{unpack}    return loss({point})


@kernel
def gradient_at(theta, signs, constants, out):
    """Gradient at a point."""
{unpack}    {gradient} = loss_gradient({point})


@kernel
def hessian_at(theta, signs, constants, out):
    """Upper triangle of the Hessian at a point."""
{unpack}    {triangle} = loss_hessian({point})
'''

_GAP = '''DIMENSION, SURFACES = {dimension}, {surfaces}


@kernel
def loss_at(theta, signs, constants):
    """Loss at a point, in the branch of the signs."""
{unpack}    return phi(kappa({scalars}{vocabulary}){constants})


@kernel
def gradient_at(theta, signs, constants, out):
    """Gradient at a point: phi' times that of the gap."""
{unpack}    slope = phi_prime(kappa({scalars}{vocabulary}){constants})
    {gradient} = kappa_gradient({scalars}{vocabulary})
    for i in range(DIMENSION):
        out[i] *= slope


@kernel
def hessian_at(theta, signs, constants, out):
    """Upper triangle of the Hessian at a point, by the chain rule."""
{unpack}    gap, along = kappa({scalars}{vocabulary}), np.empty(DIMENSION)
    slope, bend = phi_prime(gap{constants}), phi_second(gap{constants})
    {triangle} = kappa_hessian({scalars}{vocabulary})
    gap_gradient_at(theta, signs{vocabulary}, along)
    for i in range(DIMENSION):
        for j in range(i, DIMENSION):
            out[i, j] = slope * out[i, j] + bend * along[i] * along[j]


@kernel
def gap_gradient_at(theta, signs{vocabulary}, out):
    """Gradient of the gap at a point."""
    {gradient} = kappa_gradient({scalars}{vocabulary})
'''

_SMOOTH = '''

@kernel
def surfaces_at(theta, signs, constants, out):
    """There are no kinks."""


@kernel
def normals_at(theta, signs, constants, out):
    """There are no kinks."""
'''

_KINKS = '''

@kernel
def surfaces_at(theta, signs, constants, out):
    """The functions that vanish on the kinks."""
    {values} = surfaces({scalars})


@kernel
def normals_at(theta, signs, constants, out):
    """Their gradients, one after the other."""
    {normals} = normals({scalars})
'''

_LOOPS = '''

@kernel
def natural(theta, constants, signs, found):
    """The signs that belong to a point; 0 on a kink."""
    for j in range(SURFACES):
        surfaces_at(theta, signs, constants, found)
        signs[j] = 1.0 if found[j] > 0.0 else -1.0 if found[j] < 0.0 else 0.0


@kernel
def loss_many(points{constants}):
    """Loss at points of shape (n, d)."""
    out, signs, found = np.empty(points.shape[0]), np.ones(max(SURFACES, 1)), np.empty(max(SURFACES, 1))
    for i in range(points.shape[0]):
        natural(points[i], {tuple}, signs, found)
        out[i] = loss_at(points[i], signs, {tuple})
    return out


@kernel
def gradient_many(points{constants}):
    """Gradient at points of shape (n, d); on a kink, the mean of its sides."""
    out, signs, found = np.empty(points.shape), np.ones(max(SURFACES, 1)), np.empty(max(SURFACES, 1))
    for i in range(points.shape[0]):
        natural(points[i], {tuple}, signs, found)
        gradient_at(points[i], signs, {tuple}, out[i])
    return out


@kernel
def hessian_many(points{constants}):
    """Hessian at points of shape (n, d), shape (n, d, d)."""
    out = np.empty((points.shape[0], DIMENSION, DIMENSION))
    signs, found = np.ones(max(SURFACES, 1)), np.empty(max(SURFACES, 1))
    for i in range(points.shape[0]):
        natural(points[i], {tuple}, signs, found)
        hessian_at(points[i], signs, {tuple}, out[i])
        for a in range(DIMENSION):
            for b in range(a):
                out[i, a, b] = out[i, b, a]
    return out
'''

_WORDS = {"kappa": "Logit gap", "logit_zero": "Logit of symbol 1 less that of symbol 0, after a 0"}
_LOOP_NAMES = {"kappa": "gap_many", "logit_zero": "logit_zero_many"}

_VALUE_LOOP = '''

@kernel
def {plural}(points{vocabulary}):
    """{what}, at points of shape (n, d)."""
    out, signs, found = np.empty(points.shape[0]), np.ones(max(SURFACES, 1)), np.empty(max(SURFACES, 1))
    for i in range(points.shape[0]):
        theta = points[i]
        natural(theta, (), signs, found)
        out[i] = {kernel}({scalars}{vocabulary})
    return out
'''

_GAP_GRADIENT_LOOP = '''

@kernel
def gap_gradient_many(points{vocabulary}):
    """Gradient of the gap at points of shape (n, d)."""
    out, signs, found = np.empty(points.shape), np.ones(max(SURFACES, 1)), np.empty(max(SURFACES, 1))
    for i in range(points.shape[0]):
        natural(points[i], (), signs, found)
        gap_gradient_at(points[i], signs{vocabulary}, out[i])
    return out
'''
