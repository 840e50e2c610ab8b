"""Basin maps by flow: known basins, boundaries, refinement, comparison with exact maps, and files."""

import numpy as np
import pytest
import xarray
from problems import BY_NAME

import landscape
from landscape import BinaryChain, Label, Outcome, ParameterError, PlainLoss, basins

ABOVE, BELOW = BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3)
WELLS = BY_NAME["double wells 3"]


def octants(made):
    """+1 or -1 for the side of every axis, 0 on a plane; shape (..., 3)."""
    return np.stack(np.meshgrid(*(np.sign(made[name]) for name in "xyz"), indexing="ij"), axis=-1)


def test_eight_wells_on_an_even_grid_are_eight_attractors():
    made = landscape.basin_map(WELLS.landscape, x=(-2, 2, 12), y=(-2, 2, 12), z=(-2, 2, 12))
    assert (made["label"] == Label.GLOBAL).all() and (made["outcome"] == Outcome.CONVERGED).all()
    assert made.sizes["set"] == 8 and (made["computed"] == 1).all()
    reached = made["attractor_point"].values[made["attractor"].values]
    assert np.allclose(reached, octants(made), atol=1e-8)


def test_on_an_odd_grid_planes_between_wells_belong_to_no_well():
    made = landscape.basin_map(WELLS.landscape, x=(-2, 2, 9), y=(-2, 2, 9), z=(-2, 2, 9))
    between = (octants(made) == 0).any(axis=-1)
    assert (made["label"].values[~between] == Label.GLOBAL).all()
    assert set(made["label"].values[between]) == {Label.SADDLE, Label.MAXIMUM}
    assert (made["attractor"].values[between] == -1).all() and (made["outcome"] == Outcome.CONVERGED).all()


@pytest.mark.parametrize("chain", [ABOVE, BELOW], ids=str)
def test_exact_and_flow_maps_are_the_same_map(chain):
    axes = {"e": (-2, 2, 61), "w": (-2, 2, 61)}
    exact, found = landscape.basin_map(chain, **axes), landscape.basin_map(chain, method="flow", **axes)
    agreed = landscape.compare(exact, found)
    assert agreed["agreement"] == 1.0 and set(agreed["confusion"]) == set(agreed["confusion"]["global"]) | {"local", "maximum"}
    assert (found["time"] >= 0).all() and exact.attrs["method"] == "exact" and found.attrs["method"] == "flow"
    with pytest.raises(ParameterError, match="'second'"):
        landscape.compare(exact, landscape.basin_map(chain, e=(-1, 1, 3), w=(-1, 1, 3)))


def test_a_comparison_counts_what_differs():
    one, other = np.array([1, 1, 2, 0], dtype=np.int8), np.array([1, 2, 2, 1], dtype=np.int8)
    found = basins.compare(one, other)
    assert found["agreement"] == 0.5
    assert found["confusion"] == {"undecided": {"global": 1}, "global": {"global": 1, "local": 1}, "local": {"local": 1}}


@pytest.mark.parametrize("n, coarse", [(65, 8), (62, 5), (40, 100)])
def test_refinement_gives_the_whole_map_for_less(n, coarse):
    axes = {"e": (-2, 2, n), "w": (-2, 2, n)}
    whole = landscape.basin_map(ABOVE, method="flow", **axes)
    refined = landscape.basin_map(ABOVE, method="flow", coarse=coarse, **axes)
    followed = refined["computed"].values == 1
    assert landscape.compare(whole, refined)["agreement"] == 1.0
    assert followed.mean() < 0.75 or coarse == 100
    assert np.array_equal(whole["time"].values[followed], refined["time"].values[followed])


def test_undecided_starts_are_kept_apart():
    made = landscape.basin_map(ABOVE, method="flow", options={"t_max": 30.0}, e=(-2, 2, 21), w=(-2, 2, 21))
    undecided = made["label"].values == Label.UNDECIDED
    assert 0 < undecided.sum() < undecided.size
    assert (made["outcome"].values[undecided] == Outcome.TIME_LIMIT).all() and (made["time"].values[undecided] == 30.0).all()
    assert (made["attractor"].values[undecided] == -1).all()
    counts = landscape.fractions(made)
    assert counts["undecided"] == undecided.mean() and sum(counts.values()) == pytest.approx(1)


def test_slices_fix_what_is_not_gridded():
    made = landscape.basin_map(WELLS.landscape, fixed={"y": -0.3}, x=(-1, 1, 4), z=(-1, 1, 4))
    assert made["label"].dims == ("x", "z") and made.attrs["fixed_y"] == -0.3
    assert np.allclose(made["attractor_point"].values[:, 1], -1, atol=1e-8)
    for axes, fixed in (({"x": (-1, 1, 4)}, None), ({"x": (-1, 1, 4), "y": (-1, 1, 4), "z": (-1, 1, 4)}, {"x": 1.0}), ({}, {"q": 1.0})):
        with pytest.raises(ParameterError, match="'axes' parameter of basin_map"):
            landscape.basin_map(WELLS.landscape, fixed=fixed, **axes)
    exact = landscape.basin_map(ABOVE, fixed={"e": 0.5}, w=(-2, 2, 101))
    assert exact["label"].dims == ("w",)
    assert (exact["label"].values == landscape.limit(ABOVE, np.stack([np.full(101, 0.5), exact["w"].values], axis=1))).all()


def test_grids_default_to_the_box():
    ring = PlainLoss.from_symbolic("ring", "(x^2 + y^2 - 1)^2/4", ["x", "y"], box={"x": (-1, 3)})
    made = landscape.basin_map(ring, y=(-1, 1, 3))
    assert made.sizes["x"] == 101 and made["x"].values[[0, -1]].tolist() == [-1, 3]


def test_a_continuum_is_one_attractor_and_two_branches_are_two():
    ring = landscape.basin_map(BY_NAME["circle of minima"].landscape, x=(-2, 2, 40), y=(-2, 2, 40))
    assert ring.sizes["set"] == 1 and (ring["attractor"] == 0).all()
    below = landscape.basin_map(BELOW, method="flow", e=(-2, 2, 60), w=(-2, 2, 60))
    kinds = [landscape.flow(BELOW, point).words[0] for point in below["attractor_point"].values]
    assert kinds == ["global", "global", "local"]


def test_files_keep_everything(tmp_path):
    made = landscape.basin_map(ABOVE, method="flow", e=(-2, 2, 31), w=(-2, 2, 41))
    basins.write(made, tmp_path / "map.nc")
    with xarray.open_dataset(tmp_path / "map.nc", engine="h5netcdf") as again:
        for name in ("label", "outcome", "time", "attractor", "computed", "attractor_point"):
            assert np.array_equal(again[name].values, made[name].values)
        assert again["outcome"].attrs["flag_meanings"].split()[0] == "converged"
        assert again.attrs["architecture"] == "canonical" and again.attrs["p"] == 0.5


def test_starts_in_a_dataset_are_labelled_by_flow_too():
    starts = xarray.Dataset({"x": ("run", [0.5, -0.2]), "y": ("run", [1.0, 0.3])})
    found = landscape.label_starts(BY_NAME["saddle between two wells"].landscape, starts)
    assert found["label"].values.tolist() == [Label.GLOBAL, Label.GLOBAL]


def test_progress_is_reported_and_an_interruption_ends_the_work():
    seen = []
    starts = np.random.default_rng(0).uniform(-2, 2, size=(1500, 2))
    landscape.flow(ABOVE, starts, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1500, 1500) and [done for done, _ in seen] == sorted(done for done, _ in seen)

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        landscape.flow(ABOVE, starts, progress=interrupt)
