"""Exact basin maps against filling an array of the same size, in one run; prints the ratio of medians."""

import statistics
import time

import numpy as np
import pytest

from landscape import BinaryChain, basins

pytestmark = pytest.mark.benchmark


def median_seconds(action, repeats=7):
    action()  # compile, or touch the memory
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


@pytest.mark.parametrize("nodes", [1024, 4096])
def test_exact_map_against_a_fill(nodes):
    axis = np.linspace(-2, 2, nodes)
    mapped = median_seconds(lambda: basins.label_grid(BinaryChain(0.5, 0.8), {"e": axis, "w": axis}))
    filled = median_seconds(lambda: np.full((nodes, nodes), 1, dtype=np.int8))
    print(f"\n{nodes}²: map {mapped:.4f} s, fill {filled:.5f} s, ratio {mapped / filled:.1f}, {nodes**2 / mapped:.2e} starts/s")
    labels, _ = basins.label_grid(BinaryChain(0.5, 0.8), {"e": axis, "w": axis})
    assert basins.fractions(labels)["local"] == pytest.approx(0.557806, abs=2e-3)  # what was timed is the right map


@pytest.mark.parametrize("nodes", [128, 512])
def test_exact_map_with_attention_against_a_fill(nodes):
    axes = dict.fromkeys("aew", np.linspace(-2, 2, nodes))
    mapped = median_seconds(lambda: basins.label_grid(BinaryChain(0.5, 0.8), axes, "attention"), 5)
    filled = median_seconds(lambda: np.full((nodes,) * 3, 1, dtype=np.int8), 5)
    print(f"\n{nodes}³: map {mapped:.4f} s, fill {filled:.5f} s, ratio {mapped / filled:.1f}, {nodes**3 / mapped:.2e} starts/s")
    assert basins.fractions(basins.label_grid(BinaryChain(0.5, 0.8), axes, "attention")[0])["local"] == pytest.approx(0.384, abs=0.02)
