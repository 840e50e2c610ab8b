"""Linear attention: the second invariant against mpmath, exact limits against flows, maps, the surface between the basins."""

import mpmath
import numpy as np
import pytest

from landscape import BinaryChain, SymmetricChain, airy, architecture, basin_map, classify, critical_sets, flow, hessian, limit, separatrix
from landscape.flows import trajectory
from landscape.kernels.attention import airy_coordinates
from landscape.outcomes import Label
from landscape.parameters import ParameterError

ABOVE, BELOW = BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3)
SHARES = {ABOVE: 0.384, BELOW: 0.120}
MODEL = architecture("attention")
SADDLE_W = -(0.5**0.5)


def exact_j(e, a):
    """J at 60 digits."""
    with mpmath.workdps(60):
        e, a, k = mpmath.mpf(float(e)), mpmath.mpf(float(a)), mpmath.cbrt(4)
        z, rho = -(e * e - 4 * a * a) / k, k * a
        return (rho * mpmath.airybi(z) - mpmath.airybi(z, 1)) / (rho * mpmath.airyai(z) - mpmath.airyai(z, 1))


def apart(one, other):
    """Distance of angles that are the same modulo π."""
    change = np.asarray(one) - np.asarray(other)
    return np.abs(change - np.pi * np.round(change / np.pi))


def test_j_has_ten_digits_wherever_e_and_a_are_up_to_ten():
    generator = np.random.default_rng(1)
    places = generator.uniform(-10, 10, size=(300, 2))
    places[::3, 0] *= 1e-3  # next to the plane e = 0, where a plain form would cancel
    found = airy.solve(*airy_coordinates(*places.T))
    expected = [exact_j(*place) for place in places]
    assert np.max(apart(found.angle, [float(mpmath.atan(j)) for j in expected])) < 1e-10
    logs = np.array([float(mpmath.log(abs(j))) for j in expected])
    assert np.max(np.abs(found.log - logs) / (1 + np.abs(logs))) < 1e-10


def test_j_goes_through_infinity():
    """At e between the two, ρ is Ai'/Ai: the angle passes ±π/2 and log|J| grows without bound on both sides."""
    a = -0.8
    rho, k = 2 ** (2 / 3) * a, 2 ** (2 / 3)
    z = float(mpmath.findroot(lambda x: rho * mpmath.airyai(x) - mpmath.airyai(x, 1), 0.5))
    pole = np.sqrt(k * (rho**2 - z))
    near = pole * (1 + np.array([-1e-9, 1e-9]))
    found = airy.solve(*airy_coordinates(near, np.array([a, a])))
    assert found.sign[0] != found.sign[1] and found.log.min() > 18
    assert apart(*found.angle) < 1e-7


def test_ends_are_where_j_says():
    rho = np.linspace(-30, 30, 2001)
    position, rise = airy.along(rho)
    assert np.all(np.diff(position) > 0)
    assert np.max(np.abs(airy.end(position) - rho)) < 1e-12
    inner = np.abs(rho) < 11
    assert np.max(np.abs(airy.near_end(position) - rho)[inner]) < 1e-8
    assert np.allclose(np.gradient(position, rho)[5:-5], rise[5:-5], rtol=5e-3)


@pytest.mark.parametrize("chain", [ABOVE, BELOW])
def test_exact_limits_are_those_of_flows(chain):
    starts = np.random.default_rng(5).uniform(-2, 2, size=(20_000, 3))
    exact, ends = limit(chain, starts, "attention"), flow(chain, starts, "attention")
    decided = (exact != Label.UNDECIDED) & (ends.labels != Label.UNDECIDED)
    assert decided.mean() > 0.999
    assert np.array_equal(exact[decided], ends.labels[decided])
    assert (exact == Label.LOCAL).mean() == pytest.approx(SHARES[chain], abs=0.01)


@pytest.mark.parametrize("chain", [ABOVE, BELOW])
def test_starts_close_to_the_surface_end_on_its_two_sides(chain):
    points = separatrix(chain, "attention", reach=1.5, n=9)
    points = points[np.abs(points[:, 0]) > 0.2]
    offset = np.array([0.0, 1e-4, 0.0])
    for side in (offset, -offset):
        starts = points + side
        assert np.array_equal(flow(chain, starts, "attention").labels, limit(chain, starts, "attention"))
    assert set(limit(chain, points, "attention")) == {Label.SADDLE}
    assert MODEL.separatrix_residual(chain, points) < 1e-12
    sides = {label for side in (offset, -offset) for label in limit(chain, points + side, "attention")}
    assert sides == {Label.GLOBAL, Label.LOCAL}


@pytest.mark.parametrize("chain", [ABOVE, BELOW])
def test_maps_equal_the_rule_point_by_point(chain):
    axes = {"e": np.linspace(-2, 2, 41), "w": np.linspace(-2, 2, 43), "a": np.linspace(-2, 2, 45)}
    found = basin_map(chain, "attention", **axes)
    assert found["label"].dims == ("a", "e", "w")
    a, e, w = np.meshgrid(axes["a"], axes["e"], axes["w"], indexing="ij")
    points = np.stack([e.ravel(), w.ravel(), a.ravel()], axis=1)
    assert np.array_equal(found["label"].values.ravel(), limit(chain, points, "attention"))


@pytest.mark.parametrize("chain", [ABOVE, BELOW])
def test_without_attention_margins_are_close_to_the_canonical_ones(chain):
    """a has moved by O(e⁴ t) only: for small e the separatrix is the canonical one up to O(e⁴)."""
    starts = np.array([(0.05, -0.69), (0.1, -0.68), (-0.05, -0.73), (-0.1, -0.76)])
    flat = np.column_stack([starts, np.zeros(len(starts))])
    one, other = architecture("canonical").margin(chain, starts), MODEL.margin(chain, flat)
    sides = np.isfinite(one)
    assert np.array_equal(sides, np.isfinite(other)) and sides.any()
    assert np.max(np.abs(one - other)[sides]) < 1e-4


@pytest.mark.parametrize(("chain", "saved"), [(ABOVE, 0.335), (BELOW, 0.052)], ids=["above", "below"])
def test_attention_from_zero_takes_from_the_local_basin_and_never_adds_to_it(chain, saved):
    """The share of the canonical local basin that is global with attention, from a = 0."""
    starts = np.random.default_rng(8).uniform(-2, 2, size=(40_000, 2))
    canonical, attention = limit(chain, starts), limit(chain, np.column_stack([starts, np.zeros(len(starts))]), MODEL)
    assert (attention[canonical == Label.GLOBAL] == Label.GLOBAL).all()
    assert np.mean(attention[canonical == Label.LOCAL] == Label.GLOBAL) == pytest.approx(saved, abs=0.01)
    parted = np.flatnonzero(canonical != attention)[:50]
    ends = flow(chain, np.column_stack([starts[parted], np.zeros(len(parted))]), MODEL)
    assert set(ends.words) == {"global"}


def test_the_recommended_start_is_safe_with_attention():
    for p in (0.05, 0.2, 0.5, 0.8, 0.95):
        for q in (0.03, 0.3, 0.7, 0.9):
            assert limit(BinaryChain(p, q), [(1, -1, 0), (-1, -1, 0)], MODEL).tolist() == [Label.GLOBAL] * 2


def test_small_starts_stick_above_the_threshold():
    starts = np.random.default_rng(9).uniform(-0.1, 0.1, size=(10_000, 3))
    starts[0] = (0.1, -0.1, -0.1)
    assert (limit(ABOVE, starts, MODEL) == Label.LOCAL).all()
    assert (limit(BELOW, starts, MODEL) == Label.GLOBAL).all()


@pytest.mark.parametrize("chain", [ABOVE, BELOW])
def test_margin_is_positive_towards_global(chain):
    starts = np.random.default_rng(2).uniform(-2, 2, size=(3_000, 3))
    margin, labels = MODEL.margin(chain, starts), limit(chain, starts, "attention")
    known = np.isfinite(margin)
    assert known.sum() > 50
    assert np.array_equal(margin[known] > 0, labels[known] == Label.GLOBAL)


def test_distance_is_that_of_the_nearest_other_label():
    """Starts moved by less than their distance keep their label; by more, in some direction, they do not."""
    generator = np.random.default_rng(3)
    for chain in (ABOVE, BELOW):
        starts = generator.uniform(-1.2, 1.2, size=(6, 3))
        ways = generator.normal(size=(4_000, 3))
        ways /= np.linalg.norm(ways, axis=1)[:, None]
        for start, reach in zip(starts, MODEL.distance(chain, starts)):
            own = limit(chain, start, "attention")
            assert set(limit(chain, start + 0.999 * reach * ways, "attention")) <= {own[0], Label.SADDLE, Label.MAXIMUM}
            assert (limit(chain, start + 1.1 * reach * ways, "attention") != own).any()


def test_invariants_are_kept_along_flows():
    rtol = 1e-9
    for chain in (ABOVE, BELOW):
        for start in np.random.default_rng(7).uniform(-2, 2, size=(25, 3)):
            drift = trajectory(chain, start, "attention", rtol=rtol).invariant_drift()
            assert set(drift) == {"E", "arctan J"}
            assert all(value is not None and value <= 1000 * rtol for value in drift.values()), (start, drift)


def test_edge_cases():
    starts = {
        (1.25, SADDLE_W, -0.64): (Label.SADDLE, Label.SADDLE),  # on the curve of saddles
        (1.0, SADDLE_W, 0.3): (Label.GLOBAL, Label.GLOBAL),  # κ = 0 without being critical
        (1.0, 0.5, -1.0): (Label.GLOBAL, Label.GLOBAL),  # f = 0
        (0.0, 0.3, 1.0): (Label.LOCAL, Label.MAXIMUM),
        (0.0, -0.9, 1.0): (Label.MAXIMUM, Label.LOCAL),
        (0.0, SADDLE_W, 1.0): (Label.SADDLE, Label.SADDLE),
        (1e-160, -0.5, 0.0): (Label.LOCAL, Label.GLOBAL),
        (1e-160, -0.9, 0.0): (Label.GLOBAL, Label.LOCAL),
        (1e200, -0.3, -1.0): (Label.GLOBAL, Label.GLOBAL),
        (1.0, 0.0, 0.1): (Label.LOCAL, Label.GLOBAL),
        (np.nan, 0.0, 0.0): (Label.INVALID, Label.INVALID),
        (np.inf, 0.0, 0.0): (Label.INVALID, Label.INVALID),
    }
    for side, chain in enumerate((ABOVE, BELOW)):
        assert limit(chain, list(starts), "attention").tolist() == [labels[side] for labels in starts.values()]
    assert set(limit(BinaryChain(0.4, 0.6), [(1, 1, 1), (0.3, -2, -5)], "attention")) == {Label.GLOBAL}


def test_a_start_on_the_orbit_of_ai_has_no_limit():
    """For w >= 0 and p + q > 1 it runs off to a → -∞; on either side of it are the two basins."""
    e = np.sqrt(2 ** (2 / 3) * (airy_coordinates(0.0, -0.8)[1] ** 2 - float(mpmath.findroot(
        lambda x: airy_coordinates(0.0, -0.8)[1] * mpmath.airyai(x) - mpmath.airyai(x, 1), 0.5))))
    labels = limit(ABOVE, [(e * (1 + s), 0.3, -0.8) for s in (-1e-6, 0.0, 1e-6)], "attention")
    assert labels[0] != labels[2] and {labels[0], labels[2]} == {Label.LOCAL, Label.GLOBAL}
    assert labels[1] == Label.UNDECIDED


@pytest.mark.parametrize("chain", [ABOVE, BELOW])
def test_critical_sets_have_the_index_and_nullity_that_hessians_show(chain):
    star = chain.kappa_star
    w = -1.2 if star < 0 else 0.4
    a = (star / (1 + 2 * w * abs(w)) - 1.0) / 1.0  # e = 1
    places = {"global minima": (1.0, w, a), "saddle line": (0.0, SADDLE_W, 0.4), "saddle curve": (0.8, SADDLE_W, -1 / 0.64)}
    places |= {"local minima": (0.0, 0.3, 0.5), "maxima": (0.0, -1.0, 0.5)} if star < 0 else {"local minima": (0.0, -1.0, 0.5), "maxima": (0.0, 0.3, 0.5)}
    for found in critical_sets(chain, "attention"):
        values = np.linalg.eigvalsh(hessian(chain, places[found.name], "attention")[0])
        assert (int((values < -1e-9).sum()), int((np.abs(values) <= 1e-9).sum())) == (found.index, found.nullity), found.name
    assert {found.name for found in critical_sets(chain, "attention")} == set(places)


def test_there_is_no_exact_rule_for_more_than_two_symbols():
    chain = SymmetricChain(3, 0.5)
    with pytest.raises(ParameterError, match="a BinaryChain"):
        limit(chain, [(1, 1, 1)], "attention")
    with pytest.raises(ParameterError, match="method"):
        classify(chain, [(1, 1, 1)], "attention", method="exact")
    with pytest.raises(ParameterError, match="a BinaryChain"):
        separatrix(chain, "attention")
    assert classify(chain, [(1, -1, 0)], "attention")[0].label == "global"


def test_classify_gives_everything():
    (found,) = classify(ABOVE, [(0.8, -0.3, -0.2)], "attention")
    assert set(found.invariants) == {"E", "arctan J"} and found.margin is not None and found.distance > 0


# --- on the symmetric chain, for long sequences -----------------------------------------------------------


def test_two_symbols_of_the_symmetric_chain_end_as_those_of_the_binary_one():
    starts = np.random.default_rng(10).uniform(-2, 2, size=(1_000, 3))
    for p in (0.3, 0.7):
        assert np.array_equal(flow(SymmetricChain(2, p), starts, "attention").labels, limit(BinaryChain(p, p), starts, MODEL))


@pytest.mark.parametrize("chain", [SymmetricChain(3, 0.9), SymmetricChain(5, 0.3)], ids=["above", "below"])
def test_with_more_symbols_j_is_kept_across_the_kinks(chain):
    for start in [(1.2, -1.0, -0.9), (-1.2, -0.4, -0.3), (1.5, -1.1, 0.1)]:
        way = trajectory(chain, start, "attention", t_max=3.0)
        points = way(np.linspace(0.0, way.times[-1], 50))
        angles = MODEL.on(chain).invariant_values(points)["arctan J"]
        assert np.max(apart(angles, angles[0])) < 1e-6 and np.ptp(points, axis=0).max() > 1e-2


def test_with_more_symbols_the_surface_where_the_factor_vanishes_holds_local_minima():
    """derivations/symmetric-attention.md#9-kink-minima: where B has two signs on its sides, on one side of e = 0 alone."""
    chain = SymmetricChain(5, 0.3)
    found = flow(chain, [(1.2, -1.9, -0.6), (1.2, -1.5, -0.8), (-1.2, -1.9, -0.69)], "attention")
    assert found.words == ["local", "local", "global"]
    assert np.allclose(1 + found.ends[:2, 2] * found.ends[:2, 0] ** 2, 0.0, atol=1e-12)
    assert found.nullity[:2].tolist() == [2, 2] and found.index[:2].tolist() == [0, 0]
    assert MODEL.on(chain).loss(found.ends[:2]) == pytest.approx(chain.unigram_loss)
