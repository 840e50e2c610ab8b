"""GPT-2 of the transformers library on two symbols, many models at once: layer norm, GELU, two logits from a tied embedding.

The library is imported where a model is built. Nothing is downloaded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, vmap

from landscape import parameters
from landscape.pytorch import canonical_
from landscape.weight_names import WeightNames, gpt2_names
from validation.starts import EveryRun

STD = 0.02  # of GPT-2's own start


@dataclass(frozen=True)
class GPT2Sizes:
    """Sizes of a GPT-2 with one layer and one head.

    Parameters
    ----------
    length : int
        Positions.
    dimension : int
        Width; the MLP is four times as wide.
    """

    length: int = 64
    dimension: int = 4

    def __post_init__(self):
        for name in ("length", "dimension"):
            parameters.count("GPT2Sizes", name, getattr(self, name), 1)

    @property
    def plain(self) -> bool:
        """It is not the transformer of the derivations."""
        return False

    def build(self, members: int) -> GPT2:
        """So many models."""
        return GPT2(self, members)

    def single(self) -> nn.Module:
        """One `GPT2LMHeadModel`, without dropout."""
        from transformers import GPT2Config, GPT2LMHeadModel

        settings = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0) | dict.fromkeys(("bos_token_id", "eos_token_id"), 0)
        return GPT2LMHeadModel(GPT2Config(
            vocab_size=2, n_positions=self.length, n_embd=self.dimension, n_layer=1, n_head=1, use_cache=False, attn_implementation="eager",
            **settings,
        ))


def own_name(name: str) -> str:
    """The name of a weight of `GPT2` for a name in `GPT2LMHeadModel`: one without dots."""
    return name.replace(".", "/")


def names() -> WeightNames:
    """The roles of the weights of `GPT2`."""
    library = gpt2_names()
    own = {role: own_name(name) for role, name in library.named().items() if getattr(library, role, None) == name}
    return replace(library, members=True, **own, **{kind: tuple(map(own_name, getattr(library, kind))) for kind in ("biases", "norms")})


class GPT2(nn.Module):
    """M models of the library side by side: its weights with a leading axis of models.

    Attributes
    ----------
    config : GPT2Sizes
    members : int
    """

    def __init__(self, config: GPT2Sizes, members: int = 1):
        super().__init__()
        self.config, self.members = config, members
        single = config.single()
        for name, weight in single.named_parameters():
            self.register_parameter(own_name(name), nn.Parameter(weight.detach().expand(members, *weight.shape).clone()))
        self._single = (single,)  # in a tuple: its own weights are not parameters of this model

    @property
    def bias(self) -> nn.Parameter:
        """One of the weights, by which a training sees the device."""
        return next(self.parameters())

    def forward(self, symbols: torch.Tensor) -> torch.Tensor:
        """Logits, shape (M, B, n, 2), of symbols of shape (M, B, n)."""
        single = self._single[0]
        places = torch.arange(symbols.shape[-1], device=symbols.device)

        def logits(weights, inputs):
            return functional_call(single, weights, (), {"input_ids": inputs, "position_ids": places[None]}).logits

        return vmap(logits)({name.replace("/", "."): weight for name, weight in self.named_parameters()}, symbols)

    def losses(self, symbols: torch.Tensor) -> torch.Tensor:
        """Cross-entropy in nats of each next symbol, shape (M, B, n), of sequences of n + 1 symbols."""
        return -self(symbols[..., :-1]).log_softmax(-1).gather(-1, symbols[..., 1:, None]).squeeze(-1)


@dataclass(frozen=True)
class StandardStart(EveryRun):
    """GPT-2's own start: N(0, 0.02^2), the two matrices that write into the stream over sqrt(2 layers), biases 0, layer norms neutral."""

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """Draw (e, w) ~ N(0, 0.02^2), the counterpart in the basin map."""
        e, w = random.normal(0.0, STD, size=2)
        return float(e), float(w)

    @torch.no_grad()
    def fill_(self, model: GPT2, point, generator: torch.Generator) -> None:
        """Fill one model."""
        for name, weight in model.named_parameters():
            if name.endswith("/bias"):
                weight.zero_()
            elif "/ln_" in name:
                weight.fill_(1.0)
            else:
                weight.normal_(0.0, STD / (math.sqrt(2.0) if "c_proj" in name else 1.0), generator=generator)


@dataclass(frozen=True)
class AroundStart(EveryRun):
    """The guideline in the roles of GPT-2's weights: (e, w) ~ N((`e`, `w`), std^2), std on every weight, biases 0, layer norms neutral."""

    e: float = 1.0
    w: float = -1.0
    std: float = STD

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """Draw the start's own (e, w)."""
        e, w = random.normal((self.e, self.w), self.std)
        return float(e), float(w)

    def fill_(self, model: GPT2, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model at the drawn point."""
        StandardStart().fill_(model, point, generator)
        canonical_(model, *point, names=names(), noise=self.std, generator=generator)
