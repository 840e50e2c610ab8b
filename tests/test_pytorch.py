"""Starts of models of any layout: exact gaps, tied weights that stay tied, projections that find what was put in, refusals."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import landscape  # noqa: E402
from landscape import BinaryChain, ParameterError, SymmetricChain, WeightNames, pytorch  # noqa: E402
from landscape.projection import directions, project  # noqa: E402
from landscape.weight_names import read_names  # noqa: E402
from landscape.weights import weights_of  # noqa: E402
from tests.small_models import Small, names_of  # noqa: E402
from validation.transformer import Transformer, TransformerConfig  # noqa: E402

STARTS = [(1.0, -1.0), (0.7, 0.4), (-1.3, -0.6), (-0.5, 1.2), (2.0, 0.0), (0.3, -2.0)]
LAYOUTS = {
    "tied": {}, "rows": {"head": "rows"}, "scalar": {"head": "scalar"}, "fused": {"fused": True}, "transposed": {"transposed": True},
    "fused and transposed": {"fused": True, "transposed": True, "head": "rows"}, "no positions": {"positions": False},
    "wide": {"width": 7, "hidden": 3, "head": "scalar", "fused": True},
}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def small(seed=0, **layout):
    """A model, at torch's own random start."""
    torch.manual_seed(seed)
    return Small(**layout)


def logit_of_one(model, symbols):
    """The logit of 1 against 0, shape (B, n)."""
    found = model(torch.as_tensor(symbols)).detach().numpy()
    return found if found.ndim == 2 else found[..., 1] - found[..., 0]


# --- gaps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("e", "w"), STARTS)
def test_two_symbols_have_the_canonical_gap_and_constant_in_any_layout(layout, e, w):
    model = small(**LAYOUTS[layout])
    assert pytorch.canonical_(model, e, w, names=names_of(model), bias=0.3, generator=seeded()) is model
    logits = logit_of_one(model, [[0, 1, 1, 0, 1]])[0]
    kappa = landscape.architecture("canonical").kappa(BinaryChain(0.5, 0.8), [(e, w)])[0]
    constant = 0.3 - e**2 / 2 * (1.0 if e > 0 else 1 + 4 * w * abs(w))
    assert kappa == pytest.approx(e**2 * (1 + 2 * w * abs(w)), abs=1e-14)
    assert logits == pytest.approx(constant + kappa * np.array([0, 1, 1, 0, 1]), abs=1e-12)


@pytest.mark.parametrize("states", [2, 3, 5])
@pytest.mark.parametrize(("e", "w"), STARTS[:4])
def test_many_symbols_have_the_gap_of_their_landscape(states, e, w):
    model = small(symbols=states, width=6, hidden=11, length=3, head="rows", fused=True, transposed=True)
    pytorch.simplex_(model, e, w, names=names_of(model), generator=seeded())
    logits = model(torch.arange(states)[:, None])[:, 0].detach().numpy()
    own, others = np.diag(logits), logits[~np.eye(states, dtype=bool)]
    kappa = landscape.architecture("canonical").kappa(SymmetricChain(states, 0.9), [(e, w)])[0]
    assert own - others.mean() == pytest.approx(np.full(states, kappa), abs=1e-12) and np.ptp(others) < 1e-12


def test_two_symbols_in_the_units_of_both_chains():
    """simplex_ with half the e is canonical_: the gap of the binary chain is twice that of the symmetric one."""
    for e, w in STARTS[:3]:
        one, two = small(), small()
        pytorch.canonical_(one, e, w, names=names_of(one))
        pytorch.simplex_(two, e / 2, w, names=names_of(two))
        gaps = [np.ptp(logit_of_one(model, [[0, 1]])) for model in (one, two)]
        half = landscape.architecture("canonical").kappa(SymmetricChain(2, 0.3), [(e / 2, w)])[0]
        assert gaps == pytest.approx([2 * abs(half)] * 2, abs=1e-12)


def test_rows_stand_for_the_vector_between_them():
    model = small(head="rows")
    pytorch.canonical_(model, 0.8, -0.5, names=names_of(model), alpha=[1, -1, -1, 1], head=1.4)
    rows, head = model.tokens.weight.detach().numpy(), model.out.weight.detach().numpy()
    assert rows[1] - rows[0] == pytest.approx(0.8 / 2 * np.array([1, -1, -1, 1]), abs=1e-15) and np.array_equal(rows[0], -rows[1])
    assert head[1] - head[0] == pytest.approx(1.4 / 2 * np.array([1, -1, -1, 1]), abs=1e-15)
    assert not model.places.weight.any() and not model.out.bias.any()
    assert np.ptp(logit_of_one(model, [[0, 1]])) == pytest.approx(0.8 * 1.4 * (1 - 2 * 0.25), abs=1e-12)


# --- what else is filled, and what is not ------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_biases_are_zeroed_and_parameters_stay_what_they_are(layout):
    model = small(**LAYOUTS[layout])
    before = {name: (id(tensor), tensor.data_ptr(), tensor.requires_grad) for name, tensor in model.named_parameters(remove_duplicate=False)}
    pytorch.around_(model, names=names_of(model), generator=seeded())
    after = {name: (id(tensor), tensor.data_ptr(), tensor.requires_grad) for name, tensor in model.named_parameters(remove_duplicate=False)}
    assert before == after and (model.out.weight is model.tokens.weight) == (LAYOUTS[layout].get("head", "tied") == "tied")
    assert not any(tensor.any() for name, tensor in model.named_parameters() if name.endswith("bias"))
    logits = model(torch.tensor([[0, 1]]))
    logits.square().sum().backward()
    assert all(tensor.grad is not None for tensor in model.parameters())


def test_noise_has_its_size_on_every_weight_and_none_on_biases():
    model = small(width=30, hidden=40, length=50, head="rows", fused=True)
    clean = small(width=30, hidden=40, length=50, head="rows", fused=True)
    alpha = np.where(np.arange(30) % 2, 1, -1)
    pytorch.canonical_(model, 0.9, -0.8, names=names_of(model), alpha=alpha, noise=0.1, generator=seeded(1))
    pytorch.canonical_(clean, 0.9, -0.8, names=names_of(clean), alpha=alpha)
    for (name, noisy), plain in zip(model.named_parameters(), clean.parameters()):
        off = (noisy - plain).detach()
        assert (off.std().item() == pytest.approx(0.1, rel=0.3 if off.numel() < 100 else 0.06)) if not name.endswith("bias") else not off.any(), name


def test_attention_is_on_the_manifold_or_drawn():
    model = small()
    pytorch.canonical_(model, names=names_of(model), alpha=[1, -1, 1, 1], attention=0.2)
    for part in (model.q, model.k, model.v, model.o):
        assert part.weight.detach().numpy() == pytest.approx(0.2 * np.outer([1, -1, 1, 1], [1, -1, 1, 1]), abs=1e-15)
    found = project(model, names_of(model))
    # a = d^(7/2) g^4 / 4 of derivations/attention-gap.md
    assert found.a == pytest.approx([4**3.5 * 0.2**4 / 4], rel=1e-12) and found.residual.max() < 1e-14
    pytorch.canonical_(model, names=names_of(model), attention_std=0.3, generator=seeded(2))
    assert 0.1 < model.q.weight.std() < 0.6 and project(model, names_of(model)).residual[0] > 0.1


def test_around_draws_its_point_from_the_given_law():
    model = Transformer(TransformerConfig(length=8, dtype="float64"), 4000)
    pytorch.around_(model, (0.7, -1.2), 0.05, generator=seeded(3))
    found = project(model)
    assert abs(found.alpha.mean()) < 0.05  # signs are drawn for each model
    # e has the point's spread and that of the weight along alpha; w = sqrt(w1 w2) / 2 that of the point and of two weights / 4
    assert found.canonical.mean(0) == pytest.approx([0.7, -1.2], abs=0.005)
    assert found.canonical[:, 0].std() == pytest.approx(0.05 * np.sqrt(2), rel=0.05)
    assert found.canonical[:, 1].std() == pytest.approx(0.05 * np.sqrt(1 + 1 / 8), rel=0.05)
    assert found.u.mean() == pytest.approx(0.05 * np.sqrt(3) * 0.921, rel=0.05)  # mean length of a Gaussian vector in three dimensions


def test_around_with_many_symbols():
    model = small(symbols=5, width=6, hidden=16)
    pytorch.around_(model, (0.8, -1.1), 0.01, names=names_of(model), generator=seeded(4))
    found = project(model, names_of(model))
    assert found.canonical[0] == pytest.approx([0.8, -1.1], abs=0.06) and 0.0 < found.residual[0] < 0.2


def test_a_seed_decides_every_number():
    states = []
    for seed in (5, 5, 6):
        model = small(seed)  # the values before do not matter
        pytorch.around_(model, names=names_of(model), generator=seeded(seed))
        states.append(model.state_dict())
    same, other = ([torch.equal(states[0][name], state[name]) for name in states[0] if "bias" not in name] for state in states[1:])
    assert all(same) and not any(other)


def test_layer_norms_are_left_and_get_signs_that_add_up_to_zero():
    class Normed(Small):
        def __init__(self):
            super().__init__(width=6)
            self.norm = nn.LayerNorm(6)

    torch.manual_seed(0)
    model = Normed()
    with torch.no_grad():
        model.norm.weight.normal_()
    kept = model.norm.weight.clone()
    names = dataclasses.replace(names_of(model), norms=("norm.weight", "norm.bias"))
    for seed in range(6):
        pytorch.canonical_(model, names=names, generator=seeded(seed))
        assert model.tokens.weight[1].sum().abs() < 1e-15 and torch.equal(model.norm.weight, kept)
    assert weights_of("test", model, names).unnamed == () and not weights_of("test", model, names).plain
    assert weights_of("test", model, names_of(model)).unnamed == ("norm.weight", "norm.bias")


def test_single_precision():
    model = small().float()
    pytorch.canonical_(model, 0.7, 0.4, names=names_of(model))
    assert model.tokens.weight.dtype == torch.float32
    assert np.ptp(logit_of_one(model, [[0, 1]])) == pytest.approx(0.49 * 1.32, abs=1e-6)


# --- projections ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("e", "w"), STARTS)
def test_what_was_put_in_is_found_again(layout, e, w):
    model = small(**LAYOUTS[layout])
    names, width = names_of(model), LAYOUTS[layout].get("width", 4)
    alpha = np.where(np.arange(width) % 3, 1.0, -1.0)
    pytorch.canonical_(model, e, w, names=names, alpha=alpha, bias=-0.4, head=None)
    for source in (model, model.state_dict()):
        found = project(source, names, alpha=alpha)
        assert found.points()[0] == pytest.approx([e, -e / 2, 2 * abs(w), 2 * w, -0.4, 0.0], abs=1e-14)
        assert found.canonical[0] == pytest.approx([e, w], abs=1e-14) and found.residual[0] < 1e-14 and found.head[0] == pytest.approx(e)
    if w:
        assert np.array_equal(directions(model, names)[0], alpha)
        turned = project(model, names, alpha=-alpha)
        assert turned.canonical == pytest.approx(found.canonical, abs=1e-14) and turned.w1[0] == pytest.approx(-2 * abs(w))


def test_off_the_slice_the_canonical_point_has_the_same_product_of_weights():
    model = Transformer(TransformerConfig(dtype="float64", attention="none"), 1)
    pytorch.canonical_(model, 0.6, -0.9, alpha=[1, 1, -1, 1])
    with torch.no_grad():
        model.inner.mul_(2.5)
        model.positions.mul_(-3.0)
    found = project(model)
    assert found.canonical[0] == pytest.approx([0.6, -0.9 * np.sqrt(2.5)]) and found.c[0] == pytest.approx(0.9) and found.residual[0] < 1e-14


@pytest.mark.parametrize(("e", "w"), STARTS)
@pytest.mark.parametrize("states", [3, 5])
def test_what_was_put_in_is_found_again_with_many_symbols(states, e, w):
    model = small(symbols=states, width=6, hidden=2 * states + 1, head="rows", transposed=True)
    pytorch.simplex_(model, e, w, names=names_of(model), generator=seeded(1))
    found = project(model, names_of(model))
    # without an MLP the two signs of e are one
    assert found.canonical[0] == pytest.approx([e if w else abs(e), w], abs=1e-12) and found.residual[0] < 1e-12
    assert (found.w1[0], found.w2[0]) == pytest.approx((2 * abs(w), 2 * w), abs=1e-12)


def test_a_bias_within_the_layer_is_off_the_manifold():
    model = small()
    pytorch.canonical_(model, 1.0, -1.0, names=names_of(model))
    with torch.no_grad():
        model.up.bias[0] = 3.0
    whole = np.sqrt(1.0 + 6 * 0.25 + 2 * 4.0 + 9.0)  # e, six positions, W_1, W_2, the bias
    assert project(model, names_of(model)).residual[0] == pytest.approx(3.0 / whole, rel=1e-12)


# --- refusals ---------------------------------------------------------------------------------------------------


def unchanged(model, call, match):
    """The call is refused and the model as it was."""
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ParameterError, match=match):
        call()
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in before.items())


@pytest.mark.parametrize(("change", "match"), [
    ({"embedding": "wte.weight"}, "'embedding' of it is not one. Got 'wte.weight'"), ({"biases": ("up.bias", "nothing")}, "nothing"),
    ({"inner": "down.weight"}, r"'inner' has the shape \(r, 4\). Got 'down.weight of shape \(4, 8\)'"), ({"positions": "up.bias"}, "'positions' has the shape"),
    ({"transposed": ("inner",)}, "'inner' has the shape"), ({"outer": "up.weight"}, "'outer' has the shape"), ({"embedding": "up.bias"}, "'inner' has the shape|positions|'outer'"),
    ({"bias": "up.bias"}, "'bias' has the shape"), ({"query": None, "key": None}, "all four"), ({"heads": 3}, "divide the width"),
    ({"head": "places.weight"}, "'head' has the shape"), ({"members": True}, "shape"), ({"positions": "tokens.weight"}, "tied weights"),
])
def test_names_that_do_not_fit_are_refused(change, match):
    model = small()
    names = dataclasses.replace(names_of(model), **change)
    unchanged(model, lambda: pytorch.canonical_(model, names=names), match)


@pytest.mark.parametrize(("arguments", "parameter"), [
    ({"e": np.nan}, "e"), ({"w": "x"}, "w"), ({"e": [1.0, 2.0]}, "e"), ({"alpha": [1, 1, 1]}, "alpha"), ({"alpha": [1, 1, 1, 2]}, "alpha"),
    ({"head": 2.0}, "head"),
])
def test_values_that_do_not_fit_are_refused(arguments, parameter):
    model = small()
    unchanged(model, lambda: pytorch.canonical_(model, names=names_of(model), **arguments), f"'{parameter}' parameter")


@pytest.mark.parametrize(("arguments", "parameter"), [({"mean": 1.0}, "mean"), ({"mean": (1, 2, 3)}, "mean"), ({"std": -0.1}, "std"), ({"mean": (1, None)}, "mean")])
def test_around_refuses(arguments, parameter):
    model = small()
    unchanged(model, lambda: pytorch.around_(model, names=names_of(model), **arguments), f"'{parameter}' parameter")


def test_tied_weights_get_one_value_or_none():
    """W_2 tied to the transpose of W_1 goes with w >= 0 alone, for W_1 has |w| and W_2 has w."""
    model = small(hidden=8)
    model.down.weight = nn.Parameter(model.up.weight.detach().mT)
    assert model.down.weight.data_ptr() == model.up.weight.data_ptr()
    unchanged(model, lambda: pytorch.canonical_(model, 1.0, -1.0, names=names_of(model)), "'inner' and 'outer' need different ones")
    pytorch.canonical_(model, 1.0, 0.7, names=names_of(model), noise=0.01, generator=seeded())
    assert torch.equal(model.down.weight, model.up.weight.mT)
    assert np.ptp(logit_of_one(model, [[0, 1]])) == pytest.approx(1 + 2 * 0.49, rel=0.2)


def test_query_and_key_that_are_tied_get_one_draw():
    model = small(width=20)
    model.k.weight = model.q.weight
    pytorch.canonical_(model, names=names_of(model), attention_std=0.5, generator=seeded())
    assert model.k.weight is model.q.weight
    assert [part.weight.std().item() for part in (model.q, model.v, model.o)] == pytest.approx([0.5] * 3, rel=0.1)


def test_a_model_without_names_has_to_be_the_suites():
    with pytest.raises(ParameterError, match="'names' parameter of canonical_"):
        pytorch.canonical_(small())
    with pytest.raises(ParameterError, match="torch.nn.Module or a state dict"):
        project(3)
    with pytest.raises(ParameterError, match="simplex_ is for more"):
        pytorch.canonical_(Transformer(TransformerConfig(symbols=3), 1))
    with pytest.raises(ParameterError, match="one of S symbols"):
        pytorch.simplex_(Transformer(TransformerConfig(), 1))
    with pytest.raises(ParameterError, match="floating-point"):
        project({"embedding": torch.ones(1, 4, dtype=torch.int64), "positions": torch.ones(1, 2, 4), "inner": torch.ones(1, 3, 4), "outer": torch.ones(1, 4, 3)})


@pytest.mark.parametrize("wrong", [
    {"transposed": ("embedding",)}, {"transposed": "inner"}, {"biases": (1,)}, {"inner": None}, {"fused": "a", "query": "b"}, {"heads": 0}, {"members": 1}, {"scores": "none"}, {"scale": "x"},
])
def test_names_have_their_kinds(wrong):
    with pytest.raises(ParameterError, match="of WeightNames"):
        WeightNames(**{"embedding": "a", "inner": "b", "outer": "c", **wrong})


def test_names_from_a_file(tmp_path):
    path = tmp_path / "names.toml"
    path.write_text('embedding = "a"\ninner = "b"\nouter = "c"\ntransposed = ["inner"]\nheads = 2\n')
    assert read_names(path) == WeightNames("a", "b", "c", transposed=("inner",), heads=2)
    for text, match in (('inner = "b"', "names 'embedding'"), ("x = 1", "some of the keys"), ("=", "a TOML file"), ('embedding = "a"\ninner = 3\nouter = "c"', "inner"),
                        ('embedding = "a"\ninner = "b"\nouter = "c"\nbiases = 3', "can be used")):
        path.write_text(text)
        with pytest.raises(ParameterError, match=match):
            read_names(path)


# --- training with a head of rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("chain", "e", "w", "label"), [
    (BinaryChain(0.5, 0.8), 1.0, -1.0, "global"), (BinaryChain(0.5, 0.8), 0.3, 0.5, "local"), (BinaryChain(0.2, 0.3), 1.0, -1.0, "global"),
])
def test_a_model_of_ones_own_trains_to_where_the_map_says(chain, e, w, label):
    from validation import data
    from validation.experiments.verdicts import real_limit

    model = small(length=32)
    pytorch.around_(model, (e, w), 0.01, names=names_of(model), generator=seeded(7))
    batches = data.batches([chain], [data.stream(0, 0, "training")], 32, 32)
    stepper = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(400):
        symbols = next(batches)[0]
        loss = nn.functional.cross_entropy(model(symbols[:, :-1]).flatten(0, 1), symbols[:, 1:].flatten())
        stepper.zero_grad()
        loss.backward()
        stepper.step()
    unseen = torch.from_numpy(chain.sample(33, 4096, seed=1))
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(unseen[:, :-1]).flatten(0, 1), unseen[:, 1:].flatten()).item()
    assert real_limit(loss, chain) == label == landscape.Label(int(landscape.limit(chain, [(e, w)])[0])).word
