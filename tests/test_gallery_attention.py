"""The figures of attention and of many states: what they draw is where it says that it is."""

import numpy as np
import pytest

from landscape import limit
from landscape.flows import trajectory
from landscape.gallery import attention_flow, attention_landscape, attention_origin, attention_separatrix, many_states
from landscape.gallery.attention_space import CHAINS, MODEL
from landscape.outcomes import Label
from landscape.scenes import Scene, level_surface

IDS = ["below", "above"]


@pytest.mark.parametrize("chain", CHAINS, ids=IDS)
def test_orbits_stay_on_the_surface_that_is_drawn(chain):
    starts = attention_flow.starts(chain)
    energy = MODEL.invariant_values(chain, starts)["E"]
    assert np.allclose(energy, attention_flow.ENERGY, atol=1e-9)
    labels = set()
    for start in starts[::3]:
        way = trajectory(chain, start, MODEL)
        labels.add(way.label)
        states = way.sample()[1]
        states = states[states[:, 0] > 1e-6]
        assert np.ptp(MODEL.invariant_values(chain, states)["E"]) < 1e-5
    assert labels == {"global", "local"}


@pytest.mark.parametrize("chain", CHAINS, ids=IDS)
def test_the_separatrix_on_the_surface_of_one_energy_divides_labels(chain):
    for curve in attention_flow.separatrix(chain):
        curve = curve[np.isfinite(curve).all(axis=1) & (curve[:, 0] > 0.1)]
        off = np.abs(MODEL.invariant_values(chain, curve)["E"] - attention_flow.ENERGY)
        assert np.mean(off < 1e-6) > 0.9 and off.max() < 0.05
        sides = [limit(chain, curve + [0.0, shift, 0.0], MODEL) for shift in (-0.01, 0.01)]
        assert (sides[0] != sides[1]).mean() > 0.98


@pytest.mark.parametrize("chain", CHAINS, ids=IDS)
def test_around_the_origin_e_obeys_what_is_predicted(chain):
    start = attention_origin.starts(chain)[0]
    way = trajectory(chain, start, MODEL)
    time = 2.0
    grown = np.log(abs(way(np.array([time]))[0, 0]) / abs(start[0])) / time
    assert grown == pytest.approx(attention_origin.predicted(chain, start), rel=0.05 if abs(start[0]) < 0.1 else 0.2)


@pytest.mark.parametrize("chain", CHAINS, ids=IDS)
def test_there_are_global_minima_with_attention(chain):
    for held in attention_landscape.PLANES:
        nodes, loss, gap = attention_landscape.plane(chain, held, 201)
        assert loss.min() > -1e-12
        near = np.abs(gap - chain.kappa_star) < 0.02
        assert near.any() and loss[near].max() < 1e-3
        assert np.abs(np.broadcast_to(nodes, near.shape)[near]).max() > 1.0  # a, which runs fastest
    nodes, loss, _ = attention_landscape.plane(chain, "w", 201)
    without = loss[:, np.flatnonzero(nodes == 0.0)[0]].min()
    assert (without < 1e-3) == (chain.regime == "above")


@pytest.mark.parametrize("chain", CHAINS, ids=IDS)
def test_the_cuts_of_the_boundary_divide_labels(chain):
    for a in attention_separatrix.CUTS:
        parts = attention_separatrix.cut(chain, a)
        assert len(parts) == (2 if chain.regime == "above" and a < 0 else 1)
        curve = parts[0][parts[0][:, 0] > 0.05]
        flat = curve[:, 0] > curve[-1, 0] - 1e-3  # there w is not a number of e any more
        sides = [limit(chain, np.column_stack([curve + [0.0, shift], np.full(len(curve), a)]), MODEL)[~flat] for shift in (-1e-3, 1e-3)]
        wanted = [Label.LOCAL, Label.GLOBAL] if chain.regime == "below" else [Label.GLOBAL, Label.LOCAL]
        for found, label in zip(sides, wanted):
            assert np.mean(found == label) > 0.99
        for (e, low), (_, high) in [part for part in parts[1:]]:
            over = [limit(chain, [(e + shift, (low + high) / 2, a)], MODEL)[0] for shift in (-1e-3, 1e-3)]
            assert over == [Label.LOCAL, Label.GLOBAL]


def test_an_open_set_of_starts_ends_in_saddles_for_three_states_and_more():
    below, above = many_states.portraits()
    for row, side in ((below, 1), (above, -1)):
        for found in row:
            e = found.e[np.nonzero(found.labels == Label.SADDLE)[0]]
            assert np.mean(found.labels == Label.SADDLE) > 0.01
            assert np.mean(side * e[e != 0.0] > 0.0) == 1.0


def test_a_surface_by_level_is_a_sphere():
    nodes = [np.linspace(-1.2, 1.2, 25)] * 3
    x, y, z = np.meshgrid(*nodes, indexing="ij")
    facets, heights = level_surface(nodes, x**2 + y**2 + z**2, 1.0, (z,))
    corners = np.concatenate(facets)
    assert np.abs(np.linalg.norm(corners, axis=1) - 1.0).max() < 0.01
    assert np.allclose(np.concatenate(heights)[:, 0], corners[:, 2])
    area = sum(np.linalg.norm(np.cross(facet[1:-1] - facet[0], facet[2:] - facet[0]).sum(axis=0)) / 2 for facet in facets)
    assert area == pytest.approx(4 * np.pi, rel=0.01)


def test_what_is_outside_the_box_is_cut_off():
    scene = Scene([(-1, 1)] * 3)
    scene.surface([np.array([(-3.0, -3.0, 0.0), (3.0, -3.0, 0.0), (3.0, 3.0, 0.0), (-3.0, 3.0, 0.0)])], "#cccccc")
    (polygon,) = scene.parts[0][0]
    assert np.allclose(np.abs(polygon[:, :2]), 1.0) and len(polygon) == 4
    scene.line(np.array([(-2.0, 0.0, 0.0), (np.nan, 0.0, 0.0), (2.0, 0.0, 0.0)]), "black")
    assert len(scene.parts) == 1


def test_the_figures_are_drawn_silently(tmp_path):
    from landscape import gallery

    for name in ("attention_landscape", "attention_separatrix"):
        assert all(path.stat().st_size > 10_000 for path in gallery.draw(name, tmp_path))
