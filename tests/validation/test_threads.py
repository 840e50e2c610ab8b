"""Large ensembles are trained in parts, a thread for each: the same trainings."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from landscape import BinaryChain  # noqa: E402
from validation import data, measures, training  # noqa: E402
from validation.alpha import AlphaConfig, AlphaStart  # noqa: E402
from validation.starts import GaussianStart  # noqa: E402
from validation.training import AdamW, Schedule, train  # noqa: E402
from validation.transformer import TransformerConfig, stack  # noqa: E402

SIZES = {"length": 24, "dtype": "float64"}
KINDS = {
    "plain": (TransformerConfig(**SIZES), GaussianStart(0.3)), "many symbols": (TransformerConfig(**SIZES, symbols=2, layers=2), GaussianStart(0.3)),
    "alpha": (AlphaConfig(**SIZES), AlphaStart(1.0, -1.0, False)),
}


def trained(kind, indices, threads, monkeypatch):
    """Models trained on `threads` threads, and their curves."""
    config, start = KINDS[kind]
    schedule = Schedule(steps=30, batch=4, log_every=1, evaluate_every=15, held_out=8)
    models = [config.build(1) for _ in indices]
    for k, model in zip(indices, models):
        start.fill_(model, (1.0, -1.0), data.torch_generator(data.stream(3, k, "weights")))
    model = stack(models)
    chains = [BinaryChain(0.2, 0.3)] * len(indices)
    batches = data.batches(chains, [data.stream(3, k, "training") for k in indices], 24, 4)
    unseen = data.held_out(chains, [data.stream(3, k, "held_out") for k in indices], 24, 8)
    monkeypatch.setattr(training.os, "cpu_count", lambda: threads)
    monkeypatch.setattr(training, "SYMBOLS_A_THREAD", 1)
    assert len(training._parts(model, 4 * 24)) == min(threads, len(indices))
    look = measures.alpha if kind == "alpha" else None
    return model, train(model, batches, unseen, AdamW(5e-3, cosine=True), schedule, measure=look)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_nothing(kind, monkeypatch):
    (one, alone), (three, together) = (trained(kind, range(5), threads, monkeypatch) for threads in (1, 3))
    for name, weights in one.named_parameters():
        assert (weights - getattr(three, name)).abs().max() < 1e-12, name
    last = trained(kind, [4], 1, monkeypatch)[0]
    assert (three.bias - last.bias)[4].abs().max() < 1e-12
    for name in ("training", "held_out", "held_out_error"):
        assert getattr(together, name) == pytest.approx(getattr(alone, name), abs=1e-12)
    assert np.array_equal(together.evaluated, [0, 15, 30]) and np.ptp(together.training[:, 0]) > 1e-3
    if kind == "alpha":
        assert np.ptp(together.measures["alpha"][:, :, 0], axis=1).min() > 1e-6  # the measure sees the weights that move


def test_small_ensembles_are_not_parted():
    assert len(training._parts(TransformerConfig().build(8), 16 * 64)) == 1
