"""Text of kernels from expressions: what it refuses, and what it must not change."""

import importlib.util
import math
import warnings

import numpy as np
import pytest
import sympy
from sympy import Abs, Piecewise, Symbol, diff

from conftest import ROOT
from landscape.codegen import UnprintableError, module_source, python_source
from landscape.symbolic import primitives
from landscape.symbolic.steps import Kernel


@pytest.fixture
def build(tmp_path):
    """Write a module of kernels, import it, and give it back."""

    def make(*kernels, name="made"):
        path = tmp_path / f"{name}.py"
        path.write_text(module_source("Made by a test.", "test", kernels), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return make


def test_temporaries_never_shadow_parameters(build):
    c, x0, x1, t0 = (Symbol(name, real=True) for name in ("c", "x0", "x1", "t0"))
    first = c * x0**2 + c * (x0**4 - x0**2)
    second = sympy.sin(x0 * x1 + t0) ** 2 + sympy.sin(x0 * x1 + t0) * (x0 * x1 + t0)
    module = build(Kernel("f", (c, x0, x1, t0), (first, second), "Repeats itself."))
    exact = sympy.lambdify((c, x0, x1, t0), (first, second), "math")
    assert module.f(1.0, 2.0, 0.0, 0.0)[0] == 16.0
    for values in np.random.default_rng(0).normal(size=(100, 4)).tolist():
        assert module.f(*values) == pytest.approx(exact(*values), rel=1e-12)


def test_a_symbol_that_is_no_argument_is_refused_by_name():
    w = Symbol("w", real=True)
    with pytest.raises(UnprintableError, match="undefined symbols: w"):
        python_source(Kernel("f", (w,), (Symbol("w") ** 2,), "A plain w under the name of a real one."))
    with pytest.raises(UnprintableError, match="undefined symbols: z"):
        python_source(Kernel("f", (w,), (w + Symbol("z"),), "An unknown."))


def test_derivatives_left_standing_are_refused():
    plain, real = Symbol("w"), Symbol("w", real=True)
    stuck = diff(Abs(plain), plain)
    assert stuck.has(sympy.Derivative) or stuck.has(sympy.re)
    with pytest.raises(UnprintableError):
        python_source(Kernel("f", (plain,), (stuck,), "Stuck."))
    with pytest.raises(UnprintableError):
        python_source(Kernel("f", (real,), (sympy.DiracDelta(real),), "Stuck."))


def test_only_the_chosen_branch_runs(build):
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    branches = Piecewise((1 / x, y < -1), (x, y <= 1), (sympy.log(x), True))
    module = build(Kernel("f", (x, y), (branches,), "Chooses."))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert module.f(0.0, 1.0) == 0.0
        assert module.f(2.0, -2.0) == 0.5
        assert module.f(-1.0, 0.0) == -1.0
    assert module.f.nopython_signatures


def test_stable_forms_survive_simplification():
    x = Symbol("x", real=True)
    for function in primitives.PRIMITIVES[:3]:
        simplified = sympy.simplify(function(x) + 1 - 1)
        assert simplified == function(x)
    slope = diff(primitives.softplus(-22 * x), x)
    assert slope == -22 * primitives.sigmoid(-22 * x)


def test_generated_modules_hold_nothing_that_is_not_numeric():
    for path in (ROOT / "landscape" / "kernels").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "do not edit" in text:
            assert not any(word in text for word in ("Derivative", "Subs", "DiracDelta", " re(", " im(", "fastmath", "zoo", "nan"))


def test_primitives_know_their_derivatives():
    x = Symbol("x", real=True)
    for function in primitives.PRIMITIVES[:3]:
        exact = diff(function.textbook(x), x) - primitives.elementary(diff(function(x), x))
        assert all(abs(float(exact.subs(x, value))) < 1e-12 for value in (-2.0, 0.3, 1.7))


def test_sums_move_into_a_maximum():
    x, u, v = (Symbol(name, real=True) for name in "xuv")
    assert primitives.shift_maximum(x + sympy.Max(u, v)) == sympy.Max(x + u, x + v)
    assert primitives.shift_maximum(x - sympy.Max(u, v)) == sympy.Min(x - u, x - v)
    assert primitives.shift_maximum(x + u) == x + u
    assert math.isclose(float(primitives.log_sum(x, u).subs({x: 1.0, u: 2.0}).rewrite(sympy.log).replace(
        primitives.softplus, primitives.softplus.textbook)), math.log(math.e + math.e**2))
