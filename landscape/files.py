"""Files are written whole or not at all: under a temporary name beside the target, then renamed."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Give a temporary path beside `path`, with its suffix; rename it to `path` on success, else remove it."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.stem}-{uuid.uuid4().hex[:8]}{target.suffix}")
    try:
        yield temporary
        if temporary.is_dir() and target.is_dir():
            shutil.rmtree(target)  # a folder cannot be replaced in one step
        os.replace(temporary, target)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a text file in UTF-8 with newlines as they are."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())
