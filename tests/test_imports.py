"""Who may import what, and that importing the package costs nothing."""

import ast

import pytest
from conftest import ROOT


TORCH = ("pytorch.py", "checkpoints.py")  # imported by a user, or where a checkpoint is read


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_importing_the_package_loads_nothing_heavy(run_python):
    code = (
        "import sys, landscape; landscape.BinaryChain; "
        "print([m for m in ('sympy', 'torch', 'numba', 'xarray', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    assert run_python("-c", code).stdout.strip() == "[]"


def test_the_example_of_the_package_is_true():
    import doctest

    import landscape

    assert doctest.testmod(landscape) == doctest.TestResults(failed=0, attempted=4)


def test_every_public_name_exists():
    import landscape

    assert all(getattr(landscape, name) is not None for name in landscape.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        landscape.nothing


@pytest.mark.parametrize("path", sorted((ROOT / "landscape").rglob("*.py")), ids=lambda path: path.name)
def test_only_the_symbolic_side_imports_sympy_and_two_modules_torch(path):
    relative = path.relative_to(ROOT / "landscape")
    symbolic = relative.parts[0] == "symbolic" or relative.name in ("derive.py", "codegen.py")
    roots = {module.split(".")[0] for module in imported_modules(path)}
    assert "validation" not in roots and ("torch" in roots) == (relative.as_posix() in TORCH)
    assert symbolic or "sympy" not in roots
    if relative.parts[0] == "kernels":
        outside = [m for m in imported_modules(path) if m.startswith("landscape") and not m.startswith("landscape.kernels")]
        assert outside == []


def test_the_modules_that_import_torch_are_imported_inside_functions_alone():
    """And that once: where a checkpoint is read."""
    for path in sorted((ROOT / "landscape").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        asked = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in ("landscape.pytorch", "landscape.checkpoints")]
        assert not [node for node in tree.body if node in asked], path
        assert len(asked) == (path.name == "options.py"), path


def test_projecting_and_diagnosing_arrays_needs_no_torch(run_python):
    code = (
        "import sys, numpy as np, landscape as l; sys.modules['torch'] = None; "
        "state = {'embedding': np.full((1, 4), .5), 'positions': np.full((1, 2, 4), -.25), 'inner': np.full((1, 4, 4), .5), 'outer': np.full((1, 4, 4), -.5)}; "
        "print(l.project(state).canonical.tolist(), l.diagnose(state, l.BinaryChain(.5, .8), flow=False)[0].kappa)"
    )
    assert run_python("-c", code).stdout.strip() == "[[1.0, -1.0]] -1.0"


def test_plots_computes_nothing():
    modules = set(imported_modules(ROOT / "landscape" / "plots.py"))
    assert {m for m in modules if m.startswith("landscape")} <= {"landscape.files", "landscape.outcomes"}
