"""A full transformer on few symbols, by default of one layer on binary ones, many independent copies at once.

Every parameter has a leading model axis of length M, and so has the data: M trainings run side by
side, each with its own weights and its own batches, and give what each would give alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from landscape import parameters
from landscape.parameters import ParameterError
from validation.shifted import averages

ATTENTIONS = ("softmax", "linear", "none")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
ACTIVATIONS = {"relu": torch.relu, "gelu": nn.functional.gelu}
NORMS = ("gain", "shift")


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and kinds of a transformer.

    Parameters
    ----------
    length : int
        Positions N; sequences may be shorter, never longer.
    dimension : int
        Width d of the residual stream.
    hidden : int
        Hidden units r of the ReLU layer.
    attention : {"softmax", "linear", "none"}
        With scores s_ni = <W_Q y_n, W_K y_i> / sqrt(d) over i <= n, the weight of position i is the
        softmax of s_n over i, or s_ni / n, or there is no attention at all.
    tied : bool
        Whether the head reads the logit off with the embedding vector or with a vector of its own.
    dtype : {"float32", "float64"}
    score_scale : float, optional
        Factor of the scores in place of 1 / sqrt(d).
    symbols : int, optional
        Number S of symbols, each with an embedding vector and a logit of its own. Without it the symbols are 0 and 1, and one
        vector times the symbol embeds them.
    heads : int
        Heads of the attention, each of width d / heads.
    layers : int
        Layers of attention and MLP.
    norm : bool
        Whether layer norm goes before attention, MLP and head.
    activation : {"relu", "gelu"}

    Raises
    ------
    ParameterError
        If a size is below 1 or a kind is not known.
    """

    length: int = 64
    dimension: int = 4
    hidden: int = 16
    attention: str = "softmax"
    tied: bool = True
    dtype: str = "float32"
    score_scale: float | None = None
    symbols: int | None = None
    heads: int = 1
    layers: int = 1
    norm: bool = False
    activation: str = "relu"

    def __post_init__(self):
        for name in ("length", "dimension", "hidden", "heads", "layers"):
            parameters.count("TransformerConfig", name, getattr(self, name), 1)
        if self.symbols is not None:
            parameters.count("TransformerConfig", "symbols", self.symbols, 2)
        if self.dimension % self.heads:
            raise ParameterError("heads", "TransformerConfig", f"a divisor of the width {self.dimension}", self.heads)
        if self.activation not in ACTIVATIONS:
            raise ParameterError("activation", "TransformerConfig", f"one of {tuple(ACTIVATIONS)}", self.activation)
        if self.attention not in ATTENTIONS:
            raise ParameterError("attention", "TransformerConfig", f"one of {ATTENTIONS}", self.attention)
        if self.dtype not in DTYPES:
            raise ParameterError("dtype", "TransformerConfig", f"one of {tuple(DTYPES)}", self.dtype)
        if self.score_scale is not None:
            parameters.real("TransformerConfig", "score_scale", self.score_scale)

    @property
    def scale(self) -> float:
        """Factor of the attention scores."""
        return 1.0 / math.sqrt(self.dimension // self.heads) if self.score_scale is None else self.score_scale

    def build(self, members: int) -> Transformer:
        """So many models of this kind, all weights zero."""
        return Transformer(self, members)

    @property
    def plain(self) -> bool:
        """Whether it is the transformer of the derivations: binary symbols that scale one vector, one layer, ReLU, no layer norm."""
        return self.symbols is None and self.layers == 1 and self.heads == 1 and not self.norm and self.activation == "relu"


class Transformer(nn.Module):
    """M transformers, by default of one layer without layer norm, in the notation of derivations/canonical-gap.md.

    y_n = x_n e + p_n, then y_n + W_O sum_i att_ni W_V y_i, then z_n = y_n + W_2 ReLU(W_1 y_n), and the
    logit of "the next symbol is 1" is <a, z_n> + b, with a = e when tied. With S symbols there are S embedding vectors, and
    S logits <a_s, z_n> + b_s.

    Parameters
    ----------
    config : TransformerConfig
    members : int
        Number M of models. All weights start at zero; `validation.starts` fills them.

    Attributes
    ----------
    embedding : Parameter, shape (M, d), or (M, S, d)
    positions : Parameter, shape (M, N, d)
    query, key, value, output : Parameter, shape (M, d, d)
        Absent without attention.
    inner, outer : Parameter, shapes (M, r, d) and (M, d, r)
        W_1 and W_2.
    head : Parameter, of the shape of the embedding
        The vector a; absent when tied.
    bias : Parameter, shape (M,), or (M, S)

    A further layer k = 1, 2, ... has its weights under the same names with _k at the end. With layer norm there are
    attention_gain, attention_shift, mlp_gain, mlp_shift of each layer and final_gain, final_shift, of shape (M, d): a normed
    vector is multiplied by 1 + gain.
    """

    def __init__(self, config: TransformerConfig, members: int = 1):
        super().__init__()
        self.config = config
        self.members = parameters.count("Transformer", "members", members, 1)
        for name, shape in _shapes(config).items():
            zeros = torch.zeros((self.members, *shape), dtype=DTYPES[config.dtype])
            self.register_parameter(name, nn.Parameter(zeros))

    def embed(self, symbols: torch.Tensor) -> torch.Tensor:
        """Residual stream before the first layer, shape (M, B, n, d), of symbols of shape (M, B, n)."""
        count = symbols.shape[-1]
        if symbols.shape[0] != self.members or count > self.config.length:
            wanted = f"of shape ({self.members}, B, n) with n of at most {self.config.length}"
            raise ParameterError("symbols", "Transformer", wanted, f"a tensor of shape {tuple(symbols.shape)}")
        if self.config.symbols is None:
            scaled = symbols.to(self.embedding.dtype).unsqueeze(-1) * self.embedding[:, None, None, :]
        else:
            ones = nn.functional.one_hot(symbols, self.config.symbols).to(self.embedding.dtype)
            scaled = _apply(self.embedding.mT, ones)
        return scaled + self.positions[:, None, :count, :]

    def attend_states(self, symbols: torch.Tensor) -> torch.Tensor | None:
        """What softmax attention adds to the residual stream of symbols; None where `attend` has to be asked."""
        places = self.positions[:, : symbols.shape[-1]]
        matrices = (self.query, self.key, torch.bmm(self.output, self.value))
        pairs = [(torch.bmm(places, matrix.mT), torch.einsum("mij,mj->mi", matrix, self.embedding)) for matrix in matrices]
        return averages(symbols, *pairs, self.config.scale)

    def attend(self, stream: torch.Tensor, layer: int = 0) -> torch.Tensor:
        """What the attention of a layer adds to the residual stream, shape (M, B, n, d)."""
        heads, count = self.config.heads, stream.shape[-2]
        queries, keys, values = (
            _apply(self.weight(name, layer), stream).unflatten(-1, (heads, -1)).transpose(2, 3).flatten(0, 2)
            for name in ("query", "key", "value")
        )
        scale = self.config.scale
        past = torch.ones(count, count, dtype=torch.bool, device=stream.device).tril()
        if self.config.attention == "softmax":
            future = torch.zeros(count, count, dtype=stream.dtype, device=stream.device).masked_fill(~past, -math.inf)
            weights = torch.baddbmm(future.expand(len(queries), -1, -1), queries, keys.mT, alpha=scale).softmax(-1)
        else:
            average = past.to(stream.dtype) / past.sum(-1, keepdim=True)
            weights = scale * average * torch.bmm(queries, keys.mT)
        averaged = torch.bmm(weights, values).unflatten(0, (self.members, -1, heads)).transpose(2, 3).flatten(3)
        return _apply(self.weight("output", layer), averaged)

    def weight(self, name: str, layer: int = 0) -> nn.Parameter:
        """The parameter of a layer."""
        return getattr(self, layer_name(name, layer))

    def normed(self, stream: torch.Tensor, name: str) -> torch.Tensor:
        """The stream after layer norm, where there is any."""
        if not self.config.norm:
            return stream
        gain, shift = (getattr(self, name.replace("*", kind))[:, None, None, :] for kind in NORMS)
        return nn.functional.layer_norm(stream, stream.shape[-1:]) * (1 + gain) + shift

    def read(self, stream: torch.Tensor) -> torch.Tensor:
        """Logits, shape (M, B, n) or (M, B, n, S), of the last residual stream."""
        head = self.embedding if self.config.tied else self.head
        if self.config.symbols is None:
            return torch.einsum("mbnd,md->mbn", stream, head) + self.bias[:, None, None]
        return _apply(head, stream) + self.bias[:, None, None, :]

    def forward(self, symbols: torch.Tensor) -> torch.Tensor:
        """Logits of "the next symbol is 1", or of every symbol.

        Parameters
        ----------
        symbols : integer Tensor, shape (M, B, n), from 0
            n is at most the length of the configuration.

        Returns
        -------
        Tensor of the model's dtype, shape (M, B, n), or (M, B, n, S)
            The logit at a position depends on that position and earlier ones alone.
        """
        stream = self.embed(symbols)
        for layer in range(self.config.layers):
            if self.config.attention != "none":
                added = self.attend_states(symbols) if self.config.plain and self.config.attention == "softmax" else None
                if added is None:
                    added = self.attend(self.normed(stream, layer_name("attention_*", layer)), layer)
                stream = stream + added
            inside = _apply(self.weight("inner", layer), self.normed(stream, layer_name("mlp_*", layer)))
            stream = stream + _apply(self.weight("outer", layer), ACTIVATIONS[self.config.activation](inside))
        return self.read(self.normed(stream, "final_*"))

    def losses(self, symbols: torch.Tensor) -> torch.Tensor:
        """Cross-entropy in nats of each next symbol, shape (M, B, n), of sequences of n + 1 symbols.

        With one logit it is softplus(-(2y - 1) logit), in a form that keeps its digits at any logit.
        """
        if self.config.symbols is not None:
            return -self(symbols[..., :-1]).log_softmax(-1).gather(-1, symbols[..., 1:, None]).squeeze(-1)
        signs = 2 * symbols[..., 1:].to(self.bias.dtype) - 1
        return -nn.functional.logsigmoid(signs * self(symbols[..., :-1]))

    def member(self, index: int) -> Transformer:
        """A copy of one model, alone."""
        alone = Transformer(self.config, 1)
        alone.load_state_dict({name: tensor[index : index + 1] for name, tensor in self.state_dict().items()})
        return alone


def stack(models: Sequence[Transformer]) -> Transformer:
    """Put models of one configuration side by side, in this order.

    Raises
    ------
    ParameterError
        If the configurations differ or there is no model.
    """
    if len({model.config for model in models}) != 1:
        raise ParameterError("models", "stack", "one or more models of one configuration", len(models))
    together = models[0].config.build(sum(model.members for model in models))
    states = [model.state_dict() for model in models]
    together.load_state_dict({name: torch.cat([state[name] for state in states]) for name in states[0]})
    return together


def layer_name(name: str, layer: int) -> str:
    """Name of a weight of a layer."""
    return f"{name}_{layer}" if layer else name


def _shapes(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Shape of each parameter of one model."""
    d, r = config.dimension, config.hidden
    vocabulary = () if config.symbols is None else (config.symbols,)
    shapes: dict[str, tuple[int, ...]] = {"embedding": (*vocabulary, d), "positions": (config.length, d)}
    for layer in range(config.layers):
        own: dict[str, tuple[int, ...]] = {}
        if config.attention != "none":
            own.update(query=(d, d), key=(d, d), value=(d, d), output=(d, d))
        own.update(inner=(r, d), outer=(d, r))
        if config.norm:
            places = ("mlp",) if config.attention == "none" else ("attention", "mlp")
            own.update({f"{place}_{kind}": (d,) for place in places for kind in NORMS})
        shapes.update({layer_name(name, layer): shape for name, shape in own.items()})
    if config.norm:
        shapes.update({f"final_{kind}": (d,) for kind in NORMS})
    if not config.tied:
        shapes["head"] = (*vocabulary, d)
    return shapes | {"bias": vocabulary}


def _apply(matrices: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Apply matrices of shape (M, k, d) to vectors of shape (M, B, n, d)."""
    flat = torch.bmm(vectors.flatten(1, 2), matrices.mT)
    return flat.view(*vectors.shape[:-1], matrices.shape[-2])
