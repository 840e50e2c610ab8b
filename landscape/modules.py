"""Modules of kernels that are written for a user's landscape, kept in the user's cache.

A module is named by the digest of its text, and its text is compared before it is used: what is run is what was
just derived, and compiled code is found again next time.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from landscape.files import write_text


@functools.cache
def _folder() -> Path:
    """Where the modules lie: beside the compiled kernels, or in a folder that ends with this process."""
    from landscape.kernels.compile import cache_folder

    home = cache_folder()
    if home is not None:
        return home / "models"
    return Path(_temporary().name)


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="landscape-models-")


@functools.lru_cache(maxsize=256)
def load(name: str, text: str) -> ModuleType:
    """The module of a given text.

    Parameters
    ----------
    name : str
        What the landscape is called; it becomes part of the name of the file.
    """
    stem = f"{re.sub('[^a-z0-9]+', '_', name.lower())[:40]}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    path = _folder() / f"{stem}.py"
    if not path.is_file() or path.read_bytes() != text.encode():
        write_text(path, text)
    spec = importlib.util.spec_from_file_location(f"landscape_models.{stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
