"""The cache of compiled kernels: never stale, never fatal. Each test runs a copy of the package in new processes."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

LABELS = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import landscape
    from landscape.kernels.compile import CacheWarning
    print(landscape.fractions(landscape.basin_map(landscape.BinaryChain(.5, .8), e=(-2, 2, 41), w=(-2, 2, 41)))["local"])
    print(len([warning for warning in caught if warning.category is CacheWarning]))
"""


@pytest.fixture
def copy(tmp_path):
    """A folder with a copy of the package, and a cache folder beside it."""
    shutil.copytree(ROOT / "landscape", tmp_path / "copy" / "landscape", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def share_and_warnings(run_python, copy, **environment):
    environment = {"NUMBA_CACHE_DIR": copy / "cache", "PYTHONPATH": copy / "copy"} | environment
    share, warned = run_python("-c", LABELS, cwd=copy, **environment).stdout.split()
    return float(share), int(warned)


def test_a_flipped_sign_of_the_same_size_and_time_changes_the_map(run_python, copy):
    right, warned = share_and_warnings(run_python, copy)
    assert warned == 0 and 0.54 < right < 0.57
    path = copy / "copy" / "landscape" / "kernels" / "canonical.py"
    before, text = path.stat(), path.read_text(encoding="utf-8")
    flipped = text.replace("return (-s + math.expm1(s))/c", "return (+s + math.expm1(s))/c")
    assert flipped != text
    path.write_text(flipped, encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size and path.stat().st_mtime_ns == before.st_mtime_ns
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)  # CPython's own cache goes by size and time
    wrong, _ = share_and_warnings(run_python, copy)
    assert abs(wrong - right) > 0.02
    path.write_text(text, encoding="utf-8")
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
    assert share_and_warnings(run_python, copy)[0] == right


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["emptied", "garbled"])
def test_damaged_files_cost_one_warning_and_are_mended(run_python, copy, kind, damage):
    right, _ = share_and_warnings(run_python, copy)
    files = list((copy / "cache").rglob(f"*.{kind}"))
    assert files
    for path in files:
        data = path.read_bytes()
        path.write_bytes(b"" if damage == "emptied" else data[: len(data) // 2] + b"\xff" * (len(data) - len(data) // 2))
    assert share_and_warnings(run_python, copy) == (right, 1)
    assert share_and_warnings(run_python, copy) == (right, 0)


def test_a_cache_folder_that_cannot_be_made_costs_one_warning(run_python, copy):
    (copy / "file").write_text("not a folder")
    right, warned = share_and_warnings(run_python, copy, NUMBA_CACHE_DIR=copy / "file" / "cache", TMPDIR=copy)
    assert warned == 1 and 0.54 < right < 0.57
    assert (copy / f"markov-landscape-{os.getuid()}").is_dir()  # it went to the temporary folder
    assert share_and_warnings(run_python, copy, NUMBA_CACHE_DIR=copy / "file" / "cache", TMPDIR=copy) == (right, 1)


def test_a_temporary_folder_that_others_can_write_to_is_not_used(run_python, copy):
    (copy / "file").write_text("not a folder")
    spare = copy / f"markov-landscape-{os.getuid()}"
    spare.mkdir()
    spare.chmod(0o777)
    share, warned = share_and_warnings(run_python, copy, NUMBA_CACHE_DIR=copy / "file" / "cache", TMPDIR=copy)
    assert warned == 1 and 0.54 < share < 0.57 and list(spare.iterdir()) == []


def runs_for_a_stranger(python):
    try:
        return subprocess.run([python, "-c", "pass"], user=65534, group=65534, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to become another user")
def test_a_stranger_without_home_display_or_write_access_gets_figures(copy):
    """Package folder read-only, HOME absent, no DISPLAY, no cache or backend chosen, another user."""
    for folder in (copy, *copy.parents[:2]):  # pytest's own folders are closed to others
        folder.chmod(0o755)
    out = copy / "out"
    out.mkdir()
    out.chmod(0o777)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(copy / "copy"), "PYTHONDONTWRITEBYTECODE": "1"}
    arguments = ["-m", "landscape", "basins", "--p", ".5", "--q", ".8", "--plot", str(out / "map.png"), "--out", str(out / "map.nc")]
    python = next(filter(runs_for_a_stranger, (os.path.realpath(sys.executable), f"/usr/bin/python3.{sys.version_info[1]}")), None)
    if python is None:
        pytest.skip("no interpreter of this version lies where another user can run it")
    site = next(path for path in sys.path if path.endswith("site-packages"))
    environment["PYTHONPATH"] += os.pathsep + site
    done = subprocess.run([python, *arguments], user=65534, group=65534, env=environment, cwd=out, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (out / "map.png").stat().st_size > 10_000 and (out / "map.nc").exists()


def test_eight_processes_at_once_on_an_empty_cache(copy):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(copy / "cache"), "PYTHONPATH": str(copy / "copy")}
    running = [
        subprocess.Popen([sys.executable, "-c", LABELS], env=environment, cwd=copy, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    outputs = {process.communicate(timeout=300)[0] for process in running}
    assert [process.returncode for process in running] == [0] * 8
    assert len(outputs) == 1 and outputs.pop().split()[1] == "0"


OWN = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import landscape
    own = landscape.PlainLoss.from_symbolic("own", "(x^2 - 1)^2 + abs(x)/10", ["x"], minimum=0.0)
    print(own.loss([[0.5]])[0], own.kernels.__file__)
    print(len(warned := [warning for warning in caught if issubclass(warning.category, UserWarning)]), *(w.message for w in warned))
"""


def test_landscapes_of_ones_own_work_where_nothing_can_be_kept(run_python, tmp_path):
    """A file where the cache folder should be: the generated module goes elsewhere, with one warning."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    environment = {"NUMBA_CACHE_DIR": blocked, "TMPDIR": tmp_path}
    first, second = run_python("-c", OWN, **environment).stdout.splitlines()
    loss, place = first.split(" ", 1)
    assert float(loss) == 0.75**2 + 0.05 and not place.startswith(str(blocked)) and second.startswith("1 The cache folder")
