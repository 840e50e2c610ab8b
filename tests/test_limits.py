"""Exact limits: the rule, its edges, margins, distances and the separatrix."""

import math

import numpy as np
import pytest
import sympy
from scipy import integrate, optimize

import landscape
from landscape import BinaryChain, Label, ParameterError, SymmetricChain
from landscape.symbolic import symbols

ABOVE, BELOW = BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3)
CHAINS = [ABOVE, BELOW, BinaryChain(0.9, 0.9), BinaryChain(0.1, 0.1), SymmetricChain(5, 0.9), SymmetricChain(5, 0.3), SymmetricChain(2, 0.8)]
SADDLE = -1 / math.sqrt(2)


def labels(chain, *starts):
    return [Label(int(code)).word for code in landscape.limit(chain, list(starts))]


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_the_kernel_says_what_the_derived_rule_says(chapters, chain):
    rules = chapters["canonical-limits"]
    names = [symbols.e, symbols.w, symbols.sign_w, symbols.curvature, symbols.curvature_across, symbols.target]
    to_global, to_local = (sympy.lambdify(names, rules[name], "math") for name in ("reaches_optimum", "reaches_local_minimum"))
    model = landscape.architecture("canonical")
    points = np.random.default_rng(3).uniform(-3, 3, size=(4000, 2))
    for (e, w), code in zip(points.tolist(), landscape.limit(chain, points)):
        c, across = model.constants(chain, math.copysign(1, e))[1], model.constants(chain, -math.copysign(1, e))[1]
        values = (e, w, math.copysign(1, w), c, across, chain.target_sign)
        expected = Label.GLOBAL if to_global(*values) else Label.LOCAL if to_local(*values) else Label.SADDLE
        assert code == expected, (e, w)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_limits_agree_with_an_integrated_flow(chain):
    """LSODA on the generated gradient, from starts off the separatrix, to where the loss no longer moves."""
    generator = np.random.default_rng(11)
    unigram, bigram = chain.unigram_loss, chain.bigram_loss
    for start in generator.uniform(-2, 2, size=(25, 2)):
        margin = landscape.classify(chain, start)[0].margin
        if margin is not None and abs(margin) < 0.05:
            continue
        flow = integrate.solve_ivp(
            lambda t, y: -landscape.gradient(chain, y)[0], (0, 4e4), start, method="LSODA", rtol=1e-9, atol=1e-13
        )
        share = (landscape.loss(chain, flow.y[:, -1])[0] - bigram) / (unigram - bigram)
        reached = "global" if share < 0.01 else "unigram"
        label = labels(chain, start)[0]
        assert reached == ("global" if label == "global" else "unigram"), (start, label, share)


def test_known_starts():
    assert labels(ABOVE, (1, -1), (-1, -1), (0.25, -0.6), (0, 0.5), (0.3, 0.5), (1, 0), (0.1, -0.6)) == [
        "global", "global", "global", "local", "local", "local", "local"
    ]
    assert labels(BELOW, (1, -1), (-0.3, -1.5), (0.8, -1.5), (1, 0), (0.01, 2), (1.1, -1.5)) == [
        "global", "local", "local", "global", "global", "global"
    ]


def test_starts_at_rest_keep_their_own_label():
    assert labels(ABOVE, (0, 0.5), (0, 0), (0, -0.5), (0, -1), (0, SADDLE)) == ["local", "local", "local", "maximum", "saddle"]
    assert labels(BELOW, (0, 0.5), (0, 0), (-0.0, -0.5), (0, -1), (0, SADDLE)) == ["maximum", "maximum", "maximum", "local", "saddle"]
    five = SymmetricChain(5, 0.9)
    assert labels(five, (0, -1), (0, -1.5), (0, -2.5)) == ["local", "saddle", "maximum"]


def test_the_line_where_the_gap_vanishes_is_global_off_the_saddle():
    for chain in (ABOVE, BELOW):
        assert set(labels(chain, (0.3, SADDLE), (-2, SADDLE), (1e-6, SADDLE))) == {"global"}


def test_at_the_threshold_every_finite_start_is_global():
    for chain in (BinaryChain(0.3, 0.7), BinaryChain(0.1, 0.9), SymmetricChain(5, 0.8)):
        assert set(labels(chain, (0, 0), (1, 2), (-1, -3), (0, SADDLE))) == {"global"}
        found = landscape.classify(chain, (1, -0.5))[0]
        assert found.margin is None and found.distance is None
        assert len(landscape.separatrix(chain)) == 0
        assert {found.kind for found in landscape.critical_sets(chain)} == {"global minima"}


def test_starts_that_are_not_finite_are_invalid_and_counted():
    points = np.random.default_rng(0).normal(size=(1000, 2))
    points[::7, 0], points[3::11, 1], points[5::13] = np.nan, np.inf, -np.inf
    codes = landscape.limit(ABOVE, points)
    assert np.sum(codes == Label.INVALID) == np.sum(~np.isfinite(points).all(axis=1)) > 0
    found = landscape.classify(ABOVE, [(math.nan, 1)])[0]
    assert (found.label, found.kappa, found.loss, found.margin, found.distance) == ("invalid", None, None, None, None)


def test_huge_starts_get_an_answer():
    assert labels(ABOVE, (1e200, -0.1), (1e200, -1e200), (1, 1e200), (1e-200, -0.1)) == ["global", "global", "local", "local"]
    assert labels(BELOW, (1, -1e200), (1e200, -1e200), (1e200, -2)) == ["local", "undecided", "global"]


@pytest.mark.parametrize("chain", [BinaryChain(1.0, 0.5), BinaryChain(0.5, 0.0), BinaryChain(0.0, 0.0), SymmetricChain(4, 1.0)])
def test_chains_without_a_finite_gap_are_refused(chain):
    for call in (landscape.limit, landscape.loss, landscape.gradient, landscape.classify):
        with pytest.raises(ParameterError, match="strictly between 0 and 1"):
            call(chain, [(1.0, -1.0)])
    with pytest.raises(ParameterError):
        landscape.basin_map(chain)


@pytest.mark.parametrize("points", [[1.0, 2.0, 3.0], [[1.0]], "ab", [["1", "2"]], [[1, 2j]], None])
def test_points_of_another_shape_are_refused(points):
    with pytest.raises(ParameterError, match="'points' parameter"):
        landscape.limit(ABOVE, points)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_the_separatrix_lies_between_the_basins(chain):
    curve = landscape.separatrix(chain, reach=2.0, n=200)
    off = np.abs(curve[:, 0]) > 1e-3
    curve = curve[off]
    assert len(curve) > 300
    assert set(landscape.limit(chain, curve)) == {Label.SADDLE}
    outward = np.sign(curve[:, 0])[:, None] * [1e-9, 0.0]
    assert set(landscape.limit(chain, curve + outward)) == {Label.GLOBAL}
    assert Label.GLOBAL not in landscape.limit(chain, curve - outward)
    margins = [found.margin for found in landscape.classify(chain, curve[::40])]
    assert margins == [0.0] * len(margins)


def test_margin_is_positive_towards_global_and_absent_elsewhere():
    found = landscape.classify(ABOVE, [(0.25, -0.6), (0.1, -0.6), (1, -1), (1, 0.5), (0, -0.5)])
    assert found[0].margin > 0 > found[1].margin
    assert [result.margin for result in found[2:]] == [None] * 3
    exact = 0.25**2 - (0.36 - 1 / 2 - math.log(2 * 0.36) / 2)
    assert found[0].margin == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_distance_is_that_to_the_nearest_point_of_the_boundary(chain):
    curve = landscape.separatrix(chain, reach=6.0, n=40000)
    low, high = sorted(landscape.architecture("canonical").saddles(chain))
    line = np.stack([np.zeros(2001), np.linspace(low, high, 2001)], axis=1)
    boundary = np.concatenate([curve, line])
    starts = np.random.default_rng(5).uniform(-2, 2, size=(60, 2))
    for start, found in zip(starts, landscape.classify(chain, starts)):
        nearest = np.linalg.norm(boundary - start, axis=1).min()
        assert found.distance == pytest.approx(nearest, rel=1e-6, abs=2e-6)


def test_a_step_shorter_than_the_distance_does_not_change_the_label():
    generator = np.random.default_rng(6)
    for chain in (ABOVE, BELOW):
        for start in generator.uniform(-2, 2, size=(100, 2)):
            found = landscape.classify(chain, start)[0]
            angle = generator.uniform(0, 2 * np.pi, 20)
            ring = start + 0.999 * found.distance * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            assert {word == "global" for word in labels(chain, *ring)} == {found.label == "global"}


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_critical_sets_contain_what_a_search_finds(chain):
    """Members have no gradient; every run of a minimiser of its square ends in one of the sets."""
    star, sets = chain.kappa_star, landscape.critical_sets(chain)
    low, high = sorted(landscape.architecture("canonical").saddles(chain))
    line = np.stack([np.zeros(20), np.linspace(-3, 3, 20)], axis=1)
    assert np.abs(landscape.gradient(chain, line)).max() < 1e-9
    model = landscape.architecture("canonical")
    generator = np.random.default_rng(9)
    curve = []
    while len(curve) < 20:  # random members of the curve of global minima
        side, w = generator.choice([-1, 1]), generator.uniform(-3, 2)
        scale, c = model.constants(chain, side)
        if star * (1 + c * w * abs(w)) > 0.05:
            curve.append((side * math.sqrt(star / (scale * (1 + c * w * abs(w)))), w))
    assert np.abs(landscape.gradient(chain, curve)).max() < 1e-9
    assert landscape.loss(chain, curve) == pytest.approx(np.full(20, chain.bigram_loss), abs=1e-14)
    for start in generator.uniform(-2, 2, size=(40, 2)):
        end = optimize.least_squares(lambda y: landscape.gradient(chain, y)[0], start, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
        on_curve = abs(model.kappa(chain, end)[0] - star) < 1e-4
        assert on_curve or abs(end[0]) < 1e-2, end
    names = [found.name for found in sets]
    assert names[:3] == ["global minima", *(["local minima", "maxima"] if chain.target_sign > 0 else ["maxima", "local minima"])]
    assert names[3] == ("saddle" if low == high else "half-stable saddles")


def test_at_the_threshold_one_line_of_minima_is_degenerate():
    chain = BinaryChain(0.3, 0.7)
    across, line = landscape.critical_sets(chain)
    for found, member in ((across, (0.8, SADDLE)), (line, (0.0, 0.4)), (line, (0.0, -1.3))):
        eigenvalues = np.linalg.eigvalsh(landscape.hessian(chain, member)[0])
        assert (np.sum(eigenvalues < -1e-9), np.sum(np.abs(eigenvalues) < 1e-9)) == (found.index, found.nullity)
        assert landscape.loss(chain, member)[0] == pytest.approx(found.loss, abs=1e-14)
    rise = [landscape.loss(chain, (e, 0.4))[0] - chain.bigram_loss for e in (0.02, 0.04)]
    assert rise[1] / rise[0] == pytest.approx(16, rel=0.02)


@pytest.mark.parametrize("chain", [ABOVE, BELOW, BinaryChain(0.9, 0.4)], ids=str)
def test_index_and_nullity_are_those_of_the_hessian(chain):
    star = chain.kappa_star
    w = -1.0 if star < 0 else 0.5
    members = {
        "global minima": (math.sqrt(star / (1 + 2 * w * abs(w))), w),
        "local minima": (0.0, 0.3 if star < 0 else -1.0),
        "maxima": (0.0, -1.0 if star < 0 else 0.3),
        "saddle": (0.0, SADDLE),
    }
    for found in landscape.critical_sets(chain):
        eigenvalues = np.linalg.eigvalsh(landscape.hessian(chain, members[found.name])[0])
        assert np.sum(eigenvalues < -1e-9) == found.index
        assert np.sum(np.abs(eigenvalues) < 1e-9) == found.nullity
        assert landscape.loss(chain, members[found.name])[0] == pytest.approx(found.loss, abs=1e-14)
