"""Kinks, where the gradient jumps: met as events, crossed, and slid along as Filippov says."""

import math

import numpy as np
import pytest
from problems import SLIDING
from scipy import integrate

import landscape
from landscape import Outcome, PlainLoss


def test_every_kink_within_a_step_is_met():
    """x' = 1 - cos(x) sgn(sin x)/2 crosses a kink at every multiple of pi."""
    kinked = PlainLoss.from_symbolic("washboard", "-x + abs(sin(x))/2", ["x"], minimum=-1e9)
    way = landscape.trajectory(kinked, [-8.0], t_max=20.0, tolerance=0.0, rtol=1e-9)
    speed = lambda x: 1.0 / (1.0 - 0.5 * np.cos(x) * np.sign(np.sin(x)))  # noqa: E731
    kinks = [k * math.pi for k in range(-2, 12) if k * math.pi < way.end[0]]
    edges = [-8.0, *kinks, float(way.end[0])]
    passed = sum(integrate.quad(speed, a, b, epsabs=1e-12)[0] for a, b in zip(edges, edges[1:]))
    assert passed == pytest.approx(20.0, abs=1e-7) and len(kinks) >= 4
    assert np.allclose(way.crossings(lambda x: np.sin(x[:, 0]))[1][:, 0], kinks, atol=1e-7)


def test_sliding_does_not_chatter():
    way = landscape.trajectory(SLIDING.landscape, (1.0, 0.0), t_max=1e4, tolerance=0.0)
    assert way.end == pytest.approx([0.0, 1e4], rel=1e-12)
    assert len(way.times) < 30


def test_what_only_seems_to_attract_on_a_kink_is_a_saddle():
    """Two ReLU units with weight decay, which leads a dead unit to the edge of its life, beyond which the loss falls."""
    units = PlainLoss.from_symbolic(
        "units", "(relu(a + b)*c - 1)^2 + (relu(b - a)*c - 0.2)^2 + 0.01*(a^2 + b^2 + c^2)", ["a", "b", "c"]
    )
    found = landscape.flow(units, np.random.default_rng(0).uniform(-2, 2, size=(200, 3)))
    assert (found.outcomes == Outcome.CONVERGED).all() and set(found.words) == {"global", "saddle"}
    on_edge = np.abs(np.abs(found.ends[:, 0]) - np.abs(found.ends[:, 1])) < 1e-6
    assert (on_edge == (found.labels == landscape.Label.SADDLE)).all() and 0.5 < on_edge.mean() < 0.9
    for end in found.ends[on_edge][:40]:
        around = end + 1e-3 * np.random.default_rng(1).normal(size=(4000, 3))
        assert units.loss(around).min() < units.loss(end)[0] - 1e-9


def test_convex_losses_with_many_kinks_have_one_end():
    generator = np.random.default_rng(7)
    for d, kinks in ((2, 3), (3, 4), (4, 3)):
        names, terms = list("xyzv")[:d], []
        for row in np.round(generator.normal(size=(d + kinks, d + 1)), 2):
            inside = "+".join(f"({weight})*{name}" for weight, name in zip(row, names)) + f"+({row[-1]})"
            terms.append(f"({inside})^2/2" if len(terms) < d else f"abs({inside})" if len(terms) % 2 else f"2*relu({inside})")
        convex = PlainLoss.from_symbolic("convex", "+".join(terms), names, minimum=-1e9)
        found = landscape.flow(convex, generator.uniform(-3, 3, size=(200, d)))
        assert (found.outcomes == Outcome.CONVERGED).all() and set(found.words) == {"local"}
        assert np.ptp(found.ends, axis=0).max() < 1e-7 and (found.sliding > 0).all()


def test_sliding_ends_where_a_side_stops_pushing_back():
    """|x| (1 - y) - y: along x = 0 the flow slides up at speed 1 until y = 1, where x = 0 becomes a ridge."""
    door = PlainLoss.from_symbolic("door", "abs(x - y/2)*(1 - y) - y", ["x", "y"], minimum=-1e9)
    way = landscape.trajectory(door, (0.4, 0.0), t_max=3.0, tolerance=0.0, rtol=1e-10)
    exact = integrate.solve_ivp(
        lambda t, z: _door(z), (0, 3.0), (0.4, 0.0), method="RK45", rtol=1e-6, atol=1e-9, max_step=1e-3
    )
    states = exact.y.T[::50]
    assert (np.abs(way(exact.t[::50]) - states) / (1 + np.abs(states))).max() < 2e-3


def _door(z):
    """The same field with the kink smoothed over 1e-4."""
    x, y = z
    s = x - y / 2
    side, size = np.tanh(s / 1e-4), abs(s)
    return [-side * (1 - y), side * (1 - y) / 2 + size + 1]
