"""Options that several commands share, and the landscape, grid and starts that they describe."""

from __future__ import annotations

import csv
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import numpy as np

from landscape.command import AXIS, COUNT, NUMBER, START, is_plain_decimal
from landscape.parameters import ParameterError


def _with(command, *options):
    for option in reversed(options):
        command = option(command)
    return command


def chain_options(command):
    """--p --q, or --states --p."""
    return _with(
        command,
        click.option("--p", type=NUMBER, help="Probability of switching 0 -> 1, or of leaving a symbol."),
        click.option("--q", type=NUMBER, help="Probability of switching 1 -> 0."),
        click.option("--states", type=COUNT, help="Number of symbols of the symmetric chain, instead of --q."),
    )


def json_option(command):
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")(command)


def landscape_options(command):
    """The chain, --architecture and --speed."""
    return chain_options(_with(
        command,
        click.option(
            "--architecture", default="canonical", show_default=True, metavar="NAME|FILE.toml",
            help="canonical, reduced, transverse or untied, or a file that defines a loss, a gap or logits.",
        ),
        click.option(
            "--speed", "speeds", type=str, multiple=True,
            help="NAME=FACTOR: let the flow move a parameter so many times as fast; repeatable.",
        ),
    ))


def method_option(command):
    """--method."""
    return click.option(
        "--method", type=click.Choice(["exact", "flow"]), help="How limits are found; exact where there is an exact rule."
    )(command)


def start_options(command):
    """--at, --points and --fix."""
    return _with(
        command,
        click.option(
            "--at", type=START, multiple=True,
            help="A start, its coordinates separated by commas; repeatable. For `reduced` and `transverse` e,w will do: the canonical slice.",
        ),
        click.option(
            "--points", "points_file", type=click.Path(exists=True, dir_okay=False), help="CSV with a header of parameter names."
        ),
        click.option("--fix", type=str, multiple=True, help="NAME=VALUE of a coordinate of all starts; repeatable."),
    )


def flow_options(command):
    """--t-max, --rtol, --tolerance and --max-steps."""
    return _with(
        command,
        click.option("--t-max", type=NUMBER, help="Flow time at which to stop; without it, flows run until they converge."),
        click.option("--rtol", type=NUMBER, default=1e-8, show_default=True, help="Relative error allowed in a step."),
        click.option("--tolerance", type=NUMBER, default=1e-9, show_default=True, help="Distance to a critical set at which a flow has arrived."),
        click.option("--max-steps", type=COUNT, default=100_000, show_default=True),
    )


def grid_options(command):
    """--e, --w, --a, --grid and --fix."""
    return _with(
        command,
        *(click.option(f"--{name}", f"{name}_axis", type=AXIS, help="LOW HIGH N") for name in ("e", "w", "a")),
        click.option("--grid", type=(str, *AXIS), multiple=True, help="NAME LOW HIGH N, for any parameter; repeatable."),
        click.option("--fix", type=str, multiple=True, help="NAME=VALUE of a coordinate that is not gridded; repeatable."),
    )


def make_chain(p, q, states):
    """The chain that the options describe."""
    from landscape.chains import BinaryChain, SymmetricChain

    if p is None:
        raise click.UsageError("Missing option '--p'.")
    if states is not None:
        if q is not None:
            raise click.UsageError(f"Invalid value for '--q': {q} cannot be combined with '--states'.")
        return SymmetricChain(states, p)
    if q is None:
        raise click.UsageError("Missing option '--q' (or '--states').")
    return BinaryChain(p, q)


def make_landscape(p, q, states, architecture, speeds=()):
    """The landscape that the options describe: an architecture on a chain, or what a file defines."""
    found = _plain_landscape(p, q, states, architecture)
    return found.with_speeds(named_values("speed", speeds, found.parameters)) if speeds else found


def named_values(option, texts, names) -> dict[str, float]:
    """The values of a repeatable option NAME=VALUE, each NAME one of `names` and given once."""
    found = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not is_plain_decimal(value) or name in found:
            raise click.UsageError(f"Invalid value for '--{option}': {text!r} is not NAME=VALUE of a coordinate not yet given.")
        if name not in names:
            raise click.UsageError(f"Invalid value for '--{option}': {name!r} is not one of {', '.join(names)}.")
        if option == "speed" and not float(value) > 0.0:
            raise click.UsageError(f"Invalid value for '--speed': {text!r} is not positive.")
        found[name] = float(value)
    return found


def _plain_landscape(p, q, states, architecture):
    from landscape import architectures

    if not architecture.endswith(".toml"):
        if architecture not in architectures.names():
            known = ", ".join(architectures.names())
            raise click.UsageError(f"Invalid value for '--architecture': {architecture!r} is not one of {known}, nor a .toml file.")
        return architectures.find(architecture).on(make_chain(p, q, states))
    from landscape.definitions import read_definition

    if not Path(architecture).is_file():
        raise click.UsageError(f"Invalid value for '--architecture': there is no file {architecture!r}.")
    found = read_definition(architecture)
    if found.loss is not None or found.chain is not None:
        for name, value in (("p", p), ("q", q), ("states", states)):
            if value is not None:
                raise click.UsageError(f"Invalid value for '--{name}': {architecture} needs no chain.")
        return found.loss or found.architecture.on(found.chain)
    return found.architecture.on(make_chain(p, q, states))


def make_starts(landscape, at, points_file, fix=()) -> list[tuple[float, ...]]:
    """The starts of --at and --points, with the values of --fix."""
    fixed = named_values("fix", fix, landscape.coordinates)
    forms = {len(names): names for names in (landscape.needed(()), landscape.parameters)}
    starts = []
    for start in at:
        if len(start) not in forms:
            wanted = " or ".join(dict.fromkeys(",".join(forms[count]) for count in forms))
            raise click.UsageError(f"Invalid value for '--at': {','.join(f'{v:g}' for v in start)!r} is not {wanted}.")
        starts.append(dict(zip(forms[len(start)], start)))
    starts += read_points(points_file, landscape) if points_file else []
    if not starts:
        raise click.UsageError("Missing option '--at' (or '--points').")
    return [tuple(landscape.place({name: np.array([value]) for name, value in (start | fixed).items()})[0].tolist()) for start in starts]


def read_points(path, landscape) -> list[dict[str, float]]:
    """Starts from a CSV file whose header names the coordinates, in any order."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        given = [name for name in landscape.coordinates if name in (rows.fieldnames or [])]
        names = [*landscape.needed(given), *(name for name in given if name not in landscape.needed(given))]
        missing = [name for name in names if name not in given]
        if missing:
            raise click.UsageError(f"Invalid value for '--points': {path} has no column {missing[0]!r}.")
        found = []
        for row in rows:
            values = [(row[name] or "").strip() for name in names]
            for value in values:
                if not is_plain_decimal(value):
                    raise click.UsageError(
                        f"Invalid value for '--points': line {rows.line_num} of {path} has {value!r}, not a finite decimal number."
                    )
            found.append(dict(zip(names, map(float, values))))
    return found


def make_grid(landscape, axes, grid, fix) -> tuple[dict, dict]:
    """Axes by name, and fixed values by name."""
    found = {name: axis for name, axis in axes.items() if axis is not None}
    for name, *axis in grid:
        if name in found:
            raise click.UsageError(f"Invalid value for '--grid': {name!r} is given twice.")
        found[name] = tuple(axis)
    fixed = named_values("fix", fix, landscape.coordinates)
    for name in found:
        if name not in landscape.coordinates:
            known = ", ".join(landscape.coordinates)
            raise click.UsageError(f"Invalid value for '--{'grid' if axes.get(name) is None else name}': {name!r} is not one of {known}.")
    for name, axis in found.items():
        if axes.get(name) is None and not (axis[0] < axis[1] and axis[2] >= 2):
            raise click.UsageError(f"Invalid value for '--grid': {name} needs LOW < HIGH and N of at least 2.")
    needed = landscape.needed((*found, *fixed))
    if not found and all(name in fixed for name in needed):
        raise click.UsageError("Invalid value for '--fix': at least one coordinate has to be gridded.")
    both = [name for name in found if name in fixed]
    free = [name for name in needed if name not in found and name not in fixed]
    if both or (free and len(found) + len(free) > 2):
        raise click.UsageError(
            f"Invalid value for '--fix': {(both or free)[0]!r} has to be either gridded (--grid) or fixed (--fix NAME=VALUE)."
        )
    return found, fixed


def read_state(path: str) -> dict:
    """The state dict of a checkpoint."""
    try:
        from landscape.checkpoints import read_checkpoint

        return read_checkpoint(path)
    except ParameterError as error:
        raise click.UsageError(f"Invalid value for 'CHECKPOINT': {path!r} is not {error.requirement}.") from None
    except ImportError as error:
        raise click.UsageError(f"Invalid value for 'CHECKPOINT': {path!r} cannot be read here ({error}).") from None


def check_suffix(option: str, path: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse a file name whose suffix does not name a format that can be written."""
    if path and Path(path).suffix.lower() not in allowed:
        raise click.UsageError(f"Invalid value for '--{option}': {path!r} must end in {' or '.join(allowed)}.")


def scheduler_option(command):
    """--scheduler."""
    return click.option(
        "--scheduler", "address", metavar="ADDRESS", help="Work on the workers of a Dask scheduler, such as tcp://host:8786."
    )(command)


@contextmanager
def workers(address: str | None):
    """The executor of --scheduler; None without it."""
    from landscape.executors import scheduler

    with ExitStack() as stack:
        try:
            executor = stack.enter_context(scheduler(address)) if address else None
        except ImportError:
            raise click.UsageError("Invalid value for '--scheduler': needs dask, which the extra 'scale' installs.") from None
        except (OSError, ValueError) as error:
            raise click.UsageError(f"Invalid value for '--scheduler': nothing answers at {address!r}: {error}") from None
        yield executor


@contextmanager
def progress_bar(label: str):
    """A function to report progress to; it shows a bar on the error stream, if that is a terminal."""
    stream = sys.stderr
    if not stream.isatty():
        yield None
        return
    with click.progressbar(length=1000, label=label, file=stream) as bar:
        shown = 0

        def report(done, total):
            nonlocal shown
            share = 1000 * done // max(total, 1)
            bar.update(share - shown)
            shown = share

        yield report
