"""Starts of PyTorch trainings: functions that fill a model in place, as in `torch.nn.init`.

    from landscape import pytorch
    pytorch.around_(model, names=...)                 # the guideline: (e, w) ~ N((1, -1), std^2), and std on every weight

They take the transformer of `validation.transformer`, or any module whose weights `landscape.WeightNames` names. Weights
without a role keep their values, and so do layer norms, which the theory does not have; biases become 0. Parameters stay the
objects that they are, so tied weights stay tied. With `landscape.checkpoints` it is what imports torch in this package.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from landscape import parameters
from landscape.parameters import ParameterError
from landscape.weight_names import WeightNames
from landscape.weights import Weights, weights_of


@torch.no_grad()
def canonical_(
    model, e=1.0, w=-1.0, *, names: WeightNames | None = None, alpha=None, head=None, attention: float = 0.0,
    attention_std: float = 0.0, noise: float = 0.0, bias=0.0, generator: torch.Generator | None = None,
):
    """Put a model of two symbols on the canonical slice, where the logit gap is e^2 (1 + 2 w |w|) without attention.

    One vector that embeds is (e / sqrt d) alpha and each position minus half of it; of two rows the first is minus and the second
    plus half of it, and positions are 0, which gives the same streams. The gap is that of the logit of 1 against 0, after a 1 less
    after a 0. W_1 = k |w| 1 alpha^T and W_2 = k w alpha 1^T with k = 2 / sqrt(r d) (derivations/canonical-gap.md).

    Parameters
    ----------
    model : torch.nn.Module
    e, w : float or array, shape (M,)
    names : WeightNames, optional
        By default those of the transformer in `validation.transformer`, which is M models side by side.
    alpha : array of +1 and -1, shape (M, d) or (d,), optional
        The direction of each model. Without it, drawn uniformly; with as many of each sign as possible where `names` has layer
        norms, which take away the mean.
    head : float or array, shape (M,), optional
        Of an untied model: its head is (head / sqrt d) alpha; e if not given.
    attention, attention_std : float
        The four attention matrices are attention alpha alpha^T, with N(0, attention_std^2) added.
    noise : float
        Standard deviation of what is added to every weight but the biases; at 0 the model is on the manifold.
    bias : float or array, shape (M,)
        The bias b of the logit. It is 0 for training, not the minimiser at this (e, w).
    generator : torch.Generator, optional

    Returns
    -------
    The model.

    Raises
    ------
    ParameterError
        If names and weights do not fit, a value cannot be one number (or row) for each model, or tied weights would have to
        have two values. Nothing is changed then.
    """
    weights = weights_of("canonical_", model, names)
    members, width = weights.members, weights.width
    if weights.symbols not in (None, 2):
        raise ParameterError("model", "canonical_", "one of two symbols; simplex_ is for more", f"one of {weights.symbols}")
    like = weights.arrays["embedding"]
    if alpha is None:
        signs = _signs(weights, generator).to(like)
    else:
        signs = _per_model("canonical_", "alpha", alpha, (members, width), like)
        if not bool((signs.abs() == 1).all()):
            raise ParameterError("alpha", "canonical_", f"an array of +1 and -1 of shape {(members, width)}", alpha)
    e, w, bias = (_per_model("canonical_", name, value, (members,), like) for name, value in (("e", e), ("w", w), ("bias", bias)))
    scale = e if head is None else _per_model("canonical_", "head", head, (members,), like)
    if head is not None and "head" not in weights.arrays and not torch.equal(scale, e):
        raise ParameterError("head", "canonical_", "left out or equal to e, as the embedding of this model is its head", head)
    k = 2.0 / math.sqrt(weights.hidden * width)
    vector, reader = e[:, None] * signs / math.sqrt(width), scale[:, None] * signs / math.sqrt(width)
    values = {
        "embedding": vector if weights.symbols is None else _halves(vector),
        "positions": -0.5 * vector[:, None, :] if weights.symbols is None else torch.zeros_like(vector)[:, None, :],
        "inner": (k * w.abs())[:, None, None] * signs[:, None, :],
        "outer": (k * w)[:, None, None] * signs[:, :, None],
        **dict.fromkeys(weights.attention, attention * signs[:, :, None] * signs[:, None, :]),
    }
    if "head" in weights.arrays:
        values["head"] = reader if weights.arrays["head"].ndim == 2 else _halves(reader)
    if "bias" in weights.arrays:
        values["bias"] = bias if weights.arrays["bias"].ndim == 1 else _halves(bias)
    elif bool(bias.any()):
        raise ParameterError("bias", "canonical_", "0, as the names have no bias of the logits", bias.tolist())
    _fill("canonical_", weights, values)
    if attention_std:
        _add(weights, weights.attention, attention_std, generator)
    if noise:
        _add(weights, [role for role in weights.arrays if role != "bias"], noise, generator)
    return model


@torch.no_grad()
def simplex_(
    model, e=1.0, w=-1.0, *, names: WeightNames | None = None, attention_std: float = 0.0, noise: float = 0.0,
    generator: torch.Generator | None = None,
):
    """Put a model of S symbols on the canonical slice of rank S - 1, in a random orientation.

    Embedding s is e times corner s of a regular simplex of unit vectors, positions are zero; W_1 and W_2 are 2|w| / sqrt S and
    2w / sqrt S times the corners, one hidden unit for each (derivations/canonical-gap.md), as often as there are S more hidden
    units, each copy smaller by the root of their number. What is left of the hidden units is zero, and so is the bias.

    Parameters
    ----------
    model : torch.nn.Module
    e, w : float or array, shape (M,)
        With two symbols the gap is in units of `SymmetricChain(2, p)`: this e is half of that of `canonical_`.
    names : WeightNames, optional
        By default those of the transformer in `validation.transformer`.
    attention_std : float
        The four attention matrices are drawn from N(0, attention_std^2).
    noise : float
        Standard deviation of what is added to every weight but the biases.
    generator : torch.Generator, optional

    Returns
    -------
    The model.

    Raises
    ------
    ParameterError
        If the model scales one vector by binary symbols, or d < S - 1, or r < S; or as for `canonical_`.
    """
    weights = weights_of("simplex_", model, names)
    count, width, hidden, members = weights.symbols, weights.width, weights.hidden, weights.members
    if count is None or width < count - 1 or hidden < count:
        wanted = "one of S symbols with d at least S - 1 and r at least S"
        raise ParameterError("model", "simplex_", wanted, f"one of S = {count}, d = {width}, r = {hidden}")
    like = weights.arrays["embedding"]
    e, w = (_per_model("simplex_", name, value, (members,), like)[:, None, None] for name, value in (("e", e), ("w", w)))
    copies = hidden // count
    corners = torch.stack([simplex_corners(count, width, generator) for _ in range(members)]).to(like)
    units = torch.zeros((members, hidden, width)).to(like)
    units[:, : count * copies] = corners.repeat(1, copies, 1) * (2.0 / math.sqrt(count * copies))
    values = {"embedding": e * corners, "inner": w.abs() * units, "outer": w * units.mT, "head": e * corners}
    zero = torch.zeros(()).to(like)
    _fill("simplex_", weights, {role: values.get(role, zero) for role in weights.arrays})
    _add(weights, weights.attention, attention_std, generator)  # drawn at 0 too: the noise is the same beside any attention
    if noise:
        _add(weights, [role for role in weights.arrays if role != "bias"], noise, generator)
    return model


@torch.no_grad()
def around_(
    model, mean=(1.0, -1.0), std: float = 0.02, *, names: WeightNames | None = None, alpha=None,
    generator: torch.Generator | None = None,
):
    """Start around a point of the canonical slice: (e, w) ~ N(mean, std^2) for each model, and N(0, std^2) on every weight.

    This is the guideline of arXiv 2406.03072. With three or more symbols it is the slice of rank S - 1 (`simplex_`).

    Parameters
    ----------
    model : torch.nn.Module
    mean : (e, w)
    std : float
    names : WeightNames, optional
        By default those of the transformer in `validation.transformer`.
    alpha : array of +1 and -1, shape (M, d) or (d,), optional
        As for `canonical_`.
    generator : torch.Generator, optional

    Returns
    -------
    The model; `landscape.projection.project` tells where it is.

    Raises
    ------
    ParameterError
        As `canonical_` and `simplex_`.
    """
    weights = weights_of("around_", model, names)
    try:
        centre = torch.tensor([parameters.real("around_", "mean", value) for value in mean], dtype=torch.float64)
    except TypeError:
        centre = torch.empty(0)
    if len(centre) != 2:
        raise ParameterError("mean", "around_", "two numbers, e and w", mean)
    std = parameters.real("around_", "std", std)
    if std < 0.0:
        raise ParameterError("std", "around_", "0 or positive", std)
    many = weights.symbols is not None and weights.symbols > 2
    if many and alpha is not None:
        raise ParameterError("alpha", "around_", "left out, as more than two symbols have no one direction", alpha)
    points = centre + std * _normal((weights.members, 2), centre, generator)
    if many:
        return simplex_(model, points[:, 0], points[:, 1], names=names, noise=std, generator=generator)
    return canonical_(model, points[:, 0], points[:, 1], names=names, alpha=alpha, noise=std, generator=generator)


def simplex_corners(count: int, width: int, generator: torch.Generator | None = None) -> torch.Tensor:
    """Corners of a regular simplex of unit vectors around 0, shape (count, width), turned at random; float64."""
    drawn = torch.randn(width, count, dtype=torch.float64, generator=generator, device=generator.device if generator else None)
    drawn -= drawn.mean(dim=1, keepdim=True)  # its columns add up to zero, and so do those of the nearest partial isometry
    left, _, right = torch.linalg.svd(drawn, full_matrices=False)
    rank = count - 1
    return math.sqrt(count / rank) * (left[:, :rank] @ right[:rank]).T


# --- values for each model, and how they are written -----------------------------------------------------


def _signs(weights: Weights, generator: torch.Generator | None) -> torch.Tensor:
    """A random sign vector for each model, with as many of each sign as possible before a layer norm."""
    shape, device = (weights.members, weights.width), generator.device if generator else None
    if not weights.names.norms:
        return 2 * torch.randint(0, 2, shape, generator=generator, device=device) - 1
    order = torch.rand(shape, generator=generator, device=device).argsort(dim=1).argsort(dim=1)
    return 2 * (order < shape[1] // 2).long() - 1


def _halves(vector: torch.Tensor) -> torch.Tensor:
    """Minus and plus half of a vector (or number) of each model, as two rows: their difference is the vector."""
    return torch.stack([-0.5 * vector, 0.5 * vector], dim=1)


def _per_model(owner: str, name: str, value, shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """Return `value` as a tensor with one entry (or row) for each model."""
    try:
        found = value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value, dtype=np.float64))
        found = found.detach().to(like).expand(shape)
    except (RuntimeError, TypeError, ValueError):
        found = None
    if found is None or not bool(torch.isfinite(found).all()):
        raise ParameterError(name, owner, f"an array of finite real numbers of shape {shape}", value)
    return found


def _normal(shape, like: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """Standard normal numbers, drawn where the generator is."""
    device = generator.device if generator else like.device
    return torch.empty(shape, dtype=like.dtype, device=device).normal_(generator=generator).to(like.device)


def _memory(array: torch.Tensor) -> tuple[int, int, int]:
    """Which numbers in memory an array is made of; the same for a matrix and its transpose."""
    return array.untyped_storage().data_ptr(), array.storage_offset(), array.numel()


def _fill(owner: str, weights: Weights, values: dict[str, torch.Tensor]) -> None:
    """Write a value for each role, and zero into the biases; nothing if weights that are tied would get two values."""
    seen: dict[tuple, tuple[str, torch.Tensor]] = {}
    for role, array in weights.arrays.items():
        order = sorted(range(array.ndim), key=lambda axis: -array.stride(axis))
        contents = values[role].expand(array.shape).permute(order).flatten()  # as they would follow each other in memory
        first, other = seen.setdefault(_memory(array), (role, contents))
        if not torch.equal(contents, other):
            names = [getattr(weights.names, each) for each in (first, role)]
            raise ParameterError("names", owner, f"a mapping in which tied weights have one value; {first!r} and {role!r} need different ones", names)
    for role, array in weights.arrays.items():
        array.copy_(values[role].expand(array.shape))
    for bias in weights.biases:
        bias.zero_()


def _add(weights: Weights, roles, std: float, generator: torch.Generator | None) -> None:
    """Add N(0, std^2) to the arrays of some roles, once where they are tied."""
    done = set()
    for role in roles:
        array = weights.arrays[role]
        if _memory(array) not in done:
            done.add(_memory(array))
            array.add_(std * _normal(array.shape, array, generator))
