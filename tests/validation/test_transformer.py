"""The full transformer: its gap on the canonical slice, causality, ensembles, finite losses."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from landscape import BinaryChain  # noqa: E402
from landscape.pytorch import canonical_  # noqa: E402
from validation import data  # noqa: E402
from validation.starts import gaussian_  # noqa: E402
from validation.training import SGD, Schedule, train  # noqa: E402
from validation.transformer import Transformer, TransformerConfig, stack  # noqa: E402

STARTS = [(1.0, -1.0), (0.7, 0.4), (-1.3, -0.6), (-0.5, 1.2), (2.0, 0.0), (0.3, -2.0)]


@pytest.mark.parametrize(("d", "r"), [(1, 1), (4, 16), (8, 3)])
@pytest.mark.parametrize("attention", ["none", "softmax", "linear"])
def test_the_slice_has_exactly_the_canonical_gap_and_constant(d, r, attention):
    e, w = np.array(STARTS).T
    config = TransformerConfig(length=5, dimension=d, hidden=r, attention=attention, dtype="float64")
    model = canonical_(Transformer(config, len(e)), e, w, attention_std=0.3, generator=torch.Generator().manual_seed(1))
    if attention != "none":
        model.value.data.zero_()
    symbols = torch.tensor([[[0, 1, 0, 1, 1]]]).expand(len(e), -1, -1)
    logits = model(symbols).detach().numpy()[:, 0]
    after_one, after_zero = logits[:, [1, 3, 4]], logits[:, [0, 2]]
    assert after_one - (e**2 * (1 + 2 * w * np.abs(w)))[:, None] == pytest.approx(np.repeat(after_zero[:, :1], 3, 1), abs=1e-12)
    constant = -(e**2) / 2 * np.where(e > 0, 1.0, 1 + 4 * w * np.abs(w))
    assert after_zero == pytest.approx(np.stack([constant, constant], axis=1), abs=1e-12)


def test_the_package_and_the_transformer_agree_on_the_gap_and_the_loss():
    import landscape

    chain, (e, w) = BinaryChain(0.5, 0.8), np.array(STARTS).T
    config = TransformerConfig(length=2, attention="none", dtype="float64")
    model = canonical_(Transformer(config, len(e)), e, w)
    logits = model(torch.tensor([[[0, 1]]]).expand(len(e), -1, -1)).detach().numpy()[:, 0]
    gap = landscape.architecture("canonical").kappa(chain, STARTS)
    assert logits[:, 1] - logits[:, 0] == pytest.approx(gap, abs=1e-12)
    # at its best bias the expected loss of the network is the loss of the landscape
    zero, one = chain.stationary
    grid = np.linspace(-6, 6, 24001)[:, None]

    def expected(bias):
        soft = lambda x: np.logaddexp(0, x)
        a, b = logits[:, 0] + bias, logits[:, 1] + bias
        return zero * (0.5 * soft(a) + 0.5 * soft(-a)) + one * (0.8 * soft(b) + 0.2 * soft(-b))

    assert expected(grid).min(axis=0) == pytest.approx(landscape.loss(chain, STARTS), abs=1e-7)


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_a_logit_depends_on_earlier_symbols_alone(attention):
    config = TransformerConfig(length=8, attention=attention, dtype="float64")
    model = gaussian_(Transformer(config, 1), 0.7, generator=torch.Generator().manual_seed(0))
    symbols = torch.randint(0, 2, (1, 3, 8), generator=torch.Generator().manual_seed(1))
    changed = symbols.clone()
    changed[..., 5:] = 1 - changed[..., 5:]
    before, after = model(symbols), model(changed)
    assert torch.equal(before[..., :5], after[..., :5]) and not torch.allclose(before[..., 5:], after[..., 5:])
    changed = symbols.clone()
    changed[..., 0] = 1 - changed[..., 0]
    assert not torch.allclose(model(changed)[..., -1], before[..., -1])


def ensemble(indices, chain, config, schedule):
    models = []
    for index in indices:
        model = Transformer(config, 1)
        models.append(gaussian_(model, 0.3, generator=data.torch_generator(data.stream(5, index, "weights"))))
    chains = [chain] * len(indices)
    batches = data.batches(chains, [data.stream(5, i, "training") for i in indices], config.length, schedule.batch)
    unseen = data.held_out(chains, [data.stream(5, i, "held_out") for i in indices], config.length, schedule.held_out)
    return train(stack(models), batches, unseen, SGD(0.3), schedule)


def test_a_model_of_an_ensemble_trains_as_it_does_alone():
    chain, config = BinaryChain(0.2, 0.3), TransformerConfig(length=16)
    schedule = Schedule(steps=100, batch=8, log_every=1, evaluate_every=100, held_out=64)
    together = ensemble(range(64), chain, config, schedule)
    for index in (0, 7, 63):
        alone = ensemble([index], chain, config, schedule)
        assert alone.training[0] == pytest.approx(together.training[index], abs=1e-5)
        assert alone.held_out[0] == pytest.approx(together.held_out[index], abs=1e-5)
    assert np.ptp(together.training[:, -1]) > 1e-3


@pytest.mark.parametrize(("p", "q"), [(1.0, 0.3), (1.0, 1.0), (0.0, 1.0)])
def test_loss_and_gradients_are_finite_for_certain_transitions(p, q):
    config = TransformerConfig(length=16)
    model = canonical_(Transformer(config, 2), [1.0, 40.0], [-1.0, 3.0], attention_std=0.1)
    symbols = torch.from_numpy(np.stack([BinaryChain(p, q).sample(17, 4, seed=i) for i in range(2)]))
    loss = model.losses(symbols).mean(dim=(1, 2))
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_autograd_along_the_slice_matches_differences():
    config = TransformerConfig(length=6, dtype="float64")
    symbols = torch.from_numpy(BinaryChain(0.5, 0.8).sample(7, 5, seed=3)[None])

    def loss(e, w):
        model = canonical_(Transformer(config, 1), e, w, alpha=[[1, -1, -1, 1]])
        return model, model.losses(symbols).mean()

    model, value = loss(0.8, -0.5)
    value.backward()
    for step in ((1e-6, 0.0), (0.0, 1e-6)):
        up, down = loss(0.8 + step[0], -0.5 + step[1]), loss(0.8 - step[0], -0.5 - step[1])
        slope = sum(
            (parameter.grad * (high - low)).sum() for parameter, high, low in
            zip(model.parameters(), up[0].parameters(), down[0].parameters())
        ) / 2e-6
        assert slope.item() == pytest.approx((up[1] - down[1]).item() / 2e-6, abs=1e-8)


def test_targets_are_the_next_symbols():
    config = TransformerConfig(length=4, attention="none", dtype="float64")
    model = canonical_(Transformer(config, 1), 2.0, 0.5)
    symbols = torch.tensor([[[0, 1, 1, 0, 1]]])
    logits = model(symbols[..., :-1])
    expected = torch.nn.functional.softplus(-(2 * symbols[..., 1:] - 1) * logits)
    assert torch.allclose(model.losses(symbols), expected, atol=1e-14)


def test_training_gives_torch_its_threads_back():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        schedule = Schedule(steps=1, batch=1, log_every=1, evaluate_every=1, held_out=2)
        ensemble([0], BinaryChain(0.5, 0.8), TransformerConfig(length=4), schedule)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
