"""Basin maps: fractions, files, threads."""

import math

import numpy as np
import pytest
import xarray
from scipy import integrate

import landscape
from landscape import BinaryChain, Label, ParameterError, SymmetricChain, basins


def local_share(chain, half_width=2.0):
    """Share of the box |e|, |w| <= half_width below the separatrix (or beyond w = 0), by quadrature."""
    def height(w):
        u = 2 * w * w
        return min(math.sqrt(max((u - 1 - math.log(u)) / 2, 0.0)), half_width)

    saddle = 1 / math.sqrt(2)
    if chain.target_sign > 0:
        area = 2 * integrate.quad(height, saddle, half_width, limit=200)[0]
    else:
        area = 2 * integrate.quad(height, 0, saddle, limit=200, points=[1e-3])[0] + 2 * half_width**2
    return area / (4 * half_width**2)


@pytest.mark.parametrize(("chain", "share"), [(BinaryChain(0.5, 0.8), 0.557806), (BinaryChain(0.2, 0.3), 0.131398)])
def test_fractions_of_the_box_agree_with_quadrature(chain, share):
    found = landscape.fractions(landscape.basin_map(chain, e=(-2, 2, 2000), w=(-2, 2, 2000)))
    assert local_share(chain) == pytest.approx(share, abs=1e-6)
    assert found["local"] == pytest.approx(share, abs=1e-3)
    assert found["global"] + found["local"] == pytest.approx(1.0, abs=1e-12)
    # cells at their centres integrate the box without bias
    edge = 1 / 1000
    found = landscape.fractions(landscape.basin_map(chain, e=(-2 + edge, 2 - edge, 2000), w=(-2 + edge, 2 - edge, 2000)))
    assert found["local"] == pytest.approx(share, abs=2e-5)


@pytest.mark.parametrize("chain", [BinaryChain(0.5, 0.8), SymmetricChain(5, 0.3)])
def test_every_cell_is_the_label_of_its_start(chain):
    found = landscape.basin_map(chain, e=(-2, 2, 41), w=np.linspace(-3, 1, 37))
    assert found["label"].dims == ("e", "w") and found["label"].dtype == np.int8
    e, w = np.meshgrid(found["e"], found["w"], indexing="ij")
    expected = landscape.limit(chain, np.stack([e.ravel(), w.ravel()], axis=1)).reshape(41, 37)
    assert np.array_equal(found["label"], expected)


def test_starts_come_and_go_as_xarray():
    chain = BinaryChain(0.5, 0.8)
    e = xarray.DataArray(np.linspace(-2, 2, 7), dims="seed")
    w = xarray.DataArray([[-1.0, -0.3], [0.5, np.nan]], dims=("run", "rate"), attrs={"units": "1"})
    found = landscape.label_starts(chain, xarray.Dataset({"e": e, "w": w, "loss": e**2}))
    assert found["label"].dims == ("seed", "run", "rate") and found["label"].dtype == np.int8
    assert found["loss"].equals(e**2) and found["w"].equals(w)
    for i in range(7):
        expected = landscape.limit(chain, [(float(e[i]), float(value)) for value in w.values.ravel()])
        assert np.array_equal(found["label"].isel(seed=i).values.ravel(), expected)
    mapped = landscape.basin_map(chain, e=(-1, 1, 5), w=(-1, 1, 5))
    assert landscape.label_starts(chain, mapped.coords.to_dataset())["label"].equals(mapped["label"])
    with pytest.raises(ParameterError, match="holds e, w"):
        landscape.label_starts(chain, xarray.Dataset({"e": e}))


def test_counts_are_over_all_cells_and_all_labels():
    labels = np.array([[-1, 0, 1], [2, 3, 4]], dtype=np.int8)
    assert basins.count_labels(labels) == {"invalid": 1, "undecided": 1, "global": 1, "local": 1, "saddle": 1, "maximum": 1}
    assert basins.fractions(np.full((4, 4), 2, dtype=np.int8))["local"] == 1.0


def test_a_map_describes_itself_and_survives_its_file(tmp_path):
    chain = BinaryChain(0.5, 0.8)
    made = landscape.basin_map(chain, e=(-1, 1, 21), w=(-1.5, 0.5, 31))
    path = tmp_path / "mäp one.nc"
    basins.write(made, path)
    with xarray.open_dataset(path, engine="h5netcdf") as read:
        read.load()
    xarray.testing.assert_identical(read, made)
    flags = dict(zip(read["label"].attrs["flag_meanings"].split(), read["label"].attrs["flag_values"].tolist()))
    assert flags == {label.word: label.value for label in Label}
    assert (read.attrs["p"], read.attrs["q"], read.attrs["architecture"], read.attrs["method"]) == (0.5, 0.8, "canonical", "exact")
    assert landscape.fractions(read) == landscape.fractions(made)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_a_map_survives_zarr(tmp_path):
    pytest.importorskip("zarr")
    made = landscape.basin_map(SymmetricChain(5, 0.9), e=(-1, 1, 5), w=(-1, 1, 5))
    for _ in range(2):  # written over itself too
        basins.write(made, tmp_path / "map.zarr")
    xarray.testing.assert_equal(xarray.open_zarr(tmp_path / "map.zarr", consolidated=False).load(), made)


@pytest.mark.parametrize(("chain", "architecture", "axes", "fixed"), [
    (BinaryChain(0.5, 0.8), "canonical", {"e": (-2, 2, 57), "w": (-2, 2, 41)}, None), (SymmetricChain(5, 0.9), "canonical", {"e": (-2, 2, 30), "w": (-4, 1, 17)}, None),
    (BinaryChain(0.2, 0.3), "attention", {"a": (-1, 1, 9), "e": (-2, 2, 14), "w": (-2, 2, 21)}, None), (BinaryChain(0.2, 0.3), "attention", {"e": (-2, 2, 14), "w": (-2, 2, 21)}, {"a": 0.1}),
])
@pytest.mark.parametrize("cells", [1, 100, 2**26])
def test_a_map_that_is_streamed_is_the_map(tmp_path, chain, architecture, axes, fixed, cells):
    pytest.importorskip("zarr")
    told = []
    counts = landscape.stream_map(chain, tmp_path / "map.zarr", architecture, fixed=fixed, cells=cells, progress=lambda *at: told.append(at), **axes)
    whole = landscape.basin_map(chain, architecture, fixed=fixed, **axes)
    xarray.testing.assert_identical(xarray.open_zarr(tmp_path / "map.zarr", consolidated=False, chunks=None).load(), _as_stored(whole, tmp_path))
    assert counts == basins.count_labels(whole["label"].values) and told[-1] == (whole["label"].size,) * 2


def _as_stored(made, folder):
    """A map as it comes back from Zarr, where it was written at once."""
    basins.write(made, folder / "whole.zarr")
    return xarray.open_zarr(folder / "whole.zarr", consolidated=False, chunks=None).load()


def test_streaming_needs_an_exact_rule_and_a_zarr_name(tmp_path):
    pytest.importorskip("zarr")
    with pytest.raises(ParameterError, match="method"):
        landscape.stream_map(BinaryChain(0.5, 0.8), tmp_path / "m.zarr", "transverse", e=(-1, 1, 5), w=(-1, 1, 5))
    with pytest.raises(ParameterError, match="zarr"):
        landscape.stream_map(BinaryChain(0.5, 0.8), tmp_path / "m.nc", e=(-1, 1, 5), w=(-1, 1, 5))
    assert list(tmp_path.iterdir()) == []


def test_labels_are_counted_however_many_there_are():
    codes = np.random.default_rng(0).integers(-1, 5, size=(2**22 + 5,)).astype(np.int8)
    assert list(basins.count_labels(codes).values()) == [int((codes == label.value).sum()) for label in Label]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    from landscape.files import replacing, write_text

    write_text(tmp_path / "kept.txt", "old")
    with pytest.raises(RuntimeError), replacing(tmp_path / "kept.txt") as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert (tmp_path / "kept.txt").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("axis", [(2, -2, 10), (-2, 2, 1), (-2, 2, 2.5), (0, math.inf, 3), (-2, math.nan, 3), [1, 1, 2], "abc", [3.0]])
def test_axes_that_are_none_are_refused(axis):
    with pytest.raises(ParameterError, match="'e' parameter of basin_map"):
        landscape.basin_map(BinaryChain(0.5, 0.8), e=axis)


def test_a_coordinate_that_the_architecture_lacks_is_refused():
    with pytest.raises(ParameterError, match="one to three of e, w"):
        landscape.basin_map(BinaryChain(0.5, 0.8), a=(-1, 1, 3))
    with pytest.raises(ParameterError, match="one of canonical"):
        landscape.basin_map(BinaryChain(0.5, 0.8), "nothing")


COUNTS = """
import hashlib, numpy, landscape
from landscape import basins
labels, _ = basins.label_grid(landscape.BinaryChain(.5, .8), {"e": (-2, 2, 1500), "w": (-2, 2, 1300)})
digests = {hashlib.sha256(basins.label_grid(landscape.BinaryChain(.5, .8), {"e": (-2, 2, 1500), "w": (-2, 2, 1300)})[0].tobytes()).hexdigest() for _ in range(20)}
sample = landscape.BinaryChain(.5, .8).sample(1000, 20, seed=3)
print(sorted(digests), basins.count_labels(labels), sum(basins.count_labels(labels).values()), hashlib.sha256(sample.tobytes()).hexdigest())
"""


def test_maps_counts_and_samples_do_not_depend_on_the_number_of_threads(run_python):
    outputs = {run_python("-c", COUNTS, NUMBA_NUM_THREADS=threads).stdout for threads in (1, 2, 8, 16)}
    assert len(outputs) == 1
    assert str(1500 * 1300) in outputs.pop()


def test_the_architecture_is_named_by_keyword_too():
    chain, point = BinaryChain(0.5, 0.8), [(1.0, -1.0)]
    model = landscape.architecture("canonical")
    for name in ("canonical", model):
        assert landscape.limit(chain, point, architecture=name)[0] == Label.GLOBAL
        assert landscape.classify(chain, point, architecture=name)[0].label == "global"
        assert landscape.basin_map(chain, architecture=name, e=(-1, 1, 3), w=(-1, 1, 3)).attrs["architecture"] == "canonical"
        assert len(landscape.separatrix(chain, architecture=name, n=5)) == 10
        assert len(landscape.critical_sets(chain, architecture=name)) == 4
        assert landscape.gradient(chain, point, architecture=name).shape == (1, 2)
    assert landscape.architecture(model) is model


def zoomed(centre, width, n):
    return centre + width * np.linspace(-1.0, 1.0, n)


@pytest.mark.parametrize("chain", [
    BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.5), SymmetricChain(5, 0.9), SymmetricChain(5, 0.3),
], ids=repr)
def test_maps_by_runs_equal_the_rule_point_by_point(chain):
    """Whole boxes, rows at e = 0, boxes around the separatrix and the saddle down to where rounding decides, single columns, and huge values."""
    curve = landscape.separatrix(chain) if chain.target_sign else np.array([[0.5, -0.8]] * 40)
    (e, w), saddle = curve[len(curve) // 3], -(0.5**0.5)
    axes = [
        (np.linspace(-3, 3, 121), np.linspace(-5, 2, 170)), (np.linspace(-3, 3, 120), np.array([-1.0])), (np.array([0.0, 0.3]), np.linspace(-2, 2, 99)),
        *((zoomed(e, width, 41), zoomed(w, width, 43)) for width in (1e-2, 1e-5, 1e-8, 1e-11, 1e-15)), (zoomed(0.0, 1e-6, 41), zoomed(saddle, 1e-6, 40)),
        (np.array([-1e200, -1.0, 0.0, 1e200]), np.array([-1e200, -1e-320, 0.0, 1e-320, 1e200])), (np.linspace(-2, 2, 5), np.sort(np.random.default_rng(3).normal(size=60))),
    ]
    for first, second in axes:
        if not (np.diff(first) > 0).all() or not (np.diff(second) > 0).all():
            continue  # rounding has made nodes equal
        labels = landscape.architecture("canonical").label_grid(chain, {"e": first, "w": second})
        points = np.stack([grid.ravel() for grid in np.meshgrid(first, second, indexing="ij")], axis=1)
        assert np.array_equal(labels.ravel(), landscape.limit(chain, points))
