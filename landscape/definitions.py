"""A landscape of one's own from a small TOML file. Expressions are parsed, never executed.

    name = "skewed wells"
    parameters = ["x", "y"]
    loss = "(x^2 - 1)^2/4 + x/10 + y^2/2"     # or gap = "...", or logits = [["...", "..."], ["...", "..."]]
    minimum = -0.1                            # optional, the least value of a loss

    [box]                                     # optional, where critical sets are looked for
    x = [-2, 2]

    [chain]                                   # optional, for a gap: a chain by its loss as a function of the gap
    name = "lazy"
    gap = "kappa"
    phi = "log(1 + exp(kappa)) - (1 - r)*kappa"
    values = {r = 0.2}
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from landscape.architectures import Architecture
from landscape.chains import Chain
from landscape.landscapes import PlainLoss
from landscape.parameters import ParameterError

KEYS = {"name": str, "parameters": list, "loss": str, "gap": str, "logits": list, "minimum": (int, float), "box": dict, "chain": dict}
CHAIN_KEYS = {"name": str, "phi": str, "gap": str, "values": dict}


@dataclass(frozen=True)
class Definition:
    """What a file defines: a plain loss, or an architecture and perhaps a chain."""

    loss: PlainLoss | None
    architecture: Architecture | None
    chain: Chain | None


def read_definition(path: str) -> Definition:
    """Read a landscape from a TOML file.

    Raises
    ------
    ParameterError
        Naming what in the file cannot be used.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as file:
        try:
            return _defined(tomllib.load(file), path)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ParameterError("architecture", path, f"a TOML file; {path} is not ({error})", path) from None
        except ParameterError as error:
            raise ParameterError("architecture", path, f"a file that can be used; in {path}, {error.parameter!r} has to be {error.requirement}", error.value) from None


def _defined(data: dict, path: str) -> Definition:
    _check(data, KEYS, path)
    name, names = data.get("name", "landscape"), data.get("parameters")
    given = [key for key in ("loss", "gap", "logits") if key in data]
    if names is None or len(given) != 1:
        raise ParameterError("the file", path, "one with 'parameters' and one of 'loss', 'gap' and 'logits'", sorted(data))
    box = {key: tuple(bounds) if isinstance(bounds, list) and len(bounds) == 2 else () for key, bounds in data.get("box", {}).items()}
    for key, bounds in box.items():
        if not bounds:
            raise ParameterError("box", path, "pairs [low, high]", key)
    if given == ["loss"]:
        return Definition(PlainLoss.from_symbolic(name, data["loss"], names, box=box, minimum=data.get("minimum")), None, None)
    model = Architecture.from_symbolic(name, names, gap=data.get("gap"), logits=_table(path, data.get("logits")), box=box)
    chain = data.get("chain")
    if chain is not None:
        _check(chain, CHAIN_KEYS, path)
        if "phi" not in chain:
            raise ParameterError("chain", path, "a table with 'phi'", sorted(chain))
        chain = Chain.from_symbolic(chain.get("name", "chain"), chain["phi"], chain.get("gap", "kappa"), chain.get("values"))
    return Definition(None, model, chain)


def _check(data: dict, keys: dict, path: str) -> None:
    for key, value in data.items():
        if key not in keys:
            raise ParameterError(key, path, f"one of the keys {', '.join(keys)}", key)
        if not isinstance(value, keys[key]) or isinstance(value, bool):
            raise ParameterError(key, path, "of the right type", value)


def _table(path: str, rows):
    if rows is not None and not all(isinstance(row, list) and all(isinstance(entry, str) for entry in row) for row in rows):
        raise ParameterError("logits", path, "rows of expressions in quotes", rows)
    return rows
