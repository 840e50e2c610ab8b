"""The reduced and transverse landscapes, and flows with speeds: kernels, critical sets, sliding, thresholds, basins."""

import math

import mpmath
import numpy as np
import pytest

import landscape
from landscape import BinaryChain, ParameterError, PlainLoss, SymmetricChain, architecture
from landscape.symbolic.references import manifold_logits

BELOW, ABOVE = BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8)
REGIMES = {"below": BELOW, "above": ABOVE}
EDGE = 0.01  # how near to a threshold the starts on its two sides are


def on(chain, pace=1.0, name="reduced"):
    return architecture(name).on(chain, {"c": pace})


# --- kernels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", [BELOW, ABOVE])
def test_loss_and_gap_are_those_of_a_network_of_matrices(chain):
    found = on(chain, name="transverse")
    points = np.random.default_rng(0).uniform(-1.5, 1.5, size=(40, 6))
    for point, loss, gap in zip(points, found.loss(points), found.gap(points)):
        e, c, w1, w2, b, u = map(mpmath.mpf, point.tolist())
        zero, one = manifold_logits(e, c, w1, w2, u)
        law = chain.joint_law
        expected = sum(law[x, y] * mpmath.log1p(mpmath.exp((1 - 2 * y) * (logit + b))) for x, logit in enumerate((zero, one)) for y in (0, 1))
        assert loss == pytest.approx(float(expected), rel=1e-13)
        assert gap == pytest.approx(float(one - zero), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("name", ["reduced", "transverse"])
def test_two_numbers_are_a_point_of_the_canonical_slice(name):
    starts = np.random.default_rng(1).uniform(-2, 2, size=(30, 2))
    for chain in (BELOW, ABOVE):
        found = on(chain, name=name)
        full = found.points("test", starts)
        assert full.shape == (30, len(found.parameters))
        assert np.allclose(found.gap(starts), architecture("canonical").kappa(chain, starts), rtol=1e-12, atol=1e-14)
        assert np.allclose(found.loss(starts), landscape.loss(chain, starts), rtol=1e-13)
        assert np.abs(found.gradient(starts)[:, 4]).max() < 1e-15  # the bias is at its minimiser


# --- critical sets ----------------------------------------------------------------------------------------

PLATEAUS = {"w1 c < 0": (-0.5, 1.0, -2.0), "w1 c > 0, w1 w2 > -1": (0.5, 1.0, 0.75), "w1 c > 0, w1 w2 < -1": (-0.5, -1.0, 2.0)}


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("name", ["reduced", "transverse"])
def test_index_and_nullity_are_those_of_the_hessian(name, regime):
    chain = REGIMES[regime]
    found = on(chain, name=name)
    for kept in landscape.critical_sets(chain, name):
        if kept.kind == "global minima":
            continue
        c, w1, w2 = next(values for words, values in PLATEAUS.items() if kept.equations.endswith(words))
        point = [0.0, c, w1, w2, math.log(chain.p / chain.q), 0.0][: len(found.parameters)]
        values = np.linalg.eigvalsh(found.hessian(point)[0])
        assert np.abs(found.gradient(point)).max() < 1e-15
        assert ((values < -1e-9).sum(), (np.abs(values) < 1e-9).sum()) == (kept.index, kept.nullity)
        assert (kept.kind == "local minima") == (kept.index == 0) and kept.loss == chain.unigram_loss


def test_bad_minima_of_the_manifold_are_saddles_across_it_below_the_threshold_alone():
    kinds = {(name, regime): [kept.kind for kept in landscape.critical_sets(chain, name)]
             for name in ("reduced", "transverse") for regime, chain in REGIMES.items()}
    assert kinds["reduced", "below"].count("local minima") == 1 and kinds["transverse", "below"].count("local minima") == 0
    assert kinds["reduced", "above"] == kinds["transverse", "above"] == ["global minima", "local minima", "local minima", "saddles"]


def test_at_the_threshold_everything_is_global():
    chain = BinaryChain(0.3, 0.7)
    assert {kept.kind for kept in landscape.critical_sets(chain, "reduced")} == {"global minima"}
    assert landscape.flow(on(chain), [(-0.3, -1.5), (0.5, -1.5)]).words == ["global", "global"]


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("where", PLATEAUS)
def test_the_plateau_holds_what_its_index_says(regime, where):
    """Starts next to the plateau, on both of its sides: those of a bad minimum stay, others leave for the optimum."""
    chain, (c, w1, w2) = REGIMES[regime], PLATEAUS[where]
    holds = (regime == "below") == (where == "w1 c > 0, w1 w2 < -1")
    starts = [(e, c, w1, w2, math.log(chain.p / chain.q)) for e in (-1e-3, 1e-3)]
    assert landscape.flow(on(chain, 1 / 16), starts).words == ["local" if holds else "global"] * 2


# --- thresholds and sliding --------------------------------------------------------------------------------


@pytest.mark.parametrize("pace", [1.0, 1 / 16, 1 / 256])
def test_thresholds_of_the_canonical_slice(pace):
    """derivations/reduced-critical-sets.md: where starts with small e turn from local to global."""
    def words(chain, e, *w):
        return landscape.flow(on(chain, pace), [(e, each) for each in w]).words

    below = -1 / math.sqrt(1 - 4 * pace) if pace < 0.25 else -math.inf
    above = -0.5 if pace >= 0.25 else -1 / math.sqrt(3 + 4 * pace)
    assert words(BELOW, 1e-3, -2.0, -1.2, -0.6, 0.5) == ["global"] * 4
    if math.isfinite(below):
        assert words(BELOW, -1e-3, below - EDGE, below + EDGE, 0.5) == ["local", "global", "global"]
    else:
        assert words(BELOW, -1e-3, -2.0, -1.2, -0.6, 0.5) == ["global"] * 4
    assert words(ABOVE, -1e-3, -0.5 - EDGE, -0.5 + EDGE, 0.5) == ["global", "local", "local"]
    assert words(ABOVE, 1e-3, above - EDGE, above + EDGE, 0.5) == ["global", "local", "local"]


@pytest.mark.parametrize("name", ["reduced", "transverse"])
def test_the_recommended_start_is_safe_on_both_sides(name):
    """From (1, -1), and from there with a part across, the bigram law is reached whatever the chain and the position's speed."""
    for p, q in ((0.1, 0.15), (0.2, 0.3), (0.45, 0.5), (0.5, 0.6), (0.5, 0.8), (0.9, 0.85)):
        for pace in (1.0, 1 / 16, 1 / 256):
            found = on(BinaryChain(p, q), pace, name)
            extra = {"u": np.array([0.0, 0.1])} if name == "transverse" else {}
            starts = found.place({"e": np.ones(2), "w": -np.ones(2)} | extra)
            assert landscape.flow(found, starts).words == ["global"] * 2, (p, q, pace)


@pytest.mark.parametrize("pace", [1 / 16, 1 / 64])
def test_the_flow_slides_along_the_kink_at_the_derived_speed(pace):
    """From (0.5, -1.5) at p + q < 1 it comes to e + c = 0, where κ = e² grows at 2 s/(1 + s) of the free rate."""
    way = landscape.trajectory(on(BELOW, pace), (0.5, -1.5))
    times, states = way.sample()
    e, c, w1, w2, _ = states.T
    sliding = np.abs(e + c) < 1e-10
    assert way.label == "global" and sliding.any()
    start, stop = times[sliding][[0, -1]]
    assert start < 1.0 and stop == times[-1]
    assert np.ptp(w1[sliding]) < 1e-9  # the weights rest
    some = np.linspace(start, stop, 40)[1:20]
    step = 1e-3
    rate = (np.log(np.abs(way(some + step)[:, 0])) - np.log(np.abs(way(some - step)[:, 0]))) / (2 * step)
    expected = -2 * pace / (1 + pace) * BELOW.phi_prime(way(some)[:, 0] ** 2)
    assert rate == pytest.approx(expected, rel=2.5 * pace)  # the bias follows its minimiser with a lag of this order


def test_the_length_of_the_plateau_grows_with_the_number_of_positions():
    lengths = [landscape.trajectory(on(BELOW, 1 / n), (0.5, -1.5)).times[-1] for n in (16, 64)]
    assert 2.5 < lengths[1] / lengths[0] < 4.5


# --- across the manifold ------------------------------------------------------------------------------------


def test_across_the_manifold_bad_minima_hold_above_the_threshold_alone():
    """Below it the same starts, on the manifold and 1e-6 off it: what holds them on it is a saddle of the full model."""
    held = [(-0.3, -1.5), (-0.6, -1.8)]
    assert landscape.flow(on(BELOW, 1 / 64), held).words == ["local", "local"]
    for u, word in ((0.0, "saddle"), (1e-6, "global")):
        found = on(BELOW, 1 / 64, "transverse")
        starts = found.place({"e": np.array([e for e, _ in held]), "w": np.array([w for _, w in held]), "u": np.array([u, u])})
        ends = landscape.flow(found, starts)
        assert ends.words == [word] * 2
    found = on(ABOVE, 1 / 64, "transverse")
    starts = found.place({"e": np.array([0.3, -0.5]), "w": np.array([0.5, 0.2]), "u": np.array([0.1, 1e-3])})
    ends = landscape.flow(found, starts)
    assert ends.words == ["local", "local"] and np.abs(ends.ends[:, 5]).max() < 1e-6


def test_the_part_across_grows_at_twice_the_slope_of_phi():
    found = on(BELOW, 1 / 64, "transverse")
    start = [0.0, 0.15, 3.0, -3.0, math.log(BELOW.p / BELOW.q), 1e-9]
    way = landscape.trajectory(found, start, t_max=20.0)
    growth = np.log(way(20.0)[5] / way(10.0)[5]) / 10
    assert growth == pytest.approx(-2 * BELOW.phi_prime(0.0), rel=1e-6)


# --- speeds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", [BELOW, ABOVE])
def test_invariants_are_kept_with_speeds(chain):
    canonical = architecture("canonical").on(chain, {"e": 0.5, "w": 3.0})
    for start in ((0.5, -0.6), (1.2, 0.8), (-1.0, -1.0)):
        assert landscape.trajectory(canonical, start).invariant_drift()["E"] < 1e-6
    paced = architecture("reduced").on(chain, {"c": 0.1, "w1": 0.5, "w2": 2.0})
    assert landscape.trajectory(paced, (0.8, 0.3, 1.5, -0.5, 0.0)).invariant_drift()["w1^2 - w2^2"] < 1e-6


def test_speeds_are_a_change_of_units():
    """x² + 2y² with y four times as fast: exact exponentials."""
    bowl = PlainLoss.from_symbolic("bowl", "x^2 + 2*y^2", ["x", "y"]).with_speeds({"y": 4.0})
    way = landscape.trajectory(bowl, (1.0, -1.0), t_max=1.0, tolerance=0.0)
    assert way(0.3) == pytest.approx([math.exp(-0.6), -math.exp(-4.8)], rel=1e-7)
    assert bowl.describe()["speed_y"] == 4.0 and "speed_x" not in bowl.describe()
    assert bowl.with_speeds(None).speeds == () == bowl.with_speeds({"y": 1.0}).speeds


def test_no_exact_rule_is_used_where_speeds_differ():
    paced = architecture("canonical").on(ABOVE, {"w": 0.25})
    assert landscape.classify(paced, [(1, -1)])[0].margin is None
    with pytest.raises(ParameterError, match="with speeds other than 1"):
        landscape.basin_map(paced, method="exact", e=(-1, 1, 3), w=(-1, 1, 3))
    with pytest.raises(ParameterError, match="speeds"):
        architecture("canonical").on(ABOVE, {"c": 0.25})
    with pytest.raises(ParameterError, match="positive"):
        architecture("canonical").on(ABOVE, {"e": 0.0})


def test_only_two_symbols():
    with pytest.raises(ParameterError, match="BinaryChain"):
        landscape.flow(SymmetricChain(3, 0.3), [(1, 1)], "reduced")


def test_maps_over_the_slice_and_over_the_parameters():
    found = on(BELOW, 1 / 16)
    over_slice = landscape.basin_map(found, e=(-0.8, -0.2, 4), w=(-2.0, -0.5, 6))
    assert over_slice["label"].dims == ("e", "w") and set(np.unique(over_slice["label"])) == {1, 2}
    assert landscape.basin_map(found, e=(-1, 1, 3), w=(-2, 0, 3), fixed={"b": 0.0})["label"].shape == (3, 3)
    full = landscape.basin_map(found, e=(-0.4, 0.4, 3), c=(-0.5, 0.5, 2), fixed={"w1": 1.5, "w2": -1.5, "b": -0.4})
    assert full["label"].dims == ("e", "c")
    with pytest.raises(ParameterError, match="axes"):
        landscape.basin_map(found, e=(-1, 1, 3), c=(-1, 1, 3))
