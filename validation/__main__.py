"""`python -m validation list | run NAME`: train real transformers and judge the predictions."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from landscape.command import COUNT, run_command, strict_json
from validation import experiments
from validation.experiments.base import Outcome, conduct


@click.group(no_args_is_help=True)
def cli():
    """Train real transformers and ask of each prediction whether it came true."""


@cli.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def list_experiments(as_json):
    """Name the experiments."""
    found = [{"name": name, "prediction": experiments.find(name).prediction} for name in experiments.names()]
    click.echo(strict_json({"experiments": found}) if as_json else "\n".join(f"{e['name']}: {e['prediction']}" for e in found))


@cli.command()
@click.argument("name")
@click.option("--quick", is_flag=True, help="Fewer runs and fewer optimisers.")
@click.option("--runs", type=COUNT, help="Runs in each arm.")
@click.option("--seed", type=COUNT, default=0, show_default=True, help="Decides all weights and data.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder; run again on it to resume.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def run(name, quick, runs, seed, out, as_json):
    """Run one experiment: the prediction first, then the trainings, then the verdict."""
    if name not in experiments.names():
        raise click.UsageError(f"Invalid value for 'NAME': {name!r} is not one of {', '.join(experiments.names())}.")
    if runs == 0:
        raise click.UsageError("Invalid value for '--runs': 0 is not at least 1.")
    experiment = experiments.find(name)
    folder = usable(out or Path("results") / "validation" / name)
    if not as_json:
        for label in ("prediction", "horizon", "success", "tolerance"):
            click.echo(f"{label:<11} {getattr(experiment, label)}")
        click.echo()
    outcome = conduct(experiment, quick=quick, seed=seed, folder=folder, runs=runs)
    files = [str(path) for path in experiment.draw(outcome, folder)]
    click.echo(strict_json(as_data(outcome, files)) if as_json else table(outcome, files))


def usable(folder: Path) -> Path:
    """Make the folder of the records before anything is trained; refuse one that cannot be made or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"Invalid value for '--out': {str(folder)!r}: {error.strerror}.") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise click.UsageError(f"Invalid value for '--out': {str(folder)!r} is not writable.")
    return folder


def as_data(outcome: Outcome, files: list[str]) -> dict:
    """A finished experiment as plain data."""
    experiment = outcome.experiment
    said = {label: getattr(experiment, label) for label in ("name", "prediction", "horizon", "success", "tolerance")}
    return said | {
        "verdicts": [asdict(verdict) for verdict in outcome.verdicts],
        "passed": all(verdict.passed for verdict in outcome.verdicts),
        "summary": experiment.summary(outcome), "records": outcome.results, "files": files,
    }


def table(outcome: Outcome, files: list[str]) -> str:
    """A finished experiment as a table and a verdict."""
    def words(counts):
        return ", ".join(f"{count} {word}" for word, count in counts.items())

    lines = [f"{'arm':<34}{'predicted':<14}{'observed':<24}{'agree':<8}95 % interval"]
    for verdict in outcome.verdicts:
        low, high = verdict.interval
        lines.append(
            f"{verdict.arm:<34}{words(verdict.predicted):<14}{words(verdict.observed):<24}"
            f"{f'{verdict.agree}/{verdict.runs}':<8}[{low:.2f}, {high:.2f}]"
        )
    below = sum(verdict.below_bigram for verdict in outcome.verdicts)
    lines += predictors_table(outcome)
    lines.append("")
    for verdict in outcome.verdicts:
        lines.append(f"{'confirmed' if verdict.passed else 'REFUTED':<12}{verdict.arm}")
    lines.append(f"{below} runs with a held-out loss below the bigram loss")
    return "\n".join(lines + [f"written     {path}" for path in files])


def predictors_table(outcome: Outcome) -> list[str]:
    """Where there is more than one predictor: on how many of the decided runs each was right."""
    names = list(outcome.verdicts[0].predictors)
    if len(names) < 2:
        return []
    lines = ["", f"{'right of decided runs':<38}" + "".join(f"{name:<14}" for name in names)]
    for verdict in outcome.verdicts:
        cells = (f"{found.right}/{found.decided}" for found in verdict.predictors.values())
        lines.append(f"{verdict.arm:<38}" + "".join(f"{cell:<14}" for cell in cells))
    return lines


if __name__ == "__main__":
    run_command(cli)
