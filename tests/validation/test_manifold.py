"""The manifold of rank one: training stays on it and is that of one dimension; what leaves it, and how fast; attention by states."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from landscape import BinaryChain, architecture  # noqa: E402
from landscape.projection import directions, project  # noqa: E402
from landscape.pytorch import canonical_  # noqa: E402
from landscape.weight_names import ATTENTION  # noqa: E402
from validation import data  # noqa: E402
from validation.attention import SPREAD, attended  # noqa: E402
from validation.manifold import TwinAdamW, reduced_twin  # noqa: E402
from validation.starts import gaussian_  # noqa: E402
from validation.training import SGD, AdamW, Schedule, train  # noqa: E402
from validation.transformer import Transformer, TransformerConfig  # noqa: E402

CHAINS = [BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8)]
CONFIG = TransformerConfig(length=16, dimension=8, hidden=32, dtype="float64")
STARTS = np.array([(1.0, -1.0), (0.3, 0.5), (-0.6, -0.8), (-0.5, 1.0)])  # both signs of each, on both sides of the basin boundary


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def on_manifold(config=CONFIG):
    e, w = STARTS.T
    return canonical_(Transformer(config, len(e)), e, w, attention=0.1, bias=[0.0, 0.3, -0.2, 0.0], generator=seeded())


def trained(model, chain, optimiser, steps):
    """Train in place on batches that are the same for every model."""
    runs, length = range(model.members), model.config.length
    chains = [chain] * model.members
    batches = data.batches(chains, [data.stream(0, k, "training") for k in runs], length, 16)
    unseen = data.held_out(chains, [data.stream(0, k, "held_out") for k in runs], length, 32)
    return train(model, batches, unseen, optimiser, Schedule(steps=steps, log_every=1, evaluate_every=steps, held_out=32))


def second_singular_value(matrices):
    """Relative to the first."""
    values = torch.linalg.svdvals(matrices.detach()).numpy()
    return values[:, 1] / values[:, 0]


def compared(model, chain, optimiser, of_twin, steps):
    """Train models that are on the manifold and their twins: largest differences of losses and of coordinates; the models stay on it."""
    twin, alpha = reduced_twin(model), directions(model)
    before = [tensor.detach().clone() for tensor in twin.parameters()]
    full, one = trained(model, chain, optimiser, steps), trained(twin, chain, of_twin, steps)
    assert second_singular_value(model.inner).max() < 1e-12
    assert project(model, alpha=alpha).residual.max() < 1e-12
    # what is compared has moved: training is not at rest, and no array is idle
    assert min((a - b).abs().max() for a, b in zip(before, twin.parameters())) > 1e-3
    found = reduced_twin(model, alpha)
    coordinates = max((a - b).abs().max().item() for a, b in zip(found.parameters(), twin.parameters(), strict=True))
    losses = max(np.abs(full.training - one.training).max(), np.abs(full.held_out - one.held_out).max())
    return losses, coordinates


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_projection_is_that_of_its_moment(dtype):
    """In double precision too it shares no memory with the weights, which training changes in place."""
    model = on_manifold(TransformerConfig(length=16, dimension=8, hidden=32, dtype=dtype))
    found = project(model)
    before = {name: np.array(value) for name, value in vars(found).items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    for name, value in before.items():
        assert np.array_equal(getattr(found, name), value), name


# --- on the manifold -----------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", CHAINS, ids=str)
@pytest.mark.parametrize("rate", [0.3, 0.1])
def test_descent_on_the_manifold_is_descent_of_the_one_dimensional_twin(chain, rate):
    losses, coordinates = compared(on_manifold(), chain, SGD(rate), SGD(rate), 150)
    assert losses < 1e-12 and coordinates < 1e-12


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_adam_on_the_manifold_is_adam_of_the_twin_with_rates_of_its_own(chain):
    adam = AdamW(5e-3, weight_decay=0.1)
    losses, coordinates = compared(on_manifold(), chain, adam, TwinAdamW(adam, 8, 32), 100)
    assert losses < 1e-9 and coordinates < 1e-9


@pytest.mark.parametrize(("length", "attention"), [(32, "softmax"), (16, "linear")])
def test_an_untied_head_and_linear_attention_have_a_twin_too(length, attention):
    config = TransformerConfig(length=length, dimension=8, hidden=32, attention=attention, tied=False, dtype="float64")
    adam = AdamW(5e-3, weight_decay=0.1)
    for optimiser, of_twin, bound in ((SGD(0.3), SGD(0.3), 1e-12), (adam, TwinAdamW(adam, 8, 32), 1e-9)):
        losses, coordinates = compared(on_manifold(config), CHAINS[0], optimiser, of_twin, 60)
        assert losses < bound and coordinates < bound


# --- off the manifold ----------------------------------------------------------------------------------


def test_a_value_matrix_with_a_row_of_its_own_takes_the_embedding_off_the_manifold():
    for chain in CHAINS:
        model = on_manifold()
        alpha = directions(model)
        aside = 0.1 * np.random.default_rng(0).normal(size=alpha.shape)
        aside -= alpha * (alpha * aside).mean(1, keepdims=True)
        with torch.no_grad():
            model.value += torch.tensor(alpha[:, :, None] * aside[:, None, :])  # alpha v^T, v off alpha by `aside`
        assert project(model, alpha=alpha).u.max() < 1e-15
        trained(model, chain, SGD(0.3), 1)
        across = project(model, alpha=alpha).across
        cosine = (across * aside).sum(1) / np.linalg.norm(across, axis=1) / np.linalg.norm(aside, axis=1)
        assert np.abs(cosine) == pytest.approx(1.0, abs=1e-12) and np.linalg.norm(across, axis=1).min() > 1e-5
        trained(model, chain, SGD(0.3), 40)
        found = project(model, alpha=alpha)
        assert found.u.min() > 1e-3
        rows = model.inner.detach().numpy()
        off = rows - (rows @ alpha[:, :, None]) * alpha[:, None, :] / 8
        ratio = np.linalg.norm(off, axis=(1, 2)) / np.linalg.norm(rows, axis=(1, 2))
        assert ratio.min() > 1e-4
        # the rank of W_1 does not tell: its rows turn off alpha all alike, for nothing tells the hidden units apart
        assert second_singular_value(model.inner).max() < 1e-12


def test_the_part_across_grows_on_the_plateau_at_the_rate_of_the_local_minimum():
    chain, alpha = CHAINS[0], np.array([1.0, -1.0, -1.0, 1.0])
    across = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]]) / np.sqrt(2)
    config = TransformerConfig(length=32, dimension=4, hidden=16, attention="none", dtype="float64")
    model = canonical_(Transformer(config, 2), -0.3, -1.5, alpha=np.tile(alpha, (2, 1)))
    with torch.no_grad():
        model.embedding += torch.tensor(1e-3 * across)
    batches = data.batches([chain] * 2, [data.stream(0, k, "training") for k in range(2)], 32, 64)
    stepper, lengths, along = SGD(0.3).build(model), [], []
    for _ in range(90):
        found = project(model, alpha=np.tile(alpha, (2, 1)))
        lengths.append(found.u)
        along.append(found.e)
        stepper.zero_grad()
        model.losses(next(batches)).mean(dim=(1, 2)).sum().backward()
        stepper.step()
    lengths, along = np.array(lengths), np.array(along)
    for k in range(2):
        first, last = (np.argmax(lengths[:, k] > length) for length in (2e-3, 5e-2))
        assert 0 < first < last - 20 and np.abs(along[first:last, k]).max() < 0.05  # e is the noise of batches by then
        growth = np.log(lengths[last, k] / lengths[first, k]) / (last - first)
        assert growth == pytest.approx(np.log1p(-0.3 * 2 * chain.phi_prime(0.0)), rel=0.1)


# --- coordinates ---------------------------------------------------------------------------------------


def placed(tied=True, seed=0):
    """Models with random coordinates on the manifold, every position with its own: the coordinates, the models, and their alphas."""
    config = TransformerConfig(length=5, dimension=6, hidden=7, tied=tied, dtype="float64")
    model, random = Transformer(config, 4), np.random.default_rng(seed)
    alpha = random.choice([-1.0, 1.0], size=(4, 6))
    values = {name: random.normal(size=(4, 5) if name == "positions" else 4) for name, _ in model.named_parameters()}
    values["inner"] = np.abs(values["inner"])
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            for k in range(4):
                unit, ones, value = alpha[k] / np.sqrt(6), np.ones(7) / np.sqrt(7), values[name][k]
                matrices = {"inner": np.outer(ones, unit), "outer": np.outer(unit, ones)} | dict.fromkeys(ATTENTION, np.outer(unit, unit))
                shape = {"positions": np.multiply.outer(value, unit), "bias": value}
                tensor[k] = torch.as_tensor(shape[name] if name in shape else value * matrices.get(name, unit))
    return values, model, alpha


@pytest.mark.parametrize("tied", [True, False])
def test_coordinates_put_in_are_found_again(tied):
    values, model, alpha = placed(tied)
    found = project(model)
    assert np.array_equal(found.alpha, alpha) and np.array_equal(directions(model), alpha)
    expected = [values["embedding"], values["positions"].mean(1), values["inner"], values["outer"], values["bias"], np.zeros(4)]
    assert found.points() == pytest.approx(np.stack(expected, axis=1), abs=1e-14)
    assert found.residual.max() < 1e-14 and np.abs(found.across).max() < 1e-14
    for name, tensor in reduced_twin(model).named_parameters():
        assert tensor.detach().numpy().ravel() == pytest.approx(values[name].ravel(), abs=1e-14), name


def test_the_canonical_slice_is_where_the_landscape_places_it():
    e, w = STARTS.T
    found = project(on_manifold())
    for name in ("reduced", "transverse"):
        on = architecture(name).on(CHAINS[0])
        placed = on.place({"e": e, "w": w, "b": np.array([0.0, 0.3, -0.2, 0.0])})
        assert found.points(name) == pytest.approx(placed, abs=1e-14)
        for coordinate, column in zip(on.parameters, placed.T):
            assert getattr(found, coordinate) == pytest.approx(column, abs=1e-14), coordinate
    assert found.points() == pytest.approx(np.stack([e, -e / 2, 2 * np.abs(w), 2 * w, [0.0, 0.3, -0.2, 0.0], 0 * e], axis=1), abs=1e-14)


def test_without_an_mlp_alpha_is_given():
    alpha = np.random.default_rng(0).choice([-1.0, 1.0], size=(4, 8))
    found = project(canonical_(Transformer(CONFIG, 4), STARTS[:, 0], 0.0, alpha=alpha, attention=0.1, bias=0.7), alpha=alpha)
    assert found.points() == pytest.approx(np.outer(STARTS[:, 0], [1.0, -0.5, 0.0, 0.0, 0.0, 0.0]) + 0.7 * np.eye(6)[4], abs=1e-14)
    assert found.residual.max() < 1e-14


def test_without_an_mlp_alpha_is_that_of_the_embedding():
    alpha = np.random.default_rng(0).choice([-1.0, 1.0], size=(4, 8))
    found = project(canonical_(Transformer(CONFIG, 4), STARTS[:, 0], 0.0, alpha=alpha, attention=0.1))
    assert np.array_equal(found.alpha, np.sign(STARTS[:, [0]]) * alpha) and np.array_equal(found.w1, np.zeros(4))
    assert found.e == pytest.approx(np.abs(STARTS[:, 0]), abs=1e-14) and found.residual.max() < 1e-14


def test_the_sign_of_alpha_is_that_which_makes_w1_positive():
    values, model, alpha = placed()
    with torch.no_grad():
        model.inner[::2] *= -1
    turned = np.array([-1.0, 1.0, -1.0, 1.0])
    found, given = project(model), project(model, alpha=alpha)
    assert np.array_equal(found.alpha, turned[:, None] * alpha) and np.array_equal(given.alpha, alpha)
    assert given.w1 == pytest.approx(turned * values["inner"], abs=1e-14) and found.w1 == pytest.approx(values["inner"], abs=1e-14)
    for name in ("e", "c", "w2"):
        assert getattr(found, name) == pytest.approx(turned * getattr(given, name), abs=1e-14)
    assert np.array_equal(found.b, given.b) and found.residual.max() < 1e-14


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.02])
def test_noise_is_seen_at_its_size(noise):
    count = 1000
    clean, model = (
        canonical_(Transformer(CONFIG, count), 0.7, -0.9, attention=0.1, noise=size, generator=seeded(1)) for size in (0.0, noise)
    )
    found, alpha = project(model), directions(clean)
    assert np.array_equal(found.alpha, alpha)
    assert np.abs((found.across * alpha).sum(1)).max() < 1e-14
    assert found.across + found.e[:, None] * alpha / np.sqrt(8) == pytest.approx(model.embedding.detach().numpy(), abs=1e-14)
    assert found.u == pytest.approx(np.sqrt((found.across**2).sum(1)), rel=1e-14)
    # coordinates are orthonormal: noise is as large in each, but for c, the mean of 16; across there are 7 directions
    for name, centre, size in (("e", 0.7, 1.0), ("c", -0.35, 0.25), ("w1", 1.8, 1.0), ("w2", -1.8, 1.0)):
        assert np.sqrt(((getattr(found, name) - centre) ** 2).mean()) == pytest.approx(size * noise, rel=0.1), name
    assert np.sqrt((found.u**2).mean()) == pytest.approx(np.sqrt(7) * noise, rel=0.05)
    # 8 + 16 * 8 + 4 * 64 + 2 * 256 entries, of them e, 16 positions, four attention matrices, w1 and w2 along the manifold
    size = np.sqrt(0.7**2 + 16 * 0.35**2 + 4 * 0.8**2 + 2 * 1.8**2 + 904 * noise**2)
    assert found.residual == pytest.approx(noise * np.sqrt(904 - 23) / size, rel=0.15)
    assert found.residual.mean() == pytest.approx(noise * np.sqrt(904 - 23) / size, rel=0.01)


# --- attention by states -------------------------------------------------------------------------------


def pulled(model, symbols, added):
    """Gradients of a random linear function of what attention adds."""
    model.zero_grad()
    (added * torch.randn(added.shape, dtype=added.dtype, generator=seeded(7))).sum().backward()
    return {name: tensor.grad.clone() for name, tensor in model.named_parameters() if tensor.grad is not None}


@pytest.mark.parametrize(("std", "count"), [(0.1, 12), (0.4, 12), (0.4, 7), (0.4, 1)])
def test_attention_by_states_has_the_values_and_gradients_of_the_usual_route(std, count):
    config = TransformerConfig(length=12, dimension=8, hidden=3, dtype="float64", score_scale=0.5)
    model = gaussian_(Transformer(config, 3), std, generator=seeded(1))
    symbols = torch.randint(0, 2, (3, 5, count), generator=seeded(2))
    fast, usual = model.attend_states(symbols), model.attend(model.embed(symbols))
    assert (fast - usual).abs().max() < 1e-12 * usual.abs().max()
    found, expected = (pulled(model, symbols, added) for added in (fast, usual))
    assert found.keys() == expected.keys() and {"embedding", "positions", *ATTENTION} <= expected.keys()
    for name, gradient in expected.items():
        bound = 1e-12 * gradient.abs().max().item() or 1e-14  # a first symbol attends to itself, whatever its score
        assert (found[name] - gradient).abs().max() < bound, name
    assert count == 1 or expected["query"].abs().max() > 1e-9


def softmax_logits(model, symbols):
    """Logits position by position, in NumPy."""
    weights = {name: tensor.detach().numpy() for name, tensor in model.named_parameters()}
    logits = np.empty(symbols.shape)
    for m, b, n in np.ndindex(*symbols.shape):
        of = {name: value[m] for name, value in weights.items()}
        past = symbols[m, b, : n + 1].numpy()[:, None] * of["embedding"] + of["positions"][: n + 1]
        scores = (past @ of["key"].T) @ (of["query"] @ past[-1]) * model.config.scale
        shares = np.exp(scores - scores.max())
        stream = past[-1] + of["output"] @ of["value"] @ (shares @ past / shares.sum())
        stream = stream + of["outer"] @ np.maximum(of["inner"] @ stream, 0.0)
        logits[m, b, n] = stream @ of["embedding"] + of["bias"]
    return logits


def hiding(spread, dtype="float64"):
    """A model whose 1s have scores about `spread` above its 0s, and sequences nearly without 1s."""
    config = TransformerConfig(length=6, dimension=2, hidden=3, dtype=dtype, score_scale=1.0)
    model = gaussian_(Transformer(config, 1), 0.5, generator=seeded(3))
    with torch.no_grad():
        model.embedding[0] = torch.tensor([1.0, 0.0])
        model.positions[0] = torch.tensor([[0.1 * position, 1.0] for position in range(6)])
        model.query[0] = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
        model.key[0] = torch.tensor([[spread / 1.5, 0.0], [0.0, 0.3]])  # scores: spread / 1.5 times x + i / 10
    return model, torch.tensor([[[0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0]]])


def test_states_that_do_not_occur_may_have_nearly_all_of_the_weight():
    model, symbols = hiding(SPREAD - 1.0)
    assert model.attend_states(symbols) is not None
    expected = softmax_logits(model, symbols)
    assert model(symbols).detach().numpy() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    single, _ = hiding(SPREAD - 1.0, "float32")
    logits = single(symbols)
    assert single.attend_states(symbols) is not None and logits.detach().numpy() == pytest.approx(expected, abs=1e-5)
    logits.sum().backward()
    model(symbols).sum().backward()
    for one, two in zip(single.parameters(), model.parameters()):
        assert one.grad.numpy() == pytest.approx(two.grad.numpy(), rel=1e-3, abs=1e-4)


def test_scores_too_far_apart_go_the_usual_way():
    model, symbols = hiding(SPREAD + 1.0)
    assert model.attend_states(symbols) is None
    assert model(symbols).detach().numpy() == pytest.approx(softmax_logits(model, symbols), rel=1e-12, abs=1e-12)
    far = gaussian_(Transformer(TransformerConfig(length=12, dimension=8, hidden=3, dtype="float64"), 3), 6.0, generator=seeded(1))
    symbols = torch.randint(0, 2, (3, 5, 12), generator=seeded(2))
    assert far.attend_states(symbols) is None
    logits = far(symbols).detach().numpy()
    assert np.isfinite(logits).all() and logits == pytest.approx(softmax_logits(far, symbols), rel=1e-9)
    # one model of an ensemble is enough
    with torch.no_grad():
        for name in ("query", "key"):
            getattr(far, name)[:2] *= 1e-3
    assert far.attend_states(symbols) is None
    with torch.no_grad():
        far.query[2] *= 1e-6
    assert far.attend_states(symbols) is not None


def test_averages_of_values_do_not_depend_on_the_future():
    symbols = torch.randint(0, 2, (2, 4, 9), generator=seeded(4))
    queries, keys, values = (torch.randn(2, 18, 3, dtype=torch.float64, generator=seeded(5 + k)) for k in range(3))
    found = attended(symbols, queries, keys, values, 0.7)
    changed = symbols.clone()
    changed[..., 6:] = 1 - changed[..., 6:]
    again = attended(changed, queries, keys, values, 0.7)
    assert torch.allclose(found[:, :, :6], again[:, :, :6], rtol=0, atol=1e-14) and (found[:, :, 6:] - again[:, :, 6:]).abs().min() > 1e-6
    # averages: equal values come back
    assert torch.allclose(attended(symbols, queries, keys, torch.ones_like(values), 0.7), torch.ones(2, 4, 9, 3, dtype=torch.float64), atol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_model_that_ran_away_is_not_on_the_manifold_and_leaves_the_others_alone(bad):
    model = canonical_(Transformer(TransformerConfig(length=4), 2), [1.0, 0.5], 1.0)
    with torch.no_grad():
        model.inner[0, 0, 0] = bad
    residual = project(model).residual
    assert np.isnan(residual[0]) and residual[1] < 1e-6
