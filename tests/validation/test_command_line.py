"""The command line from end to end on a tiny experiment, and trainings that run away."""

import dataclasses
import json

import pytest

torch = pytest.importorskip("torch")

from click.testing import CliRunner  # noqa: E402

from validation import experiments  # noqa: E402
from validation.__main__ import cli  # noqa: E402
from validation.experiments import base, verdicts  # noqa: E402
from validation.experiments.init_comparison import EXPERIMENT, arms  # noqa: E402
from validation.training import SGD, Schedule  # noqa: E402
from validation.transformer import TransformerConfig  # noqa: E402

SCHEDULE = Schedule(steps=20, batch=2, log_every=5, evaluate_every=10, held_out=16)


def tiny_arms(quick):
    return [dataclasses.replace(arm, schedule=SCHEDULE, config=TransformerConfig(length=8)) for arm in arms(quick)]


def runaway():
    return dataclasses.replace(tiny_arms(True)[1], optimiser=SGD(1e6))


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(experiments, "find", lambda name: dataclasses.replace(EXPERIMENT, arms=tiny_arms))


def run(*arguments):
    return CliRunner().invoke(cli, ["run", "init_comparison", *map(str, arguments)], catch_exceptions=False)


def test_a_run_prints_one_json_object_and_resumes(tiny, tmp_path, monkeypatch):
    done = run("--quick", "--runs", 2, "--seed", 7, "--json", "--out", tmp_path)
    assert done.exit_code == 0
    data = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(name))
    assert len(data["verdicts"]) == 4 and all(len(results) == 2 for results in data["records"].values())
    assert len(list(tmp_path.glob("run-*.json"))) == 8 and len(data["files"]) == 3
    monkeypatch.setattr(base, "_train_together", lambda *arguments: pytest.fail("trained again"))
    assert run("--quick", "--runs", 2, "--seed", 7, "--json", "--out", tmp_path).stdout == done.stdout


def test_the_prediction_is_told_before_the_verdict(tiny, tmp_path):
    text = run("--quick", "--runs", 1, "--out", tmp_path).stdout
    assert text.index("prediction ") < text.index("success ") < text.index("95 % interval") < text.index("below the bigram loss\n")
    assert text.isascii()


def test_a_folder_that_cannot_be_used_is_refused_before_training(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "_train_together", lambda *arguments: pytest.fail("trained first"))
    (tmp_path / "file").write_text("")
    refused = run("--quick", "--out", tmp_path / "file" / "inside")
    assert refused.exit_code == 2 and "'--out'" in refused.stderr and refused.stdout == ""


def test_a_training_that_runs_away_is_on_record_as_diverged(tmp_path):
    results = base.run_arm(runaway(), 2, 0, tmp_path)
    assert [result["observed"] for result in results] == ["diverged", "diverged"]
    assert all(result["held_out"][0] > 0 and result["held_out"][-1] is None for result in results)
    assert base.run_arm(runaway(), 2, 0, tmp_path) == results
    verdict = verdicts.judge(runaway(), results)
    assert verdict.agree == 0 and verdict.below_bigram == 0 and not verdict.passed


def test_the_figure_shows_what_is_left_of_a_training_that_ran_away(tmp_path):
    experiment = dataclasses.replace(EXPERIMENT, arms=lambda quick: [tiny_arms(True)[0], runaway()])
    outcome = base.conduct(experiment, quick=True, seed=0, folder=tmp_path, runs=2)
    assert all(path.stat().st_size > 5000 for path in experiment.draw(outcome, tmp_path))


def test_every_evaluation_is_held_against_the_bigram_loss():
    arm = tiny_arms(True)[1]
    fair = {"predicted": "global", "observed": "global", "held_out": [0.64, 0.62], "held_out_error": [1e-3, 1e-3]}
    assert verdicts.judge(arm, [fair]).passed
    verdict = verdicts.judge(arm, [fair, fair | {"held_out": [0.6, 0.62]}])
    assert verdict.below_bigram == 1 and not verdict.passed
    assert verdicts.judge(arm, [fair | {"held_out": [0.6, 0.62], "held_out_error": [1e-2, 1e-3]}]).passed
