"""The commands about trainings: the chain of one's data, where to start, and where a model is."""

from __future__ import annotations

import math
from dataclasses import asdict

import click

from landscape.command import COUNT, NUMBER, strict_json
from landscape.options import chain_options, json_option, make_chain, read_state
from landscape.parameters import ParameterError


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--level", type=NUMBER, default=0.95, show_default=True, help="Of the intervals.")
@json_option
def estimate(file, level, as_json):
    """The chain of a sequence in a text FILE, with intervals, and whether the theory applies to it."""
    from landscape import estimation

    try:
        found = estimation.estimate(estimation.read_sequences(file), level)
    except ParameterError as error:
        if error.parameter == "level":
            raise
        raise click.UsageError(f"Invalid value for 'FILE': {file} must be {error.requirement}.") from None
    if as_json:
        kind = {"kind": type(found.chain).__name__, **found.chain.describe()}
        data = asdict(found) | {"chain": kind, "regime": found.chain.regime, "transitions": found.transitions.tolist()}
        click.echo(strict_json(data))
        return
    click.echo(f"symbols        {', '.join(map(str, found.symbols))}")
    for name, rate in found.rates.items():
        click.echo(f"{name} = {rate.value:.6f}   [{rate.low:.6f}, {rate.high:.6f}] at level {found.level:g}, {rate.seen} of {rate.of} steps")
    click.echo(f"regime         {found.chain.regime} the threshold {found.chain.threshold:g}")
    for test in found.tests.values():
        value = "too few transitions" if test.p_value is None else f"p-value {test.p_value:.3g}"
        click.echo(f"test           {test.question}: {value}")
    for warning in found.warnings:
        click.echo(f"warning        {warning}")


@click.command()
@chain_options
@click.option("--architecture", default="canonical", show_default=True, help="Whose parameters the start is given in, and whose starts are drawn.")
@click.option("--norm", type=NUMBER, help="sqrt(e^2 + w^2) of the start; by default that of (1, -1), or its like for more symbols.")
@click.option("--std", type=NUMBER, default=0.02, show_default=True, help="Standard deviation S of Gaussian starts.")
@click.option("--positions", type=COUNT, default=64, show_default=True, help="N of the model: each of its position vectors moves 1/N as fast.")
@click.option("--samples", type=COUNT, default=100_000, show_default=True, help="Starts that are labelled where there is no quadrature.")
@click.option("--seed", type=COUNT, default=0, show_default=True, help="Of that sample.")
@click.option("--no-flow", is_flag=True, help="Leave out the flow of `transverse`, whose integrator takes a minute to compile the first time.")
@json_option
def init(p, q, states, architecture, norm, std, positions, samples, seed, no_flow, as_json):
    """Where to start a training, and how likely Gaussian starts N(0, S^2) are to end well."""
    from landscape.initialise import recommend
    from landscape.probabilities import start_probabilities

    chain = make_chain(p, q, states)
    told = recommend(chain, architecture, norm=norm, positions=positions, flow=not no_flow)
    drawn = start_probabilities(chain, std, architecture, samples=samples, seed=seed)
    missed = {}
    for name, mean in (("recommended", told.mean), ("default", told.default.mean)):
        around = start_probabilities(chain, std, mean=mean).values
        missed[name] = float(around["local"] + around["saddle"])
    values, errors = ({word: float(each[word]) for word in ("global", "local")} for each in (drawn.values, drawn.errors))
    if as_json:
        data = {"recommended": _start(told, missed["recommended"]), "default": _start(told.default, missed["default"]), "safe_region": told.region}
        data |= {"rank": told.rank, "std": std, "p_global": values["global"], "p_local": values["local"]}
        data |= {"error_global": errors["global"], "error_local": errors["local"], "method": drawn.method}
        click.echo(strict_json(data))
        return
    click.echo(f"recommended    {told.words}")
    click.echo(f"without data   {told.default.words}")
    click.echo(f"safe           on every chain: {told.region}")
    for word, value in values.items():
        error = f" +- {errors[word]:.1g}" if drawn.method == "sample" else ""
        click.echo(f"p_{word:<12} {value:.9g}{error} of starts N(0, {std:g}^2) in {', '.join(told.start)}")


def _start(told, missed: float) -> dict:
    """A recommendation as plain data; `missed` is the share of starts N(mean, S^2) that are not global."""
    ratio = told.speed_ratio if math.isfinite(told.speed_ratio) else None
    return {
        "start": told.start, "mean": list(told.mean), "norm": told.norm, "margin": told.margin, "distance": told.distance,
        "speed_ratio": ratio, "largest_rate": told.largest_rate, "labels": told.labels, "p_not_global": missed,
    }


@click.command()
@click.argument("checkpoint", type=click.Path(exists=True, dir_okay=False))
@chain_options
@click.option("--names", "names_file", type=click.Path(exists=True, dir_okay=False), help="TOML file of the names of weights; by default those of validation/.")
@click.option("--no-flow", is_flag=True, help="Leave out the flow of `transverse`, whose integrator takes a minute to compile the first time.")
@click.option("--seed", type=COUNT, default=0, show_default=True, help="Of the sequences on which models with attention are measured.")
@json_option
def diagnose(checkpoint, p, q, states, names_file, no_flow, seed, as_json):
    """Say of a trained model whether it is at the unigram plateau, on its way or global.

    CHECKPOINT holds a state dict: a file of torch.save (tensors alone, nothing in it is executed) or one that ends in .safetensors.
    """
    from landscape.diagnosis import diagnose as diagnosed
    from landscape.weight_names import read_names

    chain = make_chain(p, q, states)
    names = None if names_file is None else read_names(names_file)
    found = diagnosed(read_state(checkpoint), chain, names=names, flow=not no_flow, seed=seed)
    if as_json:
        click.echo(strict_json({"models": [asdict(each) for each in found]}))
        return
    for number, each in enumerate(found):
        click.echo((f"model {number}: " if len(found) > 1 else "") + each.words)
        for note in each.notes:
            click.echo(f"note: {note}")
