"""Transformers of other kinds: many symbols, heads, layers, layer norm; the start of rank S - 1; schedules; measures."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import landscape  # noqa: E402
from landscape import ParameterError, SymmetricChain  # noqa: E402
from landscape.pytorch import canonical_, simplex_, simplex_corners  # noqa: E402
from validation import data, measures  # noqa: E402
from validation.starts import gaussian_  # noqa: E402
from validation.training import AUTHORS, SGD, Schedule, train  # noqa: E402
from validation.transformer import Transformer, TransformerConfig, stack  # noqa: E402

KINDS = {
    "many symbols": {"symbols": 5},
    "untied": {"symbols": 3, "tied": False},
    "heads": {"heads": 2},
    "layers": {"layers": 3, "symbols": 4},
    "norm": {"norm": True, "activation": "gelu", "layers": 2},
    "linear": {"attention": "linear", "heads": 4, "symbols": 3},
    "none": {"attention": "none", "norm": True},
}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def config_of(kind, length=8):
    return TransformerConfig(length=length, dimension=4, hidden=12, dtype="float64", **KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_logit_depends_on_earlier_symbols_alone(kind):
    config = config_of(kind)
    model = gaussian_(Transformer(config, 2), 0.7, generator=seeded(0))
    top = config.symbols or 2
    symbols = torch.randint(0, top, (2, 3, 8), generator=seeded(1))
    changed = symbols.clone()
    changed[..., 5:] = (changed[..., 5:] + 1) % top
    before, after = model(symbols), model(changed)
    assert before.shape == ((2, 3, 8) if config.symbols is None else (2, 3, 8, config.symbols))
    assert torch.allclose(before[:, :, :5], after[:, :, :5], atol=1e-14) and not torch.allclose(before[:, :, 5:], after[:, :, 5:])
    if config.attention != "none":
        changed = symbols.clone()
        changed[..., 0] = (changed[..., 0] + 1) % top
        assert not torch.allclose(model(changed)[:, :, -1], before[:, :, -1])


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_has_a_gradient_and_models_do_not_mix(kind):
    config = config_of(kind)
    models = [gaussian_(Transformer(config, 1), 0.5, generator=seeded(k)) for k in range(3)]
    symbols = torch.randint(0, config.symbols or 2, (3, 4, 9), generator=seeded(9))
    together = stack(models)
    together.losses(symbols).mean(dim=(1, 2)).sum().backward()
    for k, model in enumerate(models):
        model.losses(symbols[k : k + 1]).mean().backward()
        for (name, alone), other in zip(model.named_parameters(), together.parameters()):
            assert torch.allclose(alone.grad[0], other.grad[k], atol=1e-13), name
            assert alone.grad.abs().max() > 0.0, name


def test_symbols_with_a_vector_each_have_the_loss_of_the_usual_cross_entropy():
    model = gaussian_(Transformer(config_of("many symbols"), 2), 1.0, generator=seeded(0))
    symbols = torch.randint(0, 5, (2, 3, 9), generator=seeded(1))
    logits = model(symbols[..., :-1])
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 2), symbols[..., 1:].flatten(), reduction="none")
    assert torch.allclose(model.losses(symbols).flatten(), expected, atol=1e-13)


@pytest.mark.parametrize(("states", "width", "hidden"), [(2, 1, 2), (3, 4, 16), (5, 4, 16), (5, 8, 32), (10, 9, 10)])
def test_the_start_of_rank_s_minus_1_has_the_gap_of_the_landscape(states, width, hidden):
    chain = SymmetricChain(states, 0.9)
    config = TransformerConfig(length=3, dimension=width, hidden=hidden, symbols=states, dtype="float64")
    for e, w in ((1.0, -1.0), (0.7, 0.4), (-1.2, -0.6), (-0.5, 1.1)):
        model = simplex_(Transformer(config, 2), e, w, generator=seeded(2))
        symbols = torch.arange(states).repeat(2, 1)[..., None]
        logits = model(symbols).detach().numpy()[:, :, 0]
        same = np.diagonal(logits, axis1=1, axis2=2)
        others = logits[:, ~np.eye(states, dtype=bool)].reshape(2, states, -1)
        assert np.ptp(others) < 1e-12 and np.ptp(same) < 1e-12
        assert same[0, 0] - others[0, 0, 0] == pytest.approx(landscape.architecture("canonical").kappa(chain, [(e, w)])[0], abs=1e-12)
        assert np.linalg.matrix_rank(model.inner[0].detach().numpy()) == states - 1


def test_a_simplex_needs_room():
    corners = simplex_corners(4, 6, seeded(0)).numpy()
    assert corners @ corners.T == pytest.approx((4 * np.eye(4) - 1) / 3, abs=1e-12)
    for config in (TransformerConfig(), TransformerConfig(dimension=4, symbols=10), TransformerConfig(dimension=8, hidden=4, symbols=5)):
        with pytest.raises(ParameterError):
            simplex_(Transformer(config, 1), 1.0, -1.0)


@pytest.mark.parametrize("wrong", [{"heads": 3}, {"symbols": 1}, {"layers": 0}, {"activation": "tanh"}])
def test_kinds_that_do_not_exist_are_refused(wrong):
    with pytest.raises(ParameterError):
        TransformerConfig(dimension=4, **wrong)


def test_two_symbols_with_a_vector_each_are_a_binary_transformer():
    """The vectors 0 and e, and logits of 1 against 0: the same losses as one vector that binary symbols scale, untied."""
    plain = TransformerConfig(length=6, dimension=4, hidden=8, tied=False, dtype="float64")
    one = gaussian_(Transformer(plain, 2), 0.6, generator=seeded(3))
    two = Transformer(TransformerConfig(length=6, dimension=4, hidden=8, tied=False, dtype="float64", symbols=2), 2)
    with torch.no_grad():
        for name, tensor in one.named_parameters():
            target = getattr(two, name)
            if target.shape == tensor.shape:
                target.copy_(tensor)
            else:
                target.zero_()
                target[:, 1] = tensor
    symbols = torch.randint(0, 2, (2, 3, 7), generator=seeded(4))
    assert torch.allclose(one.losses(symbols), two.losses(symbols), atol=1e-13)


def test_the_rate_rises_in_a_line_and_falls_by_a_cosine():
    factors = np.array([AUTHORS.factor(step, 1000) for step in range(1, 1001)])
    assert factors[:20] == pytest.approx(np.arange(1, 21) / 20) and factors.max() == 1.0 and factors[-1] == 0.0
    assert AUTHORS.factor(510, 1000) == pytest.approx(0.5) and (np.diff(factors[20:]) < 0).all()
    assert AUTHORS.factor(1, 3) == 1.0 and SGD().factor(5, 10) == 1.0


def test_the_schedule_reaches_the_weights():
    """With a rate that falls to zero the last steps hardly move them, and a constant rate's do."""
    chain, config = landscape.BinaryChain(0.5, 0.8), TransformerConfig(length=16)
    moved = {}
    for cosine in (True, False):
        optimiser = AUTHORS.__class__(2e-3, cosine=cosine)
        model = gaussian_(Transformer(config, 1), 0.3, generator=seeded(0))
        places = []

        def look(model, _):
            places.append(model.inner.detach().clone())
            return {}

        batches = data.batches([chain], [data.stream(0, 0, "training")], 16, 4)
        unseen = data.held_out([chain], [data.stream(0, 0, "held_out")], 16, 8)
        train(model, batches, unseen, optimiser, Schedule(steps=100, evaluate_every=5, held_out=8), measure=look)
        moved[cosine] = (places[-1] - places[-2]).norm() / (places[3] - places[2]).norm()
    assert moved[True] < 0.05 < moved[False]


def test_energies_and_alignment_of_known_matrices():
    shares = measures.energies(np.stack([np.diag([3.0, 1.0, 0.0]), np.zeros((3, 3)), np.ones((3, 3))]))
    assert shares == pytest.approx(np.array([[0.9, 1.0, 1.0], [1, 1, 1], [1, 1, 1]]), abs=1e-14)
    model = canonical_(Transformer(TransformerConfig(length=6, dtype="float64"), 2), 1.0, -1.0, attention_std=0.1, generator=seeded(0))
    found = measures.low_rank(model, None)
    assert found["energy W1"] == pytest.approx(np.ones((2, 4))) and found["energy embeddings"] == pytest.approx(np.ones((2, 4)))
    assert (found["energy W_V"][:, 0] < 0.99).all() and found["cosines"].shape == (2, 10)
    assert found["cosines"][:, 0] == pytest.approx(1.0) and found["spread"][:, :2] == pytest.approx(0.0, abs=1e-12)
    assert (found["cosines"][:, 9] < 0.999).all()  # of the random key and value matrices
    simplex = simplex_(Transformer(TransformerConfig(length=6, dimension=8, symbols=5, dtype="float64"), 1), 1.0, -1.0, generator=seeded(0))
    assert measures.low_rank(simplex, None)["energy W1"][0] == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_the_share_of_attention():
    config = TransformerConfig(length=4, dimension=2, hidden=2, attention="linear", dtype="float64")
    model = gaussian_(Transformer(config, 1), 0.5, generator=seeded(0))
    symbols = torch.randint(0, 2, (1, 8, 5), generator=seeded(1))
    stream, added = model.embed(symbols[..., :-1]), model.attend(model.embed(symbols[..., :-1]))
    expected = (added.square().mean() / stream.square().mean()).sqrt().item()
    assert measures.attention_share(model, symbols)["share"][0] == pytest.approx(expected)
    model.value.data.zero_()
    assert measures.attention_share(model, symbols)["share"][0] == 0.0
