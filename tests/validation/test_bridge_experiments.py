"""`canonical_vs_full`, `adam_escapes` and `basin_accuracy`, with a few steps: what holds at any horizon, and what is written."""

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch")

from tests.conftest import ROOT, strict  # noqa: E402
from validation import experiments  # noqa: E402
from validation.__main__ import as_data, cli, columns, table  # noqa: E402
from validation.experiments import adam_escapes, base, basin_accuracy, canonical_vs_full, verdicts  # noqa: E402

SHORT = {"steps": 6, "log_every": 1, "evaluate_every": 3, "held_out": 16}


def shortened(experiment, quick=True):
    """The experiment with a few steps in each arm."""
    return dataclasses.replace(experiment, arms=lambda _: [dataclasses.replace(arm, schedule=dataclasses.replace(arm.schedule, **SHORT)) for arm in experiment.arms(quick)])


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory):
    folder = tmp_path_factory.mktemp("canonical_vs_full")
    return base.conduct(shortened(canonical_vs_full.EXPERIMENT), quick=True, seed=0, folder=folder), folder


def test_the_twin_and_the_model_on_the_manifold_are_one_training(side_by_side):
    same, on_manifold = side_by_side[0].findings[:2]
    assert same.passed and on_manifold.passed
    assert float(same.observed) > 0.0  # two computations, not one
    noisy = side_by_side[0].results[next(arm.name for arm in side_by_side[0].arms if arm.start.noise)]
    assert min(row["off_manifold"][0] for row in noisy) > 1e-4


def test_a_finding_fails_where_twin_and_model_part(side_by_side):
    outcome, _ = side_by_side
    name = outcome.arms[0].name
    moved = [row | {"training": [value + 1e-9 for value in row["training"]]} for row in outcome.results[name]]
    changed = dataclasses.replace(outcome, results=outcome.results | {name: moved})
    assert not changed.findings[0].passed and not changed.passed
    assert not as_data(changed, [])["passed"]
    assert "REFUTED     training losses of the full model" in table(changed, [])


def test_half_way_steps_are_near_or_both_beyond_the_horizon():
    near = canonical_vs_full._near
    assert [near(None, None), near(5, None), near(None, 5), near(119, 100), near(121, 100), near(20, 12), near(25, 12)] == [
        True, False, False, True, False, True, False,
    ]


def test_the_curves_are_drawn(side_by_side):
    outcome, folder = side_by_side
    assert [path.exists() for path in outcome.experiment.draw(outcome, folder)] == [True, True]


def test_adam_on_the_twin_is_adam_on_the_model(tmp_path):
    outcome = base.conduct(shortened(adam_escapes.EXPERIMENT, quick=False), quick=False, seed=0, folder=tmp_path, runs=9)
    full, twin = outcome.arms[:2]
    for model, reduced in zip(outcome.results[full.name], outcome.results[twin.name], strict=True):
        assert model["training"] == pytest.approx(reduced["training"], abs=1e-10)
        assert model["start"] == pytest.approx(reduced["start"], abs=1e-12)
    assert [arm.optimiser.adam.rate * steps for arm, steps in zip(outcome.arms[1:4], (1500, 6000, 24000))] == pytest.approx([7.5] * 3)
    again = base.conduct(shortened(adam_escapes.EXPERIMENT, quick=False), quick=False, seed=0, folder=tmp_path, runs=9)
    assert again.results == outcome.results  # settings with an optimiser inside an optimiser are found again


def test_fewer_must_leave_each_time():
    arms = adam_escapes.arms(True)
    row = {"predicted": "local", "training": [adam_escapes.CHAIN.unigram_loss]}
    never = row | {"training": [adam_escapes.CHAIN.bigram_loss], "observed": "global"}  # passed the plateau by: it did not leave it

    def passed(*left):
        results = {}
        for arm, n in zip(arms, left):
            rows = [row | {"observed": "global"}] * n + [row | {"observed": "local"}] * (9 - n) + [never] * (9 - n)
            results[arm.name] = [each | {"steps": [round(2 / arm.optimiser.adam.rate)]} for each in rows]
        return base.Outcome(adam_escapes.EXPERIMENT, arms, results, []).findings[0].passed

    assert passed(5, 0) and passed(0, 0) and not passed(5, 5) and not passed(2, 5) and not passed(5, 1)


def test_every_predictor_speaks_of_every_run(tmp_path):
    outcome = base.conduct(shortened(basin_accuracy.EXPERIMENT), quick=True, seed=0, folder=tmp_path, runs=16)
    for verdict in outcome.verdicts:
        assert list(verdict.predictors) == ["simulation", "transverse", "reduced", "canonical"]
        for found in verdict.predictors.values():
            assert sum(sum(row.values()) for row in found.confusion.values()) == 16
    words = {name: [row["predictions"][name] for row in outcome.results[outcome.arms[1].name]] for name in ("transverse", "reduced", "canonical")}
    # below the threshold nothing holds the noisy start back, while both other maps have local basins
    assert set(words["transverse"]) == {"global"} and "local" in words["reduced"] and "local" in words["canonical"]


def test_settings_leave_out_what_is_not_set():
    settings = basin_accuracy.arms(True)[0].settings(0, 0)
    assert "score_scale" not in settings["config"] and settings == json.loads(json.dumps(settings))
    twin = adam_escapes.arms(True)[0].settings(0, 0)
    assert twin["config"]["score_scale"] == 0.5 and twin == json.loads(json.dumps(twin))


def test_columns_do_not_run_together():
    assert columns([("a", "long cell", "x"), ("longer", "b", "y")]) == ["a       long cell  x", "longer  b          y"]


def test_publishing_writes_a_table_without_runs(tmp_path, monkeypatch):
    experiment = dataclasses.replace(shortened(adam_escapes.EXPERIMENT), runs=lambda quick: 2)
    monkeypatch.setattr(experiments, "find", lambda name: experiment)
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(cli, ["run", "adam_escapes", "--quick", "--publish"])
    assert refused.exit_code == 2 and "'figures'" in refused.output
    (tmp_path / "figures").mkdir()
    (tmp_path / "validation").mkdir()
    done = CliRunner().invoke(cli, ["run", "adam_escapes", "--quick", "--publish", "--json"])
    assert done.exit_code == 0, done.output
    written = strict((tmp_path / "validation" / "results" / "adam_escapes.json").read_text())
    assert "records" not in written and written["verdicts"] and written["versions"]["torch"] == torch.__version__
    assert (tmp_path / "figures" / "adam_escapes.png").exists()


@pytest.mark.parametrize("path", sorted((ROOT / "validation" / "results").glob("*.json")), ids=lambda path: path.stem)
def test_committed_outcomes_are_of_todays_experiments(path):
    found, experiment = strict(path.read_text()), experiments.find(path.stem)
    for label in ("name", "prediction", "horizon", "success", "tolerance"):
        assert found[label] == getattr(experiment, label)
    assert [verdict["arm"] for verdict in found["verdicts"]] == [arm.name for arm in experiment.arms(False)]
    for verdict in found["verdicts"]:
        if not verdict["predicted"]:
            assert not verdict["predictors"] and verdict["agree"] == 0
            continue
        first = next(iter(verdict["predictors"].values()))
        assert verdict["interval"] == pytest.approx(verdicts.wilson(verdict["agree"], verdict["runs"]))
        assert first["right"] == verdict["agree"] and np.isfinite(first["interval"]).all()
