"""What several test modules share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def chapters():
    """Every chapter, derived once."""
    from landscape.derive import derive_all

    return derive_all()


@pytest.fixture
def run_python():
    """Run Python code or a module in a new process; returns the completed process."""

    def run(*arguments, cwd=ROOT, check=True, drop=(), **environment):
        variables = {key: value for key, value in os.environ.items() if key not in drop}
        variables.update({key: str(value) for key, value in environment.items()})
        done = subprocess.run(
            [sys.executable, *map(str, arguments)], cwd=cwd, env=variables, capture_output=True, text=True, timeout=600
        )
        if check and done.returncode:
            raise AssertionError(done.stderr)
        return done

    return run
