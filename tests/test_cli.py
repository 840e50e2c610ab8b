"""The command line: what it prints, what it refuses, what it leaves behind."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import strict

import landscape
from landscape import cli, command


def test_chain(call):
    code, out, err = call("chain", "--p", ".5", "--q", ".8", "--json")
    data = strict(out)
    assert (code, err) == (0, "")
    assert set(data) == {"stationary", "unigram_loss", "bigram_loss", "kappa_star", "regime", "threshold", "notes"}
    assert data["unigram_loss"] == pytest.approx(0.666278, abs=1e-6) and data["kappa_star"] == pytest.approx(-1.386294, abs=1e-6)
    data = strict(call("chain", "--states", "5", "--p", ".9", "--json")[1])
    assert data["bigram_loss"] == pytest.approx(1.572748, abs=1e-6) and data["threshold"] == 0.8 and data["regime"] == "above"
    for edge in (("1", ".3"), ("0", ".3"), ("1", "1")):
        assert strict(call("chain", "--p", edge[0], "--q", edge[1], "--json")[1])["kappa_star"] is None
    assert "0.619015" in call("chain", "--p", ".5", "--q", ".8")[1]


def test_classify(call, tmp_path):
    points = tmp_path / "starts.csv"
    points.write_text("w,note,e\n-1,here,1\n0.5,there,0\n", encoding="utf-8-sig")
    code, out, _ = call("classify", "--p", ".5", "--q", ".8", "--at", "-0.3,-1.5", "--at=.25,-.6", "--points", points, "--json")
    found = strict(out)["points"]
    assert code == 0 and [result["label"] for result in found] == ["global", "global", "global", "local"]
    assert set(found[0]) == {"at", "label", "kappa", "loss", "invariants", "margin", "distance"}
    assert found[2]["at"] == [1.0, -1.0] and found[1]["margin"] > 0 and found[3]["margin"] is None
    assert "global" in call("classify", "--p", ".5", "--q", ".8", "--at", "1,-1")[1]


def test_basins(call, tmp_path):
    code, out, _ = call("basins", "--p", ".2", "--q", ".3", "--e", "-2", "2", "201", "--w", "-2", "2", "101",
                        "--out", tmp_path / "m.nc", "--plot", tmp_path / "m.svg", "--json")
    data = strict(out)
    words = {"global", "local", "saddle", "maximum", "undecided", "invalid"}
    assert code == 0 and set(data["fractions"]) == set(data["counts"]) == words
    assert sum(data["counts"].values()) == 201 * 101 and data["shape"] == [201, 101]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.nc", "m.svg"]
    assert "local" in call("basins", "--p", ".2", "--q", ".3")[1]


def test_separatrix(call, tmp_path):
    path = tmp_path / "curve.csv"
    code, out, _ = call("separatrix", "--p", ".5", "--q", ".8", "--out", path, "--json")
    data = strict(out)
    assert code == 0 and data["points"] == 800 and data["residual"] < 1e-13
    rows = list(csv.DictReader(path.open()))
    assert len(rows) == 800
    e, w = (np.array([float(row[name]) for row in rows]) for name in "ew")
    u = 2 * w**2
    assert e**2 == pytest.approx((u - 1 - np.log(u)) / 2, abs=1e-13)
    assert strict(call("separatrix", "--p", ".3", "--q", ".7", "--out", path, "--json")[1])["points"] == 0


def test_critical(call):
    code, out, _ = call("critical", "--p", ".2", "--q", ".3", "--json")
    sets = strict(out)["sets"]
    assert code == 0 and [found["kind"] for found in sets] == ["global minima", "local minima", "maxima", "saddle"]
    assert set(sets[0]) == {"name", "kind", "dimension", "index", "nullity", "loss", "equations"}


def test_figures(call, tmp_path):
    listed = strict(call("figures", "--list", "--json")[1])["figures"]
    assert {"phase_portrait", "phase_portrait_symmetric", "five_states"} <= {figure["name"] for figure in listed}
    code, out, _ = call("figures", "five_states", "--out", tmp_path, "--json")
    assert code == 0 and [path.name for path in sorted(tmp_path.iterdir())] == ["five_states.pdf", "five_states.png"]
    assert len(strict(out)["files"]) == 2


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1_0", "0,5", "0x1p-1", "٣", "", " 1", "1e999", "--5", "1e", "."])
def test_what_is_no_plain_decimal_is_refused(call, value):
    code, out, err = call("chain", f"--p={value}", "--q", ".5")
    assert (code, out) == (2, "") and err.count("\n") == 1 and "--p" in err and "Traceback" not in err


@pytest.mark.parametrize("low", ["-1e-3", "-.5", "-10.", "-1E-3", "+.5", "-0"])
def test_negative_numbers_are_values_not_options(call, low):
    high = "1"
    for option in (["--e", low, high, "5"], ["--w", low, high, "5"]):
        code, out, err = call("basins", "--p", ".5", "--q", ".8", "--json", *option)
        assert (code, err) == (0, "")
    assert call("classify", "--p", ".5", "--q", ".8", "--at", f"{low},-1")[0] == 0
    assert call("classify", "--p", ".5", "--q", ".8", f"--at={low},{low}")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("chain", "--p", "1.2", "--q", ".5"), "--p"),
        (("chain", "--p", "0", "--q", "0"), "--p"),
        (("chain", "--p", ".5"), "--q"),
        (("chain", "--p", ".5", "--q", ".5", "--states", "3"), "--q"),
        (("chain", "--states", "1", "--p", ".5"), "--states"),
        (("chain", "--states", "2.5", "--p", ".5"), "--states"),
        (("basins", "--p", "1", "--q", ".5"), "--p"),
        (("basins", "--p", ".5", "--q", "0"), "--q"),
        (("basins", "--p", ".5", "--q", ".8", "--e", "1", "-1", "9"), "--e"),
        (("basins", "--p", ".5", "--q", ".8", "--w", "-1", "1", "1"), "--w"),
        (("basins", "--p", ".5", "--q", ".8", "--out", "map.txt"), "--out"),
        (("basins", "--p", ".5", "--q", ".8", "--plot", "map.gif"), "--plot"),
        (("basins", "--p", ".5", "--q", ".8", "--architecture", "deep"), "--architecture"),
        (("classify", "--p", ".5", "--q", ".8"), "--at"),
        (("classify", "--p", ".5", "--q", ".8", "--at", "1"), "--at"),
        (("classify", "--p", ".5", "--q", ".8", "--at", "1,2,3"), "--at"),
        (("classify", "--p", ".5", "--q", ".8", "--at", "1,nan"), "--at"),
        (("classify", "--p", ".5", "--q", ".8", "--points", "absent.csv"), "--points"),
        (("separatrix", "--p", ".5", "--q", ".8"), "--out"),
        (("separatrix", "--p", ".5", "--q", ".8", "--out", "s.csv", "--reach", "-1"), "--reach"),
        (("separatrix", "--p", ".5", "--q", ".8", "--out", "s.csv", "--n", "1"), "--n"),
        (("figures", "nothing"), "NAME"),
        (("figures", "--nothing"), "--nothing"),
    ],
)
def test_bad_values_take_one_line_and_write_nothing(call, tmp_path, monkeypatch, arguments, option):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "") and err.count("\n") == 1 and option in err and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "complaint"), [("e\n1\n", "column 'w'"), ("e,w\n1,nan\n", "'nan'"), ("e,w\n1\n", "''"), ("", "column 'e'")])
def test_bad_points_are_named(call, tmp_path, text, complaint):
    path = tmp_path / "p.csv"
    path.write_text(text)
    code, out, err = call("classify", "--p", ".5", "--q", ".8", "--points", path)
    assert (code, out) == (2, "") and complaint in err and err.count("\n") == 1


def test_what_cannot_be_written_is_exit_one(call, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = call("separatrix", "--p", ".5", "--q", ".8", "--out", tmp_path / "file" / "s.csv")
    assert (code, out) == (1, "") and err.count("\n") == 1 and "Traceback" not in err


def test_strict_json_has_null_for_what_is_not_finite():
    assert json.loads(command.strict_json({"a": [math.nan, math.inf, 1.5], "b": {"c": None}})) == {"a": [None, None, 1.5], "b": {"c": None}}
    assert command.strict_json({"é": "λ"}).isascii()


def test_help_and_version():
    runner = CliRunner()
    for name in ([], ["chain"], ["classify"], ["basins"], ["flow"], ["separatrix"], ["critical"], ["figures"]):
        shown = runner.invoke(cli.cli, [*name, "--help"])
        assert shown.exit_code == 0 and "Usage" in shown.output and shown.output.isascii()
    assert landscape.__version__ in runner.invoke(cli.cli, ["--version"]).output


def test_everything_works_in_a_terminal_that_knows_ascii_alone(run_python, tmp_path):
    folder = tmp_path / "sp ace é"
    folder.mkdir()
    surroundings = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    assert run_python("-m", "landscape", "--help", **surroundings).stdout.isascii()
    done = run_python("-m", "landscape", "separatrix", "--p", ".5", "--q", ".8", "--out", folder / "ä.csv", **surroundings)
    assert (folder / "ä.csv").exists() and done.stderr == ""
    done = run_python("-m", "landscape", "basins", "--p", ".5", "--q", ".8", "--out", folder / "m.nc", "--json", **surroundings)
    assert strict(done.stdout)["files"] == [str(folder / "m.nc")]


# --- flows and landscapes of one's own -------------------------------------------------------------------

CHAIN = ("--p", ".5", "--q", ".8")


@pytest.fixture
def own(tmp_path):
    """A file with a loss of two parameters."""
    path = tmp_path / "own.toml"
    path.write_text('name = "wells"\nparameters = ["x", "y"]\nloss = "(x^2 - 1)^2/4 + x/20 + abs(y)/2 + y^2/2"\n', encoding="utf-8")
    return path


def test_flow_of_one_start_and_of_many(call, tmp_path):
    code, out, err = call("flow", *CHAIN, "--at", "1,-1", "--json")
    data = strict(out)
    assert code == 0 and err == ""
    assert set(data) == {"start", "end", "label", "outcome", "t", "kappa", "loss", "invariant_drift", "steps", "files"}
    assert data["label"] == "global" and data["outcome"] == "converged" and data["start"] == [1, -1]
    assert data["kappa"] == pytest.approx(-math.log(4)) and data["invariant_drift"] < 1e-6
    code, out, _ = call("flow", *CHAIN, "--at", "1,-1", "--at", "0,0.5", "--t-max", "2", "--json", "--out", tmp_path / "way.csv")
    flows = strict(out)["flows"]
    assert [(row["label"], row["outcome"]) for row in flows] == [("undecided", "time_limit"), ("local", "converged")]
    assert flows[1]["steps"] == 0 and flows[1]["invariant_drift"] is None
    rows = list(csv.DictReader((tmp_path / "way.csv").open()))
    assert list(rows[0]) == ["start", "t", "e", "w", "loss"] and {row["start"] for row in rows} == {"0", "1"}
    last = [row for row in rows if row["start"] == "0"][-1]
    assert float(last["t"]) == 2.0 and float(last["e"]) == flows[0]["end"][0]
    assert "global, converged" in call("flow", *CHAIN, "--at", "1,-1")[1]


def test_flow_writes_what_it_is_asked_to(call, tmp_path, own):
    import xarray

    code, out, _ = call(
        "flow", "--architecture", own, "--at", ".5,1", "--at", "-.1,1", "--out", tmp_path / "way.nc", "--plot", tmp_path / "way.svg", "--json"
    )
    assert code == 0 and [row["label"] for row in strict(out)["flows"]] == ["local", "global"]
    with xarray.open_dataset(tmp_path / "way.nc", engine="h5netcdf") as made:
        assert list(made.data_vars) == ["start", "t", "x", "y", "loss"] and made.attrs["landscape"] == "wells"
    assert (tmp_path / "way.svg").read_text(encoding="utf-8").startswith("<?xml")
    one = tmp_path / "one.toml"
    one.write_text('parameters = ["x"]\nloss = "x^4/4 - x^2/2"\n', encoding="utf-8")
    assert call("flow", "--architecture", one, "--at", ".5", "--plot", tmp_path / "one.png")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "one.toml", "own.toml", "way.nc", "way.svg"]


def test_every_command_takes_a_landscape_of_ones_own(call, tmp_path, own):
    code, out, _ = call("critical", "--architecture", own, "--json")
    sets = strict(out)["sets"]
    assert code == 0 and [found["kind"] for found in sets] == ["global minima", "local minima", "saddles"]
    assert set(sets[0]) >= {"name", "kind", "dimension", "index", "nullity", "loss", "equations", "representative", "tangent"}
    found = strict(call("classify", "--architecture", own, "--at", ".5,1", "--at", "0,0", "--json")[1])["points"]
    assert [point["label"] for point in found] == ["local", "global"] and found[0]["kappa"] is None and found[0]["margin"] is None
    code, out, _ = call("basins", "--architecture", own, "--grid", "x", "-2", "2", "20", "--fix", "y=.5", "--json")
    assert strict(out)["shape"] == [20] and strict(out)["counts"]["undecided"] == 0
    code, out, _ = call("basins", "--architecture", own, "--grid", "x", "-2", "2", "24", "--grid", "y", "-2", "2", "24", "--json",
                        "--plot", tmp_path / "m.png", "--out", tmp_path / "m.nc")
    assert code == 0 and strict(out)["counts"]["local"] > 0 and (tmp_path / "m.png").stat().st_size > 10_000


def test_basins_by_flow_compare_with_exact_ones(call, tmp_path):
    code, out, err = call("basins", *CHAIN, "--method", "flow", "--e", "-2", "2", "31", "--w", "-2", "2", "31", "--coarse", "4",
                          "--compare", "--plot", tmp_path / "m.pdf", "--json")
    data = strict(out)
    assert code == 0 and err == "" and data["agreement"] == 1.0 and data["counts"]["undecided"] == 0
    assert data["confusion"]["global"] == {"global": data["counts"]["global"]}
    points = strict(call("classify", *CHAIN, "--method", "flow", "--at", "1e-160,-1", "--json")[1])["points"]
    assert points[0]["label"] == "global"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("flow", *CHAIN), "--at"),
        (("flow", "--q", ".5", "--at", "1,1"), "--p"),
        (("flow", *CHAIN, "--at", "1,1", "--rtol", "1"), "--rtol"),
        (("flow", *CHAIN, "--at", "1,1", "--rtol", "nan"), "--rtol"),
        (("flow", *CHAIN, "--at", "1,1", "--t-max", "-1"), "--t-max"),
        (("flow", *CHAIN, "--at", "1,1", "--out", "way.txt"), "--out"),
        (("flow", *CHAIN, "--at", "1,1", "--plot", "way.gif"), "--plot"),
        (("flow", *CHAIN, "--at", "1,1,1"), "--at"),
        (("flow", *CHAIN, "--at", "1,1", "--architecture", "absent.toml"), "--architecture"),
        (("basins", *CHAIN, "--a", "0", "1", "3"), "--a"),
        (("basins", *CHAIN, "--grid", "v", "0", "1", "3"), "--grid"),
        (("basins", *CHAIN, "--grid", "e", "0", "1", "3", "--e", "0", "1", "3"), "--grid"),
        (("basins", *CHAIN, "--fix", "e"), "--fix"),
        (("basins", *CHAIN, "--fix", "e=nan"), "--fix"),
        (("basins", *CHAIN, "--fix", "e=1", "--fix", "e=2"), "--fix"),
        (("basins", *CHAIN, "--fix", "v=1"), "--fix"),
        (("basins", *CHAIN, "--fix", "e=1", "--e", "0", "1", "3"), "--fix"),
        (("basins", *CHAIN, "--fix", "e=1", "--plot", "m.png"), "--plot"),
        (("basins", *CHAIN, "--method", "flow", "--coarse", "0"), "--coarse"),
        (("basins", *CHAIN, "--method", "magic"), "--method"),
    ],
)
def test_bad_values_for_flows_take_one_line_and_write_nothing(call, tmp_path, monkeypatch, arguments, option):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "") and err.count("\n") == 1 and option in err and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("parameters = [", "TOML"), ('parameters = ["x"]\nloss = "x^2 +"\n', "own.toml"),
        ('parameters = ["x"]\nloss = "__import__(\'os\').system(\'touch hacked\')"\n', "own.toml"),
        ('parameters = ["x"]\nloss = "9^9^9^9"\n', "own.toml"), ('parameters = ["x"]\nloss = "x + v"\n', "v"),
    ],
)
def test_files_that_cannot_be_used_take_one_line(call, tmp_path, monkeypatch, text, wrong):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    code, out, err = call("flow", "--architecture", "own.toml", "--at", "1")
    assert (code, out) == (2, "") and err.count("\n") == 1 and wrong in err and "--architecture" in err
    assert [path.name for path in tmp_path.iterdir()] == ["own.toml"]


def test_a_chain_beside_a_landscape_that_needs_none_is_refused(call, own):
    code, _, err = call("flow", "--architecture", own, *CHAIN, "--at", "1,1")
    assert code == 2 and "--p" in err and "needs no chain" in err
    code, _, err = call("separatrix", "--architecture", own, "--out", "s.csv")
    assert code == 2 and "--architecture" in err
    code, _, err = call("classify", "--architecture", own, "--at", "1,1", "--method", "exact")
    assert code == 2 and "--method" in err and "'flow'" in err


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="signals of POSIX")
def test_an_interruption_leaves_no_half_file(tmp_path):
    command = [sys.executable, "-m", "landscape", "basins", *CHAIN, "--method", "flow", "--e", "-2", "2", "1500", "--w", "-2", "2", "1500"]
    process = subprocess.Popen([*command, "--out", str(tmp_path / "m.nc")], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    time.sleep(8)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err.strip() == "Error: Interrupted."
    assert list(tmp_path.iterdir()) == []
