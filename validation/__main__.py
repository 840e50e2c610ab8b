"""`python -m validation list | run NAME | report`: train real transformers and judge the predictions."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import click

from landscape.command import COUNT, run_command, strict_json
from landscape.files import write_text
from landscape.options import scheduler_option, workers
from validation import experiments, records, report
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
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder; run again on it to resume: arms on record are not trained again, one that was cut off is.")
@click.option("--publish", is_flag=True, help="Also write what is committed: figures/NAME.* and validation/results/NAME.json.")
@scheduler_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def run(name, quick, runs, seed, out, publish, address, as_json):
    """Run one experiment: the prediction first, then the trainings, then the verdict."""
    if name not in experiments.names():
        raise click.UsageError(f"Invalid value for 'NAME': {name!r} is not one of {', '.join(experiments.names())}.")
    if runs == 0:
        raise click.UsageError("Invalid value for '--runs': 0 is not at least 1.")
    if publish and not Path("figures").is_dir():
        raise click.UsageError("Invalid value for '--publish': there is no folder 'figures' here.")
    experiment = experiments.find(name)
    if experiment.missing:
        raise click.UsageError(f"Invalid value for 'NAME': {name!r} needs the package {experiment.missing}, which is not installed (the extra 'examples').")
    folder = usable(out or Path("results") / "validation" / name)
    if not as_json:
        for label in ("prediction", "horizon", "success", "tolerance"):
            click.echo(f"{label:<11} {getattr(experiment, label)}")
        click.echo()
    with workers(address) as executor:
        outcome = conduct(experiment, quick=quick, seed=seed, folder=folder, runs=runs, executor=executor)
    drawn = experiment.draw(outcome, folder)
    files = [str(path) for path in (*drawn, recorded(outcome, folder), *(published(outcome, drawn) if publish else []))]
    click.echo(strict_json(as_data(outcome, files)) if as_json else table(outcome, files))


@cli.command("report")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=report.RESULTS, metavar="[DIR]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def write_report(folder, as_json):
    """Put all outcomes of DIR (by default the committed ones) on one page, as Markdown and HTML."""
    try:
        paths = report.write(folder)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"Invalid value for 'DIR': {error}.") from None
    files = [str(path) for path in paths]
    click.echo(strict_json({"files": files}) if as_json else "\n".join(f"written     {path}" for path in files))


def usable(folder: Path) -> Path:
    """Make the folder of the records before anything is trained; refuse one that cannot be made or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"Invalid value for '--out': {str(folder)!r}: {error.strerror}.") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise click.UsageError(f"Invalid value for '--out': {str(folder)!r} is not writable.")
    return folder


def recorded(outcome: Outcome, folder: Path) -> Path:
    """Write what came out, without the runs, beside their records."""
    found = {key: value for key, value in as_data(outcome, []).items() if key not in ("records", "files")}
    command = " ".join(["python -m validation", *sys.argv[1:]])
    path = folder / "outcome.json"
    write_text(path, strict_json(found | {"command": command, "versions": records.versions()}) + "\n")
    return path


def published(outcome: Outcome, drawn: list[Path]) -> list[Path]:
    """Copy figures and outcome to where they are committed; from the root of a checkout."""
    table = report.RESULTS / f"{outcome.experiment.name}.json"
    table.parent.mkdir(exist_ok=True)
    shutil.copy(drawn[0].parent / "outcome.json", table)
    return [*(Path(shutil.copy(path, "figures")) for path in drawn), table]


def as_data(outcome: Outcome, files: list[str]) -> dict:
    """A finished experiment as plain data."""
    experiment = outcome.experiment
    said = {label: getattr(experiment, label) for label in ("name", "prediction", "horizon", "success", "tolerance")}
    return said | {
        "verdicts": [asdict(verdict) for verdict in outcome.verdicts], "findings": [asdict(finding) for finding in outcome.findings],
        "passed": outcome.passed,
        "summary": outcome.summary, "records": outcome.results, "files": files,
    }


def table(outcome: Outcome, files: list[str]) -> str:
    """A finished experiment as a table and a verdict."""
    def words(counts):
        return ", ".join(f"{count} {word}" for word, count in counts.items())

    lines = columns([("arm", "predicted", "observed", "agree", "95 % interval")] + [
        (
            verdict.arm, words(verdict.predicted), words(verdict.observed),
            *((f"{verdict.agree}/{verdict.runs}", f"[{verdict.interval[0]:.2f}, {verdict.interval[1]:.2f}]") if verdict.predicted else ("", "")),
        )
        for verdict in outcome.verdicts
    ])
    below = sum(verdict.below_bigram for verdict in outcome.verdicts)
    lines += predictors_table(outcome)
    lines.append("")
    for verdict in outcome.verdicts:
        lines.append(f"{verdict.word:<12}{verdict.arm}")
    for finding in outcome.findings:
        lines.append(f"{finding.word:<12}{finding.statement}: {finding.observed} (wanted: {finding.tolerance})")
    lines.append(f"{below} runs with a held-out loss below the bigram loss")
    return "\n".join(lines + [f"written     {path}" for path in files])


def predictors_table(outcome: Outcome) -> list[str]:
    """Where there is more than one predictor: on how many of the decided runs each was right."""
    names = list(outcome.verdicts[0].predictors)
    if len(names) < 2:
        return []
    rows = [("right of decided runs", *names)]
    for verdict in outcome.verdicts:
        rows.append((verdict.arm, *(f"{found.right}/{found.decided}" for found in verdict.predictors.values())))
    return ["", *columns(rows)]


def columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows of text with their cells one below the other."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


if __name__ == "__main__":
    run_command(cli)
