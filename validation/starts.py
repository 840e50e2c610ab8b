"""Where trainings start: weights drawn around zero, and points of the canonical slice.

Functions with a trailing underscore fill a model in place, as in `torch.nn.init`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from landscape.parameters import ParameterError
from validation.transformer import NORMS, Transformer

ATTENTION = ("query", "key", "value", "output")


@torch.no_grad()
def gaussian_(model: Transformer, std: float = 0.02, *, generator: torch.Generator | None = None) -> Transformer:
    """Draw every weight from N(0, std^2); the bias is 0, and layer norm multiplies by 1 and adds 0.

    Parameters
    ----------
    std : float
        Standard deviation of a weight.
    """
    for name, parameter in model.named_parameters():
        if name == "bias" or any(f"_{kind}" in name for kind in NORMS):
            parameter.zero_()
        else:
            parameter.normal_(0.0, std, generator=generator)
    return model


@torch.no_grad()
def canonical_(
    model: Transformer,
    e,
    w,
    *,
    alpha=None,
    head=None,
    attention_std: float = 0.0,
    bias: float = 0.0,
    generator: torch.Generator | None = None,
) -> Transformer:
    """Put every model on the canonical slice, where the logit gap is e^2 (1 + 2 w |w|) without attention.

    The embedding is (e / sqrt d) alpha, each position is minus half of it, W_1 = k |w| 1 alpha^T and
    W_2 = k w alpha 1^T with k = 2 / sqrt(r d) (derivations/canonical-gap.md).

    Parameters
    ----------
    e, w : float or array, shape (M,)
    alpha : array of +1 and -1, shape (M, d), optional
        The direction of each model. Without it, drawn uniformly.
    head : float or array, shape (M,), optional
        Of an untied model: its head is (head / sqrt d) alpha; e if not given.
    attention_std : float
        The four attention matrices are drawn from N(0, attention_std^2); they are zero at 0.
    bias : float
        The bias b. It is 0 for training, not the minimiser at this (e, w).

    Raises
    ------
    ParameterError
        If `e`, `w`, `alpha` or `head` cannot be one value (or row) for each model.
    """
    members, width, hidden = model.members, model.config.dimension, model.config.hidden
    dtype = model.embedding.dtype
    if alpha is None:
        signs = 2 * torch.randint(0, 2, (members, width), generator=generator).to(dtype) - 1
    else:
        signs = _per_model("alpha", alpha, (members, width), dtype)
    e = _per_model("e", e, (members,), dtype)
    w = _per_model("w", w, (members,), dtype)
    k = 2.0 / math.sqrt(hidden * width)
    embedding = e[:, None] * signs / math.sqrt(width)
    model.embedding.copy_(embedding)
    model.positions.copy_(-0.5 * embedding[:, None, :])
    model.inner.copy_((k * w.abs())[:, None, None] * signs[:, None, :])
    model.outer.copy_((k * w)[:, None, None] * signs[:, :, None])
    if not model.config.tied:
        scale = e if head is None else _per_model("head", head, (members,), dtype)
        model.head.copy_(scale[:, None] * signs / math.sqrt(width))
    if model.config.attention != "none":
        for name in ATTENTION:
            getattr(model, name).normal_(0.0, 1.0, generator=generator).mul_(attention_std)
    model.bias.fill_(bias)
    return model


@torch.no_grad()
def simplex_(
    model: Transformer, e, w, *, attention_std: float = 0.0, noise: float = 0.0, generator: torch.Generator | None = None,
) -> Transformer:
    """Put every model of S symbols on the canonical slice of rank S - 1, in a random orientation.

    Embedding s is e times corner s of a regular simplex of unit vectors, positions are zero; W_1 and W_2 are 2|w| / sqrt S and
    2w / sqrt S times the corners, one hidden unit for each (derivations/canonical-gap.md), as often as there are S more hidden
    units, each copy smaller by the root of their number. What is left of the hidden units is zero.

    Parameters
    ----------
    e, w : float
    attention_std : float
        The four attention matrices are drawn from N(0, attention_std^2).
    noise : float
        Standard deviation of what is added to every weight but the bias.

    Raises
    ------
    ParameterError
        If the model scales one vector by binary symbols, or d < S - 1, or r < S.
    """
    config = model.config
    if config.symbols is None or config.dimension < config.symbols - 1 or config.hidden < config.symbols:
        raise ParameterError("model", "simplex_", "one of S symbols with d at least S - 1 and r at least S", config)
    count, dtype = config.symbols, model.embedding.dtype
    copies = config.hidden // count
    gaussian_(model, 0.0)
    for index in range(model.members):
        corners = simplex_corners(count, config.dimension, generator).to(dtype)
        units = corners.repeat(copies, 1) * (2.0 / math.sqrt(count * copies))
        model.embedding[index] = e * corners
        model.inner[index, : count * copies] = abs(w) * units
        model.outer[index, :, : count * copies] = w * units.T
    if config.attention != "none":
        for name in ATTENTION:
            getattr(model, name).normal_(0.0, 1.0, generator=generator).mul_(attention_std)
    for name, parameter in model.named_parameters():
        if name != "bias":
            parameter.add_(noise * torch.empty_like(parameter).normal_(generator=generator))
    return model


def simplex_corners(count: int, width: int, generator: torch.Generator | None = None) -> torch.Tensor:
    """Corners of a regular simplex of unit vectors around 0, shape (count, width), turned at random; float64."""
    drawn = torch.randn(width, count, dtype=torch.float64, generator=generator)
    drawn -= drawn.mean(dim=1, keepdim=True)  # its columns add up to zero, and so do those of the nearest partial isometry
    left, _, right = torch.linalg.svd(drawn, full_matrices=False)
    rank = count - 1
    return math.sqrt(count / rank) * (left[:, :rank] @ right[:rank]).T


@torch.no_grad()
def manifold_(
    model: Transformer, e, w, *, alpha=None, attention: float = 0.0, noise: float = 0.0, bias=0.0,
    generator: torch.Generator | None = None,
) -> Transformer:
    """Put every model on the canonical slice with attention on the manifold of rank one, and add noise to every weight.

    Parameters
    ----------
    e, w : float or array, shape (M,)
    alpha : array of +1 and -1, shape (M, d), optional
        The direction of each model. Without it, drawn uniformly.
    attention : float
        The four attention matrices are `attention` times alpha alpha^T.
    noise : float
        Standard deviation of the Gaussian noise on each weight; the bias gets none. At 0 a model is on the manifold.
    bias : float or array, shape (M,)
    """
    shape, dtype = (model.members, model.config.dimension), model.embedding.dtype
    if alpha is None:
        alpha = 2 * torch.randint(0, 2, shape, generator=generator) - 1
    canonical_(model, e, w, alpha=alpha)
    signs = _per_model("alpha", alpha, shape, dtype)
    if model.config.attention != "none":
        for name in ATTENTION:
            getattr(model, name).copy_(attention * signs[:, :, None] * signs[:, None, :])
    for name, parameter in model.named_parameters():
        if name != "bias":
            parameter.add_(noise * torch.empty_like(parameter).normal_(generator=generator))
    model.bias.copy_(_per_model("bias", bias, (model.members,), dtype))
    return model


def _per_model(name: str, value, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return `value` as a tensor with one entry (or row) for each model."""
    try:
        return torch.as_tensor(np.asarray(value, dtype=np.float64), dtype=dtype).expand(shape)
    except (RuntimeError, TypeError, ValueError):
        raise ParameterError(name, "canonical_", f"an array of real numbers of shape {shape}", value) from None


class EveryRun:
    """A start that is the same for every run of an arm, but for what is drawn."""

    def at(self, index: int):
        """The start of run `index`."""
        return self


@dataclass(frozen=True)
class GaussianStart(EveryRun):
    """Every weight from N(0, std^2).

    Such a start is not on the canonical slice. The basin map's counterpart of it is a point
    (e, w) of two draws from the same law; `point` draws that point, on its own.
    """

    std: float = 0.02

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """Draw (e, w) ~ N(0, std^2), the counterpart in the basin map."""
        e, w = random.normal(0.0, self.std, size=2)
        return float(e), float(w)

    def fill_(self, model: Transformer, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model; `point` does not enter."""
        gaussian_(model, self.std, generator=generator)


@dataclass(frozen=True)
class CanonicalStart(EveryRun):
    """A point of the canonical slice, (e, w) ~ N((`e`, `w`), std^2), with weak random attention and b = 0."""

    e: float
    w: float
    std: float = 0.02
    attention_std: float = 0.02

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """Draw the start's own (e, w)."""
        e, w = random.normal((self.e, self.w), self.std)
        return float(e), float(w)

    def fill_(self, model: Transformer, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model at the drawn point."""
        canonical_(model, *point, attention_std=self.attention_std, generator=generator)


@dataclass(frozen=True)
class SimplexStart(EveryRun):
    """The point (`e`, `w`) of the canonical slice of S symbols in a random orientation, with `noise` on every weight."""

    e: float
    w: float
    noise: float = 0.02

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """The point (e, w); nothing is drawn."""
        return self.e, self.w

    def fill_(self, model: Transformer, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model."""
        simplex_(model, *point, noise=self.noise, generator=generator)


@dataclass(frozen=True)
class ManifoldStart(EveryRun):
    """The point (`e`, `w`) of the canonical slice, with attention on the manifold of rank one, b = 0, and `noise` on every weight."""

    e: float
    w: float
    noise: float = 0.0
    attention: float = 0.02

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """The point (e, w); nothing is drawn."""
        return self.e, self.w

    def fill_(self, model: Transformer, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model."""
        manifold_(model, *point, attention=self.attention, noise=self.noise, generator=generator)


@dataclass(frozen=True)
class GridStart:
    """A `ManifoldStart` for each run: run k starts at point k of the grid, w running fastest, and the grid repeats."""

    e: tuple[float, ...]
    w: tuple[float, ...]
    noise: float = 0.0
    attention: float = 0.02

    @property
    def size(self) -> int:
        """Number of points of the grid."""
        return len(self.e) * len(self.w)

    def at(self, index: int) -> ManifoldStart:
        """The start of run `index`."""
        row, column = divmod(index % self.size, len(self.w))
        return ManifoldStart(self.e[row], self.w[column], self.noise, self.attention)


Start = GaussianStart | CanonicalStart | SimplexStart | ManifoldStart | GridStart
