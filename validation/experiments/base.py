"""What an experiment is: arms to train, a prediction made before, and a verdict that can fail."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import landscape
from landscape import plots
from landscape.chains import Chain
from landscape.executors import done
from landscape.outcomes import Label
from landscape.projection import project
from validation import data, measures, records
from validation.experiments.verdicts import Finding, Verdict, judge, real_limit
from validation.starts import Start
from validation.training import Optimiser, Schedule, train
from validation.transformer import TransformerConfig, stack


TOGETHER = 4  # runs that a worker trains as one ensemble


def canonical_labels(arm: Arm, results: list[dict]) -> dict[str, list[str]]:
    """The exact label of each run's (e, w) in the canonical basin map."""
    codes = landscape.limit(arm.chain, [result["point"] for result in results])
    return {"canonical": [Label(int(code)).word for code in codes]}


@dataclass(frozen=True)
class Arm:
    """Trainings that differ only in their seeds, or in the point of a grid that they start at.

    Attributes
    ----------
    predict : callable
        Takes the arm and its results and gives, by name of the predictor, a word for each run; the first is judged. None where
        nothing was predicted: then an arm only fails if a run runs away or falls below the bigram loss.
    least : float
        Share of the decided runs for which the judged prediction has to come true.
    undecided : float
        Share of the runs that may end in between.
    measure : str, optional
        Name in `validation.measures` of what else is measured at each evaluation.
    """

    name: str
    chain: Chain
    config: TransformerConfig
    start: Start
    optimiser: Optimiser
    schedule: Schedule
    predict: Callable[[Arm, list[dict]], dict[str, list[str]]] | None = canonical_labels
    least: float = 1.0
    undecided: float = 0.0
    measure: str | None = None

    def settings(self, seed: int, index: int) -> dict:
        """Everything that decides run `index`, as plain data."""
        parts = {}
        for name in ("chain", "config", "start", "optimiser", "schedule"):
            part = self.start.at(index) if name == "start" else getattr(self, name)
            parts[name] = {"kind": type(part).__name__, **_plain(asdict(part))}
        measured = {} if self.measure is None else {"measure": self.measure}
        return {"arm": self.name, **parts, **measured, "seed": seed, "index": index}


def _plain(settings: dict) -> dict:
    """Settings as they come back from JSON. What is None is left out: it says that nothing was set."""
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            found[key] = _plain(value)
        elif value is not None:
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


@dataclass(frozen=True)
class Experiment:
    """A question to real training.

    Attributes
    ----------
    name : str
    prediction, horizon, success, tolerance : str
        Said before training: what should happen, by when, what counts as success, and how close is close.
    arms : callable
        Takes ``quick`` and gives the arms.
    runs : callable
        Takes ``quick`` and gives the number of runs in each arm.
    draw : callable
        Takes the finished `Outcome` and a folder, writes figures, and gives their paths.
    summary : callable
        Takes the finished `Outcome` and gives what was measured besides labels, as plain data.
    findings : callable
        Takes the finished `Outcome` and gives what else had been predicted, judged.
    needs : str, optional
        A package that its models come from, beside those of the extra `validation`.
    """

    name: str
    prediction: str
    horizon: str
    success: str
    tolerance: str
    arms: Callable[[bool], list[Arm]]
    runs: Callable[[bool], int]
    draw: Callable[[Outcome, Path], list[Path]]
    summary: Callable[[Outcome], dict] = lambda outcome: {}
    findings: Callable[[Outcome], list[Finding]] = lambda outcome: []
    needs: str | None = None

    @property
    def missing(self) -> str | None:
        """What it needs and is not installed."""
        return self.needs if self.needs and importlib.util.find_spec(self.needs) is None else None


@dataclass(frozen=True)
class Outcome:
    """A finished experiment: its arms, their runs' results, and a verdict for each."""

    experiment: Experiment
    arms: list[Arm]
    results: dict[str, list[dict]]
    verdicts: list[Verdict]

    @cached_property
    def summary(self) -> dict:
        """What was measured besides labels, as plain data."""
        return self.experiment.summary(self)

    @cached_property
    def findings(self) -> list[Finding]:
        """What else had been predicted, judged."""
        return self.experiment.findings(self)

    @property
    def passed(self) -> bool:
        """Whether everything that was predicted came true."""
        return all(judged.passed for judged in (*self.verdicts, *self.findings))


def run_arm(arm: Arm, runs: int, seed: int, folder: Path) -> list[dict]:
    """The results of an arm's runs: those on record, and the others trained together as one ensemble.

    Records hold what was measured. What was predicted and what that amounts to are worked out here each time,
    so that a record never keeps the answer of an older rule.
    """
    settings = [arm.settings(seed, index) for index in range(runs)]
    results = [records.load(folder, each) for each in settings]
    missing = [index for index, result in enumerate(results) if result is None]
    if missing:
        for index, result in zip(missing, _train_together(arm, missing, seed)):
            records.save(folder, settings[index], result)
            results[index] = result
    said = {} if arm.predict is None else arm.predict(arm, results)
    found = []
    for k, result in enumerate(results):
        words = {name: each[k] for name, each in said.items()}
        first = {"predicted": next(iter(words.values()))} if words else {}
        found.append(result | {"predictions": words, **first, "observed": real_limit(_corrected(result), arm.chain)})
    return found


def _corrected(result: dict) -> float | None:
    """The last held-out loss, less what the chance of the held-out sequences added to the loss of the bigram law on them."""
    loss = result["held_out"][-1]
    return None if loss is None else loss - result.get("chance", 0.0)


def _finite(values: np.ndarray) -> list:
    """The numbers, of one or two axes, as plain data, None for what is not finite: a record is strict JSON."""
    if values.ndim > 1:
        return [_finite(row) for row in values]
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _train_together(arm: Arm, indices: list[int], seed: int) -> list[dict]:
    points, models = [], []
    for index in indices:
        start = arm.start.at(index)
        point = start.point(np.random.default_rng(data.stream(seed, index, "point")))
        model = arm.config.build(1)
        start.fill_(model, point, data.torch_generator(data.stream(seed, index, "weights")))
        points.append(point)
        models.append(model)
    chains = [arm.chain] * len(indices)
    length, schedule = arm.config.length, arm.schedule
    model = stack(models)
    placed = project(model) if arm.config.plain else None
    unseen = data.held_out(chains, [data.stream(seed, i, "held_out") for i in indices], length, schedule.held_out)
    curves = train(
        model, data.batches(chains, [data.stream(seed, i, "training") for i in indices], length, schedule.batch), unseen,
        arm.optimiser, schedule, title=arm.name, measure=None if arm.measure is None else getattr(measures, arm.measure),
    )
    found = [
        {
            "point": list(points[k]), "steps": curves.steps.tolist(), "training": _finite(curves.training[k]),
            "evaluated": curves.evaluated.tolist(), "held_out": _finite(curves.held_out[k]),
            "held_out_error": _finite(curves.held_out_error[k]),
            "chance": data.bigram_loss(arm.chain, unseen[k].numpy()) - arm.chain.bigram_loss,
            **{name: _finite(values[k]) for name, values in curves.measures.items()},
        }
        for k in range(len(indices))
    ]
    if placed is None:
        return found
    across, ended = placed.alpha * placed.across, project(model)
    return [
        result | {
            "start": placed.points()[k].tolist(), "across": across[k].tolist(), "end": _finite(ended.points()[k]),
            "off_manifold": _finite(np.array([placed.residual[k], ended.residual[k]])),
        }
        for k, result in enumerate(found)
    ]


def _train_on(executor: Executor, arms: list[Arm], runs: int, seed: int, folder: Path) -> None:
    """Train what is not on record in parts of a few runs, on whatever workers there are."""
    parts = []
    for arm in arms:
        missing = [index for index in range(runs) if records.load(folder, arm.settings(seed, index)) is None]
        parts += [(dataclasses.replace(arm, predict=None), missing[first:first + TOGETHER], seed) for first in range(0, len(missing), TOGETHER)]
    for number, results in done(executor, _train_together, parts):
        arm, indices, _ = parts[number]
        for index, result in zip(indices, results):
            records.save(folder, arm.settings(seed, index), result)


def save_figure(figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and as PDF."""
    paths = [folder / f"{name}.{suffix}" for suffix in ("png", "pdf")]
    for path in paths:
        plots.save(figure, path)
    return paths


def conduct(
    experiment: Experiment, *, quick: bool, seed: int, folder: Path, runs: int | None = None, executor: Executor | None = None,
) -> Outcome:
    """Train what is not on record, judge every arm. With an executor, runs are trained there and recorded as they come back."""
    count = experiment.runs(quick) if runs is None else runs
    arms = experiment.arms(quick)
    if executor is not None:
        _train_on(executor, arms, count, seed, folder)
    results = {arm.name: run_arm(arm, count, seed, folder) for arm in arms}
    return Outcome(experiment, arms, results, [judge(arm, results[arm.name]) for arm in arms])
