"""The one-dimensional twin of a model on the manifold of rank one (`landscape.projection` says where a model is)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch

from landscape.projection import binary_arrays, coordinates, directions
from landscape.weight_names import ATTENTION
from landscape.weights import weights_of
from validation.training import AdamW
from validation.transformer import Transformer, TransformerConfig


def reduced_twin(model: Transformer, alpha=None) -> Transformer:
    """The transformer with d = r = 1 that models on the manifold are; of others, what is on the manifold of them.

    Its scores keep the factor of the model's own width.
    """
    alpha = directions(model) if alpha is None else alpha
    config = dataclasses.replace(model.config, dimension=1, hidden=1, score_scale=model.config.scale)
    twin = Transformer(config, model.members)
    found = coordinates(binary_arrays(weights_of("reduced_twin", model)), alpha)
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
