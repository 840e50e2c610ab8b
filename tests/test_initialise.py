"""Recommended starts are global and as far from all else as a circle allows; safe ones are global on every chain."""

import math

import numpy as np
import pytest
from conftest import strict

import landscape
from landscape import BinaryChain, Label, ParameterError, SymmetricChain, recommend, safe_starts
from landscape.initialise import clearance

CHAINS = [BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3), SymmetricChain(5, 0.95), SymmetricChain(5, 0.3)]


@pytest.mark.parametrize("chain", CHAINS, ids=repr)
@pytest.mark.parametrize("norm", [None, 1.1, 3.0])
def test_no_start_of_its_norm_is_farther_from_all_that_is_not_global(chain, norm):
    found = recommend(chain, norm=norm)
    e, w = found.mean
    assert math.hypot(e, w) == pytest.approx(found.norm, rel=1e-12) and set(found.labels.values()) == {"global"}
    angles = np.linspace(0.0, 2.0 * math.pi, 5_000)
    circle = found.norm * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert found.distance >= clearance(chain, circle).max() - 1e-9
    ring = found.distance * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert (landscape.limit(chain, found.mean + 0.999 * ring) == Label.GLOBAL).all()  # the clearance is what it says
    assert (landscape.limit(chain, found.mean + (1.0 + 1e-6) * ring) != Label.GLOBAL).any() or found.distance == pytest.approx(abs(e))


@pytest.mark.parametrize("chain", CHAINS, ids=repr)
def test_the_default_needs_no_data_and_is_the_papers_start_for_two_symbols(chain):
    told = recommend(chain, flow=False).default
    e, w = told.mean
    states = getattr(chain, "states", 2)
    assert e == -w == pytest.approx(math.sqrt(states / 2.0)) and told.norm == pytest.approx(math.sqrt(states))
    assert safe_starts(told.mean, states).all() and set(told.labels.values()) == {"global"}


def test_safe_starts_are_those_that_are_global_on_both_sides_and_match_the_inequality():
    points = np.random.default_rng(0).uniform(-3, 3, size=(4_000, 2))
    safe = safe_starts(points)
    both = [landscape.limit(chain, points) == Label.GLOBAL for chain in (BinaryChain(0.01, 0.02), BinaryChain(0.99, 0.97))]
    assert np.array_equal(safe, np.logical_and(*both)) and 0.1 < safe.mean() < 0.9
    e, w = points.T
    with np.errstate(invalid="ignore"):
        written = (w < 0) & (e**2 > w**2 - np.log(-w) - (1 + math.log(2)) / 2)
    assert np.array_equal(safe, written)
    assert not safe_starts([(np.nan, -1.0), (0.0, -1.0), (1.0, np.inf)]).any()


@pytest.mark.parametrize("ratio", [0.5, 6.4, 6.7])
def test_speeds_move_the_safe_region_as_the_flow_says(ratio):
    held = bool(safe_starts((1.0, -1.0), speeds={"e": ratio})[0])
    assert held == (ratio < recommend(BinaryChain(0.2, 0.3), flow=False).default.speed_ratio)
    by_flow = [
        landscape.flow(landscape.architecture("canonical").on(chain, {"e": ratio, "w": 1.0}), [(1.0, -1.0)]).words[0]
        for chain in (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8))
    ]
    assert held == (by_flow == ["global", "global"])


def test_a_speed_ratio_is_where_the_limit_changes():
    chain, start = BinaryChain(0.5, 0.8), (1.5, -0.3)  # it has to pass the saddle's w
    found = recommend(chain, norm=1.2, flow=False)
    assert found.speed_ratio == math.inf
    from landscape.initialise import _speed_ratio

    ratio = _speed_ratio(chain, *start, 2.0)
    for factor, word in ((0.99, "global"), (1.01, "local")):
        paced = landscape.architecture("canonical").on(chain, {"e": factor * ratio})
        assert landscape.flow(paced, [start]).words == [word]


@pytest.mark.parametrize("chain", [BinaryChain(0.95, 0.6), BinaryChain(0.2, 0.3)], ids=repr)
def test_gradient_descent_settles_below_the_largest_rate_and_not_above(chain):
    told = recommend(chain, positions=16)
    model = landscape.architecture("transverse").on(chain, {"c": 1 / 16})
    end = landscape.flow(model, [told.mean]).ends[0]
    lowest = model.loss([end])[0]
    for factor, settles in ((0.9, True), (1.1, False)):
        point = end + 1e-4 * np.array([1.0, 0.0, 0.5, -0.5, 0.0, 0.0])
        before = model.loss([point])[0] - lowest
        for _ in range(300):
            point = point - factor * told.largest_rate * model.stretch**2 * model.gradient([point])[0]
        after = model.loss([point])[0] - lowest
        assert (after < 0.1 * before) if settles else (after > 3.0 * before)
    assert recommend(SymmetricChain(5, 0.9)).largest_rate is None and recommend(chain, flow=False).largest_rate is None


def test_starts_in_the_parameters_of_other_architectures_are_global_there():
    chain = BinaryChain(0.5, 0.8)
    for name in ("canonical", "attention", "untied", "reduced", "transverse"):
        found = recommend(chain, name)
        model = landscape.architecture(name).on(chain)
        assert tuple(found.start) == model.parameters
        assert landscape.flow(model, [list(found.start.values())]).words == ["global"]


def test_at_the_threshold_every_start_will_do():
    found = recommend(BinaryChain(0.4, 0.6))
    assert found.distance is None and found.speed_ratio == math.inf and "At the threshold" in found.words


def test_what_cannot_be_recommended_is_refused():
    for arguments, named in (
        ((BinaryChain(1.0, 0.5),), "recommend"), (("chain",), "chain"), ((BinaryChain(0.5, 0.8), "canonical", "norm"), "norm"),
    ):
        with pytest.raises(ParameterError, match=named):
            recommend(*arguments[:2], **({"norm": 0.5} if len(arguments) > 2 else {}))
    own = landscape.Architecture.from_symbolic("own", ["e", "w"], gap="e^2*(1 + 2*w*abs(w))")
    with pytest.raises(ParameterError, match="architecture"):
        recommend(BinaryChain(0.5, 0.8), own)
    nearest = float(landscape.classify(BinaryChain(0.5, 0.8), [(0.0, 0.0)])[0].distance)
    recommend(BinaryChain(0.5, 0.8), norm=1.001 * nearest, flow=False)


def test_the_command_line(call):
    code, out, _ = call("init", "--p", ".5", "--q", ".8", "--std", ".1", "--no-flow", "--json")
    told = strict(out)
    assert code == 0 and told["p_global"] == pytest.approx(3.71763650e-9, rel=1e-9) and told["rank"] == 1
    assert set(told["recommended"]) == set(told["default"]) and told["default"]["start"] == {"e": 1.0, "w": -1.0}
    assert 0.0 < told["recommended"]["p_not_global"] < 1e-6 and told["recommended"]["speed_ratio"] is None
    code, out, _ = call("init", "--states", "5", "--p", ".95", "--norm", "2")
    assert code == 0 and "rank 4" in out and "e > 0" in out
    code, out, _ = call("init", "--p", ".5", "--q", ".8", "--architecture", "attention", "--samples", "1000", "--std", "1", "--no-flow")
    assert code == 0 and "+-" in out
    for wrong in (("--norm", ".3"), ("--std", "0"), ("--positions", "0"), ("--samples", "0"), ("--architecture", "none")):
        code, out, err = call("init", "--p", ".5", "--q", ".8", *wrong)
        assert code == 2 and not out and wrong[0][2:] in err and len(err.strip().splitlines()) == 1
