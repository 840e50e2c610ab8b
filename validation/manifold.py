"""The manifold of rank one: where a model is with respect to it, and the one-dimensional twin of a model on it.

With a sign vector alpha, a model is on the manifold if its embedding and every position are multiples of alpha, W_1 one
of 1 alpha^T, W_2 one of alpha 1^T, and the attention matrices ones of alpha alpha^T. Gradient descent does not leave
it, and is there the training of a transformer with d = r = 1 (derivations/exact-reduction.md).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import torch

from validation.starts import ATTENTION
from validation.training import AdamW
from validation.transformer import Transformer, TransformerConfig


@dataclass(frozen=True)
class Projection:
    """Where models are, in orthonormal coordinates of the manifold.

    Attributes
    ----------
    alpha : ndarray of +1 and -1, shape (M, d)
    e, c, w1, w2, b : ndarray of float64, shape (M,)
        Coordinates as in `landscape.architecture("reduced")`; c is the mean over positions.
    across : ndarray of float64, shape (M, d)
        The part of the embedding orthogonal to alpha.
    residual : ndarray of float64, shape (M,)
        Norm of what is off the manifold in all weights, relative to the norm of all weights.
    """

    alpha: np.ndarray
    e: np.ndarray
    c: np.ndarray
    w1: np.ndarray
    w2: np.ndarray
    b: np.ndarray
    across: np.ndarray
    residual: np.ndarray

    @property
    def u(self) -> np.ndarray:
        """Length of the part of the embedding orthogonal to alpha, shape (M,)."""
        return np.linalg.norm(self.across, axis=1)

    def points(self, architecture: str = "transverse") -> np.ndarray:
        """As points of `reduced`, shape (M, 5), or `transverse`, shape (M, 6)."""
        names = ("e", "c", "w1", "w2", "b", "u")[: 5 if architecture == "reduced" else 6]
        return np.stack([getattr(self, name) for name in names], axis=1)


def directions(model: Transformer) -> np.ndarray:
    """The sign vector of each model: the signs of the leading right singular vector of W_1, so that w1 > 0.

    Where W_1 is zero, those of the embedding, so that e >= 0.

    Returns
    -------
    ndarray of +1 and -1, shape (M, d)
    """
    inner, embedding = (  # a training that ran away has no direction
        np.nan_to_num(_array(each), nan=0.0, posinf=0.0, neginf=0.0) for each in (model.inner, model.embedding)
    )
    inner = np.where((inner == 0.0).all(axis=(1, 2), keepdims=True), embedding[:, None, :], inner)
    leading = np.linalg.svd(inner)[2][:, 0, :]
    signs = np.where(leading < 0.0, -1.0, 1.0)
    return np.where(np.einsum("mrd,md->m", inner, signs) < 0.0, -1.0, 1.0)[:, None] * signs


def project(model: Transformer, alpha=None) -> Projection:
    """Split every model of an ensemble into its part on the manifold and the rest.

    Parameters
    ----------
    alpha : array of +1 and -1, shape (M, d), optional
        By default found from W_1, which decides for w1 >= 0: the other sign turns e, c, w1 and w2 round, and means the same.
    """
    alpha = directions(model) if alpha is None else np.asarray(alpha, dtype=np.float64)
    found = _coordinates(model, alpha)
    on = _lift(model.config, found, alpha)
    weights = {name: _array(tensor) for name, tensor in model.named_parameters() if name != "bias"}
    with np.errstate(invalid="ignore", over="ignore"):
        off = sum(((weights[name] - on[name]) ** 2).reshape(len(alpha), -1).sum(1) for name in weights)
        size = sum((weights[name] ** 2).reshape(len(alpha), -1).sum(1) for name in weights)
        residual = np.where(size == 0.0, 0.0, np.sqrt(off / size))  # of a model that is not finite: NaN, not "on the manifold"
    return Projection(
        alpha=alpha, e=found["embedding"], c=found["positions"].mean(1), w1=found["inner"], w2=found["outer"], b=found["bias"],
        across=weights["embedding"] - on["embedding"], residual=residual,
    )


def reduced_twin(model: Transformer, alpha=None) -> Transformer:
    """The transformer with d = r = 1 that models on the manifold are; of others, what is on the manifold of them.

    Its scores keep the factor of the model's own width.
    """
    alpha = directions(model) if alpha is None else np.asarray(alpha, dtype=np.float64)
    config = dataclasses.replace(model.config, dimension=1, hidden=1, score_scale=model.config.scale)
    twin = Transformer(config, model.members)
    found = _coordinates(model, alpha)
    with torch.no_grad():
        for name, tensor in twin.named_parameters():
            tensor.copy_(torch.as_tensor(found[name]).reshape(tensor.shape))
    return twin


@dataclass(frozen=True)
class TwinAdamW:
    """The AdamW of a twin that does what `adam` does to the model of width `dimension` and `hidden` units.

    A coordinate of the twin stands for n equal entries (up to signs) of x / sqrt(n). AdamW moves each entry by rate *
    m / (sqrt(v) + eps) with m and sqrt(v) of the size of an entry's gradient G / sqrt(n): so x moves as under a rate and
    an eps that are sqrt(n) times as large, with the same decay factor 1 - rate * weight_decay.
    """

    adam: AdamW
    dimension: int
    hidden: int

    @property
    def words(self) -> str:
        return f"{self.adam.words} of the twin"

    def full(self, config: TransformerConfig) -> TransformerConfig:
        """The configuration of the model whose twin has `config`."""
        return dataclasses.replace(config, dimension=self.dimension, hidden=self.hidden)

    def factor(self, step: int, steps: int) -> float:
        """The rate at a step, relative to its largest."""
        return self.adam.factor(step, steps)

    def build(self, model: Transformer) -> torch.optim.Optimizer:
        """One group of weights for each number of entries."""
        groups = []
        for name, tensor in model.named_parameters():
            root = math.sqrt(entries(name, self.dimension, self.hidden))
            groups.append({
                "params": [tensor], "lr": root * self.adam.rate, "eps": root * self.adam.eps,
                "weight_decay": self.adam.weight_decay / root,
            })
        return torch.optim.AdamW(groups, betas=self.adam.betas)


def entries(name: str, dimension: int, hidden: int) -> int:
    """In how many entries of equal size a coordinate of the manifold is kept (a position by itself)."""
    if name in ATTENTION:
        return dimension**2
    return {"embedding": dimension, "positions": dimension, "head": dimension, "bias": 1}.get(name, dimension * hidden)


def _array(tensor: torch.Tensor) -> np.ndarray:
    """The values now: a copy, in double precision too, that further training does not change."""
    return tensor.detach().double().cpu().numpy().copy()


def _coordinates(model: Transformer, alpha: np.ndarray) -> dict[str, np.ndarray]:
    """Orthonormal coordinates of each parameter, by its name; one for each position."""
    along = alpha / math.sqrt(model.config.dimension)
    hidden = math.sqrt(model.config.hidden)
    forms = {
        "embedding": "md,md->m", "head": "md,md->m", "positions": "mnd,md->mn", "inner": "mrd,md->m", "outer": "mdr,md->m",
    }
    found = {}
    for name, tensor in model.named_parameters():
        value = _array(tensor)
        if name == "bias":
            found[name] = value
        elif name in ATTENTION:
            found[name] = np.einsum("md,mdk,mk->m", along, value, along)
        else:
            found[name] = np.einsum(forms[name], value, along) / (hidden if name in ("inner", "outer") else 1.0)
    return found


def _lift(config: TransformerConfig, found: dict[str, np.ndarray], alpha: np.ndarray) -> dict[str, np.ndarray]:
    """Weights on the manifold with given coordinates."""
    along = alpha / math.sqrt(config.dimension)
    ones = np.ones(config.hidden) / math.sqrt(config.hidden)
    forms = {"embedding": "m,md->md", "head": "m,md->md", "positions": "mn,md->mnd"}
    lifted = {}
    for name, value in found.items():
        if name == "inner":
            lifted[name] = np.einsum("m,r,md->mrd", value, ones, along)
        elif name == "outer":
            lifted[name] = np.einsum("m,md,r->mdr", value, along, ones)
        elif name in ATTENTION:
            lifted[name] = np.einsum("m,md,mk->mdk", value, along, along)
        elif name != "bias":
            lifted[name] = np.einsum(forms[name], value, along)
    return lifted
