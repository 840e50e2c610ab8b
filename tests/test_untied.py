"""The untied landscape: kernels, critical sets, invariants, exact limits against flows, two symbols and more."""

import math

import mpmath
import numpy as np
import pytest
import sympy

import landscape
from landscape import BinaryChain, Chain, Label, ParameterError, SymmetricChain, architecture
from landscape.symbolic import symbols
from landscape.symbolic.references import network_gap
from landscape.symbolic.untied_limits import SMALLER

BELOW, ABOVE = BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8)
TWO = [ABOVE, BELOW, BinaryChain(0.9, 0.6), SymmetricChain(2, 0.8)]
MANY = [SymmetricChain(3, 0.9), SymmetricChain(3, 0.3), SymmetricChain(5, 0.9), SymmetricChain(5, 0.3), SymmetricChain(4, 0.9)]
MODEL = architecture("untied")
SADDLE = -1 / math.sqrt(2)


def labels(chain, *starts):
    return [Label(int(code)).word for code in landscape.limit(chain, list(starts), "untied")]


def words(chain, *starts):
    return landscape.flow(chain, list(starts), "untied").words


def box(count, chain, seed=0):
    low = 1.2 * min(MODEL.saddles(chain))
    return np.random.default_rng(seed).uniform((-2, -2, min(low, -2)), (2, 2, 2), size=(count, 3))


# --- kernels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", [ABOVE, BELOW, SymmetricChain(3, 0.9), SymmetricChain(5, 0.3)], ids=str)
def test_gap_and_derivatives_are_those_of_a_network_of_matrices(chain):
    states = None if isinstance(chain, BinaryChain) else chain.states
    points = np.random.default_rng(1).uniform(-1.5, 1.5, size=(12, 3))
    found = zip(points, MODEL.kappa(chain, points), MODEL.gradient(chain, points), MODEL.hessian(chain, points))
    for (e, c, w), kappa, gradient, hessian in found:
        at = tuple(map(mpmath.mpf, (e, c, w)))

        def gap(e_, c_, w_):
            return network_gap(e_, w_, states, c_)

        first = [mpmath.diff(gap, at, tuple(int(i == k) for i in range(3))) for k in range(3)]
        slope, bend = chain.phi_prime(kappa), (chain.phi_prime(kappa + 1e-5) - chain.phi_prime(kappa - 1e-5)) / 2e-5
        assert kappa == pytest.approx(float(gap(*at)), rel=1e-13, abs=1e-14)
        assert np.allclose(gradient, [float(slope * part) for part in first], rtol=1e-8, atol=1e-12)
        for i in range(3):
            for j in range(3):
                second = mpmath.diff(gap, at, tuple(int(i == k) + int(j == k) for k in range(3)))
                assert hessian[i, j] == pytest.approx(float(slope * second + bend * first[i] * first[j]), abs=1e-8)


def test_two_states_of_the_symmetric_chain_are_two_symbols():
    points = box(500, ABOVE)
    one, other = SymmetricChain(2, 0.8), BinaryChain(0.8, 0.8)
    assert np.allclose(MODEL.kappa(one, points), 2 * MODEL.kappa(other, points), rtol=1e-12)  # A = S/(S-1)
    assert (MODEL.limit(one, points) == MODEL.limit(other, points)).all()


# --- critical sets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", [ABOVE, BELOW], ids=str)
def test_index_and_nullity_are_those_of_the_hessian(chain):
    places = {  # by where the equations say the set is
        "kappa": (chain.kappa_star / (1.5 * (1 + 2 * 0.4**2)), 1.5, 0.4), "e = c = 0, w !": (0, 0, -1.2), "c = 0": (-0.75, 0, SADDLE),
        "e = 0": (0, 1.25, SADDLE), "e = c = 0, w =": (0, 0, SADDLE),
    }
    sets = landscape.critical_sets(chain, "untied")
    assert sorted(kept.kind for kept in sets) == ["global minima", "saddle", "saddles", "saddles", "saddles"]
    for kept in sets:
        point = next(place for words_, place in places.items() if kept.equations.startswith(words_))
        values = np.linalg.eigvalsh(MODEL.hessian(chain, point)[0])
        assert np.abs(MODEL.gradient(chain, point)).max() < 1e-15
        assert ((values < -1e-9).sum(), (np.abs(values) < 1e-9).sum()) == (kept.index, kept.nullity)
        assert MODEL.loss(chain, point)[0] == pytest.approx(kept.loss, rel=1e-13)
        assert (labels(chain, point)[0] == "global") == (kept.kind == "global minima")
        assert kept.nullity >= kept.dimension


@pytest.mark.parametrize("chain", [ABOVE, BELOW], ids=str)
def test_every_saddle_has_a_way_down(chain):
    """No ball around a critical point at the unigram loss is without lower losses, at the degenerate point too."""
    for point in ((0, 0, 0.5), (0, 0, -1.2), (0.75, 0, SADDLE), (0, -0.5, SADDLE), (0, 0, SADDLE)):
        around = np.array(point) + np.random.default_rng(0).normal(size=(2000, 3)) * 1e-2
        losses = MODEL.loss(chain, around)
        assert losses.min() < chain.unigram_loss - 1e-9 and losses.max() > chain.unigram_loss + 1e-9


@pytest.mark.parametrize("chain", MANY, ids=str)
def test_the_kink_is_a_bad_minimum_between_the_saddles_and_nowhere_else(chain):
    upper, lower = MODEL.saddles(chain)
    assert upper == pytest.approx(-math.sqrt(chain.states) / 2) and lower == pytest.approx(-math.sqrt(chain.states * (chain.states - 1)) / 2)
    kinds = [kept.kind for kept in landscape.critical_sets(chain, "untied")]
    assert kinds.count("local minima") == kinds.count("maxima") == 1
    side, generator = chain.target_sign, np.random.default_rng(2)
    for c, w, expected in (
        (side, (upper + lower) / 2, "local"), (-side, (upper + lower) / 2, "maximum"), (0, (upper + lower) / 2, "saddle"),
        (side, upper + 0.1, "global"), (side, lower - 0.1, "global"), (-side, 0.5, "global"), (0, 0.5, "saddle"),
    ):
        around = np.array((0, c, w)) + generator.uniform(-1e-3, 1e-3, size=(3000, 3))
        rises = MODEL.loss(chain, around) - chain.unigram_loss
        assert {"local": rises.min() > 0, "maximum": rises.max() < 0}.get(expected, rises.min() < 0 < rises.max())
        assert labels(chain, (0, c, w)) == words(chain, (0, c, w)) == [expected]


@pytest.mark.parametrize("chain", MANY, ids=str)
def test_the_flow_stands_still_on_the_kink(chain):
    """Where it is held no gradient along the kink is left: the end is where the orbit met the kink."""
    side, middle = chain.target_sign, sum(MODEL.saddles(chain)) / 2
    found = landscape.flow(chain, [(0.05, side, middle), (-0.05, side, middle)], "untied")
    assert found.words == ["local", "local"] and (found.sliding == 1).all() and (found.ends[:, 0] == 0).all()
    assert np.allclose(found.ends[:, 1] ** 2, 1 - 0.05**2, rtol=1e-7)  # e² - c² is kept
    assert found.times.max() < 1e3


def test_sets_at_the_threshold():
    for chain in (BinaryChain(0.3, 0.7), SymmetricChain(5, 0.8)):
        assert {kept.kind for kept in landscape.critical_sets(chain, "untied")} == {"global minima"}
        assert set(labels(chain, (0, 0, 0), (1, 1, -1), (0, 1, -1.3))) == {"global"}


# --- invariants -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speeds", [None, {"c": 0.25, "w": 3.0}])
@pytest.mark.parametrize("chain", [ABOVE, BELOW], ids=str)
def test_both_invariants_are_kept(chain, speeds):
    found = MODEL.on(chain, speeds)
    for start in ((1, 0.5, -0.3), (-0.4, 0.9, -1.5), (0.7, -0.6, 0.4), (0.2, 1.2, -0.9)):
        drift = landscape.trajectory(found, start, rtol=1e-9).invariant_drift()
        assert set(drift) == {"e^2 - c^2", "E"} and max(drift.values()) <= 1000 * 1e-9


@pytest.mark.parametrize("chain", MANY[:4], ids=str)
def test_the_difference_of_squares_is_kept_across_the_kink(chain):
    way = landscape.trajectory(chain, (-0.2, chain.target_sign, 0.5), "untied", rtol=1e-9)
    drift = way.invariant_drift()
    assert way.label == "global" and way.end[0] * -0.2 < 0  # it has crossed e = 0
    assert drift["e^2 - c^2"] <= 1000 * 1e-9 and drift["E"] is None


# --- exact limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", TWO, ids=str)
def test_twenty_thousand_random_starts_are_all_global(chain):
    starts = np.random.default_rng(6).uniform(-2, 2, size=(20_000, 3))
    assert set(landscape.limit(chain, starts, "untied")) == set(landscape.flow(chain, starts, "untied").labels) == {Label.GLOBAL}


@pytest.mark.parametrize("chain", MANY, ids=str)
def test_many_symbols_exact_and_flow_agree(chain):
    starts = box(2000, chain)
    exact = landscape.limit(chain, starts, "untied")
    assert (exact == landscape.flow(chain, starts, "untied").labels).all()
    assert set(exact) == {Label.GLOBAL, Label.LOCAL}


@pytest.mark.parametrize("chain", TWO + MANY, ids=str)
def test_the_kernel_says_what_the_derived_rule_says(chapters, chain):
    rules = chapters["untied"]
    names = [symbols.e, symbols.head, symbols.w, symbols.sign_e, symbols.sign_w, symbols.curvature, symbols.curvature_across,
             symbols.target, SMALLER]
    to_global, to_local = (sympy.lambdify(names, rules[name], "math") for name in ("reaches_optimum", "reaches_local_minimum"))
    upper, lower = MODEL.curvatures(chain)
    points = box(3000, chain, 3)
    points[::2, 0] /= 4
    for (e, c, w), code in zip(points.tolist(), landscape.limit(chain, points, "untied")):
        if w >= 0:  # the rule's logarithm is taken for w < 0
            assert code == Label.GLOBAL
            continue
        here, across = (upper, lower) if e > 0 else (lower, upper)
        values = (e, c, w, math.copysign(1, e), math.copysign(1, w), here, across, chain.target_sign, abs(e))
        smaller = (*values[:-1], min(abs(e), abs(c)))
        expected = Label.LOCAL if to_local(*values) else Label.GLOBAL if to_global(*smaller) else Label.SADDLE
        assert code == expected, (e, c, w)


@pytest.mark.parametrize("chain", TWO + MANY, ids=str)
def test_the_planes_on_which_starts_end_in_saddles(chain):
    """e = c or e = -c, the one with κκ* < 0: exact and flow agree, and what ends in a saddle ends at e = c = 0."""
    starts = box(200, chain, 4)
    for side in (1, -1):
        starts[:, 1] = side * starts[:, 0]
        exact, found = landscape.limit(chain, starts, "untied"), landscape.flow(chain, starts, "untied")
        decided = found.labels != Label.UNDECIDED
        assert decided.mean() > 0.9 and (exact == found.labels)[decided].all()
        ended = found.labels == Label.SADDLE
        assert ended.sum() >= 3 and np.abs(found.ends[ended, :2]).max() < 1e-6


@pytest.mark.parametrize("chain", [ABOVE, BELOW], ids=str)
def test_the_surface_that_ends_on_the_saddle_lines(chain):
    """2 min(e², c²) = G(w) - G_min: on its two sides orbits pass the saddle line the closer the nearer they start, and part."""
    for w in (-0.4, -1.3):
        small = math.sqrt((w**2 - math.log(2 * w**2) / 2 - 0.5) / 2)
        side = chain.target_sign * (1 if w < SADDLE else -1)
        for start in ((small, 1.1 * side), (-1.1 * side, -small)):
            at = np.array((*start, w))
            assert labels(chain, at) == ["saddle"]
            short = 0 if abs(at[0]) < abs(at[1]) else 1
            nearest = []
            for shift in (1e-2, 1e-5):
                kinds = []
                for sign in (1, -1):
                    moved = at * (1 + sign * shift * (np.arange(3) == short))
                    way = landscape.trajectory(chain, moved, "untied")
                    states = way.sample(32)[1]
                    distance = np.hypot(states[:, short], states[:, 2] - SADDLE).min()
                    assert way.label == labels(chain, moved)[0] == "global"
                    nearest.append(distance)
                    kinds.append(np.sign(way.end[short] * moved[short]))  # whether the smaller of e and c has kept its sign
                assert kinds == [1, -1]
            assert max(nearest[2:]) < 0.1 * min(nearest[:2])


def test_known_starts():
    assert labels(ABOVE, (1, 1, 0.5), (1, -1, 0.5), (0, 0, 1), (0, 1, 1), (1, 0, 0), (0.5, 0, SADDLE), (0, 0.5, SADDLE), (1, 1, 0)) == [
        "saddle", "global", "saddle", "global", "global", "saddle", "saddle", "saddle"
    ]
    assert labels(BELOW, (1, 1, 0.5), (1, -1, 0.5), (0.3, 0.3, -1.5), (2, 2, -1.5), (0.1, -0.1, -0.5), (2, -2, -0.5)) == [
        "global", "saddle", "saddle", "global", "saddle", "global"
    ]
    # the canonical landscape's local minima, with e and c of one size, are saddles
    assert labels(ABOVE, (0.3, 0.3, 0.5), (0.3, 0.3000001, 0.5)) == ["saddle", "global"]


def test_a_start_that_only_rounding_takes_off_a_plane_is_on_it():
    assert labels(ABOVE, (0.1 + 0.2, 0.3, 0.5), (0.3, 0.3 + 1e-12, 0.5)) == ["saddle", "global"]


def test_starts_that_are_not_finite_are_invalid_and_huge_or_tiny_ones_get_an_answer():
    assert labels(ABOVE, (math.nan, 1, 1), (1, math.inf, 1), (1, 1, -math.inf)) == ["invalid"] * 3
    assert labels(ABOVE, (1e200, 1, -0.5), (1e-200, 1, 0.5), (1e-200, 1e-200, 0.5), (1e200, 1e200, -1e200)) == [
        "global", "global", "saddle", "global"]


@pytest.mark.parametrize("chain", TWO[:2] + MANY[:3], ids=str)
def test_margin_is_negative_in_the_local_basin_alone(chain):
    starts = box(3000, chain, 7)
    starts[::2, 0] /= 5
    margin, code = MODEL.margin(chain, starts), landscape.limit(chain, starts, "untied")
    assert np.isnan(MODEL.distance(chain, starts)).all()
    if isinstance(chain, BinaryChain):
        assert np.isnan(margin).all()
        return
    assert ((margin < 0) == (code == Label.LOCAL)).all() and (margin < 0).any() and (margin > 0).any()


# --- everywhere an architecture goes ------------------------------------------------------------------------


def test_maps_of_two_and_three_coordinates():
    chain = MANY[2]
    axes = {"e": np.linspace(-1, 1, 9), "c": np.linspace(-2, 2, 7), "w": np.linspace(-3, 1, 11)}
    whole = landscape.basin_map(chain, "untied", **axes)
    assert whole["label"].dims == ("e", "c", "w") and set(np.unique(whole["label"])) >= {Label.GLOBAL, Label.LOCAL, Label.SADDLE}
    slice_ = landscape.basin_map(chain, "untied", fixed={"c": axes["c"][2]}, e=axes["e"], w=axes["w"])
    assert (slice_["label"].values == whole["label"].values[:, 2]).all()
    mesh = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1).reshape(-1, 3)
    assert (whole["label"].values.ravel() == landscape.limit(chain, mesh, "untied")).all()


def test_there_is_no_separatrix_curve(call):
    with pytest.raises(ParameterError, match="separated by a curve"):
        landscape.separatrix(ABOVE, "untied")
    code, out, err = call("separatrix", "--p", ".5", "--q", ".8", "--architecture", "untied", "--out", "/nowhere.csv")
    assert code == 2 and out == "" and err.count("\n") == 1


def test_the_command_line(call):
    import json

    def data(*arguments):
        code, out, err = call(*arguments, "--architecture", "untied", "--json")
        assert code == 0 and err == ""
        return json.loads(out)

    rows = data("classify", "--p", ".5", "--q", ".8", "--at", "1,1,.5", "--at", "1,-1,.5")["points"]
    assert [row["label"] for row in rows] == ["saddle", "global"] and rows[0]["margin"] is rows[0]["distance"] is None
    assert rows[0]["invariants"]["e^2 - c^2"] == 0.0
    assert len(data("critical", "--p", ".5", "--q", ".8")["sets"]) == 5
    assert data("basins", "--p", ".5", "--q", ".8", "--fix", "c=1", "--e", -2, 2, 21, "--w", -2, 2, 21)["shape"] == [21, 21]
    assert data("flow", "--states", 5, "--p", ".9", "--at=.05,-1,-1.5")["label"] == "local"


def test_on_a_chain_of_ones_own():
    lazy = Chain.from_symbolic("lazy", "log(1 + exp(kappa)) - (1 - r)*kappa", values={"r": 0.8})
    starts = box(50, ABOVE)
    assert (landscape.limit(lazy, starts, "untied") == landscape.flow(lazy, starts, "untied").labels).all()
    assert np.allclose(MODEL.kappa(lazy, starts), MODEL.kappa(ABOVE, starts), rtol=1e-14)
