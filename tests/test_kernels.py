"""Generated kernels against 50-digit arithmetic, and where textbook forms fail."""

import math
import warnings

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import landscape
from landscape import BinaryChain, SymmetricChain
from landscape.kernels import stable
from landscape.kernels.canonical import invariant, kappa, kappa_gradient, threshold

GAPS = [0.0, 1e-9, -0.3, 1.0, 30.0, -30.0, 709.0, -709.0, 745.0, -745.0, 800.0, -800.0, 1e4, -1e4]
BINARY = [(0.5, 0.8), (0.2, 0.3), (0.9, 0.9), (1e-9, 0.4), (0.7, 1e-12), (1e-300, 3e-300), (0.3, 0.3), (0.3, 0.7)]
TINY = 2.3e-308  # below this a double loses digits: an underflow


def exact_binary(gap, p, q):
    """φ, φ′, φ″ and the sizes of their terms, from the quadratic for the bias, at 60 digits (more for large gaps)."""
    with mpmath.workdps(60 + int(abs(gap))):
        k, p, q = mpf(gap), mpf(p), mpf(q)
        root = mpmath.sqrt((p - q) ** 2 + 4 * p * q * mpmath.exp(k))
        b = mpmath.log((p - q + root) / (2 * q * mpmath.exp(k)))
        soft = lambda x: mpmath.log(1 + mpmath.exp(x)) if x < 0 else x + mpmath.log(1 + mpmath.exp(-x))
        sig = lambda x: 1 / (1 + mpmath.exp(-x))
        zero, one = q / (p + q), p / (p + q)
        phi = zero * ((1 - p) * soft(b) + p * soft(-b)) + one * (q * soft(k + b) + (1 - q) * soft(-k - b))
        prime = one * (sig(k + b) - (1 - q))
        v0, v1 = (weight * sig(x) * sig(-x) for weight, x in ((zero, b), (one, k + b)))
        return phi, phi, prime, one * (sig(k + b) + 1 - q), v0 * v1 / (v0 + v1)


@pytest.mark.parametrize(("p", "q"), BINARY)
def test_phi_of_the_binary_chain_to_twelve_digits(p, q):
    chain = BinaryChain(p, q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for gap in GAPS:
            phi, size, prime, prime_size, second = exact_binary(gap, p, q)
            assert abs(chain.phi(gap) - phi) <= 1e-12 * size
            assert abs(chain.phi_prime(gap) - prime) <= 1e-12 * prime_size
            assert abs(chain.phi_second(gap) - second) <= 1e-12 * second + TINY


def test_probabilities_too_small_for_full_digits_still_give_numbers():
    chain = BinaryChain(1e-320, 3e-320)  # 1 / (p + q) overflows
    assert chain.phi(0.0) == pytest.approx(chain.unigram_loss, rel=1e-8)
    assert np.isfinite([chain.phi(5.0), chain.phi_prime(5.0), chain.phi_second(5.0)]).all()


@pytest.mark.parametrize(("states", "p"), [(2, 0.3), (5, 0.9), (50, 0.01)])
def test_phi_of_the_symmetric_chain_to_twelve_digits(states, p):
    chain = SymmetricChain(states, p)
    for gap in GAPS:
        with mpmath.workdps(60 + int(abs(gap))):
            k, s, chance = mpf(gap), mpf(states), mpf(p)
            total = mpmath.exp(k) + s - 1
            own = mpmath.exp(k) / total
            phi, size = mpmath.log(total) - (1 - chance) * k, abs(mpmath.log(total)) + abs((1 - chance) * k)
            assert abs(chain.phi(gap) - phi) <= 1e-12 * size
            assert abs(chain.phi_prime(gap) - (own - (1 - chance))) <= 1e-12 * (own + 1 - chance)
            assert abs(chain.phi_second(gap) - own * (1 - own)) <= 1e-12 * own * (1 - own) + TINY


def test_softplus_at_both_ends():
    assert stable.softplus(1000.0) == 1000.0
    assert stable.softplus(-40.0) == pytest.approx(4.248354255291589e-18, rel=1e-15)
    assert stable.softplus(17.0) - 17.0 == pytest.approx(4.1399376e-8, abs=4e-15)
    assert stable.softplus(-1e308) == 0.0 and stable.softplus(1e308) == 1e308


def test_primitives_to_twelve_digits():
    for x in [*GAPS, -1e-300, 1e-300, 17.0, -17.0]:
        with mpmath.workdps(80):
            exact = mpf(x)
            sigmoid = 1 / (1 + mpmath.exp(-exact))
            excess = mpmath.asinh(mpmath.exp(exact)) - max(exact, mpf(0))
        assert abs(stable.sigmoid(x) - sigmoid) <= 1e-15 * sigmoid + TINY
        if abs(x) < 800:  # beyond, 80 digits do not hold asinh(e^x) - x
            assert abs(stable.asinh_exp_excess(x) - excess) <= 1e-15 * excess + TINY
    for x in (-800.0, -0.50001, -0.5, -1e-9, 1e-140, 0.3, 0.5, 0.50001, 30.0):
        with mpmath.workdps(340):
            excess = mpmath.exp(x) - 1 - mpmath.mpf(x)
        assert stable.above_tangent(x) == pytest.approx(float(excess), rel=4e-15, abs=0)
    assert stable.above_tangent(0.0) == 0.0
    assert stable.asinh_exp_excess(math.inf) == pytest.approx(math.log(2)) and stable.asinh_exp_excess(-math.inf) == 0.0


POINTS = [(0.7, -2.0), (-1.3, 0.3), (0.4, -0.5), (-0.9, -0.8), (1.1, 1.7)]


@pytest.mark.parametrize("chain", [BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3), SymmetricChain(5, 0.9)])
def test_gradient_and_hessian_match_differences_of_the_loss(chain):
    points, h = np.array(POINTS), 1e-5
    gradient, hessian = landscape.gradient(chain, points), landscape.hessian(chain, points)
    for k in range(2):
        step = np.zeros(2)
        step[k] = h
        slope = (landscape.loss(chain, points + step) - landscape.loss(chain, points - step)) / (2 * h)
        bend = (landscape.gradient(chain, points + step) - landscape.gradient(chain, points - step)) / (2 * h)
        assert gradient[:, k] == pytest.approx(slope, abs=1e-7)
        assert hessian[:, :, k] == pytest.approx(bend, abs=1e-7)
    assert np.array_equal(hessian, np.swapaxes(hessian, 1, 2))


@pytest.mark.parametrize("w", [0.0, 1e-300, -1e-300, -0.0])
def test_nothing_breaks_at_w_zero(w):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for chain in (BinaryChain(0.5, 0.8), SymmetricChain(5, 0.3)):
            point = [(0.8, w)]
            scale = landscape.architecture("canonical").constants(chain)[0]
            assert landscape.loss(chain, point) == pytest.approx(chain.phi(scale * 0.64), rel=1e-14)
            expected = [2 * scale * 0.8 * chain.phi_prime(scale * 0.64), 0.0]
            assert landscape.gradient(chain, point)[0] == pytest.approx(expected, abs=1e-14)
            assert np.isfinite(landscape.hessian(chain, point)).all()


def test_the_binary_and_the_symmetric_kernels_agree_at_two_states():
    binary, symmetric = BinaryChain(0.3, 0.3), SymmetricChain(2, 0.3)
    points = np.array(POINTS)
    assert landscape.loss(binary, points * [2, 1]) == pytest.approx(landscape.loss(symmetric, points), rel=1e-14)


def test_the_invariant_is_conserved_along_the_gap_gradient():
    for e, w in POINTS:
        for c in (2.0, 0.8):
            h = 1e-6
            slope_e = (invariant(e + h, w, c) - invariant(e - h, w, c)) / (2 * h)
            slope_w = (invariant(e, w + h, c) - invariant(e, w - h, c)) / (2 * h)
            along_e, along_w = kappa_gradient(e, w, 1.0, c)
            assert abs(slope_e * along_e + slope_w * along_w) <= 1e-7 * (abs(slope_e * along_e) + abs(slope_w * along_w))


@pytest.mark.parametrize("c", [2.0, 0.2, 1.3])
def test_the_threshold_keeps_its_digits_near_the_saddle_and_near_zero(c):
    saddle = -1 / math.sqrt(c)
    for w in [saddle * (1 + 1e-7), saddle * (1 - 1e-5), saddle * 0.9, -3.0, -1e-5, -1e-300]:
        with mpmath.workdps(60):
            u = mpf(c) * mpf(w) ** 2
            exact = (u - 1 - mpmath.log(u)) / mpf(c)
            relative = mpf("1e-8") if abs(u - 1) < mpf("1e-4") else mpf("1e-12")
        assert abs(threshold(w, c) - exact) <= relative * exact


def test_loss_never_falls_below_the_bigram_loss():
    generator = np.random.default_rng(0)
    points = generator.normal(0.0, 3.0, size=(20000, 2))
    for chain in (BinaryChain(0.5, 0.8), BinaryChain(0.1, 0.6), SymmetricChain(7, 0.4)):
        assert landscape.loss(chain, points).min() >= chain.bigram_loss - 1e-15


def test_the_gap_is_the_formula():
    for e, w in POINTS:
        assert kappa(e, w, 1.0, 2.0) == pytest.approx(e**2 * (1 + 2 * w * abs(w)), rel=1e-14)
