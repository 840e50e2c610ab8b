"""The command line: what it prints, what it refuses, what it leaves behind."""

import csv
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import landscape
from landscape import cli, command


def strict(text):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def call(capsys):
    """Run the command line in this process; returns (exit code, stdout, stderr)."""

    def run(*arguments):
        with pytest.raises(SystemExit) as exit_info:
            cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return exit_info.value.code, captured.out, captured.err

    return run


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
    for name in ([], ["chain"], ["classify"], ["basins"], ["separatrix"], ["critical"], ["figures"]):
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
