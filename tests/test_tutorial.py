"""The tutorial runs as it is written, from a file to a trained model, and what it says comes true."""

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import landscape
from landscape.paths import predicted_way

pytest.importorskip("torch")

TEXT = (ROOT / "TUTORIAL.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What is left after every block has run, in order, in one folder; and what each command printed."""
    from click.testing import CliRunner

    from landscape.cli import cli

    names, printed = {}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("tutorial"))
        for kind, block in re.findall(r"```(python|sh)\n(.*?)```", TEXT, re.S):
            if kind == "python":
                exec(compile(block, "TUTORIAL.md", "exec"), names)
                continue
            for line in block.strip().splitlines():
                done = CliRunner().invoke(cli, line.split()[1:], catch_exceptions=False)
                assert done.exit_code == 0, line
                printed[line.split()[1]] = done.output
        printed["files"] = {path.name for path in Path().iterdir()}
    return names, printed


def test_the_estimate_holds_the_chain_that_made_the_sequence(told):
    rates = told[0]["found"].rates
    assert rates["p"].low < 0.5 < rates["p"].high and rates["q"].low < 0.8 < rates["q"].high
    assert not told[0]["found"].warnings and told[0]["chain"].regime == "above" and "p = " in told[1]["estimate"]


def test_a_longer_memory_is_warned_of(told):
    assert any("order" in warning for warning in landscape.estimate(told[0]["memory"]).warnings)


def test_the_start_is_global_and_safe_and_a_gaussian_one_is_neither(told):
    names, printed = told
    assert set(names["told"].labels.values()) == {"global"} and landscape.safe_starts((1, -1)).all()
    assert landscape.p_global(names["chain"], 0.02) < 1e-150 and np.max(landscape.p_global(names["chain"], [0.1, 0.5, 1.0])) < 0.5
    assert "recommended" in printed["init"]


def test_one_training_ends_at_the_bigram_loss_and_the_other_does_not(told):
    names, printed = told
    stages = [landscape.diagnose(model, names["chain"])[0].stage for model in (names["good"], names["plain"])]
    assert stages == ["global", "plateau"] and "unigram" in printed["diagnose"]
    gaps = [model.losses(names["windows"][None, 500:]).mean().item() for model in (names["good"], names["plain"])]
    chain = names["chain"]
    assert abs(gaps[0] - chain.bigram_loss) < 0.02 < abs(gaps[1] - chain.bigram_loss)
    assert {"basins.png", "path.png", "path.nc"} <= printed["files"]


def test_the_path_of_the_training_ends_on_the_predicted_set(told):
    names, _ = told
    record = names["path"].dataset()
    steps = np.stack([record["e"].values[:, 0], record["w"].values[:, 0]], axis=1)
    way = predicted_way(names["chain"], record)
    np.testing.assert_allclose(way[0], steps[0], atol=1e-12)
    travelled, missed = (np.linalg.norm(steps[-50:] - end, axis=1).mean() for end in (way[0], way[-1]))  # batches are small
    assert missed < 0.15 * travelled and landscape.limit(names["chain"], steps[0]) == landscape.Label.GLOBAL
