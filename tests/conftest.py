"""What several test modules share."""

from __future__ import annotations

import json
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


def strict(text):
    """Read strict JSON: no NaN, no infinities."""
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def call(capsys):
    """Run the command line in this process; returns (exit code, stdout, stderr)."""

    from landscape import cli

    def run(*arguments):
        with pytest.raises(SystemExit) as exit_info:
            cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return exit_info.value.code, captured.out, captured.err

    return run
