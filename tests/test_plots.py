"""Figures: written whatever the data, without choosing a backend."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from landscape import BinaryChain, SymmetricChain, gallery, plots
from landscape.gallery.portrait import descent_arrows, portrait


@pytest.fixture
def small():
    # an odd grid: it holds w = 0, where E is infinite, the line e = 0, and the origin
    return portrait(BinaryChain(0.5, 0.8), "test", e=(-2, 2, 41), w=(-2, 2, 41), arrows=9)


def drawn(panel, data, path):
    figure, axes = plots.new_figure(1, 1, 3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panel(axes[0, 0], data)
        plots.label_outer(axes)
        plots.legend(figure, [data])
        plots.save(figure, path)
    return path.stat().st_size


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_a_grid_through_every_singular_place_is_drawn_silently(small, tmp_path, suffix):
    assert not np.isfinite(small.invariant).all()
    for panel in (plots.flow, plots.basins):
        assert drawn(panel, small, tmp_path / f"f.{suffix}") > 3000


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1.0])
def test_flat_or_empty_data_are_drawn_silently(small, tmp_path, value):
    flat = replace(small, invariant=np.full_like(small.invariant, value), kappa=np.zeros_like(small.kappa))
    assert drawn(plots.flow, flat, tmp_path / "f.png") > 3000


def test_levels_are_finite_and_increasing(small):
    levels = plots.contour_levels(np.ma.masked_invalid(small.invariant), 16)
    assert len(levels) > 5 and np.isfinite(levels).all() and (np.diff(levels) > 0).all()
    assert len(plots.contour_levels(np.ma.masked_invalid(np.full((3, 3), np.nan)), 16)) == 0
    assert len(plots.contour_levels(np.ma.masked_invalid(np.full((3, 3), 2.0)), 16)) == 0


def test_arrows_have_unit_length_and_leave_out_critical_points():
    from landscape import architecture

    nodes = np.linspace(-2, 2, 9)
    w, e, dw, de = descent_arrows(BinaryChain(0.5, 0.8), architecture("canonical"), nodes, nodes, 9)
    assert np.isfinite([dw, de]).all() and np.hypot(dw, de) == pytest.approx(np.ones(len(dw)))
    assert len(e) == 72 and not (e == 0).any()  # of 81 nodes the nine on e = 0 do not move


def test_a_region_that_occurs_is_in_the_legend(tmp_path):
    data = portrait(SymmetricChain(5, 0.9), "test", e=(-2, 2, 41), w=(-3, 2, 41))
    figure, axes = plots.new_figure(1, 1, 3, 3)
    plots.basins(axes[0, 0], data)
    plots.legend(figure, [data])
    texts = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"to a saddle", "half-stable saddles", "separatrix", "global minima", "local minima", "maxima"} <= texts


def test_at_the_threshold_both_lines_of_global_minima_are_drawn(tmp_path):
    data = portrait(BinaryChain(0.3, 0.7), "test", e=(-2, 2, 41), w=(-2, 2, 41))
    figure, axes = plots.new_figure(1, 1, 3, 3)
    plots.basins(axes[0, 0], data)
    plots.legend(figure, [data])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["to a global minimum", "global minima"]
    (line,) = axes[0, 0].get_lines()
    assert line.get_xdata() == pytest.approx([-2, 2]) and line.get_ydata() == pytest.approx([0, 0])
    (contour,) = axes[0, 0].collections
    vertices = np.concatenate([path.vertices for path in contour.get_paths()])
    assert vertices[:, 0] == pytest.approx(np.full(len(vertices), -(0.5**0.5)), abs=2e-3) and np.ptp(vertices[:, 1]) > 3.9


def test_w_is_horizontal_and_e_vertical(tmp_path):
    data = portrait(BinaryChain(0.5, 0.8), "test", e=(-1, 1, 11), w=(-3, 2, 21))
    figure, axes = plots.new_figure(1, 1, 3, 3)
    plots.basins(axes[0, 0], data)
    plots.label_outer(axes)
    assert axes[0, 0].get_xlim() == (-3.0, 2.0) and axes[0, 0].get_ylim() == (-1.0, 1.0)
    assert "$w$" in axes[0, 0].get_xlabel() and "$e$" in axes[0, 0].get_ylabel()


def test_figures_are_the_same_bytes_each_time(tmp_path):
    data = portrait(BinaryChain(0.2, 0.3), "test", e=(-1, 1, 11), w=(-1, 1, 11))
    sizes = [drawn(plots.basins, data, tmp_path / f"{i}.png") for i in range(2)]
    assert sizes[0] == sizes[1] and (tmp_path / "0.png").read_bytes() == (tmp_path / "1.png").read_bytes()


def test_every_figure_has_a_caption():
    assert all(len(gallery.caption(name)) > 100 for name in gallery.FIGURES)


def test_no_backend_is_chosen(run_python):
    code = (
        "import matplotlib; before = matplotlib.rcParams._get_backend_or_none(); "
        "import landscape; from landscape import gallery; import sys, tempfile; "
        "gallery.draw('five_states', tempfile.mkdtemp()); "
        "print(before, matplotlib.rcParams._get_backend_or_none(), 'matplotlib.pyplot' in sys.modules)"
    )
    assert run_python("-c", code, drop=("MPLBACKEND", "DISPLAY")).stdout.split() == ["None", "None", "False"]
