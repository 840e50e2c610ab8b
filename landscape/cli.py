"""The command line: parses options, calls the library, prints text or one strict JSON object."""

from __future__ import annotations

import csv
import math
import time
from dataclasses import asdict
from pathlib import Path

import click

from landscape.command import AXIS, COUNT, NUMBER, START, is_plain_decimal, run_command, strict_json


def chain_options(command):
    """--p --q, or --states --p."""
    for option in (
        click.option("--states", type=COUNT, help="Number of symbols of the symmetric chain, instead of --q."),
        click.option("--q", type=NUMBER, help="Probability of switching 1 -> 0."),
        click.option("--p", type=NUMBER, required=True, help="Probability of switching 0 -> 1, or of leaving a symbol."),
    ):
        command = option(command)
    return command


def common_options(command):
    """--architecture, --method and --json."""
    from landscape import architectures

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."),
        click.option("--method", type=click.Choice(["exact"]), default="exact", help="How limits are found."),
        click.option("--architecture", type=click.Choice(architectures.names()), default="canonical", show_default=True),
    ):
        command = option(command)
    return command


def make_chain(p, q, states):
    """The chain that the options describe."""
    from landscape.chains import BinaryChain, SymmetricChain

    if states is not None:
        if q is not None:
            raise click.UsageError(f"Invalid value for '--q': {q} cannot be combined with '--states'.")
        return SymmetricChain(states, p)
    if q is None:
        raise click.UsageError("Missing option '--q' (or '--states').")
    return BinaryChain(p, q)


def describe(chain) -> str:
    """A chain in words."""
    return ", ".join(f"{name} = {value:g}" for name, value in vars(chain).items())


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.version_option(package_name="markov-landscape")
def cli():
    """Loss landscapes of one-layer transformers on Markov data."""


@cli.command()
@chain_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def chain(p, q, states, as_json):
    """Stationary law, unigram and bigram loss, optimal gap and regime of a chain."""
    found = make_chain(p, q, states)
    star = found.kappa_star
    data = {
        "stationary": found.stationary.tolist(),
        "unigram_loss": found.unigram_loss,
        "bigram_loss": found.bigram_loss,
        "kappa_star": star if star is not None and math.isfinite(star) else None,
        "regime": found.regime,
        "threshold": found.threshold,
        "notes": list(found.notes),
    }
    if as_json:
        click.echo(strict_json(data))
        return
    law = ", ".join(f"{value:.6f}" for value in data["stationary"])
    click.echo(f"chain          {describe(found)}")
    click.echo(f"stationary     {law}")
    click.echo(f"unigram loss   {data['unigram_loss']:.6f} nats")
    click.echo(f"bigram loss    {data['bigram_loss']:.6f} nats")
    click.echo("kappa*         " + (f"{star:.6f}" if star is not None else "undefined"))
    click.echo(f"regime         {found.regime} the threshold {found.threshold:g}")
    for note in found.notes:
        click.echo(f"note           {note}")


@cli.command()
@chain_options
@common_options
def critical(p, q, states, architecture, method, as_json):
    """Critical sets of the loss, with the bias minimised out."""
    from landscape.critical import critical_sets

    sets = [as_row(found) for found in critical_sets(make_chain(p, q, states), architecture)]
    if as_json:
        click.echo(strict_json({"sets": sets}))
        return
    for found in sets:
        index = "-" if found["index"] is None else found["index"]
        click.echo(
            f"{found['name']:<20} dimension {found['dimension']}  index {index}  nullity {found['nullity']}  "
            f"loss {found['loss']:.6f}  {found['equations']}"
        )


@cli.command()
@chain_options
@common_options
@click.option("--at", type=START, multiple=True, help="A start e,w; repeatable.")
@click.option("--points", "points_file", type=click.Path(exists=True, dir_okay=False), help="CSV with a header of parameter names.")
def classify(p, q, states, architecture, method, as_json, at, points_file):
    """Limit, loss, invariant, margin and distance to the basin boundary of given starts."""
    from landscape.architectures import find
    from landscape.critical import classify as classify_points

    model = find(architecture)
    starts = list(at)
    for start in at:
        if len(start) != len(model.parameters):
            wanted = ",".join(model.parameters)
            raise click.UsageError(f"Invalid value for '--at': {','.join(f'{v:g}' for v in start)!r} is not {wanted}.")
    if points_file:
        starts += read_points(points_file, model.parameters)
    if not starts:
        raise click.UsageError("Missing option '--at' (or '--points').")
    found = [asdict(result) for result in classify_points(make_chain(p, q, states), starts, model)]
    if as_json:
        click.echo(strict_json({"points": found}))
        return
    for result in found:
        where = ", ".join(f"{name} = {value:g}" for name, value in zip(model.parameters, result["at"]))
        details = "  ".join(f"{name} {result[name]:.6g}" for name in ("kappa", "loss", "margin", "distance") if result[name] is not None)
        click.echo(f"{where}: {result['label']}  ({details})")


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


@cli.command()
@chain_options
@common_options
@click.option("--e", "e_axis", type=AXIS, default=(-2.0, 2.0, 401), show_default=True, help="LOW HIGH N")
@click.option("--w", "w_axis", type=AXIS, default=(-2.0, 2.0, 401), show_default=True, help="LOW HIGH N")
@click.option("--out", type=click.Path(dir_okay=True), help="Write the map to FILE.nc or FILE.zarr.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw the map into FILE.png, .svg or .pdf.")
def basins(p, q, states, architecture, method, as_json, e_axis, w_axis, out, plot):
    """Map the limit of every start on a grid."""
    from landscape import basins as maps
    from landscape.architectures import find

    check_suffix("out", out, (".nc", ".zarr"))
    check_suffix("plot", plot, (".png", ".svg", ".pdf"))
    found, model = make_chain(p, q, states), find(architecture)
    began = time.perf_counter()
    labels, nodes = maps.label_grid(found, {"e": e_axis, "w": w_axis}, model)
    data = {
        "fractions": maps.fractions(labels), "counts": maps.count_labels(labels), "shape": list(labels.shape),
        "seconds": time.perf_counter() - began,
    }
    files = [str(path) for path in (out, plot) if path]
    if out:
        maps.write(maps.as_dataset(labels, nodes, found, model), out)
    if plot:
        from landscape import gallery

        gallery.draw_map(found, labels, nodes, plot)
    if as_json:
        click.echo(strict_json(data | {"files": files}))
        return
    click.echo(f"{labels.shape[0]} x {labels.shape[1]} starts, {describe(found)}, {data['seconds']:.2f} s")
    for word, share in data["fractions"].items():
        if data["counts"][word]:
            click.echo(f"  {word:<10} {share:.6f}  ({data['counts'][word]} starts)")
    for path in files:
        click.echo(f"written {path}")


def check_suffix(option: str, path: str | None, allowed: tuple[str, ...]) -> None:
    """Refuse a file name whose suffix does not name a format that can be written."""
    if path and Path(path).suffix.lower() not in allowed:
        raise click.UsageError(f"Invalid value for '--{option}': {path!r} must end in {' or '.join(allowed)}.")


@cli.command()
@chain_options
@common_options
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="CSV file to write.")
@click.option("--reach", type=NUMBER, default=2.0, show_default=True, help="How far from the origin the curve goes.")
@click.option("--n", type=COUNT, default=400, show_default=True, help="Points on each branch.")
def separatrix(p, q, states, architecture, method, as_json, out, reach, n):
    """Write the boundary of the global basin as a curve."""
    from landscape import basins as maps
    from landscape.architectures import find
    from landscape.files import write_text

    found, model = make_chain(p, q, states), find(architecture)
    curve = maps.separatrix(found, model, reach=reach, n=n)
    residual = model.separatrix_residual(found, curve)
    rows = [",".join(model.parameters)] + [",".join(map(repr, point)) for point in curve.tolist()]
    write_text(out, "\n".join(rows) + "\n")
    if as_json:
        click.echo(strict_json({"points": len(curve), "residual": residual, "files": [out]}))
        return
    if not len(curve):
        click.echo("There is no separatrix at the threshold: every start is global.")
    click.echo(f"{len(curve)} points, largest |E - E_sad| {residual:.1e}, written {out}")


@cli.command()
@click.argument("names", nargs=-1)
@click.option("--out", type=click.Path(file_okay=False), default="figures", show_default=True, help="Folder to write into.")
@click.option("--list", "list_only", is_flag=True, help="Name the figures.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def figures(names, out, list_only, as_json):
    """Draw the figures, all of them or those named."""
    from landscape import gallery

    for name in names:
        if name not in gallery.FIGURES:
            raise click.UsageError(f"Invalid value for 'NAME': {name!r} is not one of {', '.join(gallery.FIGURES)}.")
    if list_only:
        data = {"figures": [{"name": name, "caption": gallery.caption(name)} for name in gallery.FIGURES]}
        lines = [f"{entry['name']}: {entry['caption']}" for entry in data["figures"]]
    else:
        data = {"files": [str(path) for name in names or gallery.FIGURES for path in gallery.draw(name, out)]}
        lines = [f"written {path}" for path in data["files"]]
    click.echo(strict_json(data) if as_json else "\n".join(lines))


def main(arguments=None) -> None:
    """Entry point of `landscape` and `python -m landscape`."""
    run_command(cli, arguments)
