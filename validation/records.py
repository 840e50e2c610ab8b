"""Records of runs: strict JSON, named by their settings, written whole, and trusted only if undamaged."""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from pathlib import Path

import numpy as np
import torch

import landscape
from landscape.files import write_text

PREFIX = "run-"  # of the files of runs


class DamagedRecordWarning(UserWarning):
    """A record could not be read back; its run is done again."""


def canonical_json(data) -> str:
    """Strict JSON with sorted keys; the same data give the same text."""
    return json.dumps(data, sort_keys=True, allow_nan=False)


def digest(data) -> str:
    """Digest of plain data."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def versions() -> dict[str, str]:
    """What the numbers were computed with."""
    return {
        "landscape": landscape.__version__, "numpy": np.__version__, "torch": torch.__version__,
        "python": platform.python_version(),
    }


def path_of(folder: Path, settings: dict) -> Path:
    """The file of a run: no two settings share one."""
    return Path(folder) / f"{PREFIX}{digest(settings)[:20]}.json"


def save(folder: Path, settings: dict, result: dict) -> Path:
    """Write the record of a run.

    Raises
    ------
    ValueError
        If a number in it is not finite: JSON has no such numbers.
    """
    record = {"settings": settings, "versions": versions(), "result": result, "digest": digest(result)}
    path = path_of(folder, settings)
    write_text(path, json.dumps(record, indent=1, allow_nan=False) + "\n")
    return path


def load(folder: Path, settings: dict) -> dict | None:
    """The result of a run that is on record; None if there is none or the file is damaged (which is said)."""
    path = path_of(folder, settings)
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["settings"] == settings and record["digest"] == digest(record["result"]):
            return record["result"]
        reason = "its content does not match its digest"
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = str(error)
    warnings.warn(f"The record {path} is damaged ({reason}); its run is done again.", DamagedRecordWarning, stacklevel=2)
    return None
