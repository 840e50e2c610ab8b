"""The numeric search for critical sets, against losses whose sets are known exactly."""

import collections

import numpy as np
import pytest
import sympy
from scipy.spatial.distance import cdist

from landscape import ParameterError
from landscape.search import classify_point, critical_search
from landscape.search.points import look, with_frame
from landscape.search.problem import Problem

X, Y, Z, W = sympy.symbols("x y z w", real=True)


def functions(expression, *names, scale=1.0):
    """Loss, gradient and Hessian of an expression for arrays of points."""
    d = len(names)

    def made(entries, shape):
        compiled = sympy.lambdify(names, [scale * entry for entry in entries], "numpy")

        def evaluate(points):
            with np.errstate(all="ignore"):
                rows = [np.broadcast_to(value, len(points)) for value in compiled(*np.asarray(points).T)]
            return np.stack(rows, axis=1).reshape(len(points), *shape).astype(float)

        return evaluate

    gradient = [sympy.diff(expression, name) for name in names]
    hessian = [sympy.diff(entry, name) for entry in gradient for name in names]
    return made([expression], ()), made(gradient, (d,)), made(hessian, (d, d))


def search(expression, *names, box=(-2, 2), scale=1.0, **options):
    return critical_search(*functions(expression, *names, scale=scale), [box] * len(names), **options)


def counted(sets):
    """How often there is a set of each kind, dimension, index and nullity."""
    return collections.Counter((found.kind, found.dimension, found.index, found.nullity) for found in sets)


WELLS = (X**4 / 4 - X**2 / 2, Y**4 / 4 - Y**2 / 2)
DISCS = ((X - 1) ** 2 + Y**2 - sympy.Rational(1, 4)) ** 2 * ((X + 1) ** 2 + Y**2 - sympy.Rational(1, 4)) ** 2

# name: expression, parameters, sets
LOSSES = {
    "line": ((X + Y) ** 2 / 2, (X, Y), {("minimum", 1, 0, 1): 1}),
    "circle": ((X**2 + Y**2 - 1) ** 2 / 4, (X, Y), {("minimum", 1, 0, 1): 1, ("maximum", 0, 2, 0): 1}),
    "sphere": ((X**2 + Y**2 + Z**2 - 1) ** 2, (X, Y, Z), {("minimum", 2, 0, 2): 1, ("maximum", 0, 3, 0): 1}),
    "two circles": (DISCS, (X, Y), {("minimum", 1, 0, 1): 2, ("maximum", 0, 2, 0): 2, ("saddle", 0, 1, 0): 1}),
    "wells": (sum(WELLS), (X, Y), {("minimum", 0, 0, 0): 4, ("saddle", 0, 1, 0): 4, ("maximum", 0, 2, 0): 1}),
    "saddle": (X**4 / 4 - X**2 / 2 + Y**2 / 2, (X, Y), {("minimum", 0, 0, 0): 2, ("saddle", 0, 1, 0): 1}),
    "half a line": (X**2 * Y / 2, (X, Y), {("minimum", 1, 0, 1): 1, ("maximum", 1, 1, 1): 1, ("saddle", 0, 0, 2): 1}),
    "points and a circle": (
        X**2 * (W + 1) + Y**2 * (W - 1) + Z**2 * (W - 1) - W, (X, Y, Z, W), {("saddle", 0, 3, 0): 2, ("saddle", 1, 1, 1): 1}
    ),
}

# Isolated critical points at 0: expression, parameters, kinds that may be given
DEGENERATE = {
    "x^4": (X**4, (X,), {"minimum"}),
    "-x^4": (-(X**4), (X,), {"maximum"}),
    "x^3": (X**3, (X,), {"saddle"}),
    "x^6": (X**6, (X,), {"minimum"}),
    "x^4 + y^4": (X**4 + Y**4, (X, Y), {"minimum"}),
    "x^2 + y^4": (X**2 + Y**4, (X, Y), {"minimum"}),
    "x^2 - y^4": (X**2 - Y**4, (X, Y), {"saddle"}),
    "-x^4 - y^2": (-(X**4) - Y**2, (X, Y), {"maximum"}),
    "monkey saddle": (X**3 - 3 * X * Y**2, (X, Y), {"saddle"}),
    "between two parabolas": ((Y - X**2) * (Y - 2 * X**2), (X, Y), {"saddle"}),
    "inflection on a slope": (X**3 + Y**2, (X, Y), {"saddle"}),
    "flatter than any power": (sympy.exp(-1 / X**2), (X,), {"minimum", "undetermined"}),
}


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("name", LOSSES)
def test_sets_are_found_whatever_the_scale(name, scale):
    expression, names, expected = LOSSES[name]
    found = search(expression, *names, scale=scale)
    assert counted(found) == expected
    gradient = functions(expression, *names, scale=scale)[1]
    typical = np.median(np.linalg.norm(gradient(np.random.default_rng(0).uniform(-2, 2, size=(200, len(names)))), axis=1))
    for part in found:
        assert np.linalg.norm(gradient(part.members), axis=1).max() < 1e-6 * typical
        assert np.allclose(part.tangent @ part.tangent.T, np.eye(part.dimension), atol=1e-9)
        assert np.array_equal(part.representative, part.members[0])


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("name", DEGENERATE)
def test_higher_orders_decide_where_the_hessian_does_not(name, scale):
    expression, names, kinds = DEGENERATE[name]
    found = search(expression, *names, box=(-1, 1.3), scale=scale)
    at_zero = [part for part in found if np.abs(part.representative).max() < 0.1]
    assert {part.kind for part in at_zero} <= kinds and at_zero
    if name != "flatter than any power":
        assert len(found) == 1 and np.abs(found[0].representative).max() < 1e-5


def test_places_and_directions_are_right():
    (line,) = search(*LOSSES["line"][:1], X, Y, box=(-1, 1))
    assert abs(line.tangent[0] @ (1, -1)) / np.sqrt(2) == pytest.approx(1, abs=1e-12)
    assert np.abs(line.members.sum(axis=1)).max() < 1e-9 and line.loss == pytest.approx(0, abs=1e-15)
    circle = search(LOSSES["circle"][0], X, Y)[0]
    assert np.abs(np.linalg.norm(circle.members, axis=1) - 1).max() < 1e-9
    assert abs(circle.tangent[0] @ circle.representative) < 1e-9
    two = [part for part in search(DISCS, X, Y) if part.dimension]
    assert sorted(np.sign(part.members[:, 0]).mean() for part in two) == [-1, 1]
    border = [part for part in search(X**2 * Y / 2, X, Y) if part.dimension == 0]
    assert np.abs(border[0].representative).max() < 1e-5


def test_the_nine_points_of_himmelblau():
    found = search((X**2 + Y - 11) ** 2 + (X + Y**2 - 7) ** 2, X, Y, box=(-5, 5))
    assert counted(found) == {("minimum", 0, 0, 0): 4, ("saddle", 0, 1, 0): 4, ("maximum", 0, 2, 0): 1}
    minima = np.array([part.representative for part in found if part.kind == "minimum"])
    known = np.array([(3, 2), (-2.805118086953, 3.131312518250), (-3.779310253378, -3.283185991286), (3.584428340330, -1.848126526964)])
    assert cdist(known, minima).min(axis=1).max() < 1e-8


def test_the_twenty_seven_points_of_three_wells():
    found = search(sum(WELLS) + Z**4 / 4 - Z**2 / 2, X, Y, Z)
    assert counted(found) == {
        ("minimum", 0, 0, 0): 8, ("saddle", 0, 1, 0): 12, ("saddle", 0, 2, 0): 6, ("maximum", 0, 3, 0): 1
    }


def test_a_loss_that_does_not_vary_is_one_set_and_one_without_critical_points_has_none():
    (everywhere,) = search(sympy.Integer(7) + 0 * X, X, Y)
    assert (everywhere.kind, everywhere.dimension, everywhere.nullity, everywhere.loss) == ("minimum", 2, 2, 7)
    assert search(X + Y / 2, X, Y) == []


def test_places_where_the_loss_is_not_a_number_do_no_harm():
    found = search(X * sympy.log(X) + Y**2, X, Y, box=(-1, 2))
    assert counted(found) == {("minimum", 0, 0, 0): 1}
    assert found[0].representative == pytest.approx((np.exp(-1), 0), abs=1e-9)
    assert search(sympy.log(-1 - X**2), X) == []


def test_points_outside_the_box_are_not_reported_and_seeds_do_not_matter():
    assert counted(search(sum(WELLS), X, Y, box=(-0.5, 2))) == {("minimum", 0, 0, 0): 1, ("saddle", 0, 1, 0): 2, ("maximum", 0, 2, 0): 1}
    assert counted(search(sum(WELLS), X, Y, seed=5, starts=100)) == counted(search(sum(WELLS), X, Y))


def test_a_known_point_is_classified():
    found = classify_point(*functions(X**2 - Y**4, X, Y), (0.0, 0.0))
    assert (found.kind, found.dimension, found.index, found.nullity) == ("saddle", 0, 0, 1)
    with pytest.raises(ParameterError, match="critical point"):
        classify_point(*functions(X**2 - Y**4, X, Y), (0.5, 0.0))


@pytest.mark.parametrize("box", [[(1, 0)], [(0, np.inf)], [(0, 1, 2)], [0, 1]])
def test_boxes_without_meaning_are_refused(box):
    with pytest.raises(ParameterError, match="'box'"):
        critical_search(*functions(X**2, X), box)


def with_rounding(function, size):
    """The function with an error of a given size that jumps from point to point."""
    def rounded(points):
        values = function(points)
        jumps = np.sin(1e15 * np.sin(1e7 * points.sum(axis=1) + 12345.678 * points[:, 0]))
        shares = np.cos(1e5 * np.arange(values[0].size) + 1).reshape(values.shape[1:])
        return values + size * np.multiply.outer(jumps, shares)

    return rounded


@pytest.mark.parametrize("rounding", [0.0, 1e-15])
def test_axes_that_cross_are_cut_at_the_crossing(rounding):
    loss, gradient, hessian = functions(X * Y * Z, X, Y, Z)
    found = critical_search(loss, with_rounding(gradient, rounding), with_rounding(hessian, rounding), [(-1, 1)] * 3)
    assert counted(found) == {("saddle", 1, 1, 1): 6, ("saddle", 0, 0, 3): 1}
    halves = set()
    for part in found:
        if part.dimension:
            side = np.sign(np.round(part.members.mean(axis=0), 5)).astype(int)
            assert (part.members * side > -1e-5).all()  # a member may lie on the crossing, none beyond it
            halves.add(tuple(side.tolist()))
    assert halves == {tuple(row) for row in np.concatenate([np.eye(3, dtype=int), -np.eye(3, dtype=int)])}


def test_the_line_on_which_a_plane_changes_its_kind_is_one_set():
    found = search((X + Y) ** 2 * (X - 2 * Y + Z) / 2, X, Y, Z, box=(-1, 1))
    assert counted(found) == {("minimum", 2, 0, 2): 1, ("maximum", 2, 1, 2): 1, ("saddle", 1, 0, 3): 1}
    (line,) = [part for part in found if part.dimension == 1]
    assert np.abs(line.tangent[0] @ (1, -1, -3)) == pytest.approx(np.sqrt(11), abs=1e-4)


def test_a_flat_point_that_rounding_hides_is_judged_by_what_is_beyond():
    """Along y = x the loss is x^6, of which no step shows more than that x is about 1e-3."""
    (found,) = search(X**6 + (Y - X) ** 2, X, Y, box=(-1, 1))
    assert (found.kind, found.dimension, found.index, found.nullity) == ("minimum", 0, 0, 1)
    assert np.abs(found.representative).max() < 1e-2


def test_no_set_has_more_dimensions_than_null_directions():
    problem = Problem(functions(X**2 + Y**2 * Z, X, Y, Z), np.zeros(3), np.ones(3))
    points = with_frame(look(problem, np.zeros((1, 3))), np.array([0, 0, 0]), 1e-2 * np.eye(3))
    assert points.nullity[0] == points.dimension[0] == 2
