"""Chains: probabilities, entropies, κ*, sampling."""

import math
import warnings

import numpy as np
import pytest

from landscape import BinaryChain, ParameterError, SymmetricChain


def test_losses_and_gap_of_known_chains():
    chain = BinaryChain(0.5, 0.8)
    assert chain.unigram_loss == pytest.approx(0.666278442414676, abs=1e-14)
    assert chain.bigram_loss == pytest.approx(0.619014581705423, abs=1e-14)
    assert chain.kappa_star == pytest.approx(-math.log(4), abs=1e-15)
    assert BinaryChain(0.1, 0.1).bigram_loss == pytest.approx(0.325082973391448, abs=1e-14)
    five = SymmetricChain(5, 0.9)
    assert five.unigram_loss == pytest.approx(math.log(5), abs=1e-15)
    assert five.bigram_loss == pytest.approx(1.572747898399349, abs=1e-14)


@pytest.mark.parametrize(
    ("p", "q", "unigram", "bigram"),
    [
        (0.0, 0.3, 0.0, 0.0),
        (1.0, 1.0, math.log(2), 0.0),
        # pi = (.3, 1)/1.3, and only the symbol 1 leaves any doubt: h(.3) / 1.3
        (1.0, 0.3, -(3 / 13) * math.log(3 / 13) - (10 / 13) * math.log(10 / 13),
         -(0.3 * math.log(0.3) + 0.7 * math.log(0.7)) / 1.3),
        (1e-320, 0.5, 1.47225e-317, 7.39206e-318),
    ],
)
def test_entropies_at_the_edge_are_finite_and_silent(p, q, unigram, bigram):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chain = BinaryChain(p, q)
        assert chain.unigram_loss == pytest.approx(unigram, rel=1e-4, abs=1e-319)
        assert chain.bigram_loss == pytest.approx(bigram, rel=1e-4, abs=1e-319)


def test_stationary_law_where_it_is_delicate():
    assert BinaryChain(1e-12, 3e-12).stationary == pytest.approx([0.75, 0.25], abs=1e-9)
    assert BinaryChain(1.0, 1.0).stationary.tolist() == [0.5, 0.5]
    assert any("periodic" in note for note in BinaryChain(1.0, 1.0).notes)
    for chain in (BinaryChain(0.0, 0.0), SymmetricChain(4, 0.0)):
        for attribute in ("stationary", "unigram_loss", "bigram_loss"):
            with pytest.raises(ParameterError, match="'p' parameter of .*Chain must be positive.*not unique"):
                getattr(chain, attribute)


@pytest.mark.parametrize(
    ("matrix", "bad"), [([[0.5, 0.5], [0.5, 0.6]], r"matrix\[1\]"), ([[-0.1, 1.1], [0.5, 0.5]], r"matrix\[0\]")]
)
def test_rows_that_are_no_probabilities_are_refused_by_name(matrix, bad):
    with pytest.raises(ParameterError, match=bad):
        BinaryChain.from_matrix(matrix)


def test_rows_that_sum_to_one_up_to_rounding_are_accepted():
    chain = BinaryChain.from_matrix([[0.1 + 0.2, 0.7], [0.4, 0.6]])
    assert (chain.p, chain.q) == (pytest.approx(0.7), pytest.approx(0.4))
    assert chain.transition == pytest.approx(np.array([[0.3, 0.7], [0.4, 0.6]]))


@pytest.mark.parametrize("bad", [1.2, -1e-9, math.nan, math.inf, "0.5", None, True, 1 + 0j])
def test_a_probability_must_be_one(bad):
    with pytest.raises(ParameterError, match=r"The 'p' parameter of BinaryChain must be a float in \[0, 1\]\. Got .* instead\."):
        BinaryChain(bad, 0.5)


def test_a_trillion_states_cost_nothing():
    chain = SymmetricChain(10**12, 0.5)
    assert chain.unigram_loss == pytest.approx(12 * math.log(10)) and chain.bigram_loss == pytest.approx(math.log(2) + 6 * math.log(10))
    assert chain.phi(chain.kappa_star) == pytest.approx(chain.bigram_loss, rel=1e-14)


def test_regime_is_decided_in_floating_point():
    assert [BinaryChain(p, q).regime for p, q in ((0.2, 0.3), (0.3, 0.7), (0.5, 0.8))] == ["below", "at", "above"]
    assert all(BinaryChain(k / 100, 1 - k / 100).regime == "at" for k in range(1, 100))
    assert all(BinaryChain(k / 100, 1 - k / 100).kappa_star == 0.0 for k in range(1, 100))
    assert [SymmetricChain(5, p).regime for p in (0.79, 0.8, 0.81)] == ["below", "at", "above"]
    assert BinaryChain(1.0, 0.3).kappa_star == -math.inf and BinaryChain(0.0, 0.3).kappa_star is None


@pytest.mark.parametrize("p", [0.3, 0.5 - 1e-12, 0.5 + 3e-9, 1e-300, 0.999])
def test_gap_keeps_its_digits_near_the_threshold(p):
    import mpmath

    chain = BinaryChain(p, 0.5)
    with mpmath.workdps(60):
        exact = mpmath.log((1 - mpmath.mpf(p)) / mpmath.mpf(p))
    assert chain.kappa_star == pytest.approx(float(exact), rel=1e-12)


def test_phi_meets_the_losses():
    for chain in (BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3), SymmetricChain(5, 0.9), SymmetricChain(2, 0.1)):
        assert chain.phi(0.0) == pytest.approx(chain.unigram_loss, abs=1e-15)
        assert chain.phi(chain.kappa_star) == pytest.approx(chain.bigram_loss, abs=1e-15)
        assert chain.phi_prime(chain.kappa_star) == pytest.approx(0.0, abs=1e-15)
        assert np.sign(chain.phi_prime(0.0)) == -chain.target_sign
    assert BinaryChain(0.3, 0.3).phi(1.7) == pytest.approx(SymmetricChain(2, 0.3).phi(0.85), abs=1e-15)
    assert BinaryChain(0.5, 0.8).phi(np.zeros((2, 3))).shape == (2, 3)


@pytest.mark.parametrize("chain", [BinaryChain(1.0, 0.8), BinaryChain(0.5, 0.0), SymmetricChain(3, 1.0)])
def test_what_needs_a_finite_gap_says_so(chain):
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        chain.phi(0.0)


def test_probability_zero_never_fires_and_one_always_does():
    still = BinaryChain(0.0, 0.0).sample(10_000_000, seed=1, initial=1)
    assert still.min() == still.max() == 1
    alternating = BinaryChain(1.0, 1.0).sample(10_001, seed=2)[0]
    assert np.all(alternating[1:] != alternating[:-1])
    absorbed = BinaryChain(0.0, 1.0).sample(100, seed=3, initial=1)[0]
    assert absorbed[0] == 1 and not absorbed[1:].any()
    with pytest.raises(ParameterError, match="not unique"):
        BinaryChain(0.0, 0.0).sample(10, seed=1)


def test_samples_follow_the_chain():
    chain = BinaryChain(0.2, 0.7)
    paths = chain.sample(2000, 500, seed=4)
    before, after = paths[:, :-1], paths[:, 1:]
    assert after[before == 0].mean() == pytest.approx(0.2, abs=0.003)
    assert 1 - after[before == 1].mean() == pytest.approx(0.7, abs=0.003)
    assert paths[:, 0].mean() == pytest.approx(chain.stationary[1], abs=0.08)
    five = SymmetricChain(5, 0.9).sample(200_000, seed=5)[0]
    steps = np.bincount((five[1:] - five[:-1]) % 5, minlength=5) / (len(five) - 1)
    assert steps == pytest.approx([0.1] + [0.225] * 4, abs=0.005)


def test_the_seed_decides_the_sample():
    chain = BinaryChain(0.2, 0.7)
    assert np.array_equal(chain.sample(50, 3, seed=7), chain.sample(50, 3, seed=7))
    assert not np.array_equal(chain.sample(50, 3, seed=7), chain.sample(50, 3, seed=8))
    generator = np.random.default_rng(7)
    assert np.array_equal(chain.sample(50, 3, seed=generator), chain.sample(50, 3, seed=7))
    assert not np.array_equal(chain.sample(50, 3, seed=generator), chain.sample(50, 3, seed=7))
