"""Options that several commands share, and the landscape, grid and starts that they describe."""

from __future__ import annotations

import csv
import sys
from contextlib import contextmanager
from pathlib import Path

import click

from landscape.command import AXIS, COUNT, NUMBER, START, is_plain_decimal


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
    """The chain, and --architecture."""
    return chain_options(click.option(
        "--architecture", default="canonical", show_default=True, metavar="NAME|FILE.toml",
        help="A built-in architecture, or a file that defines a loss, a gap or logits.",
    )(command))


def method_option(command):
    """--method."""
    return click.option(
        "--method", type=click.Choice(["exact", "flow"]), help="How limits are found; exact where there is an exact rule."
    )(command)


def start_options(command):
    """--at and --points."""
    return _with(
        command,
        click.option("--at", type=START, multiple=True, help="A start, its coordinates separated by commas; repeatable."),
        click.option(
            "--points", "points_file", type=click.Path(exists=True, dir_okay=False), help="CSV with a header of parameter names."
        ),
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


def make_landscape(p, q, states, architecture):
    """The landscape that the options describe: an architecture on a chain, or what a file defines."""
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


def make_starts(landscape, at, points_file) -> list[tuple[float, ...]]:
    """The starts of --at and --points."""
    names = landscape.parameters
    for start in at:
        if len(start) != len(names):
            raise click.UsageError(f"Invalid value for '--at': {','.join(f'{v:g}' for v in start)!r} is not {','.join(names)}.")
    starts = list(at) + (read_points(points_file, names) if points_file else [])
    if not starts:
        raise click.UsageError("Missing option '--at' (or '--points').")
    return starts


def read_points(path, names) -> list[tuple[float, ...]]:
    """Starts from a CSV file whose header names the parameters, in any order."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        missing = [name for name in names if name not in (rows.fieldnames or [])]
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
            found.append(tuple(float(value) for value in values))
    return found


def make_grid(landscape, axes, grid, fix) -> tuple[dict, dict]:
    """Axes by name, and fixed values by name."""
    found = {name: axis for name, axis in axes.items() if axis is not None}
    for name, *axis in grid:
        if name in found:
            raise click.UsageError(f"Invalid value for '--grid': {name!r} is given twice.")
        found[name] = tuple(axis)
    fixed = {}
    for text in fix:
        name, sign, value = text.partition("=")
        if not sign or not is_plain_decimal(value.strip()) or name.strip() in fixed:
            raise click.UsageError(f"Invalid value for '--fix': {text!r} is not NAME=VALUE of a coordinate not yet fixed.")
        fixed[name.strip()] = float(value)
    for option, names in (("grid", found), ("fix", fixed)):
        for name in names:
            if name not in landscape.parameters:
                where = option if option == "fix" or axes.get(name) is None else name
                known = ", ".join(landscape.parameters)
                raise click.UsageError(f"Invalid value for '--{where}': {name!r} is not one of the parameters {known}.")
    for name, axis in found.items():
        if axes.get(name) is None and not (axis[0] < axis[1] and axis[2] >= 2):
            raise click.UsageError(f"Invalid value for '--grid': {name} needs LOW < HIGH and N of at least 2.")
    if len(fixed) == len(landscape.parameters):
        raise click.UsageError("Invalid value for '--fix': at least one coordinate has to be gridded.")
    both = [name for name in found if name in fixed]
    free = [name for name in landscape.parameters if name not in found and name not in fixed]
    if both or (free and len(found) + len(free) > 2):
        raise click.UsageError(
            f"Invalid value for '--fix': {(both or free)[0]!r} has to be either gridded (--grid) or fixed (--fix NAME=VALUE)."
        )
    return found, fixed


def check_suffix(option: str, path: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse a file name whose suffix does not name a format that can be written."""
    if path and Path(path).suffix.lower() not in allowed:
        raise click.UsageError(f"Invalid value for '--{option}': {path!r} must end in {' or '.join(allowed)}.")


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
