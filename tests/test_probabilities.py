"""Probabilities of the limits of Gaussian starts: against integrals of 30 digits and against labels of samples."""

import mpmath
import numpy as np
import pytest

import landscape
from landscape import BinaryChain, Label, ParameterError, PlainLoss, SymmetricChain, p_global, p_local, probability_map, start_probabilities

ABOVE, BELOW = BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3)


def test_the_small_sides_have_their_digits():
    assert p_global(ABOVE, [1, 0.5, 0.1]) == pytest.approx([0.380511145, 0.189010782, 3.71763650e-9], rel=2e-9)
    assert p_global(ABOVE, 0.02) == pytest.approx(1.842e-190, rel=2e-4)
    assert p_local(BELOW, [1, 0.1]) == pytest.approx([0.113005116, 1.13779904e-13], rel=5e-9)
    assert isinstance(p_local(BELOW, 1.0), float) and p_global(ABOVE, [[1.0], [2.0]]).shape == (2, 1)


@pytest.mark.parametrize("std", [0.02, 0.1, 1.0, 30.0])
def test_quadrature_is_that_of_thirty_digits(std):
    with mpmath.workdps(30):
        s, turn = mpmath.mpf(std), -1 / mpmath.sqrt(2)
        height = lambda w: w**2 - mpmath.log(-w) - (1 + mpmath.log(2)) / 2  # noqa: E731
        law = lambda w: mpmath.exp(-w**2 / (2 * s**2)) / (s * mpmath.sqrt(2 * mpmath.pi))  # noqa: E731
        far = lambda w: mpmath.sqrt(max(height(w), 0) / 2) / s  # noqa: E731
        inside = [turn, turn / 1.2, turn / 1.4, turn / 1.7, turn / 3, turn / 30, -mpmath.mpf(10) ** -12]
        upper = mpmath.ncdf(turn / s) + mpmath.quad(lambda w: law(w) * mpmath.erfc(far(w)), inside)
        outside = [turn - s * x for x in (60, 20, 8, 3, 1, mpmath.mpf(1) / 3, s / 3, s / 20, 0) if s * x <= 60 * s]
        lower = mpmath.quad(lambda w: law(w) * mpmath.erf(far(w)), sorted(set(outside)))
    assert p_global(ABOVE, std) == pytest.approx(float(upper), rel=1e-9)
    assert p_local(BELOW, std) == pytest.approx(float(lower), rel=1e-9)


@pytest.mark.parametrize("chain", [ABOVE, BELOW, SymmetricChain(5, 0.95), SymmetricChain(5, 0.3)], ids=repr)
@pytest.mark.parametrize("mean", [(0.0, 0.0), (1.0, -1.0), (-0.6, -0.9), (1.0, 0.5)])
def test_samples_agree_and_probabilities_add_up(chain, mean):
    random, n = np.random.default_rng(1), 100_000
    for std in (0.3, 1.0, 5.0):
        values = start_probabilities(chain, std, mean=mean).values
        labels = landscape.limit(chain, mean + std * random.standard_normal((n, 2)))
        for label in (Label.GLOBAL, Label.LOCAL, Label.SADDLE):
            share, expected = np.mean(labels == label), float(values[label.word])
            assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / n) + 5 / n
        assert sum(map(float, values.values())) == pytest.approx(1.0, abs=1e-10)


def test_other_architectures_are_sampled_and_say_how_well():
    found = start_probabilities(ABOVE, [0.5, 1.0], "attention", samples=20_000, seed=3)
    assert found.method == "sample" and (found.errors["global"] < 0.004).all()
    a_zero = start_probabilities(ABOVE, [0.5, 1.0]).values["global"]
    assert (found.values["global"] > a_zero + 3 * found.errors["global"]).all()  # attention takes from the local basin
    twin = landscape.Architecture.from_symbolic("twin", ["e", "w"], gap="e^2*(1 + 2*w*abs(w))").on(ABOVE)
    by_flow = start_probabilities(twin, 1.0, samples=2_000)
    assert abs(by_flow.values["global"] - p_global(ABOVE, 1.0)) < 4 * by_flow.errors["global"]
    certain = start_probabilities(BELOW, 0.01, "untied", samples=1_000)
    assert certain.values["global"] == 1.0 and certain.errors["local"] == pytest.approx(3e-3)
    assert p_global(ABOVE, 1.0, "attention", samples=500, seed=1) == p_global(ABOVE, 1.0, "attention", samples=500, seed=1)


def test_a_plain_loss_has_probabilities_too():
    wells = PlainLoss.from_symbolic("two wells", "(x^2 - 1)^2/4 + x/10", ["x"])
    assert start_probabilities(wells, 0.5, samples=2_000).values["global"] == pytest.approx(0.58, abs=0.06)


def test_a_map_of_risk_is_the_two_curves_on_their_sides():
    found = probability_map((0.1, 1.0, 4), (0.1, 0.9, 5), (0.1, 0.9, 5))
    for p in found.p.values:
        for q in found.q.values:
            chain = BinaryChain(float(p), float(q))
            np.testing.assert_array_equal(found.p_global.sel(p=p, q=q), p_global(chain, found["std"].values))
    many = probability_map(np.array([0.5, 1.0]), (0.3, 0.95, 2), states=5)
    assert many.p_saddle.dims == ("p", "std") and float(many.p_saddle.max()) > 0.01 and "error_global" not in many
    assert "error_global" in probability_map(np.array([0.5, 1.0]), np.array([0.3, 0.8]), np.array([0.4, 0.7]), "attention", samples=200)


def test_at_the_threshold_and_what_is_refused():
    assert start_probabilities(BinaryChain(0.5, 0.5), 1.0).values == {"global": 1.0, "local": 0.0, "saddle": 0.0}
    for std in (0.0, -1.0, np.nan, "wide"):
        with pytest.raises(ParameterError, match="std"):
            p_global(ABOVE, std)
    with pytest.raises(ParameterError, match="mean"):
        start_probabilities(ABOVE, 1.0, mean=(np.nan, 0.0))
    with pytest.raises(ParameterError, match="'q'"):
        probability_map((0.1, 1.0, 3), (0.1, 0.9, 3))


def test_the_figure_of_risk_draws_what_its_caption_says():
    from landscape.gallery import risk

    curves, around = risk.curves(), risk.around()
    small = risk.SPREADS < 1.0
    for values in curves.values():
        assert (np.diff(values) >= 0.0).all() and values[-1] > 0.1
    assert curves["p+q>1"][0] == pytest.approx(1.842e-190, rel=2e-4)
    default, told = (np.stack([values for name, values in around.items() if ("(1, -1)" in name) is plain]) for plain in (True, False))
    assert (told[:, small] <= default[:, small]).all() and "1.8e-190" in risk.CAPTIONS["risk_of_starts"]
