"""The canonical transformer with its direction alpha as a trainable vector, beside e, w, the gain of attention and the bias."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from landscape.weight_names import ATTENTION
from validation.starts import EveryRun
from validation.transformer import DTYPES, Transformer, TransformerConfig


@dataclass(frozen=True)
class AlphaConfig(TransformerConfig):
    """The sizes of the transformer whose weights alpha, e, w and the gain make up."""

    def build(self, members: int) -> AlphaTransformer:
        """So many models, all parameters zero."""
        return AlphaTransformer(self, members)

    @property
    def plain(self) -> bool:
        """Its parameters are not the arrays of the transformer."""
        return False


class AlphaTransformer(nn.Module):
    """M transformers with embedding (e / sqrt d) alpha, positions minus half of it, W_1 = k |w| 1 alpha^T, W_2 = k w alpha 1^T with
    k = 2 / sqrt(r d), and all four attention matrices g alpha alpha^T. Nothing holds alpha to signs or to a length.

    Attributes
    ----------
    alpha : Parameter, shape (M, d)
    e, w, gain, bias : Parameter, shape (M,)
    """

    def __init__(self, config: AlphaConfig, members: int = 1):
        super().__init__()
        self.config, self.members = config, members
        dtype = DTYPES[config.dtype]
        self.alpha = nn.Parameter(torch.zeros((members, config.dimension), dtype=dtype))
        for name in ("e", "w", "gain", "bias"):
            self.register_parameter(name, nn.Parameter(torch.zeros(members, dtype=dtype)))
        self._layers = (Transformer(config, members),)  # in a tuple: its own weights are not parameters of this model

    def weights(self) -> dict[str, torch.Tensor]:
        """The transformer's arrays."""
        config, alpha = self.config, self.alpha
        embedding = (self.e / math.sqrt(config.dimension))[:, None] * alpha
        k = 2.0 / math.sqrt(config.hidden * config.dimension)
        found = {
            "embedding": embedding,
            "positions": -0.5 * embedding[:, None, :].expand(-1, config.length, -1),
            "inner": (k * self.w.abs())[:, None, None] * alpha[:, None, :].expand(-1, config.hidden, -1),
            "outer": (k * self.w)[:, None, None] * alpha[:, :, None].expand(-1, -1, config.hidden),
            "bias": self.bias,
        }
        if config.attention != "none":
            matrix = self.gain[:, None, None] * alpha[:, :, None] * alpha[:, None, :]
            found |= dict.fromkeys(ATTENTION, matrix)
        return found

    def losses(self, symbols: torch.Tensor) -> torch.Tensor:
        """Cross-entropy in nats of each next symbol, shape (M, B, n), of sequences of n + 1 symbols."""
        signs = 2 * symbols[..., 1:].to(self.bias.dtype) - 1
        return -nn.functional.logsigmoid(signs * functional_call(self._layers[0], self.weights(), (symbols[..., :-1],)))


@dataclass(frozen=True)
class AlphaStart(EveryRun):
    """The point (`e`, `w`), weak attention, b = 0, and alpha drawn: of random signs, or Gaussian with the length sqrt d of signs."""

    e: float
    w: float
    signs: bool
    gain: float = 0.1

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """The point (e, w); nothing is drawn."""
        return self.e, self.w

    @torch.no_grad()
    def fill_(self, model: AlphaTransformer, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model."""
        drawn = torch.randn(model.alpha.shape, dtype=model.alpha.dtype, generator=generator)
        length = math.sqrt(model.config.dimension)
        model.alpha.copy_(drawn.sign() if self.signs else length * drawn / drawn.norm(dim=1, keepdim=True))
        model.e.fill_(point[0])
        model.w.fill_(point[1])
        model.gain.fill_(self.gain)
        model.bias.zero_()
