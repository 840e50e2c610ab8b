"""Every experiment of the suite with a few steps: it runs, is judged, drawn and written; what is refuted can be confirmed, and the reverse."""

import dataclasses
import json
import os
import signal

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from landscape import BinaryChain, ParameterError  # noqa: E402
from landscape.pytorch import canonical_  # noqa: E402
from tests.conftest import ROOT, strict  # noqa: E402
from validation import data, experiments  # noqa: E402
from validation.__main__ import as_data, table  # noqa: E402
from validation.alpha import AlphaConfig, AlphaStart  # noqa: E402
from validation.experiments import alpha_trained, attention_kinds, attention_vanishes, base, low_rank, multistate  # noqa: E402
from validation.second_order import SecondOrderChain  # noqa: E402
from validation.transformer import Transformer, TransformerConfig  # noqa: E402

SHORT = {"steps": 4, "log_every": 2, "evaluate_every": 2, "held_out": 8}
SUITE = [name for name in experiments.names() if name not in ("basin_accuracy", "canonical_vs_full", "adam_escapes")]


def shortened(experiment, quick):
    """The experiment with a few steps, short sequences and float64 where it has that."""
    arms = [
        dataclasses.replace(arm, schedule=dataclasses.replace(arm.schedule, **SHORT), config=dataclasses.replace(arm.config, length=8))
        for arm in experiment.arms(quick)
    ]
    return dataclasses.replace(experiment, arms=lambda _: arms)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", SUITE)
def test_every_experiment_runs_and_is_drawn(name, quick, tmp_path):
    if experiments.find(name).needs:
        pytest.importorskip(experiments.find(name).needs)
    experiment = shortened(experiments.find(name), quick)
    outcome = base.conduct(experiment, quick=quick, seed=0, folder=tmp_path, runs=1)
    assert len({arm.name for arm in outcome.arms}) == len(outcome.arms)
    told = as_data(outcome, [])
    json.dumps(told, allow_nan=False)
    assert len(outcome.verdicts) == len(outcome.arms) and name in told["name"]
    assert outcome.findings or any(verdict.predicted for verdict in outcome.verdicts) or name == "beyond"
    if quick:
        for path in experiment.draw(outcome, tmp_path):
            assert path.stat().st_size > 5000
    text = table(outcome, [])
    assert ("explored" in text) == any(arm.predict is None for arm in outcome.arms)


def ended(module, name, arms, values):
    """An outcome in which the measure of every run of every arm ends at given values."""
    return base.Outcome(module.EXPERIMENT, arms, {arm.name: [{name: value} for value in values] for arm in arms}, [])


def test_what_attention_adds_is_judged_run_by_run():
    arms = attention_vanishes.arms(True)
    judged = lambda *shares: [finding.passed for finding in ended(attention_vanishes, "share", arms[2:3], [[0.9, share] for share in shares]).findings]  # noqa: E731
    assert judged(0.01, 0.04) == [True, True] and judged(0.01, 0.06) == [False, True] and judged(0.01, 0.5) == [False, False]


def test_kinds_of_attention_have_to_end_alike_in_every_run():
    arms = attention_kinds.arms(True)[:2]
    rows = {arms[0].name: [{"observed": "local"}, {"observed": "global"}], arms[1].name: [{"observed": "local"}, {"observed": "global"}]}
    assert base.Outcome(attention_kinds.EXPERIMENT, arms, rows, []).findings[0].passed
    rows = rows | {arms[1].name: rows[arms[1].name][::-1]}
    assert not base.Outcome(attention_kinds.EXPERIMENT, arms, rows, []).findings[0].passed


def test_low_rank_findings_can_come_true():
    arms = low_rank.arms(False)
    def outcome(share, cosine, spread):
        row = {f"energy {name}": [[share, 1.0, 1.0, 1.0]] for name in low_rank.MATRICES} | {"cosines": [[cosine] * 10], "spread": [[spread] * 5]}
        return base.Outcome(low_rank.EXPERIMENT, arms, {arm.name: [row] for arm in arms}, [])
    good, bad = (outcome(*values).findings for values in ((0.999, 0.99, 0.01), (0.5, 0.5, 0.5)))
    decay = [finding.statement for finding in good if "decay" in finding.statement]
    assert len(decay) == 1 and all(finding.passed for finding in good if finding.statement not in decay)
    assert not any(finding.passed for finding in bad) and outcome(0.999, 0.99, 0.01).summary


def test_alpha_findings_can_come_true():
    arms = alpha_trained.arms(True)
    start = np.array([1.0, -1.0, 1.0])
    def outcome(end):
        return ended(alpha_trained, "alpha", arms, [[start.tolist(), list(end)]])
    kept, longer, turned = (outcome(end).findings for end in (start, 1.5 * start, [1.0, -1.0, 0.2]))
    assert [f.passed for f in kept] == [True, True, False, True] and [f.passed for f in longer] == [True, False, True, True]
    assert [f.passed for f in turned] == [False, False, True, False]


def test_the_rank_of_many_states_is_judged():
    arms = [arm for arm in multistate.arms(False) if multistate.LOW_RANK in arm.name]
    row = {"observed": "global", "energy embeddings": [[1.0] * 4]}
    judged = lambda share: base.Outcome(multistate.EXPERIMENT, arms, {arm.name: [row | {"energy W1": [[0.3, 0.6, 0.9, share]]}] for arm in arms}, []).findings  # noqa: E731
    assert all(f.passed for f in judged(0.999)) and not any(f.passed for f in judged(0.98)) and len(judged(0.999)) == 2


# --- what they train ---------------------------------------------------------------------------------------------


def test_with_signs_alpha_is_the_canonical_model():
    config = AlphaConfig(length=6, dimension=4, hidden=8, dtype="float64")
    model, plain = config.build(2), Transformer(TransformerConfig(length=6, dimension=4, hidden=8, dtype="float64"), 2)
    AlphaStart(0.8, -0.6, True, gain=0.3).fill_(model, (0.8, -0.6), torch.Generator().manual_seed(1))
    canonical_(plain, 0.8, -0.6, alpha=model.alpha.detach().numpy())
    with torch.no_grad():
        for name in ("query", "key", "value", "output"):
            getattr(plain, name).copy_(0.3 * model.alpha[:, :, None] * model.alpha[:, None, :])
    symbols = torch.randint(0, 2, (2, 5, 7), generator=torch.Generator().manual_seed(2))
    assert torch.allclose(model.losses(symbols), plain.losses(symbols), atol=1e-13)
    assert {name for name, _ in model.named_parameters()} == {"alpha", "e", "w", "gain", "bias"}


def test_the_gradient_in_alpha_is_along_alpha():
    """The loss depends on the length of alpha alone."""
    model = AlphaConfig(length=6, dimension=5, hidden=8, dtype="float64").build(1)
    AlphaStart(0.8, -0.6, False, gain=0.5).fill_(model, (0.8, -0.6), torch.Generator().manual_seed(1))
    model.losses(torch.randint(0, 2, (1, 5, 7), generator=torch.Generator().manual_seed(2))).mean().backward()
    alpha, gradient = model.alpha.detach()[0], model.alpha.grad[0]
    across = gradient - alpha * (gradient @ alpha) / (alpha @ alpha)
    assert across.norm() < 1e-14 and gradient.norm() > 1e-3


def test_a_chain_of_order_two_has_the_losses_that_its_paths_have():
    chain = SecondOrderChain(0.2, 0.6, 0.9, 0.3)
    assert chain.pairs.sum() == pytest.approx(1.0) and (chain.pairs > 0).all()
    assert chain.entropy_rate < chain.bigram_loss < chain.unigram_loss
    paths = chain.sample(2001, 500, seed=0)
    windows = 4 * paths[:, :-2] + 2 * paths[:, 1:-1] + paths[:, 2:]
    counts = np.bincount(windows.ravel(), minlength=8).reshape(4, 2)
    assert counts.sum(axis=1) / counts.sum() == pytest.approx(chain.pairs, abs=3e-3)
    assert counts[:, 1] / counts.sum(axis=1) == pytest.approx([0.2, 0.6, 0.9, 0.3], abs=4e-3)
    assert data.bigram_loss(chain, paths) == pytest.approx(chain.bigram_loss, abs=2e-3)
    same = SecondOrderChain(0.5, 0.2, 0.5, 0.2)  # order one in disguise: p = 0.5, q = 0.8
    first = BinaryChain(0.5, 0.8)
    assert same.bigram_loss == pytest.approx(first.bigram_loss) and same.unigram_loss == pytest.approx(first.unigram_loss)
    assert same.entropy_rate == pytest.approx(first.bigram_loss) and same.target_sign == first.target_sign
    with pytest.raises(ParameterError):
        SecondOrderChain(0.2, 0.6, 1.0, 0.3)


def test_the_bigram_law_on_given_sequences():
    chain = BinaryChain(0.5, 1.0)
    assert data.bigram_loss(chain, np.array([[0, 1, 0, 0, 1]])) == pytest.approx(3 * np.log(2) / 4)


# --- interrupted -------------------------------------------------------------------------------------------------

INTERRUPTED = """
import dataclasses, os, signal, sys
from pathlib import Path
from tests.validation.test_suite import shortened
from validation import experiments, records
from validation.experiments import base
kill_after, folder = int(sys.argv[1]), Path(sys.argv[2])
saved = 0
save = records.save
def counting(*arguments):
    global saved
    path = save(*arguments)
    saved += 1
    if saved == kill_after:
        os.kill(os.getpid(), signal.SIGKILL)
    return path
records.save = counting
outcome = base.conduct(shortened(experiments.find("init_around"), True), quick=True, seed=3, folder=folder, runs=2)
from validation.__main__ import table
print(table(outcome, []))
"""


def test_a_killed_run_goes_on_to_the_table_of_an_uninterrupted_one(run_python, tmp_path):
    killed = run_python("-c", INTERRUPTED, 5, tmp_path / "killed", check=False, cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    kept = sorted((tmp_path / "killed").glob("run-*.json"), key=os.path.getmtime)
    assert len(kept) == 5
    text = kept[-1].read_text()
    kept[-1].write_text(text[: len(text) // 2])
    again = run_python("-c", INTERRUPTED, 0, tmp_path / "killed", cwd=ROOT)
    whole = run_python("-c", INTERRUPTED, 0, tmp_path / "whole", cwd=ROOT)
    assert kept[-1].name in again.stderr and again.stdout == whole.stdout
    for path in (tmp_path / "whole").glob("run-*.json"):
        assert strict(path.read_text())["result"] == strict((tmp_path / "killed" / path.name).read_text())["result"]
