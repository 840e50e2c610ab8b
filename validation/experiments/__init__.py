"""The experiments, one file each. A module here with an `EXPERIMENT` is found by its name."""

from __future__ import annotations

import importlib
import pkgutil


def names() -> list[str]:
    """Names of the experiments, in alphabetical order."""
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in modules if hasattr(importlib.import_module(f"{__name__}.{name}"), "EXPERIMENT"))


def find(name: str):
    """The experiment of a given name; `KeyError` if there is none."""
    if name not in names():
        raise KeyError(name)
    return importlib.import_module(f"{__name__}.{name}").EXPERIMENT
