"""What the canonical picture is worth for the full model: the plateau off the slice, on both sides of p + q = 1."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import landscape  # noqa: E402
from landscape import BinaryChain, Label  # noqa: E402
from landscape.pytorch import canonical_  # noqa: E402
from validation import data  # noqa: E402
from validation.training import SGD, Schedule, train  # noqa: E402
from validation.transformer import Transformer, TransformerConfig  # noqa: E402

ALPHA = np.array([1.0, -1.0, -1.0, 1.0]) / 2
ACROSS = np.array([1.0, 1.0, 0.0, 0.0]) / np.sqrt(2)  # orthogonal to ALPHA


def trained(chain, e, w, across, steps):
    """Train one model per value of |e_perp| without attention; returns embeddings and held-out losses before and after."""
    config = TransformerConfig(length=32, attention="none", dtype="float64")
    model = canonical_(Transformer(config, len(across)), e, w, alpha=np.tile(2 * ALPHA, (len(across), 1)))
    with torch.no_grad():
        model.embedding += torch.tensor(np.outer(across, ACROSS))
    chains = [chain] * len(across)
    batches = data.batches(chains, [data.stream(0, i, "training") for i in range(len(across))], 32, 32)
    unseen = data.held_out(chains, [data.stream(0, i, "held_out") for i in range(len(across))], 32, 2000)
    curves = train(model, batches, unseen, SGD(0.3), Schedule(steps=steps, held_out=2000, evaluate_every=steps))
    return model.embedding.detach().numpy() @ ACROSS, curves.held_out[:, -1]


def test_below_the_threshold_the_local_basin_traps_the_slice_alone():
    chain = BinaryChain(0.2, 0.3)
    assert landscape.limit(chain, [(-0.3, -1.5)])[0] == Label.LOCAL
    off, losses = trained(chain, -0.3, -1.5, [0.0, 1e-3, 0.02], 400)
    share = (losses - chain.bigram_loss) / (chain.unigram_loss - chain.bigram_loss)
    assert off[0] == pytest.approx(0.0, abs=1e-12) and share[0] > 0.9
    assert (np.abs(share[1:]) < 0.1).all()
    assert np.abs(off[1:]) == pytest.approx(np.sqrt(chain.kappa_star) * np.ones(2), rel=0.1)


def test_above_the_threshold_the_local_basin_traps_its_neighbourhood_too():
    chain = BinaryChain(0.5, 0.8)
    assert landscape.limit(chain, [(0.3, 0.5)])[0] == Label.LOCAL
    off, losses = trained(chain, 0.3, 0.5, [0.0, 0.02, 0.1], 600)
    share = (losses - chain.bigram_loss) / (chain.unigram_loss - chain.bigram_loss)
    assert (share > 0.9).all() and (np.abs(off) < 1e-3).all()


def test_the_part_off_the_slice_grows_at_twice_the_slope_of_phi():
    chain, steps = BinaryChain(0.2, 0.3), 60
    off, _ = trained(chain, 0.0, -1.5, [1e-6, 1e-5], steps)
    # one step of size 0.3 multiplies e_perp by 1 - 0.3 * 2 φ′(0), on average over batches
    growth = np.log(np.abs(off) / [1e-6, 1e-5]) / steps
    assert growth == pytest.approx(np.log1p(-0.3 * 2 * chain.phi_prime(0.0)) * np.ones(2), rel=0.1)
