"""Arrival times and limit points: against 30-digit flows and the package's own, their asymptotics, and every special start."""

import math

import mpmath
import numpy as np
import pytest
import sympy
from references import flow_reference, invariant
from scipy.optimize import brentq

import landscape
from landscape import BinaryChain, Label, ParameterError, SymmetricChain, arrival_time, limit_point
from landscape.symbolic import symbols

ABOVE, BELOW = BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3)
FIVE_ABOVE, FIVE_BELOW = SymmetricChain(5, 0.9), SymmetricChain(5, 0.3)
CHAINS = [ABOVE, BELOW, FIVE_ABOVE, FIVE_BELOW]
SADDLE = -1 / math.sqrt(2)


def constants(chain, e=1.0):
    return landscape.architecture("canonical").constants(chain, math.copysign(1, e))


def beside(chain, s, margin, side=1.0):
    """The point with log(c w²) = s and E - E_sad = margin."""
    c = constants(chain, side)[1]
    return side * math.sqrt((math.expm1(s) - s) / c + margin), -math.exp(s / 2) / math.sqrt(c)


def starts(chain):
    """Global and local starts, starts on either side of the separatrix, and one beside the repelling part of e = 0."""
    toward = -1.0 if chain.target_sign < 0 else 1.0
    repelling = -1.9 if chain.target_sign < 0 else 0.4
    return np.array([
        (1.0, -1.0), (0.3, 0.5), (-0.8, -1.4), (1.5, 1.0), (-0.7, -0.3), (0.4, -1.7), (-1.2, 0.0),
        beside(chain, toward, 1e-4), beside(chain, toward, -1e-4), beside(chain, 0.5 * toward, 1e-3, -1.0),
        (1e-9, repelling), (-1e-30, repelling - 0.5), (3.0, 2.0), (-2.5, -2.5),
    ])


def last_time(way, remains):
    """The last time at which a function of the state is positive along a trajectory."""
    times, states = way.sample(8)
    outside = np.flatnonzero(remains(states) > 0.0)
    if not len(outside):
        return 0.0
    last = outside[-1]
    return brentq(lambda t: remains(way(np.array([t])))[0], times[last], times[last + 1], xtol=1e-14, rtol=1e-14)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_times_and_limits_agree_with_integrated_flows(chain):
    points = starts(chain)
    limits, labels = limit_point(chain, points), landscape.limit(chain, points)
    assert {Label.GLOBAL, Label.LOCAL} <= set(labels.tolist()) or chain == FIVE_BELOW
    times, by_loss = arrival_time(chain, points, within=1e-4), arrival_time(chain, points, within=1e-6, measure="loss")
    floors = landscape.loss(chain, limits)
    for start, limit, label, time, loss_time, floor in zip(points, limits, labels, times, by_loss, floors):
        way = landscape.trajectory(chain, start, rtol=1e-13, tolerance=1e-11)
        assert way.label == Label(int(label)).word
        assert way.end == pytest.approx(limit, abs=1e-8)
        expected = last_time(way, lambda states: np.hypot(*(states - limit).T) - 1e-4)
        assert time == pytest.approx(expected, rel=1e-8, abs=0) and time > 0
        expected = last_time(way, lambda states: landscape.loss(chain, states) - floor - 1e-6)
        assert loss_time == pytest.approx(expected, rel=1e-8, abs=0)


@pytest.mark.parametrize("chain, start, within", [
    (ABOVE, (0.5, -0.6), 1e-9), (ABOVE, (1e-150, -1.0), 1e-6), (ABOVE, (-0.3, 0.5), 1e-10), (ABOVE, (1.0, 0.0), 1e-8),
    (ABOVE, (1e-60, -0.75), 1e-6), (ABOVE, beside(ABOVE, -1.0, 1e-8), 1e-5), (ABOVE, beside(ABOVE, -1.0, -1e-8), 1e-5),
    (BELOW, (1e-150, 0.5), 1e-6), (BELOW, (0.3, -1.0), 1e-10), (BELOW, (-1.1, -1e-3), 1e-9), (BELOW, (0.0625, -0.75), 1e-3),
    (BELOW, beside(BELOW, 0.75, 1e-8), 1e-4), (BELOW, beside(BELOW, 0.75, -1e-8), 1e-4), (BELOW, (0.75, 0.0), 1e-4),
])
def test_a_flow_of_30_digits_is_as_far_from_the_limit_as_was_asked_for(chain, start, within):
    """The 30-digit flow at the time found; the rate of approach turns what is wrong with the distance into time."""
    time, limit = arrival_time(chain, start, within=within)[0], limit_point(chain, start)[0]
    now, later = flow_reference(chain.p, chain.q, *start, [time, time * (1 + 1e-6)])
    if landscape.limit(chain, start)[0] == Label.GLOBAL:
        end = flow_reference(chain.p, chain.q, *start, [time + 2000])[0]
    else:  # the flow takes too long: where e = 0 on the level line of E
        with mpmath.workdps(30):
            energy = invariant(*(mpmath.mpf(x) for x in start)) if start[1] else None
            end = (mpmath.mpf(0), mpmath.findroot(lambda w: invariant(0, w) - energy, limit[1]) if start[1] else mpmath.mpf(0))
    assert [float(x) for x in end] == pytest.approx(limit.tolist(), rel=2e-9, abs=1e-13)
    gone = [mpmath.hypot(point[0] - end[0], point[1] - end[1]) for point in (now, later)]
    rate = float(mpmath.log(gone[0] / gone[1])) / (1e-6 * time)
    assert abs(math.log(float(gone[0]) / within)) / rate <= 1e-8 * time


def rates(chapters, chain, end):
    """Exponential rates at an end, and C, from the chapter on speeds."""
    A, c = constants(chain, end[0])
    gap = landscape.architecture("canonical").kappa(chain, np.array([end]))[0]
    values = {
        symbols.e: end[0], symbols.w: end[1], symbols.sign_w: math.copysign(1, end[1]), symbols.scale: A, symbols.curvature: c,
        symbols.slope: chain.phi_prime(gap), symbols.bend: chain.phi_second(gap),
    }
    speeds = chapters["canonical-speeds"]
    return {name: float(speeds[f"rate_{name}"].subs(values)) for name in ("global", "local", "saddle")}


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_minima_are_approached_at_the_derived_rates(chapters, chain):
    points = starts(chain)
    labels, ends = landscape.limit(chain, points), limit_point(chain, points)
    near, nearer = (arrival_time(chain, points, within=within) for within in (1e-9, 1e-11))
    for label, end, time in zip(labels, ends, nearer - near):
        kind = "global" if label == Label.GLOBAL else "local"
        assert math.log(100) / time == pytest.approx(rates(chapters, chain, end)[kind], rel=1e-5)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_a_repelling_plateau_is_left_at_the_derived_rate(chapters, chain):
    for w in (-3.0, -4.0) if chain.target_sign < 0 else (0.25, 1.5):
        points = [(10.0**-n, w) for n in (20, 140, 150, 290)]
        times = arrival_time(chain, points, within=0.1)
        rate = -rates(chapters, chain, (0.0, w))["local"]
        assert rate > 0 and np.diff(times) == pytest.approx(math.log(10) * np.array([120, 10, 140]) / rate, rel=1e-9)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_the_saddle_is_approached_algebraically_and_passing_it_is_delayed(chapters, chain):
    side = 1.0
    speed = rates(chapters, chain, (0.0, -1 / math.sqrt(constants(chain, side)[1])))["saddle"]
    s = -1.0 if chain.target_sign < 0 else 1.0
    start = beside(chain, s, 0.0, side)
    assert landscape.limit(chain, start)[0] == Label.SADDLE
    assert limit_point(chain, start)[0] == pytest.approx([0.0, -1 / math.sqrt(constants(chain, side)[1])], abs=1e-15)
    within = np.array([1e-5, 1e-7, 1e-9])
    slow = np.array([arrival_time(chain, start, within=x)[0] for x in within])
    assert slow * within == pytest.approx(math.sqrt(1.5) / speed * np.ones(3), rel=1e-3)
    assert slow[2] * within[2] == pytest.approx(math.sqrt(1.5) / speed, rel=1e-6)
    for margin in (1e-8, 1e-10):
        passing = arrival_time(chain, beside(chain, s, margin, side), within=1e-3)[0]
        assert passing * math.sqrt(margin) == pytest.approx(math.pi / speed, rel=20 * math.sqrt(margin) * abs(math.log(margin)))


def test_a_start_that_has_flowed_for_a_while_needs_that_much_less():
    for chain in CHAINS:
        points = starts(chain)[:7]
        later = landscape.flow(chain, points, t_max=1.5, rtol=1e-13, tolerance=0.0).ends
        before, after = (arrival_time(chain, where, within=1e-7) for where in (points, later))
        assert before - after == pytest.approx(np.full(len(points), 1.5), rel=1e-8)
        assert limit_point(chain, later) == pytest.approx(limit_point(chain, points), abs=1e-10)


def test_starts_at_rest_take_no_time_and_invalid_ones_never_arrive():
    for chain in [*CHAINS, BinaryChain(0.4, 0.6), SymmetricChain(5, 0.8)]:
        e = math.sqrt(abs(chain.kappa_star))
        still = [(0.0, -2.0), (0.0, 0.0), (0.0, SADDLE), (-0.0, 1.5)]
        assert arrival_time(chain, still).tolist() == [0.0] * 4 and limit_point(chain, still).tolist() == [list(x) for x in still]
        broken = [(math.nan, 1.0), (1.0, math.inf), (-math.inf, math.nan)]
        assert arrival_time(chain, broken, within=e + 1).tolist() == [math.inf] * 3
        assert np.array_equal(limit_point(chain, broken), broken, equal_nan=True)
    # on κ = κ* to the last digit
    assert arrival_time(BinaryChain(0.4, 0.6), (1.0, SADDLE), within=1e-9)[0] == 0.0


def test_without_an_mlp_only_the_embedding_moves():
    """w = 0 stays, and the time is the integral of de over -2 A φ′(Ae²) e; a w that is all but 0 changes nothing."""
    from scipy.integrate import quad

    for chain in CHAINS:
        A, start = constants(chain)[0], 1.75
        end = math.sqrt(chain.kappa_star / A) if chain.target_sign > 0 else 0.0
        assert limit_point(chain, (start, 0.0))[0] == pytest.approx([end, 0.0], rel=1e-15)
        expected = quad(lambda e: 1 / (2 * A * chain.phi_prime(A * e * e) * e), end + 1e-3, start, epsabs=0, epsrel=1e-12, limit=200)[0]
        times = arrival_time(chain, [(start, w) for w in (0.0, 5e-324, -5e-324, 1e-200, -1e-200)], within=1e-3)
        assert times == pytest.approx(np.full(5, expected), rel=1e-9)


def test_half_stable_pieces_of_the_plateau_are_reached_exponentially(chapters):
    """For five symbols an orbit ends on the piece of e = 0 that repels on the other side, at the rate of its own side."""
    model = landscape.architecture("canonical")
    for chain in (FIVE_ABOVE, FIVE_BELOW):
        low, high = sorted(model.saddles(chain))
        c = {side: constants(chain, side)[1] for side in (1, -1)}
        side = next(s for s in (1, -1) if chain.target_sign * (1 - c[s] * (0.5 * (low + high)) ** 2) < 0)
        start = (side * 0.05, 0.5 * (low + high))
        assert landscape.limit(chain, start)[0] == Label.SADDLE
        end = limit_point(chain, start)[0]
        assert end[0] == 0.0 and low < end[1] < high
        assert landscape.flow(chain, start, rtol=1e-12, tolerance=1e-11).ends[0] == pytest.approx(end, abs=1e-8)
        near, nearer = (arrival_time(chain, start, within=x)[0] for x in (1e-8, 1e-10))
        assert math.log(100) / (nearer - near) == pytest.approx(rates(chapters, chain, (side * 1e-300, end[1]))["local"], rel=1e-6)


def test_at_the_threshold_the_approach_to_the_plateau_is_algebraic():
    """φ′ vanishes at κ = 0: e falls like 1/√t, as ė = -2A² φ″(0) B² e³; where B = 0 is met the rate is exponential."""
    for chain in (BinaryChain(0.4, 0.6), SymmetricChain(5, 0.8)):
        start = (0.5, 0.75)
        A, c = constants(chain)
        end = limit_point(chain, start)[0]
        assert end[0] == 0.0 and 0.0 < end[1] < 0.75
        time = arrival_time(chain, start, within=1e-5)[0]
        b = 1 + c * end[1] ** 2
        assert time == pytest.approx(1e10 / (4 * A**2 * chain.phi_second(0.0) * b**2), rel=1e-4)
        crossing = limit_point(chain, (1.5, -0.3))[0]
        assert crossing[1] == pytest.approx(-1 / math.sqrt(c), rel=1e-15)
        way = landscape.trajectory(chain, (1.5, -0.3), rtol=1e-13, tolerance=1e-11)
        assert way.end == pytest.approx(crossing, abs=1e-8)
        expected = last_time(way, lambda states: np.hypot(*(states - crossing).T) - 1e-4)
        assert arrival_time(chain, (1.5, -0.3), within=1e-4)[0] == pytest.approx(expected, rel=1e-8)


EXTREME = [*CHAINS, BinaryChain(0.4, 0.6), BinaryChain(0.5, 0.500000001), SymmetricChain(4, 0.9), SymmetricChain(1000, 0.5),
           BinaryChain(1e-6, 1e-9), BinaryChain(1 - 1e-9, 0.9999)]


@pytest.mark.parametrize("chain", EXTREME, ids=str)
def test_every_finite_start_arrives_on_a_critical_set_in_finite_time(chain):
    generator = np.random.default_rng(8)
    size = 10.0 ** generator.uniform(-6, 6, (900, 2))
    size[:300, 0] = 10.0 ** generator.uniform(-300, 0, 300)
    size[300:600] = generator.uniform(0, 2, (300, 2))
    points = size * generator.choice([-1, 1], size.shape)
    for within in (1e-60, 1e-9, 0.1):
        for measure in ("distance", "loss"):
            times = arrival_time(chain, points, within=within, measure=measure)
            assert np.isfinite(times).all() and (times >= 0).all()
    ends, labels = limit_point(chain, points), landscape.limit(chain, points)
    assert np.isfinite(ends).all() and np.all(ends[:, 0] * points[:, 0] >= 0) and np.all(ends[:, 1] * points[:, 1] >= 0)
    model = landscape.architecture("canonical")
    on_curve = (labels == Label.GLOBAL) & (chain.target_sign != 0)
    gap, slope = model.kappa(chain, ends[on_curve]), model.kernels(chain).gap_gradient_many(ends[on_curve], *model.vocabulary(chain))
    rounding = 1e-15 * (np.abs(slope) * np.abs(ends[on_curve])).sum(axis=1) + 1e-14 * abs(chain.kappa_star)
    assert np.all(np.abs(gap - chain.kappa_star) <= 4 * rounding)
    assert np.all(ends[~on_curve & (chain.target_sign != 0), 0] == 0.0)


def test_the_slope_around_the_optimum_keeps_its_digits():
    from landscape.kernels import canonical_times

    for chain in EXTREME:
        around = getattr(canonical_times, f"constants_{chain.kind}")(*chain.kernel_parameters)
        for beyond in (-30.0, -2.0, -1e-3, 1e-3, 0.5, 20.0):
            found = canonical_times.slope_beyond(beyond, *around)
            rounding = 1e-15 + 1e-15 * abs(chain.kappa_star + beyond) * chain.phi_second(chain.kappa_star + beyond)
            assert found == pytest.approx(chain.phi_prime(chain.kappa_star + beyond), rel=1e-12, abs=rounding)
        for beyond in (1e-9, -1e-100):
            assert canonical_times.slope_beyond(beyond, *around) / beyond == pytest.approx(chain.phi_second(chain.kappa_star), rel=1e-6)
        assert canonical_times.slope_beyond(0.0, *around) == 0.0
        assert math.isfinite(canonical_times.slope_beyond(1e300, *around)) and math.isfinite(canonical_times.slope_beyond(-1e300, *around))


def test_kernels_compute_what_the_chapter_states(chapters):
    from landscape.kernels import canonical_times

    chapter = chapters["canonical-times"]
    names = [symbols.growth, symbols.square, symbols.factor_here, symbols.ratio_here, symbols.sign_w, symbols.curvature]
    from landscape.symbolic.primitives import elementary

    exact = sympy.lambdify(names, elementary(chapter["orbit_square"]), "mpmath")
    for xi in (-40.0, -1.5, -0.9, -1e-12, 1e-9, 0.3, 2.0):
        for sigma, r in ((1.0, 0.7), (-1.0, 0.7), (-1.0, 3.0), (1.0, 0.0)):
            values = (xi, 0.0, 1 + sigma * r, r, sigma, 2.0)
            with mpmath.workdps(40):
                expected = float(exact(*(mpmath.mpf(value) for value in values)))
            assert canonical_times.orbit_square(*values) == pytest.approx(expected, rel=1e-13)


def test_bad_arguments_are_refused_by_name():
    cases = {
        "within": dict(within=0.0), "measure": dict(measure="gap"), "architecture": dict(architecture="reduced"),
    }
    for name, wrong in cases.items():
        with pytest.raises(ParameterError, match=f"'{name}' parameter of arrival_time"):
            arrival_time(ABOVE, (1, 1), **wrong)
    with pytest.raises(ParameterError, match="within"):
        arrival_time(ABOVE, (1, 1), within=math.nan)
    with pytest.raises(ParameterError, match="'points' parameter of limit_point"):
        limit_point(ABOVE, (1e9, 1))
    with pytest.raises(ParameterError):
        limit_point(BinaryChain(0.5, 1.0), (1, 1))
    with pytest.raises(ParameterError, match="'chain' parameter"):
        limit_point(landscape.Chain.from_symbolic("lazy", "log(1 + exp(kappa)) - (1 - r)*kappa", values={"r": 0.8}), (1, 1))


def test_the_example_is_true():
    import doctest

    from landscape import times

    assert doctest.testmod(times).failed == 0
