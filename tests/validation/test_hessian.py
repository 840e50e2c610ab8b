"""The whole Hessian of the full model by automatic differentiation, against derivations/transverse-stability.md."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from landscape import BinaryChain  # noqa: E402
from validation.transformer import Transformer, TransformerConfig  # noqa: E402

BELOW, ABOVE = BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8)
D, R, N = 4, 5, 3
CONFIG = TransformerConfig(length=N, dimension=D, hidden=R, dtype="float64")
ALPHA = np.array([1.0, -1.0, -1.0, 1.0]) / 2
ONES = np.ones(R) / np.sqrt(R)


def paths(chain):
    """All sequences of N + 1 symbols and their probabilities."""
    symbols = np.array(list(np.ndindex(*(2,) * (N + 1))))
    weights = chain.stationary[symbols[:, 0]]
    for n in range(N):
        weights = weights * chain.transition[symbols[:, n], symbols[:, n + 1]]
    return torch.from_numpy(symbols)[None], torch.from_numpy(weights)


def hessian(chain, weights):
    """The Hessian of the population loss in all parameters, for weights given by name (the others are zero)."""
    model = Transformer(CONFIG)
    symbols, chances = paths(chain)
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    start = torch.cat([
        torch.as_tensor(np.broadcast_to(weights.get(name, 0.0), shape[1:]).copy(), dtype=torch.float64).reshape(-1)
        for name, shape in shapes.items()
    ])

    def loss(flat):
        pieces = dict(zip(shapes, flat.split([int(np.prod(shape)) for shape in shapes.values()])))
        named = {name: pieces[name].reshape(shape) for name, shape in shapes.items()}
        logits = torch.func.functional_call(model, named, (symbols[..., :-1],))
        losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, symbols[..., 1:].double(), reduction="none")
        return (losses.mean(dim=-1)[0] * chances).sum()

    gradient = torch.autograd.functional.jacobian(loss, start)
    return gradient.numpy(), torch.autograd.functional.hessian(loss, start).numpy()


def on_plateau(chain, c, w1, w2, **others):
    return {
        "positions": c * ALPHA, "inner": w1 * np.outer(ONES, ALPHA), "outer": w2 * np.outer(ALPHA, ONES),
        "bias": np.log(chain.p / chain.q), **others,
    }


def counts(matrix):
    values = np.linalg.eigvalsh(matrix)
    return int((values < -1e-9).sum()), int((np.abs(values) <= 1e-9).sum())


@pytest.mark.parametrize("chain", [BELOW, ABOVE])
@pytest.mark.parametrize("c, w1, w2", [(0.75, 1.5, -1.25), (0.75, 1.5, 0.5), (-0.5, 1.5, -2.0)])
def test_index_and_nullity_of_every_plateau_of_the_manifold(chain, c, w1, w2):
    """Softmax attention on the manifold beside it does not change them, as long as it keeps the sign of the eigenvalue."""
    open_ = float(w1 * c > 0)
    sign = np.sign(chain.phi_prime(0.0))
    expected = (D - 1) * (sign < 0) + (sign * (1 + open_ * w1 * w2) < 0)
    line = np.outer(ALPHA, ALPHA)
    for others in ({}, {"query": 0.7 * line, "key": -0.5 * line, "value": 0.8 * line, "output": 0.6 * line}):
        slope, second = hessian(chain, on_plateau(chain, c, w1, w2, **others))
        assert np.abs(slope).max() < 1e-14
        assert counts(second) == (expected, len(second) - D - 1)


@pytest.mark.parametrize("chain", [BELOW, ABOVE])
def test_the_embedding_block_for_weights_off_the_manifold(chain):
    """φ′(0)(S + Sᵀ) with S = (I + W₂DW₁)(I + ρ W_O W_V), the bias eliminated, for generic weights and softmax attention."""
    random = np.random.default_rng(3)
    weights = {name: random.normal(size=(D, D)) / 2 for name in ("query", "key", "value", "output")}
    weights |= {"inner": random.normal(size=(R, D)), "outer": random.normal(size=(D, R)) / 2, "bias": np.log(chain.p / chain.q)}
    position = random.normal(size=D)
    _, second = hessian(chain, weights | {"positions": position})
    carried = weights["output"] @ weights["value"]
    gates = (weights["inner"] @ (position + carried @ position) > 0).astype(float)
    eigenvalue = 1 - chain.p - chain.q
    share = np.mean([np.mean(eigenvalue ** np.arange(n)) for n in range(1, N + 1)])
    whole = (np.eye(D) + weights["outer"] * gates @ weights["inner"]) @ (np.eye(D) + share * carried)
    found = second[:D, :D] - np.outer(second[:D, -1], second[-1, :D]) / second[-1, -1]
    assert np.allclose(found, chain.phi_prime(0.0) * (whole + whole.T), atol=1e-12)


def test_with_as_many_open_units_as_dimensions_there_are_bad_minima_below_the_threshold():
    """S = -I: off the manifold, the theorem for rank one has no say."""
    inner, outer = np.zeros((R, D)), np.zeros((D, R))
    inner[:D], outer[:, :D] = np.eye(D), -2 * np.eye(D)
    _, second = hessian(BELOW, {"positions": np.ones(D), "inner": inner, "outer": outer, "bias": np.log(BELOW.p / BELOW.q)})
    assert counts(second) == (0, len(second) - D - 1)


@pytest.mark.parametrize("chain", [BELOW, ABOVE])
def test_global_minima_are_flat_across_the_manifold(chain):
    """Rank N + 1: two logits at the first position, and one more direction for each further position."""
    e, c, w1 = 1.0, -0.5, 2.0
    w2 = (chain.kappa_star - e**2) / (e * w1 * (e + c))  # open after a 1 alone
    bias = np.log(chain.p / (1 - chain.p)) - e * c
    weights = on_plateau(chain, c, w1, w2) | {"embedding": e * ALPHA, "bias": bias}
    slope, second = hessian(chain, weights)
    assert np.abs(slope).max() < 1e-14
    free = np.abs(second).max(axis=1) > 0  # attention matrices that are all zero have no second derivatives
    assert counts(second) == (0, len(second) - N - 1) and free.sum() > D + N
