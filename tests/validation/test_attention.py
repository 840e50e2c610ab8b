"""Attention where symbol 1 shifts what symbol 0 has: values and derivatives against the usual route, in and out of ensembles."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from validation import shifted  # noqa: E402
from validation.shifted import BLOCK, REACH, SHIFTS, averages  # noqa: E402

SCALE = 0.5


@pytest.fixture(autouse=True)
def by_shifts(monkeypatch):
    """Few positions too take the route by shifts, and the other route is a failure unless a test allows it."""
    monkeypatch.setattr(shifted, "FEW", 0)
    monkeypatch.setattr(shifted, "attended", lambda *_: pytest.fail("went the other way"))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(count, *, members=3, size=5, dimension=4, spread=1.0, shift=0.5, seed=0):
    """Random symbols, and queries, keys and values in float64: logarithms of factors up to about `spread` and `shift`."""
    symbols = torch.randint(0, 2, (members, size, count), generator=seeded(seed))
    symbols[0, 0], symbols[0, 1] = 0, 1  # one symbol alone
    pairs = [
        [torch.randn(members, count, dimension, dtype=torch.float64, generator=seeded(seed + 1 + k)),
         torch.randn(members, dimension, dtype=torch.float64, generator=seeded(seed + 11 + k))]
        for k in range(3)
    ]
    (queries, turn), (keys, step), _ = pairs
    turn *= 0.3
    states = torch.cat([queries, queries + turn.unsqueeze(1)], 1)
    keys *= spread / SCALE / (states @ (keys - keys.mean(1, keepdim=True)).mT).abs().amax().clamp_min(1e-9)
    step *= shift / SCALE / (states @ step.unsqueeze(-1)).abs().amax((1, 2)).unsqueeze(-1)
    return symbols, [tensor.requires_grad_() for pair in pairs for tensor in pair]


def pairs_of(tensors):
    return zip(tensors[::2], tensors[1::2])


def usual(symbols, tensors):
    """Softmax over the positions of each sequence."""
    queries, keys, values = (zero.unsqueeze(1) + symbols.unsqueeze(-1) * one[:, None, None] for zero, one in pairs_of(tensors))
    future = torch.ones(symbols.shape[-1], symbols.shape[-1], dtype=torch.bool).triu(1)
    return (SCALE * queries @ keys.mT).masked_fill(future, -torch.inf).softmax(-1) @ values


def derivatives(found, tensors):
    pull = torch.randn(found.shape, dtype=torch.float64, generator=seeded(99)).to(found.dtype)
    return torch.autograd.grad((found * pull).sum(), tensors)


def assert_agrees(case, dtype=torch.float64, bound=1e-12):
    """Against the usual route in float64, in units of the largest entry."""
    symbols, tensors = case
    ours = [tensor.detach().to(dtype).requires_grad_() for tensor in tensors]
    found, expected = averages(symbols, *pairs_of(ours), SCALE), usual(symbols, tensors)
    assert found.dtype == dtype and (found - expected).abs().max() < bound * expected.abs().max()
    for one, two in zip(derivatives(found, ours), derivatives(expected, tensors), strict=True):
        assert (one - two).abs().max() < bound * (two.abs().max().item() or 1.0)  # a first symbol attends to itself


@pytest.mark.parametrize("count", [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 33])
def test_values_and_gradients_are_those_of_the_usual_route(count):
    assert_agrees(drawn(count))
    assert_agrees(drawn(count), torch.float32, 1e-5)


@pytest.mark.parametrize("spread", [1e-3, 0.2, 0.2 * REACH])
@pytest.mark.parametrize("factor", [1e-3, 0.5, 0.95, 1.05, 2.5])
def test_at_any_spread_of_scores(spread, factor):
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        assert_agrees(drawn(40, spread=spread, shift=factor * SHIFTS[dtype]), dtype, bound)


def test_both_ways_to_sum_what_the_zeros_add_agree(monkeypatch):
    symbols, tensors = drawn(50)
    found = averages(symbols, *pairs_of(tensors), SCALE)
    monkeypatch.setattr(shifted, "SHIFTS", dict.fromkeys(SHIFTS, 0.0))
    again = averages(symbols, *pairs_of(tensors), SCALE)
    assert not torch.equal(found, again) and (found - again).abs().max() < 1e-13


@pytest.mark.parametrize("sizes", [{"spread": 1.1 * REACH}, {"shift": 1.1 * REACH}, {"spread": np.nan}])
def test_factors_too_far_from_one_are_left_to_the_other_route(monkeypatch, sizes):
    asked = []
    monkeypatch.setattr(shifted, "attended", lambda *given: asked.append(given))
    symbols, tensors = drawn(9, **sizes)
    assert averages(symbols, *pairs_of(tensors), SCALE) is None and len(asked) == 1
    _, queries, keys, values, scale = asked[0]
    for given, (zero, one) in zip((queries, keys, values), pairs_of(tensors)):
        expected = torch.cat([zero, zero + one[:, None]], 1)
        assert torch.equal(given.nan_to_num(), expected.nan_to_num())
    assert scale == SCALE


def test_groups_of_models_change_nothing(monkeypatch):
    symbols, tensors = drawn(20, members=5)
    found = averages(symbols, *pairs_of(tensors), SCALE)
    monkeypatch.setattr(shifted, "NUMBERS", 2 * 2 * 6 * 20 * 5)
    again = averages(symbols, *pairs_of(tensors), SCALE)
    assert (found - again).abs().max() < 1e-14
    for one, two in zip(derivatives(found, tensors), derivatives(again, tensors)):
        assert (one - two).abs().max() < 1e-13
    alone = averages(symbols[2:3], *pairs_of([tensor[2:3] for tensor in tensors]), SCALE)
    assert (found[2:3] - alone).abs().max() < 1e-14


def test_the_future_has_no_part():
    symbols, tensors = drawn(BLOCK + 30)
    found, changed = averages(symbols, *pairs_of(tensors), SCALE), symbols.clone()
    changed[..., BLOCK - 3 :] = 1 - changed[..., BLOCK - 3 :]
    again = averages(changed, *pairs_of(tensors), SCALE)
    assert torch.equal(found[:, :, : BLOCK - 3], again[:, :, : BLOCK - 3])
    assert (found[:, :, BLOCK - 3 :] - again[:, :, BLOCK - 3 :]).abs().amin(-1).max() > 1e-3


def test_there_are_second_derivatives():
    symbols, tensors = drawn(6, members=2, size=3)
    found, expected = (derivatives_twice(way, symbols, tensors) for way in (lambda s, t: averages(s, *pairs_of(t), SCALE), usual))
    for one, two in zip(found, expected, strict=True):
        assert (one - two).abs().max() < 1e-11 * two.abs().max()


def derivatives_twice(way, symbols, tensors):
    found = way(symbols, tensors)
    first = torch.autograd.grad(found.square().sum(), tensors, create_graph=True)
    return torch.autograd.grad(sum(tensor.square().sum() for tensor in first), tensors)
