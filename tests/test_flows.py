"""Gradient flow: exact solutions, fitted order, the invariant, labels against the exact rule, and everything that can go wrong."""

import csv
import math
import time

import numpy as np
import pytest
from conftest import ROOT
from problems import PROBLEMS, SLIDING

import landscape
from landscape import BinaryChain, Outcome, ParameterError, PlainLoss, SymmetricChain, flows
from landscape.kernels import dop853, runge_kutta

CHAINS = [BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3), BinaryChain(0.9, 0.6), BinaryChain(0.1, 0.25)]


def ids(problem):
    return problem.name


# --- the table of problems ---------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS, ids=ids)
def test_flows_end_where_they_must(problem):
    starts = problem.draw(400)
    found = landscape.flow(problem.landscape, starts)
    assert found.words == problem.label(starts)
    assert set(found.outcomes) == {Outcome.CONVERGED}
    degenerate = "quartic" in problem.name or "degenerate" in problem.name
    assert np.abs(found.ends - problem.limit(starts)).max() < (2e-6 if degenerate else 1e-8)


@pytest.mark.parametrize("problem", [problem for problem in PROBLEMS if problem.edges], ids=ids)
def test_starts_on_the_boundary_of_a_basin_are_never_given_to_a_neighbour(problem):
    starts = np.array(problem.edges)
    found = landscape.flow(problem.landscape, starts)
    assert found.words == problem.label(starts)
    assert np.abs(found.ends - problem.limit(starts)).max() < 1e-8


@pytest.mark.parametrize("problem", [problem for problem in (*PROBLEMS, SLIDING) if problem.flow], ids=ids)
@pytest.mark.parametrize("rtol", [1e-5, 1e-8, 1e-11])
def test_states_on_the_way_are_right(problem, rtol):
    start, times = problem.draw(1, seed=2)[0], np.linspace(0.0, 4.0, 101)
    way = landscape.trajectory(problem.landscape, start, t_max=4.0, tolerance=0.0, rtol=rtol)
    assert way.outcome == "time_limit"
    assert np.abs(way(times) - problem.flow(start, times)).max() < 20 * rtol


@pytest.mark.parametrize("problem", PROBLEMS, ids=ids)
def test_convergence_is_confirmed_by_a_fresh_gradient(problem):
    """Where the gradient is continuous it is as small as the tolerance says; on a kink it changes sign across it."""
    found = landscape.flow(problem.landscape, problem.draw(100, seed=4))
    gradients = problem.landscape.gradient(found.ends)
    gradients = gradients[:, [] if "corner" in problem.name else [1] if "kink" in problem.name else slice(None)]
    curvature = np.abs(problem.landscape.hessian(found.ends)).max(axis=(1, 2))
    assert (np.abs(gradients).max(axis=1, initial=0.0) <= 1e-9 * (1 + np.abs(found.ends).max(axis=1)) * np.maximum(curvature, 1e-2) * 2).all()


@pytest.mark.parametrize("factor", ["1e-9", "1e9"])
def test_labels_do_not_change_when_the_loss_is_scaled(factor):
    for problem in PROBLEMS[:1] + PROBLEMS[3:6] + PROBLEMS[-1:]:
        scaled = PlainLoss.from_symbolic(
            "scaled", f"{factor}*({problem.loss})", problem.parameters, minimum=problem.minimum * float(factor)
        )
        starts = np.concatenate([problem.draw(50), np.array(problem.edges or problem.draw(1))])
        found = landscape.flow(scaled, starts)
        assert found.words == problem.label(starts)


# --- the method ----------------------------------------------------------------------------------------


def _fixed_steps(n):
    """x' = x - x³ from 0.1 to t = 2 in n steps: errors of the end, and of the continuous extension half-way."""
    exact = lambda t: 1.0 / math.sqrt(1.0 + (1.0 / 0.01 - 1.0) * math.exp(-2.0 * t))  # noqa: E731
    field = lambda x: x - x**3  # noqa: E731
    h, y, dense = 2.0 / n, np.array([0.1]), 0.0
    for i in range(n):
        k, new = np.zeros((dop853.EXTENDED, 1)), np.empty(1)
        k[0] = field(y)
        for stage in range(1, dop853.STAGES + 1):
            runge_kutta.advance(stage, y, h, k, new)
            k[stage] = field(new)
        point, c, inside = np.empty(1), np.empty((8, 1)), np.empty(1)
        for stage in range(dop853.STAGES + 1, dop853.EXTENDED):
            runge_kutta.advance(stage, y, h, k, point)
            k[stage] = field(point)
        runge_kutta.extend(y, new, h, k, c)
        runge_kutta.interpolate(c, 0.6, inside)
        dense = max(dense, abs(inside[0] - exact((i + 0.6) * h)))
        y = new.copy()
    return abs(y[0] - exact(2.0)), dense


def test_the_order_is_eight_and_that_of_the_extension_seven():
    ends, dense = np.array([_fixed_steps(n) for n in (4, 6, 8, 12)]).T
    slopes = [np.polyfit(np.log([4, 6, 8, 12]), np.log(errors), 1)[0] for errors in (ends, dense)]
    assert -9.0 < slopes[0] < -7.6 and -9.0 < slopes[1] < -7.2


def test_final_states_agree_with_thirty_digit_references():
    with open(ROOT / "tests" / "data" / "canonical_flow.csv", encoding="utf-8") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 600
    for rtol in (1e-5, 1e-8, 1e-11):
        for p, q, T in sorted({(row["p"], row["q"], row["T"]) for row in rows}):
            here = [row for row in rows if (row["p"], row["q"], row["T"]) == (p, q, T)]
            starts, ends = (np.array([[row[a], row[b]] for row in here]) for a, b in (("e0", "w0"), ("e", "w")))
            found = landscape.flow(BinaryChain(p, q), starts, t_max=T, rtol=rtol, tolerance=0.0)
            assert (found.times == T).all() and set(found.outcomes) == {Outcome.TIME_LIMIT}
            assert np.abs(found.ends - ends).max() < 10 * rtol


def test_the_references_are_what_their_script_computes():
    from references import flow_reference

    with open(ROOT / "tests" / "data" / "canonical_flow.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))[::240]
    for row in rows:
        (state,) = flow_reference(row["p"], row["q"], row["e0"], row["w0"], [row["T"]])
        for name, value in zip(("e", "w"), state):
            assert abs(float(value) - float(row[name])) <= 1e-15 * abs(float(row[name]))


@pytest.mark.parametrize("chain", CHAINS[:2], ids=str)
def test_the_invariant_is_kept_as_well_as_the_tolerance_says(chain):
    model = landscape.architecture("canonical")
    starts = np.random.default_rng(5).uniform(-3, 3, size=(2000, 2))
    before = model.invariant_values(chain, starts)["E"]
    drifts = []
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10, 1e-11):
        found = landscape.flow(chain, starts, rtol=rtol)
        drift = np.abs(model.invariant_values(chain, found.ends)["E"] - before) / np.maximum(1.0, np.abs(before))
        assert (found.outcomes == Outcome.CONVERGED).all() and drift.max() < 100 * rtol
        drifts.append(np.median(drift))
    assert drifts[-1] < 1e-5 * drifts[0]
    way = landscape.trajectory(chain, (1.5, -1.2), rtol=1e-8)
    assert way.invariant_drift()["E"] < 1e-6


# --- labels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_exact_and_flow_labels_agree(chain):
    starts = np.random.default_rng(8).uniform(-3, 3, size=(5000, 2))
    found = landscape.flow(chain, starts)
    margin = landscape.architecture("canonical").margin(chain, starts)
    near = np.abs(margin) <= 1e-6
    assert (found.labels != 0).all()
    assert (found.labels == landscape.limit(chain, starts))[~near].all()


@pytest.mark.parametrize("chain", [SymmetricChain(5, 0.9), SymmetricChain(5, 0.3), SymmetricChain(3, 0.8)], ids=str)
def test_the_half_stable_line_of_many_states_is_seen_as_a_saddle(chain):
    starts = np.random.default_rng(8).uniform(-2, 2, size=(2000, 2))
    exact = landscape.limit(chain, starts)
    assert (exact == landscape.Label.SADDLE).mean() > 0.01
    assert (landscape.flow(chain, starts).labels == exact).mean() > 0.999


def test_starts_at_rest_keep_their_own_label():
    for chain in CHAINS[:2]:
        starts = [(0, 0.5), (0, 0), (0, -0.5), (0, -1), (0, -1 / math.sqrt(2))]
        found = landscape.flow(chain, starts)
        assert (found.labels == landscape.limit(chain, starts)).all()
        assert (found.times == 0).all() and (found.steps == 0).all()


def test_a_start_next_to_an_unstable_line_is_followed_away_from_it():
    for e in (1e-3, 1e-30, 1e-160, -1e-290):
        found = landscape.flow(CHAINS[0], (e, -1.0))
        assert found.words == ["global"]
        rate = 2 * -CHAINS[0].phi_prime(0.0) * (1 - 2)  # d log|e| / dt on the line
        assert found.times[0] == pytest.approx(-math.log(abs(e)) / abs(rate), rel=0.2, abs=60)


def test_a_symmetric_start_stops_on_the_saddle_and_its_neighbours_do_not():
    wells = PROBLEMS[3].landscape
    found = landscape.flow(wells, [(0, 1), (1e-6, 1), (-1e-6, 1), (1e-160, 1)])
    assert found.words == ["saddle", "global", "global", "global"]
    assert np.allclose(found.ends, [(0, 0), (1, 0), (-1, 0), (1, 0)], atol=1e-8)
    assert found.index[0] == 1 and found.nullity[0] == 0


def test_a_start_on_a_separatrix_that_rounding_hides_is_undecided():
    """The ridge of the wells turned by 45 degrees: no float lies on it, and the integration cannot tell the side."""
    turned = PlainLoss.from_symbolic("turned", "((x + y)^2/2 - 1)^2/4 + (x - y)^2*(2 + x)/4", ["x", "y"], minimum=0.0)
    assert landscape.flow(turned, [(0.6, -0.6), (0.601, -0.6), (0.6, -0.601)]).words[1:] == ["global", "global"]
    tilted = PlainLoss.from_symbolic("tilted", "((3*x + 4*y)^2/25 - 1)^2/4 + (4*x - 3*y)^2/50", ["x", "y"], minimum=0.0)
    starts = [(0.4 * s, -0.3 * s) for s in (0.3, 0.7, 1.1, 1.9)]
    assert set(landscape.flow(tilted, starts).words) <= {"undecided", "saddle"}


def test_at_the_threshold_every_start_is_global():
    found = landscape.flow(BinaryChain(0.3, 0.7), [(1, 1), (0.5, -1), (0, 0.3)])
    assert found.words == ["global"] * 3


def test_labels_and_ends_do_not_depend_on_the_number_of_threads(run_python):
    code = (
        "import numpy as np, landscape, hashlib; s = np.random.default_rng(0).uniform(-3, 3, (3000, 2));"
        "f = landscape.flow(landscape.BinaryChain(.5, .8), s);"
        "print(hashlib.sha256(f.ends.tobytes() + f.labels.tobytes() + f.times.tobytes()).hexdigest())"
    )
    digests = {run_python("-c", code, NUMBA_NUM_THREADS=n).stdout for n in (1, 2, 8)}
    assert len(digests) == 1


# --- what can go wrong ---------------------------------------------------------------------------------


def test_starts_that_are_not_finite_are_invalid_at_once():
    found = landscape.flow(CHAINS[0], [(np.nan, 1), (1, np.inf), (1, -1)])
    assert found.words == ["invalid", "invalid", "global"]
    assert (found.steps[:2] == 0).all() and (found.outcomes[:2] == Outcome.NONFINITE).all()


def test_leaving_the_domain_ends_the_flow_and_a_start_outside_is_invalid():
    logarithm = PlainLoss.from_symbolic("logarithm", "log(w)", ["w"], minimum=-100.0, box={"w": (0.1, 2.0)})
    found = landscape.flow(logarithm, [[1.0], [-1.0]])
    assert found.words == ["undecided", "invalid"]
    assert (found.outcomes == Outcome.NONFINITE).all() and found.times[0] == pytest.approx(0.5, abs=1e-6)


def test_a_flow_without_a_limit_diverges_and_a_slow_one_is_undecided():
    slope = PlainLoss.from_symbolic("slope", "-x - x^3/3", ["x"], minimum=-1e9)
    assert landscape.flow(slope, [0.5]).outcomes[0] in (Outcome.DIVERGED, Outcome.NONFINITE)
    plane = landscape.flow(PlainLoss.from_symbolic("plane", "-x", ["x"], minimum=-1e9), [0.5], radius=1e4)
    assert plane.outcomes[0] == Outcome.DIVERGED and plane.words == ["undecided"]
    limited = landscape.flow(CHAINS[0], [(1, 1)], max_steps=3)
    assert limited.outcomes[0] == Outcome.STEP_LIMIT and limited.words == ["undecided"]


def test_slow_decay_is_not_convergence():
    quartic = PROBLEMS[6].landscape
    found = landscape.flow(quartic, [1.0], t_max=1e4)
    assert found.words == ["undecided"] and found.outcomes[0] == Outcome.TIME_LIMIT
    assert found.ends[0, 0] == pytest.approx(0.00707089, abs=1e-8)


@pytest.mark.parametrize(
    "name, value", [("rtol", 0.5), ("rtol", -1.0), ("rtol", math.nan), ("t_max", -1.0), ("max_steps", 0), ("tolerance", 1.0), ("atol", 0.0), ("radius", -1.0)]
)
def test_refusals_name_the_parameter(name, value):
    with pytest.raises(ParameterError, match=f"'{name}' parameter of flow"):
        landscape.flow(CHAINS[0], (1, 1), **{name: value})
    with pytest.raises(ParameterError, match="'tolerance'"):
        landscape.flow(CHAINS[0], (1, 1), tolerance=0.0)


# --- events --------------------------------------------------------------------------------------------


def test_crossings_within_one_long_step_are_found():
    """x' = 1 from -8, seen through x³ + 6x² - 4x - 24, which vanishes at -6, -2 and 2."""
    ramp = PlainLoss.from_symbolic("ramp", "-x", ["x"], minimum=-1e9)
    way = landscape.trajectory(ramp, [-8.0], t_max=18.0, tolerance=0.0, rtol=1e-3)
    assert len(way.times) < 8
    level = lambda x: x[:, 0] ** 3 + 6 * x[:, 0] ** 2 - 4 * x[:, 0] - 24  # noqa: E731
    times, states = way.crossings(level)
    assert np.allclose(states[:, 0], [-6, -2, 2], atol=1e-6) and np.allclose(times, [2, 6, 10], atol=1e-6)
    assert np.allclose(way.crossings(level, direction=1)[0], [2, 10], atol=1e-6)
    assert np.allclose(way.crossings(level, direction=-1)[0], [6], atol=1e-6)
    assert len(way.crossings(lambda x: x[:, 0] - 100.0)[0]) == 0


def test_a_trajectory_answers_between_its_ends_only():
    way = landscape.trajectory(CHAINS[0], (1, -1))
    assert way.label == "global" and way.outcome == "converged"
    assert way(0.0) == pytest.approx([1, -1]) and way(way.times[-1]) == pytest.approx(way.end, abs=1e-12)
    with pytest.raises(ParameterError, match="between 0 and"):
        way(way.times[-1] * 2)
    rest = landscape.trajectory(CHAINS[0], (0, -1))
    assert rest.label == "maximum" and rest(0.0) == pytest.approx([0, -1])


def test_memory_does_not_grow_with_the_number_of_steps():
    import tracemalloc

    wells = PROBLEMS[0].landscape
    landscape.flow(wells, [0.5])
    peaks = []
    for steps in (100, 20_000):
        tracemalloc.start()
        landscape.flow(wells, np.full((10, 1), 0.5), t_max=1e300, tolerance=0.0, max_steps=steps)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 20_000


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_exact_and_flow_labels_agree_on_a_hundred_thousand_starts(chain):
    starts = np.random.default_rng(12345).uniform(-3, 3, size=(100_000, 2))
    found, margin = landscape.flow(chain, starts), landscape.architecture("canonical").margin(chain, starts)
    near = np.abs(margin) <= 1e-6
    assert (found.labels != landscape.Label.UNDECIDED).all()
    assert (found.labels == landscape.limit(chain, starts))[~near].all()


def test_an_interruption_while_work_is_handed_out_drops_what_waits():
    taken = []

    def take(chunk):
        taken.append(chunk)
        time.sleep(0.01)
        return 1

    def chunks():
        yield from range(1000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flows._share(take, chunks(), 1000, None)
    assert len(taken) < 500
