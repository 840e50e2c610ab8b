"""The command line for the reduced and transverse landscapes, and for flows with speeds."""

import csv

import pytest
from conftest import strict

LAW = ("--p", ".2", "--q", ".3")
REDUCED = ("--architecture", "reduced", *LAW)


def test_two_numbers_are_the_canonical_slice(call, tmp_path):
    code, out, _ = call("classify", *REDUCED, "--at", "1,-1", "--at", "1,-.5,2,-2,0.5", "--json")
    slice_, full = strict(out)["points"]
    assert code == 0 and slice_["at"][:4] == full["at"][:4] == [1.0, -0.5, 2.0, -2.0]
    assert slice_["loss"] < full["loss"] and slice_["kappa"] == full["kappa"] == pytest.approx(-1.0)
    points = tmp_path / "starts.csv"
    points.write_text("w,e\n-1,1\n", encoding="utf-8")
    assert strict(call("classify", *REDUCED, "--points", points, "--json")[1])["points"][0] == slice_
    fixed = strict(call("classify", *REDUCED, "--at", "1,-1", "--fix", "b=0.5", "--json")[1])["points"][0]
    assert fixed == full


def test_speeds_change_limits(call):
    at = ("--at=-.3,-1.5", "--json")
    assert strict(call("flow", *REDUCED, *at)[1])["label"] == "global"
    slow = strict(call("flow", *REDUCED, *at, "--speed", "c=0.015625")[1])
    assert slow["label"] == "local" and slow["invariant_drift"] < 1e-12
    across = ("--architecture", "transverse", *LAW, *at, "--speed", "c=0.015625", "--fix", "u=1e-6")
    assert strict(call("flow", *across)[1])["label"] == "global"


def test_a_map_over_the_slice(call, tmp_path):
    made, picture = tmp_path / "map.nc", tmp_path / "map.png"
    code, out, _ = call("basins", *REDUCED, "--speed", "c=.0625", "--e", "-.8", "-.2", 3, "--w", "-2", "-.5", 4, "--out", made,
                        "--plot", picture, "--json")
    data = strict(out)
    assert code == 0 and data["shape"] == [3, 4] and data["counts"]["local"] > 0 < data["counts"]["global"]
    import xarray

    with xarray.open_dataset(made, engine="h5netcdf") as found:
        assert found.attrs["speed_c"] == 0.0625 and found.attrs["architecture"] == "reduced"
    assert picture.stat().st_size > 10_000


def test_critical_sets(call):
    sets = strict(call("critical", "--architecture", "transverse", *LAW, "--json")[1])["sets"]
    assert [found["kind"] for found in sets] == ["global minima", "saddles", "saddles", "saddles"]
    assert [found["index"] for found in sets] == [0, 2, 2, 1]


def test_points_are_written_in_full(call, tmp_path):
    path = tmp_path / "way.csv"
    assert call("flow", *REDUCED, "--at", "1,1", "--out", path)[0] == 0
    assert next(csv.reader(path.open()))[:7] == ["start", "t", "e", "c", "w1", "w2", "b"]


@pytest.mark.parametrize("arguments, option", [
    (("flow", *REDUCED, "--at", "1,1,1"), "--at"),
    (("flow", *REDUCED, "--at", "1,1", "--speed", "c=0"), "--speed"),
    (("flow", *REDUCED, "--at", "1,1", "--speed", "c=nan"), "--speed"),
    (("flow", *REDUCED, "--at", "1,1", "--speed", "w=2"), "--speed"),
    (("flow", *REDUCED, "--at", "1,1", "--speed", "c"), "--speed"),
    (("flow", *REDUCED, "--at", "1,1", "--fix", "u=1"), "--fix"),
    (("flow", "--architecture", "reduced", "--states", "3", "--p", ".3", "--at", "1,1"), "--states"),
    (("basins", *REDUCED, "--method", "exact"), "--method"),
    (("basins", *REDUCED, "--grid", "u", "0", "1", "3"), "--grid"),
    (("basins", "--p", ".2", "--q", ".3", "--speed", "w=.5", "--method", "exact"), "--method"),
    (("separatrix", *LAW, "--speed", "e=2", "--out", "x.csv"), "--speed"),
])
def test_bad_values_take_one_line(call, tmp_path, monkeypatch, arguments, option):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "") and option in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
