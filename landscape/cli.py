"""The command line: parses options, calls the library, prints text or one strict JSON object."""

from __future__ import annotations

import math
import time
from dataclasses import asdict

import click

from landscape.command import COUNT, NUMBER, run_command, strict_json
from landscape.options import (
    chain_options, check_suffix, flow_options, grid_options, json_option, landscape_options, make_chain, make_grid, make_landscape,
    make_starts, method_option, progress_bar, scheduler_option, start_options, workers,
)
from landscape.parameters import ParameterError
from landscape.training_commands import diagnose, estimate, init


def describe(chain) -> str:
    """A chain in words."""
    return ", ".join(f"{name} = {value:g}" for name, value in chain.describe().items())


def in_words(names, values) -> str:
    """A point in words."""
    return ", ".join(f"{name} = {value:g}" for name, value in zip(names, values))


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.version_option(package_name="markov-landscape")
def cli():
    """Loss landscapes of one-layer transformers on Markov data."""


@cli.command()
@chain_options
@json_option
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
@landscape_options
@json_option
def critical(p, q, states, architecture, speeds, as_json):
    """Critical sets of the loss, with the bias minimised out."""
    from landscape.critical import critical_sets
    from landscape.landscapes import PlainLoss

    found = make_landscape(p, q, states, architecture, speeds)
    sets = critical_sets(found) if isinstance(found, PlainLoss) else critical_sets(found.chain, found.architecture)
    if as_json:
        searched = ("representative", "tangent")
        rows = [{key: value for key, value in asdict(row).items() if key not in searched or value is not None} for row in sets]
        click.echo(strict_json({"sets": rows}))
        return
    for row in sets:
        index = "-" if row.index is None else row.index
        click.echo(
            f"{row.name:<20} dimension {row.dimension}  index {index}  nullity {row.nullity}  loss {row.loss:.6f}  {row.equations}"
        )
    if not sets:
        click.echo("no critical sets in the box")


@cli.command()
@landscape_options
@method_option
@start_options
@json_option
def classify(p, q, states, architecture, speeds, method, at, points_file, fix, as_json):
    """Limit, loss, invariants, margin and distance to the basin boundary of given starts."""
    from landscape.critical import classify as classify_points

    found = make_landscape(p, q, states, architecture, speeds)
    starts = make_starts(found, at, points_file, fix)
    with progress_bar("following") as progress:
        options = {"progress": progress} if method == "flow" else {}
        results = [asdict(result) for result in classify_points(found, starts, method=method, **options)]
    if as_json:
        click.echo(strict_json({"points": results}))
        return
    for result in results:
        numbers = ("kappa", "loss", "margin", "distance")
        details = "  ".join(f"{name} {result[name]:.6g}" for name in numbers if result[name] is not None)
        click.echo(f"{in_words(found.parameters, result['at'])}: {result['label']}  ({details})")


@cli.command()
@landscape_options
@method_option
@grid_options
@flow_options
@click.option("--coarse", type=COUNT, default=1, show_default=True, help="By flow: follow every N-th start, and all near boundaries.")
@click.option("--compare", "against_exact", is_flag=True, help="By flow: say how the map agrees with the exact one.")
@click.option("--out", type=click.Path(dir_okay=True), help="Write the map to FILE.nc or FILE.zarr.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw the map into FILE.png, .svg or .pdf.")
@scheduler_option
@json_option
def basins(
    p, q, states, architecture, speeds, method, e_axis, w_axis, a_axis, grid, fix, t_max, rtol, tolerance, max_steps, coarse,
    against_exact, out, plot, address, as_json,
):
    """Map the limit of every start on a grid."""
    from landscape import basins as maps
    from landscape.critical import chosen_method

    check_suffix("out", out, (".nc", ".zarr"))
    check_suffix("plot", plot, (".png", ".svg", ".pdf"))
    found = make_landscape(p, q, states, architecture, speeds)
    axes, fixed = make_grid(found, {"e": e_axis, "w": w_axis, "a": a_axis}, grid, fix)
    method = chosen_method(found, method)
    if address and method == "exact":
        raise click.UsageError("Invalid value for '--scheduler': the exact method needs none; it goes with --method flow.")
    gridded = len({*axes, *(name for name in found.needed((*axes, *fixed)) if name not in fixed)})
    if plot and gridded != 2:
        raise click.UsageError(f"Invalid value for '--plot': a map is drawn over two gridded coordinates, not {gridded}.")
    options = {"t_max": t_max, "rtol": rtol, "tolerance": tolerance, "max_steps": max_steps}
    began = time.perf_counter()
    if method == "exact" and out and out.lower().endswith(".zarr") and not (plot or against_exact):
        from landscape.large_maps import stream_map

        with progress_bar("labelling") as progress:
            counts = stream_map(found, out, fixed=fixed, progress=progress, **axes)
        nodes, _ = maps.grid(found, axes, fixed)
        _report_map(found, counts, [len(values) for values in nodes.values()], time.perf_counter() - began, [out], as_json)
        return
    if method == "exact":
        # without xarray, which takes longer to import than the map takes to compute
        axes, fixed = maps.grid(found, axes, fixed)
        labels, nodes = maps.label_grid(found, axes, fixed=fixed)
        made = None
    else:
        with workers(address) as executor, progress_bar("following") as progress:
            options["executor"] = executor
            made = maps.basin_map(found, method=method, fixed=fixed, coarse=coarse, options=options, progress=progress, **axes)
        labels, nodes = made["label"].values, {name: made[name].values for name in made["label"].dims}
    seconds = time.perf_counter() - began
    agreement = maps.compare(maps.label_grid(found, nodes, fixed=fixed)[0], labels) if against_exact else {}
    files = [str(path) for path in (out, plot) if path]
    if out:
        maps.write(maps.as_dataset(labels, nodes, found, fixed) if made is None else made, out)
    if plot:
        from landscape import gallery

        gallery.draw_map(found, labels, nodes, plot, made)
    _report_map(found, maps.count_labels(labels), labels.shape, seconds, files, as_json, agreement)


def _report_map(landscape, counts, shape, seconds, files, as_json, agreement=None):
    """Print what a map holds."""
    total = max(1, math.prod(shape))
    shares = {word: count / total for word, count in counts.items()}
    if as_json:
        data = {"fractions": shares, "counts": counts, "shape": list(shape), "seconds": seconds, **(agreement or {}), "files": files}
        click.echo(strict_json(data))
        return
    click.echo(f"{' x '.join(map(str, shape))} starts, {landscape.title}, {seconds:.2f} s")
    for word, share in shares.items():
        if counts[word]:
            click.echo(f"  {word:<10} {share:.6f}  ({counts[word]} starts)")
    if agreement:
        click.echo(f"  {agreement['agreement']:.6f} of the starts have the exact label")
    for path in files:
        click.echo(f"written {path}")


@cli.command()
@landscape_options
@start_options
@flow_options
@click.option("--out", type=click.Path(dir_okay=False), help="Write the trajectories to FILE.nc or FILE.csv.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw the trajectories into FILE.png, .svg or .pdf.")
@json_option
def flow(p, q, states, architecture, speeds, at, points_file, fix, t_max, rtol, tolerance, max_steps, out, plot, as_json):
    """Follow gradient flow from given starts to its limits."""
    from landscape import trajectories
    from landscape.flows import trajectory

    check_suffix("out", out, (".nc", ".csv"))
    check_suffix("plot", plot, (".png", ".svg", ".pdf"))
    found = make_landscape(p, q, states, architecture, speeds)
    starts = make_starts(found, at, points_file, fix)
    ways = [
        trajectory(found, start, t_max=t_max, rtol=rtol, tolerance=tolerance, max_steps=max_steps) for start in starts
    ]
    rows = [trajectories.summary(way) for way in ways]
    files = [str(path) for path in (out, plot) if path]
    if out:
        trajectories.write(ways, out)
    if plot:
        from landscape import gallery

        gallery.draw_trajectories(ways, plot)
    if as_json:
        click.echo(strict_json((rows[0] if len(rows) == 1 else {"flows": rows}) | {"files": files}))
        return
    for row in rows:
        click.echo(
            f"{in_words(found.parameters, row['start'])} -> {in_words(found.parameters, row['end'])}: {row['label']}, "
            f"{row['outcome']} at t = {row['t']:g} after {row['steps']} steps, loss {row['loss']:.6g}"
        )
    for path in files:
        click.echo(f"written {path}")


@cli.command()
@landscape_options
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="CSV file to write.")
@click.option("--reach", type=NUMBER, default=2.0, show_default=True, help="How far from the origin the curve goes.")
@click.option("--n", type=COUNT, default=400, show_default=True, help="Points on each branch.")
@json_option
def separatrix(p, q, states, architecture, speeds, out, reach, n, as_json):
    """Write the boundary of the global basin as a curve."""
    from landscape import basins as maps
    from landscape.files import write_text
    from landscape.landscapes import PlainLoss

    found = make_landscape(p, q, states, architecture, speeds)
    if isinstance(found, PlainLoss):
        raise click.UsageError("Invalid value for '--architecture': the separatrix of a plain loss is not known in closed form.")
    if found.speeds:
        raise click.UsageError("Invalid value for '--speed': the separatrix is known for speeds of 1 alone.")
    curve = maps.separatrix(found.chain, found.architecture, reach=reach, n=n)
    residual = found.architecture.separatrix_residual(found.chain, curve)
    rows = [",".join(found.parameters)] + [",".join(map(repr, point)) for point in curve.tolist()]
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
@json_option
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


for command in (estimate, init, diagnose):
    cli.add_command(command)


def main(arguments=None) -> None:
    """Entry point of `landscape` and `python -m landscape`."""
    run_command(cli, arguments)
