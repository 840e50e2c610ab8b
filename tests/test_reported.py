"""Faults that were found by trying to break flows, critical sets and landscapes of one's own, each with the right answer."""

import math

import numpy as np
import pytest

import landscape
from landscape import Architecture, Chain, ParameterError, PlainLoss


def sets(loss, names=("x", "y"), **options):
    found = landscape.critical_sets(PlainLoss.from_symbolic("reported", loss, list(names), **options))
    return [(part.kind, part.dimension) for part in found]


def test_a_chain_without_numbers_goes_with_every_architecture():
    chain = Chain.from_symbolic("parabola", "(kappa - 1)^2")
    starts = [(1, 0.3), (0.1, -1), (0.5, -0.2)]
    assert (landscape.flow(chain, starts).labels == landscape.limit(chain, starts)).all()
    assert chain.kappa_star == pytest.approx(1.0) and chain.regime == "below"


def test_global_means_the_lowest_whatever_the_rise_of_the_loss_over_its_box():
    steep = PlainLoss.from_symbolic("steep", "(x^2-1)^2/4 + x/10 + y^2 + y^10", ["x", "y"], box={"y": (-10, 10)})
    assert landscape.flow(steep, [(1, 0.5), (-1, 0.5)]).words == ["local", "global"]
    assert {part.kind for part in landscape.critical_sets(steep) if part.loss > 0.09 and part.index == 0} == {"local minima"}


def test_no_minimum_is_global_where_the_loss_falls_without_end():
    cubic = PlainLoss.from_symbolic("cubic", "x^3 - 3*x", ["x"])
    assert landscape.flow(cubic, [[0.5], [-1.5]]).words == ["local", "undecided"]
    assert sets("x^3 - 3*x", ["x"]) == [("local minima", 0), ("maxima", 0)]


@pytest.mark.parametrize(
    "loss, expected",
    [
        ("max(x^2, 4*y^2) + x*y/2", [("global minima", 0)]),
        ("max(x^2, y^2)", [("global minima", 0)]),
        ("relu(x) + y^2", [("global minima", 1)]),
        ("(x^2 - 1)^2*(1 + y^2) + relu(y - 1)^2", [("global minima", 1), ("global minima", 1)]),
    ],
)
def test_sets_at_kinks_are_neither_doubled_nor_torn(loss, expected):
    assert [part for part in sets(loss) if "minima" in part[0]] == expected


def test_crossing_kinks_that_are_nested_do_no_harm():
    assert ("global minima", 0) in sets("abs(abs(x) - abs(y)) + x^2")


def test_optimal_gaps_of_chains_of_ones_own_may_be_large_or_infinite():
    endless = Chain.from_symbolic("endless", "log(1 + exp(kappa)) - (1 - r)*kappa", values={"r": 1.0})
    assert endless.kappa_star == -math.inf and endless.bigram_loss == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ParameterError, match="finite optimal gap"):
        landscape.flow(endless, (1, -1))
    far = Chain.from_symbolic("far", "(kappa - m)^2/1e4", values={"m": 800.0})
    assert far.kappa_star == pytest.approx(800.0) and far.bigram_loss == pytest.approx(0.0, abs=1e-9)


def test_kinks_at_singular_places_are_no_jumps():
    found = PlainLoss.from_symbolic("singular", "log(abs(x))^2 + y^2", ["x", "y"], minimum=0.0)
    assert np.allclose(landscape.flow(found, [(0.5, 1), (-2, 1)]).ends, [(1, 0), (-1, 0)], atol=1e-7)


def test_expressions_are_confirmed_in_their_box():
    found = PlainLoss.from_symbolic("shifted", "log(x - 5)^2", ["x"], box={"x": (5.5, 8)})
    assert landscape.flow(found, [7.0]).words == ["global"]
    with pytest.raises(ParameterError, match="continuous"):
        PlainLoss.from_symbolic("jump", "where(x > 5, x + 1, x)^2", ["x"], box={"x": (-8, 8)})


def test_bad_expressions_are_refused_at_once():
    with pytest.raises(ParameterError, match="'expression' parameter of bad"):
        Architecture.from_symbolic("bad", ["x"], gap="x +")
    with pytest.raises(ParameterError, match="'expression' parameter of bad"):
        Architecture.from_symbolic("bad", ["x"], logits=[["x", "0"], ["0", "v"]])


def test_what_a_trajectory_and_a_comparison_are_asked_for_has_to_fit():
    wells = PlainLoss.from_symbolic("wells", "(x^2 - 1)^2", ["x"], minimum=0.0)
    with pytest.raises(ParameterError, match="1-D"):
        landscape.trajectory(wells, 0.5 * np.ones(1))([[0.1, 0.2]])
    one, other = (landscape.basin_map(wells, x=(-reach, reach, 4)) for reach in (1, 2))
    with pytest.raises(ParameterError, match="same grid"):
        landscape.compare(one, other)
