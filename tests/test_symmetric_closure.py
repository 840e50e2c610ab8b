"""Many states: the full model on the symmetric chain, by matrices, against what the chapters on the simplex ansatz say."""

import itertools

import numpy as np
import pytest

import landscape
from landscape import Label, SymmetricChain
from landscape.landscapes import landscape_of
from landscape.symbolic.symmetric_orbits import follow, loss_and_gradient, simplex, start

LAWS = [(3, 0.9), (3, 0.3), (5, 0.95), (5, 0.6)]  # both sides of p = (S - 1)/S
ABOVE = [(3, 0.9), (5, 0.95)]


def full_model(chain, speeds=True):
    """The canonical landscape at the speeds of the full model."""
    return landscape_of(chain).with_speeds({"e": 1 / chain.states, "w": 1 / 8} if speeds else None)


def threshold(states):
    return (states - 1) / states


def descend(theta, p, rate, steps, until=None):
    """Gradient descent; stops when every loss is below `until`. Returns parameters and the lowest loss that each model had."""
    lowest = np.full(len(theta[0]), np.inf)
    for _ in range(steps):
        loss, gradient = loss_and_gradient(theta, p)
        lowest = np.minimum(lowest, loss)
        if until is not None and np.all(lowest < until):
            break
        theta = [a - rate * g for a, g in zip(theta, gradient)]
    return theta, lowest


def near_plateau(states, width, w, size, count, seed):
    """Models of the ansatz but for the embeddings, which are random and small."""
    theta = start(states, width, np.zeros(count), np.full(count, w))
    theta[0] = size * np.random.default_rng(seed).standard_normal(theta[0].shape)
    return theta


# --- the ansatz is kept --------------------------------------------------------------------------------


@pytest.mark.parametrize(("states", "p"), LAWS)
def test_the_gradient_is_that_of_the_loss(states, p):
    rng = np.random.default_rng(1)
    theta = [rng.standard_normal((1, *shape)) for shape in ((states, 4), (3, 4), (4, 3), (states,))]
    along = [rng.standard_normal(a.shape) for a in theta]
    sides = [loss_and_gradient([a + s * 1e-6 * b for a, b in zip(theta, along)], p)[0] for s in (1, -1)]
    slope = sum((g * b).sum() for g, b in zip(loss_and_gradient(theta, p)[1], along))
    assert (sides[0] - sides[1])[0] / 2e-6 == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("extra", [0, 2])
@pytest.mark.parametrize(("states", "p"), LAWS)
def test_descent_of_the_full_model_is_descent_in_e_and_w_at_the_derived_speeds(states, p, extra):
    """Fifty steps from the ansatz: the parameters stay on it, and e and w make the steps of the canonical landscape with speeds."""
    chain, rate, width = SymmetricChain(states, p), 0.1, states - 1 + extra
    points = np.array([(0.75, 0.5), (-0.9, -1.1), (1.2, -0.8), (-0.4, 0.9)])
    theta, plain = start(states, width, *points.T), landscape_of(chain)
    speeds = np.array(full_model(chain).speeds)
    for _ in range(50):
        theta, _ = descend(theta, p, rate, 1)
        points = points - rate * speeds * plain.gradient(points)
    for found, expected in zip(theta, start(states, width, *points.T)):
        assert np.abs(found - expected).max() < 1e-12
    assert np.abs(points[:, 0] - [0.75, -0.9, 1.2, -0.4]).min() > 1e-3


def test_positions_and_bias_stay_zero_but_do_not_for_embeddings_off_the_ansatz():
    """The gradient in one position vector is the sum over symbols of that in what they put into the stream."""
    def position_slope(theta, p):
        moved = []
        for k, sign in itertools.product(range(theta[0].shape[2]), (1, -1)):
            shift = np.zeros((1, 1, theta[0].shape[2]))
            shift[..., k] = sign * 1e-6
            moved.append(with_position(theta, shift, p))
        return (np.array(moved[::2]) - np.array(moved[1::2])) / 2e-6

    def with_position(theta, position, p):
        embedding, inner, outer, bias = theta
        stream = embedding + position
        logits = (stream + np.maximum(stream @ inner.mT, 0) @ outer.mT) @ embedding.mT + bias[:, None]
        n = embedding.shape[1]
        law = np.where(np.eye(n, dtype=bool), 1 - p, p / (n - 1))
        return -(law * (logits - np.log(np.exp(logits).sum(axis=2, keepdims=True)))).sum() / n

    for states, p in LAWS:
        on_it = start(states, states, [0.8], [-0.9])
        assert np.abs(position_slope(on_it, p)).max() < 1e-9
        off_it = [on_it[0] + 0.1 * np.arange(states)[None, :, None], *on_it[1:]]
        assert np.abs(position_slope(off_it, p)).max() > 1e-4


# --- where it ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("states", "p"), LAWS)
def test_the_flow_with_speeds_ends_where_the_full_model_does(states, p):
    chain = SymmetricChain(states, p)
    points = np.random.default_rng(8).uniform((-1.5, -2.4), (1.5, 1), size=(40, 2))
    ends, loss = follow(start(states, states - 1, *points.T), p)
    share = (loss - chain.bigram_loss) / (chain.unigram_loss - chain.bigram_loss)
    short = np.linalg.norm(ends[0], axis=(1, 2)) < 2e-2
    clear = (share < 0.1) | short
    by_flow = np.array(landscape.flow(full_model(chain), points).labels)
    assert clear.sum() >= 36 and short.any() and (share < 0.1).any()
    assert np.array_equal(by_flow[clear] == Label.GLOBAL, ~short[clear])


@pytest.mark.parametrize(("states", "p", "w"), [(3, 0.9, -0.3), (5, 0.95, -0.5)])
def test_speeds_move_the_boundary_for_fewer_than_eight_states(states, p, w):
    chain, c = SymmetricChain(states, p), 4 / states
    canonical = (c * w**2 - np.log(c * w**2) - 1) / c
    e = np.sqrt(canonical * (1 + 8 / states) / 2)  # between the canonical boundary and 8/S times it
    _, loss = follow(start(states, states - 1, [e], [w]), p)
    assert landscape.limit(chain, [(e, w)])[0] == Label.GLOBAL
    assert landscape.flow(full_model(chain), [(e, w)]).labels[0] == Label.LOCAL
    assert loss[0] == pytest.approx(chain.unigram_loss, abs=1e-4)


def test_at_eight_states_the_plain_canonical_rule_is_that_of_the_full_model():
    chain = SymmetricChain(8, 0.95)
    assert set(full_model(chain).speeds) == {1 / 8}
    points = np.random.default_rng(4).uniform((-1.5, -2), (1.5, 1), size=(30, 2))
    _, loss = follow(start(8, 7, *points.T), 0.95)
    middle = (chain.unigram_loss + chain.bigram_loss) / 2
    assert np.array_equal(np.array(landscape.limit(chain, points)) == Label.GLOBAL, loss < middle)


# --- stability across -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("states", "p"), LAWS)
def test_across_the_simplex_embeddings_grow_or_decay_at_the_derived_rate(states, p):
    """exp(-2φ'(0)t/(S - 1)), whatever the MLP: it grows below the threshold and decays above."""
    rate, steps = 1e-3, 4000
    theta = start(states, states + 1, np.full(3, 1e-4), np.array([0.7, -0.6, -1.4]))
    across = np.zeros_like(theta[0])
    across[:, :, -2:] = 1e-9 * np.random.default_rng(2).standard_normal(across[:, :, -2:].shape)
    across -= across.mean(axis=1, keepdims=True)
    ends, _ = descend([theta[0] + across, *theta[1:]], p, rate, steps)
    growth = np.linalg.norm(ends[0][:, :, -2:], axis=(1, 2)) / np.linalg.norm(across, axis=(1, 2))
    assert np.log(growth) / (rate * steps) == pytest.approx(np.full(3, -2 * (p - threshold(states)) / (states - 1)), rel=2e-3)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("states", "p"), LAWS)
def test_antisymmetric_embeddings_grow_or_decay_at_the_derived_rate(states, p, side):
    """Next to the ansatz their rate is that across it for e > 0, and has the factor 1 + m/(S - 1) for e < 0."""
    rate, steps, w = 1e-3, 1500, -0.6
    theta = start(states, states - 1, [side * 1e-4], [w])
    cycle = np.roll(np.eye(states), 1, axis=1) - np.roll(np.eye(states), -1, axis=1)
    along = cycle @ simplex(states, states - 1)
    along /= np.linalg.norm(along)
    ends, _ = descend([theta[0] + 1e-9 * along, *theta[1:]], p, rate, steps)
    growth = np.log((ends[0][0] * along).sum() / 1e-9) / (rate * steps)
    factor = 1 if side > 0 else 1 + 4 * w * abs(w) / (states - 1)
    assert growth == pytest.approx(-2 * (p - threshold(states)) / (states - 1) * factor, rel=2e-3)


@pytest.mark.parametrize("extra", [0, 2])
@pytest.mark.parametrize(("states", "p"), ABOVE)
def test_above_the_threshold_the_plateau_holds_down_to_its_edge_and_the_canonical_local_minima_beyond_do_not(states, p, extra):
    """Both starts are local for the canonical map, from e > 0 and from e < 0."""
    chain, width = SymmetricChain(states, p), states - 1 + extra
    edge, saddle = -np.sqrt(states - 1) / 2, -np.sqrt(states) / 2
    inside, beyond = edge + 0.05, (edge + saddle) / 2
    for w in (inside, beyond):
        assert set(landscape.limit(chain, [(1e-3, w), (-1e-3, w)])) == {Label.LOCAL}
    _, held = descend(near_plateau(states, width, inside, 1e-2, 6, seed=1), p, 0.2, 6000)
    assert held.min() >= chain.unigram_loss - 1e-13
    _, left = descend(near_plateau(states, width, beyond, 1e-2, 6, seed=1), p, 0.2, 20000, until=chain.unigram_loss - 1e-3)
    # the direction down is one of many: a run may go along the plateau to where fewer units are open, and rest there
    assert np.median(left) < chain.unigram_loss - 1e-3


@pytest.mark.parametrize(("states", "p"), [(3, 0.3), (5, 0.6)])
def test_below_the_threshold_the_plateau_holds_nothing(states, p):
    """From w far below both canonical saddles, where the map says local, in the fewest dimensions."""
    chain, w = SymmetricChain(states, p), -0.5 * np.sqrt(states * (states - 1)) - 0.3
    assert set(landscape.limit(chain, [(1e-3, w), (-1e-3, w)])) == {Label.LOCAL}
    _, lowest = descend(near_plateau(states, states - 1, w, 1e-2, 6, seed=3), p, 0.1, 20000, until=chain.unigram_loss - 1e-2)
    assert lowest.max() < chain.unigram_loss - 1e-2


@pytest.mark.parametrize(("states", "p"), ABOVE)
def test_above_the_threshold_nothing_is_below_the_unigram_loss_unless_the_mlp_is_large(states, p):
    """For any embedding and bias, if the spectral norms of the two matrices have a product of at most one."""
    rng, count = np.random.default_rng(5), 400
    embedding, inner, outer, bias = (rng.standard_normal((count, *shape)) for shape in ((states, 4), (6, 4), (4, 6), (states,)))
    product = np.linalg.norm(inner, 2, axis=(1, 2)) * np.linalg.norm(outer, 2, axis=(1, 2))
    outer /= product[:, None, None]
    for size in (0.01, 0.3, 2.0):
        assert loss_and_gradient([size * embedding, inner, outer, size**2 * bias], p)[0].min() >= np.log(states) - 1e-13
    # the bound is sharp: 2 % beyond it, with the units of two symbols open and their embeddings parted
    w = -np.sqrt(1.02 * (states - 1)) / 2
    theta, u = start(states, states - 1, [0.0], [w]), simplex(states, states - 1)
    theta[0][0] = 0.02 * (u[0] + u[1])
    theta[0][0, :2] += 1e-4 * np.stack([u[0] - u[1], u[1] - u[0]])
    norms = [np.linalg.norm(a[0], 2) for a in theta[1:3]]
    assert norms[0] * norms[1] == pytest.approx(1.02)
    theta[3] = -(theta[0] @ (theta[0].mean(axis=1, keepdims=True) + np.maximum(theta[0].mean(axis=1, keepdims=True) @ theta[1].mT, 0) @ theta[2].mT).mT)[:, :, 0]
    assert loss_and_gradient(theta, p)[0][0] < np.log(states)


# --- plateaus of classes ----------------------------------------------------------------------------------


def class_loss(states, p, sizes):
    """Mean entropy of the next symbol, given the class of the current one, from the chain's matrix."""
    law = np.where(np.eye(states, dtype=bool), 1 - p, p / (states - 1))
    total, first = 0.0, 0
    for size in sizes:
        after = law[first : first + size].mean(axis=0)
        total -= size / states * (after * np.log(after)).sum()
        first += size
    return total


def test_losses_of_the_plateaus_that_the_chapter_names(chapters):
    from landscape.symbolic.symbols import p, states, together

    entropy = chapters["symmetric-stability"]["class_loss"]
    named = {(2, 1, 1, 1): 1.5421, (2, 2, 1): 1.5687, (3, 1, 1): 1.5649, (4, 1): 1.5873, (3, 2): 1.5915, (5,): np.log(5), (1,) * 5: 1.5155}
    text = next(step.text for step in chapters["symmetric-stability"].steps if step.name == "class_loss")
    for sizes, loss in named.items():
        derived = sum(s / 5 * float(entropy.subs({states: 5, p: 0.95, together: s})) for s in sizes)
        assert derived == pytest.approx(class_loss(5, 0.95, sizes), rel=1e-12)
        assert derived == pytest.approx(loss, abs=6e-5)
        assert len(sizes) in (1, 5) or f"{loss:.4f}" in text


def on_classes(states, sizes, p, width, w, seed):
    """A model trained with one embedding a class, to the best that it can do for the classes."""
    corners, count = simplex(len(sizes), width), len(sizes)
    rows = np.repeat(corners, sizes, axis=0)
    rng = np.random.default_rng(seed)
    inner, outer = 2 * abs(w) / np.sqrt(count) * corners, 2 * w / np.sqrt(count) * corners.T
    theta = [0.8 * rows[None], inner[None], outer[None], np.repeat(0.1 * rng.standard_normal(count), sizes)[None]]
    return descend(theta, p, 0.4, 30000)[0]


@pytest.mark.parametrize("sizes", [(3, 1, 1), (2, 2, 1)])
def test_a_plateau_of_classes_is_critical_and_a_unigram_plateau_in_small(sizes):
    """Above the threshold: the curvature that parts a class, in a dimension that nothing uses, is 2φ'(0)/(S - 1), and a push returns."""
    p = 0.95
    theta = on_classes(5, sizes, p, width=4, w=-1.4, seed=0)
    loss, gradient = loss_and_gradient(theta, p)
    assert loss[0] == pytest.approx(class_loss(5, p, sizes), abs=1e-10)
    assert max(np.abs(g).max() for g in gradient) < 1e-6
    apart = np.zeros_like(theta[0])
    apart[0, 0, -1], apart[0, 1, -1] = np.sqrt(0.5), -np.sqrt(0.5)
    sides = [loss_and_gradient([theta[0] + s * 1e-3 * apart, *theta[1:]], p)[0][0] for s in (1, -1)]
    assert (sum(sides) - 2 * loss[0]) / 1e-6 == pytest.approx(2 * (p - 0.8) / 4, rel=1e-4)
    _, lowest = descend([theta[0] + 1e-3 * apart, *theta[1:]], p, 0.2, 4000)
    assert lowest[0] == pytest.approx(loss[0], abs=1e-9)


# --- linear attention ----------------------------------------------------------------------------------------


def added(states, p, length, count, seed):
    """Σ_i ⟨u_{x_n}, u_{x_i}⟩ u_{x_i} / n of simulated sequences through matrices, in a frame in which x_n is the symbol 0."""
    rng = np.random.default_rng(seed)
    moved = rng.random((count, length)) < p
    symbols = rng.integers(states, size=(count, 1)) + np.cumsum(np.where(moved, rng.integers(1, states, size=(count, length)), 0), axis=1)
    symbols = (symbols - symbols[:, -1:]) % states  # the chain's law does not change under shifts
    u = simplex(states, states - 1)
    scores = u[symbols] @ u[0]
    return (scores[:, :, None] * u[symbols]).mean(axis=1), u[0]


@pytest.mark.parametrize(("states", "p"), LAWS)
def test_mean_and_spread_of_linear_attention_are_those_derived(states, p, chapters):
    from landscape.symbolic import symbols as s

    chapter, count = chapters["symmetric-attention"], 20000
    for length in (4, 40):
        found, corner = added(states, p, length, count, seed=length)
        numbers = {s.states: states, s.so_far: length, s.memory: 1 - p * states / (states - 1)}
        mean, variance = (float(chapter[name].subs(numbers)) for name in ("mean", "variance"))
        spread = ((found - mean * corner) ** 2).sum(axis=1)
        assert np.linalg.norm(found.mean(axis=0) - mean * corner) < 5 * np.sqrt(variance / count)
        assert spread.mean() == pytest.approx(variance, abs=5 * spread.std() / np.sqrt(count))


@pytest.mark.parametrize(("states", "p"), LAWS)
def test_the_error_of_linear_attention_falls_with_the_root_of_the_length(states, p):
    eigenvalue = 1 - p * states / (states - 1)
    constant = np.sqrt((states - 2) * (1 + eigenvalue) / (1 - eigenvalue)) / (states - 1)
    for length in (200, 800):
        found, corner = added(states, p, length, 3000, seed=7)
        error = np.sqrt(((found - corner / (states - 1)) ** 2).sum(axis=1).mean())
        assert error * np.sqrt(length) == pytest.approx(constant, rel=0.08)


def test_for_two_states_linear_attention_is_exact_at_every_length():
    for length in (1, 2, 7, 50):
        found, corner = added(2, 0.7, length, 50, seed=1)
        assert np.abs(found - corner).max() < 1e-14
