"""Critical sets of any landscape against known ones, and what search, flow and derivation say of each other."""

import collections
import math

import numpy as np
import pytest
from problems import BY_NAME, PROBLEMS

import landscape
from landscape import BinaryChain, PlainLoss


@pytest.mark.parametrize("problem", [problem for problem in PROBLEMS if problem.sets], ids=lambda problem: problem.name)
@pytest.mark.parametrize("scale", ["1", "1e-9", "1e9"])
def test_critical_sets_are_found_whatever_the_scale(problem, scale):
    scaled = PlainLoss.from_symbolic(problem.name, f"{scale}*({problem.loss})", problem.parameters, box=problem.box)
    found = landscape.critical_sets(scaled)
    counted = collections.Counter((part.kind, part.dimension, part.index, part.nullity) for part in found)
    assert counted == {(kind, dimension, index, nullity): count for kind, dimension, index, nullity, count in problem.sets}


def test_a_line_of_minima_is_one_set_with_its_direction():
    (line,) = landscape.critical_sets(BY_NAME["line of minima"].landscape)
    assert line.kind == "global minima" and line.loss == pytest.approx(0, abs=1e-12)
    assert abs(np.dot(line.tangent[0], (1, -1))) / math.sqrt(2) == pytest.approx(1, abs=1e-9)
    assert sum(line.representative) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("chain", [BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3)], ids=str)
def test_the_search_finds_the_derived_sets_of_the_canonical_landscape_and_no_others(chain):
    derived = landscape.critical_sets(chain)
    searched = landscape.critical_sets(landscape.architecture("canonical").on(chain))
    kinds = collections.Counter(found.kind.rstrip("s") for found in searched)
    assert kinds == {"global minima": 2, "local minima": 1, "maxima": 1, "saddle": 1}
    by_kind = {found.kind.rstrip("s"): found for found in derived}
    for found in searched:
        expected = by_kind[found.kind.rstrip("s")]
        assert (found.dimension, found.nullity) == (expected.dimension, expected.nullity)
        assert found.index == expected.index and found.loss == pytest.approx(expected.loss, abs=1e-12)
        if found.kind.startswith("saddle"):
            assert found.representative == pytest.approx((0, -1 / math.sqrt(2)), abs=1e-6)


def test_critical_points_on_kinks_are_found_and_places_where_the_gradient_only_jumps_are_not():
    wells = PlainLoss.from_symbolic("kinked wells", "(x^2 - 1)^2/4 + x/10 + abs(y)/2 + y^2/2", ["x", "y"])
    found = landscape.critical_sets(wells)
    assert [(part.kind, part.index) for part in found] == [("global minima", 0), ("local minima", 0), ("saddles", 1)]
    roots = np.sort(np.roots([1, 0, -1, 0.1]).real)
    assert found[0].representative == pytest.approx((roots[0], 0), abs=1e-7)
    assert found[1].representative == pytest.approx((roots[2], 0), abs=1e-7)
    assert found[2].representative == pytest.approx((roots[1], 0), abs=1e-7)
    assert landscape.flow(wells, [(0.5, 1.0), (-0.5, -1.0)]).words == ["local", "global"]


def test_ridges_curved_kinks_crossing_kinks_and_lines_of_kinks():
    def sets(loss):
        found = landscape.critical_sets(PlainLoss.from_symbolic("kinks", loss, ["x", "y"]))
        return {(part.kind, part.dimension, *np.round(part.representative, 6).tolist()) for part in found if part.dimension == 0} | {
            (part.kind, part.dimension) for part in found if part.dimension
        }

    assert sets("abs(abs(x) - 1) + y^2/2") == {("saddles", 0, 0, 0), ("global minima", 0, -1, 0), ("global minima", 0, 1, 0)}
    assert sets("abs(x^2 + y^2 - 1) + x/5") == {("maxima", 0, 0.1, 0), ("global minima", 0, -1, 0), ("saddles", 0, 1, 0)}
    assert sets("abs(x) + 2*abs(y)") == {("global minima", 0, 0, 0)}
    assert sets("abs(x + y)") == {("global minima", 1)}


def test_the_lowest_minimum_found_is_the_global_one_unless_the_least_value_is_known():
    skewed = "(x^2 - 1)^2/4 + x/20"
    for minimum, words in ((None, ["global", "local"]), (-10.0, ["local", "local"])):
        wells = PlainLoss.from_symbolic("skewed", skewed, ["x"], minimum=minimum)
        assert landscape.flow(wells, [[-0.5], [0.5]]).words == words


def test_a_landscape_without_critical_points_has_no_sets():
    assert landscape.critical_sets(PlainLoss.from_symbolic("plane", "x + y/2", ["x", "y"])) == []


def test_classification_by_flow_says_what_the_exact_one_says():
    chain, starts = BinaryChain(0.5, 0.8), [(1, -1), (0.3, 0.5), (0, -1), (np.nan, 0)]
    exact, followed = landscape.classify(chain, starts), landscape.classify(chain, starts, method="flow")
    assert [found.label for found in exact] == [found.label for found in followed] == ["global", "local", "maximum", "invalid"]
    assert exact[:3] == followed[:3]
