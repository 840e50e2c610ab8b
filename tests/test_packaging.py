"""The wheel: complete, and at work outside the checkout, in a folder with a space and an accent."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A wheel built from the tracked tree and unpacked into a folder of its own; returns that folder."""
    folder = tmp_path_factory.mktemp("wheel") / "sp ace é"
    source = folder / "source"
    skipped = shutil.ignore_patterns(".git", ".venv", "results", "build", "dist", "*.egg-info", "__pycache__", ".pytest_cache")
    shutil.copytree(ROOT, source, ignore=skipped)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("markov_landscape-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    shutil.rmtree(source)
    return folder


def test_the_wheel_holds_every_module_and_nothing_else(installed):
    expected = {str(path.relative_to(ROOT)) for path in (ROOT / "landscape").rglob("*.py")}
    site = installed / "site"
    assert {str(path.relative_to(site)) for path in site.rglob("*.py")} == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ("chain", "--p", ".5", "--q", ".8"),
        ("critical", "--p", ".5", "--q", ".8"),
        ("classify", "--p", ".5", "--q", ".8", "--at", "1,-1"),
        ("basins", "--p", ".5", "--q", ".8", "--out", "map é.nc", "--plot", "map.png"),
        ("basins", "--p", ".5", "--q", ".8", "--method", "flow", "--e", "-2", "2", "12", "--w", "-2", "2", "12", "--plot", "flow.png"),
        ("flow", "--p", ".5", "--q", ".8", "--at", "1,-1", "--out", "wéy.csv", "--plot", "way.png"),
        ("critical", "--architecture", "own é.toml"),
        ("separatrix", "--states", "5", "--p", ".9", "--out", "curve.csv"),
        ("figures", "five_states", "--out", "drawn"),
    ],
)
def test_every_command_works_from_the_wheel(run_python, installed, arguments):
    work = installed / "work"
    work.mkdir(exist_ok=True)
    (work / "own é.toml").write_text('name = "own é"\nparameters = ["x"]\nloss = "(x^2 - 1)^2"\n', encoding="utf-8")
    done = run_python("-m", "landscape", *arguments, cwd=work, PYTHONPATH=installed / "site")
    assert done.stdout and done.stderr == ""
    where = run_python("-c", "import landscape; print(landscape.__file__)", cwd=work, PYTHONPATH=installed / "site").stdout
    assert where.startswith(str(installed / "site"))
    for name in arguments:
        if name.endswith((".nc", ".png", ".csv", "drawn")):
            assert (work / name).exists()


def test_derive_outside_a_checkout_asks_where_to_write(run_python, installed):
    refused = run_python("-m", "landscape.derive", cwd=installed, check=False, PYTHONPATH=installed / "site")
    assert refused.returncode == 2 and "--out" in refused.stderr and refused.stderr.count("\n") == 1


def test_lower_bounds_are_the_tested_versions():
    pins = dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    pins = {name.lower(): version for name, version in pins.items()}
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    required = settings["options"]["install_requires"] + "".join(
        text for name, text in settings["options.extras_require"].items() if name != "all"
    )
    bounds = re.findall(r"^([A-Za-z0-9_.-]+)>=(\S+)$", required, re.MULTILINE)
    assert len(bounds) >= 14
    assert all(pins[name.lower()] == version for name, version in bounds)
    assert pins["torch"] == "2.13.0"


def test_the_version_is_said_once():
    import landscape

    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    assert settings["metadata"]["version"] == landscape.__version__


def test_the_core_works_without_torch_and_sympy(run_python, tmp_path):
    for name in ("torch", "sympy"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not installed')")
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    code = "import landscape as l; print(l.limit(l.BinaryChain(.5, .8), [(1, -1)])[0])"
    assert run_python("-c", code, cwd=tmp_path, **environment).stdout.strip() == "1"
