"""Optimisers without the noise of batches: against the full model on its population loss, torch's own AdamW, and the flow."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import landscape  # noqa: E402
from landscape import BinaryChain, ParameterError, architecture  # noqa: E402
from landscape.projection import project  # noqa: E402
from landscape.pytorch import canonical_  # noqa: E402
from validation.manifold import TwinAdamW  # noqa: E402
from validation.simulation import simulate  # noqa: E402
from validation.training import SGD, AdamW  # noqa: E402
from validation.transformer import Transformer, TransformerConfig  # noqa: E402

BELOW, ABOVE = BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8)
CHAINS = [BELOW, ABOVE]
CONFIG = TransformerConfig(length=16, dimension=8, hidden=32, attention="none", dtype="float64")
ADAM = AdamW(5e-3, weight_decay=0.1)
OPTIMISERS = [SGD(0.3), ADAM]
STARTS = np.array([[1.0, -0.5, 1.3, -1.9, 0.2, 0.3], [-0.8, 0.5, 1.0, 0.6, -0.3, 0.5], [0.4, 0.3, 0.7, 0.9, 0.1, 0.2]])  # e, c, w1, w2, b, u


def on(chain, name="transverse", pace=1.0):
    return architecture(name).on(chain, {"c": pace})


def population_loss(model, chain):
    """Expected loss of each model without attention, whose logits are of one symbol alone: every pair of symbols at every position."""
    count = model.config.length + 1
    symbols = np.stack([np.resize(np.roll([0, 0, 1, 1], shift), count) for shift in range(4)])
    weights = chain.joint_law[symbols[:, :-1], symbols[:, 1:]]
    losses = model.losses(torch.tensor(symbols).expand(model.members, -1, -1))
    return (torch.tensor(weights) * losses).sum(dim=(1, 2)) / model.config.length


def full_models(points, alpha, across):
    """Models without attention at points of `transverse`, with given parts of the embedding across alpha."""
    model = canonical_(Transformer(CONFIG, len(points)), 1.0, 1.0, alpha=alpha)  # e = 1, c = -1/2, w1 = w2 = 2
    e, c, w1, w2, b, _ = torch.tensor(points).T
    with torch.no_grad():
        model.embedding.mul_(e[:, None]).add_(torch.tensor(across))
        for tensor, factor in ((model.positions, -2 * c), (model.inner, w1 / 2), (model.outer, w2 / 2)):
            tensor.mul_(factor[:, None, None])
        model.bias.copy_(b)
    return model


def descend(model, chain, optimiser, steps):
    """Train in place on the population loss; returns the losses before the first step and after the last."""
    stepper, losses = optimiser.build(model), [population_loss(model, chain)]
    for _ in range(steps):
        stepper.zero_grad()
        losses[-1].sum().backward()
        stepper.step()
        losses[1:] = [population_loss(model, chain)]
    return torch.stack(losses, dim=1).detach().numpy()


def signs_and_across(seed=0):
    """Sign vectors, and vectors orthogonal to them of the lengths u of STARTS."""
    random = np.random.default_rng(seed)
    alpha = random.choice([-1.0, 1.0], size=(len(STARTS), 8))
    across = random.normal(size=alpha.shape)
    across -= alpha * (alpha * across).mean(1, keepdims=True)
    return alpha, across * (STARTS[:, 5] / np.linalg.norm(across, axis=1))[:, None]


# --- the full model --------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", CHAINS, ids=str)
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda optimiser: optimiser.words)
def test_on_the_manifold_it_is_the_full_model_trained_on_the_population_loss(chain, optimiser):
    starts = STARTS * [1, 1, 1, 1, 1, 0]
    alpha, _ = signs_and_across()
    model = full_models(starts, alpha, np.zeros_like(alpha))
    losses = descend(model, chain, optimiser, 200)
    found = project(model, alpha=alpha)
    assert np.abs(found.points()[:, :5] - starts[:, :5]).max(1).min() > 0.05
    for name in ("reduced", "transverse"):
        kept = starts[:, : len(architecture(name).parameters)]
        simulation = simulate(on(chain, name), kept, optimiser, CONFIG, [0, 200])
        assert simulation.looks[:, 0] == pytest.approx(kept, abs=1e-14)
        assert simulation.ends == pytest.approx(found.points(name), abs=1e-10)
        assert simulation.losses == pytest.approx(losses, abs=1e-11)


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_across_the_manifold_the_first_step_is_that_of_the_full_model(chain):
    alpha, across = signs_and_across()
    starts, across = STARTS * [1, 1, 1, 1, 1, 5], 5 * across  # long enough for AdamW to move entries against each other
    for optimiser, coordinates in ((SGD(0.3), range(6)), (ADAM, (0, 5))):
        model = full_models(starts, alpha, across)
        losses = descend(model, chain, optimiser, 1)
        simulation = simulate(on(chain), starts, optimiser, CONFIG, [0, 1], across=alpha * across)
        assert simulation.looks[:, 0] == pytest.approx(starts, abs=1e-14) and simulation.losses[:, 0] == pytest.approx(losses[:, 0], abs=1e-14)
        found = project(model, alpha=alpha).points()
        # AdamW turns, entry by entry, what in W_1 and the positions gets a gradient across alpha; that is not followed
        assert simulation.ends[:, coordinates] == pytest.approx(found[:, coordinates], abs=1e-12)
        assert np.abs(found - starts)[:, coordinates].max(axis=0).min() > 1e-3


# --- SGD ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["reduced", "transverse"])
def test_a_step_of_descent_goes_down_the_gradient_and_c_goes_a_sixteenth_of_it(name):
    model = on(ABOVE, name)
    points = STARTS[:, : len(model.parameters)]
    simulation = simulate(model, points, SGD(0.3), CONFIG, [0, 1, 2])
    rates = 0.3 * np.array([1.0, 1 / 16, 1.0, 1.0, 1.0, 1.0])[: len(model.parameters)]
    one = points - rates * model.gradient(points)
    assert np.array_equal(simulation.looks[:, 0], points) and simulation.looks[:, 1] == pytest.approx(one, abs=1e-15)
    assert simulation.ends == pytest.approx(one - rates * model.gradient(one), abs=1e-15)
    for k in range(3):
        assert np.array_equal(simulation.losses[:, k], model.loss(simulation.looks[:, k]))
    assert simulation.losses.shape == (3, 3) and np.array_equal(simulation.steps, [0, 1, 2])


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_slow_descent_follows_the_flow_on_which_c_has_the_speed_of_one_position(chain):
    errors = {}
    for rate in (1e-3, 5e-4):
        steps = [round(time / rate) for time in (0.5, 1.0, 3.0)]
        simulation = simulate(on(chain), STARTS, SGD(rate), CONFIG, steps)
        flows = [landscape.flow(on(chain, pace=1 / 16), STARTS, t_max=step * rate, tolerance=0.0, rtol=1e-10) for step in steps]
        ends = np.stack([flow.ends for flow in flows], axis=1)
        errors[rate] = np.abs(simulation.looks - ends).max()
        assert np.abs(ends - STARTS[:, None]).max(axis=2).min() > 0.03
    assert errors[1e-3] < 0.3e-3 and errors[5e-4] == pytest.approx(errors[1e-3] / 2, rel=0.05)


def test_own_speeds_of_the_landscape_do_not_enter():
    for optimiser in OPTIMISERS:
        plain, paced = (simulate(on(BELOW, pace=pace), STARTS, optimiser, CONFIG, [20]).ends for pace in (1.0, 0.25))
        assert np.array_equal(plain, paced)


def test_the_part_across_grows_on_the_plateau_at_the_rate_of_the_local_minimum():
    chain = BELOW
    start = on(chain).place({"e": np.array([-0.3]), "w": np.array([-1.5]), "b": np.array([0.0]), "u": np.array([1e-3])})
    lengths = simulate(on(chain), start, SGD(0.3), CONFIG, range(90)).looks[0, :, 5]
    first, last = (np.argmax(lengths > length) for length in (2e-3, 5e-2))
    growth = np.log(lengths[last] / lengths[first]) / (last - first)
    assert growth == pytest.approx(np.log1p(-0.3 * 2 * chain.phi_prime(0.0)), rel=0.05)  # b is still settling


# --- AdamW ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_adam_on_reduced_is_torch_s_on_one_number_for_each_array(chain):
    model, points = on(chain, "reduced"), STARTS[:, :5]
    twin = Transformer(TransformerConfig(length=16, dimension=1, hidden=1, attention="none", dtype="float64"), len(points))
    arrays = (twin.embedding, twin.positions, twin.inner, twin.outer, twin.bias)
    stepper = TwinAdamW(ADAM, 8, 32).build(twin)
    with torch.no_grad():
        for array, column in zip(arrays, points.T):
            array.copy_(torch.tensor(column).reshape(-1, *[1] * (array.ndim - 1)))
    looks = []
    for step in range(201):
        looks.append(np.stack([array.detach().numpy().reshape(len(points), -1)[:, -1] for array in arrays], axis=1))
        for array, slope in zip(arrays, torch.tensor(model.gradient(looks[-1])).T):
            parts = array[0].numel()
            array.grad = (slope / parts).reshape(-1, *[1] * (array.ndim - 1)).expand(array.shape).clone()
        stepper.step()
    simulation = simulate(model, points, ADAM, CONFIG, range(201))
    assert simulation.looks == pytest.approx(np.stack(looks, axis=1), abs=1e-10)
    assert np.abs(simulation.ends - points).max(1).min() > 0.3


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_adam_on_transverse_is_torch_s_on_the_entries_of_the_embedding(chain, given):
    model, count = on(chain), len(STARTS)
    if given:
        alpha, across = signs_and_across()
        across = alpha * across
    else:  # one half of the entries of one sign
        across = np.outer(STARTS[:, 5], np.repeat([1.0, -1.0], 4)) / math.sqrt(8)
    entries = torch.tensor(STARTS[:, [0]] / math.sqrt(8) + across, requires_grad=True)
    others = [torch.tensor(STARTS[:, k].copy(), requires_grad=True) for k in range(1, 5)]
    others[0] = torch.tensor(np.tile(STARTS[:, [1]], 16), requires_grad=True)  # a c for every position
    groups = [
        {"params": [array], "lr": root * ADAM.rate, "eps": root * 1e-8, "weight_decay": 0.1 / root}
        for array, root in zip((entries, *others), (1.0, math.sqrt(8), 16.0, 16.0, 1.0))
    ]
    stepper, looks = torch.optim.AdamW(groups, betas=ADAM.betas), []
    for _ in range(201):
        e, u = entries.sum(1) / math.sqrt(8), (entries - entries.mean(1, keepdim=True)).norm(dim=1)
        columns = [e, others[0].mean(1), *others[1:], u]
        looks.append(torch.stack(columns, dim=1).detach().numpy())
        stepper.zero_grad()
        (torch.stack(columns, dim=1) * torch.tensor(model.gradient(looks[-1]))).sum().backward()
        stepper.step()
    starts = STARTS if not given else STARTS * [1, 1, 1, 1, 1, 0] + 7.0 * np.eye(6)[5]  # the length of `across` goes before u
    simulation = simulate(model, starts, ADAM, CONFIG, range(201), across=across if given else None)
    assert simulation.looks == pytest.approx(np.stack(looks, axis=1), abs=1e-10)
    assert np.abs(simulation.ends - STARTS)[:, [0, 5]].min() > 1e-2 and simulation.ends.shape == (count, 6)


@pytest.mark.parametrize("width", [2, 5, 8])
def test_adam_starts_where_it_is_told_at_any_width(width):
    config = TransformerConfig(length=3, dimension=width, hidden=2)
    assert simulate(on(BELOW), STARTS, ADAM, config, [0]).ends == pytest.approx(STARTS, abs=1e-14)


# --- what is refused, and what runs away -------------------------------------------------------------------


@pytest.mark.parametrize("steps", [[], [5, 5], [0, 3, 2], [-1, 2], [1.5], [True]], ids=str)
def test_numbers_of_steps_have_to_increase(steps):
    for optimiser in OPTIMISERS:
        with pytest.raises(ParameterError, match="steps"):
            simulate(on(BELOW), STARTS, optimiser, CONFIG, steps)


def test_looks_are_at_the_steps_asked_for():
    for optimiser in OPTIMISERS:
        every = simulate(on(BELOW), STARTS, optimiser, CONFIG, range(31))
        some = simulate(on(BELOW), STARTS, optimiser, CONFIG, [3, 17, 30])
        assert np.array_equal(some.looks, every.looks[:, [3, 17, 30]]) and np.array_equal(some.losses, every.losses[:, [3, 17, 30]])
        assert np.array_equal(some.steps, [3, 17, 30]) and np.array_equal(some.ends, every.looks[:, 30])
        assert (np.diff(every.losses) != 0).all()


@pytest.mark.parametrize("across", [np.ones((3, 4)), np.zeros((3, 3)), np.zeros(4), [[1.0, -1.0, 0.5, 0.0]] * 3])
def test_what_is_across_has_to_be_across(across):
    config = TransformerConfig(length=16, dimension=4, hidden=8)
    with pytest.raises(ParameterError, match="across"):
        simulate(on(ABOVE, "transverse"), STARTS[:3], OPTIMISERS[1], config, [1], across=across)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["reduced", "transverse"])
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda optimiser: optimiser.words)
def test_a_start_that_is_not_finite_has_no_loss_and_leaves_the_others_alone(name, optimiser):
    model = on(ABOVE, name)
    points = STARTS[:, : len(model.parameters)]
    alone = simulate(model, points, optimiser, CONFIG, [0, 1, 50])
    for column in range(len(model.parameters)):
        bad = points.copy()
        bad[1, column] = np.nan
        found = simulate(model, bad, optimiser, CONFIG, [0, 1, 50])
        assert np.isnan(found.losses[1]).all()
        assert np.array_equal(found.losses[[0, 2]], alone.losses[[0, 2]]) and np.array_equal(found.looks[[0, 2]], alone.looks[[0, 2]])
    bad = points.copy()
    for value in (np.inf, -np.inf):
        bad[1, 0] = value
        assert np.isnan(simulate(model, bad, optimiser, CONFIG, [0, 1]).losses[1]).all()
    bad[1, 0] = 1e200  # its gradient overflows
    found = simulate(model, bad, optimiser, CONFIG, [0, 1, 50])
    assert not np.isfinite(found.losses[1]).any() and np.isnan(found.losses[1, 2])
    assert np.array_equal(found.losses[[0, 2]], alone.losses[[0, 2]])
