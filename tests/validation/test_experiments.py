"""Experiments: records, resuming, verdicts, and one small training that obeys the basin map."""

import dataclasses
import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import landscape  # noqa: E402
from landscape import BinaryChain  # noqa: E402
from validation import experiments, records  # noqa: E402
from validation.experiments import base, verdicts  # noqa: E402
from validation.experiments.init_comparison import EXPERIMENT, arms  # noqa: E402
from validation.starts import CanonicalStart, GaussianStart  # noqa: E402
from validation.training import SGD, Schedule  # noqa: E402
from validation.transformer import TransformerConfig  # noqa: E402

TINY = base.Arm(
    "tiny", BinaryChain(0.5, 0.8), TransformerConfig(length=8), CanonicalStart(1.0, -1.0), SGD(0.3),
    Schedule(steps=5, batch=2, log_every=1, evaluate_every=5, held_out=16),
)


@pytest.mark.parametrize(
    ("successes", "runs", "low", "high"), [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (15, 20, 0.5313, 0.8881), (0, 0, 0.0, 1.0)]
)
def test_wilson_interval(successes, runs, low, high):
    assert verdicts.wilson(successes, runs) == pytest.approx((low, high), abs=1e-4)


def test_real_limits_leave_room_in_between():
    chain = BinaryChain(0.5, 0.8)
    gap = chain.unigram_loss - chain.bigram_loss
    shares = {0.0: "global", 0.099: "global", -0.099: "global", 0.101: "between", 0.5: "between", 0.95: "local", 1.05: "local", 1.2: "between", -0.2: "between"}
    assert {share: verdicts.real_limit(chain.bigram_loss + share * gap, chain) for share in shares} == shares


def test_at_the_threshold_there_is_nothing_to_tell_apart():
    with pytest.raises(landscape.ParameterError, match="off its threshold"):
        verdicts.real_limit(0.69, BinaryChain(0.5, 0.5))


def test_a_run_on_record_is_not_trained_again(tmp_path, monkeypatch):
    first = base.run_arm(TINY, 2, 3, tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 2
    trained = []
    original = base._train_together
    monkeypatch.setattr(base, "_train_together", lambda arm, indices, seed: trained.extend(indices) or original(arm, indices, seed))
    assert base.run_arm(TINY, 2, 3, tmp_path) == first and trained == []
    more = base.run_arm(TINY, 3, 3, tmp_path)
    assert more[:2] == first and trained == [2]


def test_a_damaged_record_is_named_and_done_again(tmp_path):
    first = base.run_arm(TINY, 2, 3, tmp_path)
    path = records.path_of(tmp_path, TINY.settings(3, 1))
    text = path.read_text()
    for damaged in (text[: len(text) // 2], "", text.replace('"held_out": [', '"held_out": [0.5, ')):
        path.write_text(damaged)
        with pytest.warns(records.DamagedRecordWarning, match=path.name):
            again = base.run_arm(TINY, 2, 3, tmp_path)
        assert again[0] == first[0] and again[1]["training"] == pytest.approx(first[1]["training"], abs=1e-5)


def test_two_settings_never_share_a_file(tmp_path):
    variants = [
        TINY.settings(0, 0), TINY.settings(0, 1), TINY.settings(1, 0),
        dataclasses.replace(TINY, optimiser=SGD(0.30000000000000004)).settings(0, 0),
        dataclasses.replace(TINY, chain=BinaryChain(0.5, 0.8000000000000002)).settings(0, 0),
        dataclasses.replace(TINY, start=GaussianStart(0.02)).settings(0, 0),
    ]
    assert len({records.path_of(tmp_path, settings) for settings in variants}) == len(variants)


def test_records_are_strict_json_and_whole(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        records.save(tmp_path, {"a": 1}, {"loss": math.nan})
    assert list(tmp_path.iterdir()) == []
    path = records.save(tmp_path, {"a": 1}, {"loss": 0.1 + 0.2})
    record = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert record["result"]["loss"] == 0.1 + 0.2 and record["versions"]["torch"] == torch.__version__
    assert records.load(tmp_path, {"a": 1}) == {"loss": 0.1 + 0.2} and records.load(tmp_path, {"a": 2}) is None


def test_the_same_seed_gives_the_same_numbers(tmp_path):
    one, two = base.run_arm(TINY, 2, 3, tmp_path / "a"), base.run_arm(TINY, 2, 3, tmp_path / "b")
    other = base.run_arm(TINY, 2, 4, tmp_path / "c")
    assert one == two and one[0]["training"] != other[0]["training"] and one[0]["training"] != one[1]["training"]


def test_a_verdict_can_fail():
    result = {"predicted": "global", "observed": "global", "held_out": [0.62], "held_out_error": [1e-3]}
    assert verdicts.judge(TINY, [result] * 3).passed
    assert not verdicts.judge(TINY, [result, result | {"observed": "between"}]).passed
    assert not verdicts.judge(TINY, [result | {"held_out": [0.6]}]).passed  # below the bigram loss .619


def test_the_prediction_is_that_of_the_basin_map(tmp_path):
    far = dataclasses.replace(TINY, start=CanonicalStart(0.3, 0.5))
    assert [result["predicted"] for result in base.run_arm(far, 2, 0, tmp_path)] == ["local", "local"]
    assert [result["predicted"] for result in base.run_arm(TINY, 2, 0, tmp_path)] == ["global", "global"]
    point = base.run_arm(TINY, 1, 0, tmp_path)[0]["point"]
    assert np.hypot(point[0] - 1, point[1] + 1) < 0.15


def test_real_training_obeys_the_map(tmp_path):
    """900 steps of the arms of init_comparison, fewer runs and a smaller held-out set."""
    for arm in arms(quick=True):
        short = dataclasses.replace(arm, schedule=Schedule(steps=900, evaluate_every=900, held_out=2048))
        results = base.run_arm(short, 2, 1, tmp_path)
        assert [result["observed"] for result in results] == [result["predicted"] for result in results]
        assert {result["observed"] for result in results} == {"global" if "around" in arm.name or "(0.2, 0.3)" in arm.name else "local"}


def test_the_command_line(run_python, tmp_path):
    listed = json.loads(run_python("-m", "validation", "list", "--json").stdout)
    assert [entry["name"] for entry in listed["experiments"]] == experiments.names() and "init_comparison" in experiments.names()
    for arguments in (("run", "nothing"), ("run", "init_comparison", "--runs", "x"), ("run", "init_comparison", "--runs", "0")):
        refused = run_python("-m", "validation", *arguments, check=False)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and refused.stdout == ""


def test_the_outcome_is_drawn_and_told(tmp_path, monkeypatch):
    from validation.__main__ import as_data, table

    small = [dataclasses.replace(arm, schedule=TINY.schedule, config=TINY.config) for arm in arms(quick=True)]
    quick = dataclasses.replace(EXPERIMENT, arms=lambda quick: small)
    outcome = base.conduct(quick, quick=True, seed=0, folder=tmp_path, runs=2)
    files = [str(path) for path in quick.draw(outcome, tmp_path)]
    assert all(name.endswith((".png", ".pdf")) for name in files) and all((tmp_path / name).stat().st_size > 5000 for name in files)
    assert "REFUTED" in table(outcome, files)  # five steps take no one to the bigram loss
    assert as_data(outcome, files)["passed"] is False
