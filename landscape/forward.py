"""The one-layer transformer of the theory, evaluated in NumPy from its weights: logits, expected loss, logit gap.

Symbols are rows 0, ..., S - 1. One vector that 0 and 1 scale is the two rows 0 and e, and one logit is those of the rows 0 and a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from landscape.chains import Chain
from landscape.projection import numbers
from landscape.weight_names import ATTENTION
from landscape.weights import Weights

SCORES_AT_ONCE = 2**22


@dataclass(frozen=True)
class Model:
    """One model of those of `Weights`.

    Attributes
    ----------
    rows, readers : ndarray, shape (S, d)
        Embedding and head of each symbol.
    positions : ndarray, shape (N, d)
    inner, outer : ndarray, shapes (r, d) and (d, r)
    bias : ndarray, shape (S,)
    attention : dict of str to ndarray
        Attention matrices by role; empty without attention.
    scale : float
        Factor of the scores of a head.
    heads : int
    linear : bool
        Whether scores are divided by the number of positions attended to, in place of the softmax.
    """

    rows: np.ndarray
    readers: np.ndarray
    positions: np.ndarray
    inner: np.ndarray
    outer: np.ndarray
    bias: np.ndarray
    attention: dict[str, np.ndarray]
    scale: float
    heads: int
    linear: bool

    @property
    def attends(self) -> bool:
        """Whether attention adds anything."""
        return bool(self.attention) and bool(np.any(self.attention["output"] @ self.attention["value"]))

    def read(self, stream: np.ndarray) -> np.ndarray:
        """Logits of shape (..., S) of the residual stream after attention, shape (..., d)."""
        after = stream + np.maximum(stream @ self.inner.T, 0.0) @ self.outer.T
        return after @ self.readers.T + self.bias

    def state_logits(self) -> np.ndarray:
        """Logits without attention after each symbol at each position, shape (N, S, S)."""
        return self.read(self.positions[:, None, :] + self.rows)

    def logits(self, symbols: np.ndarray) -> np.ndarray:
        """Logits at each position of sequences of shape (B, n), shape (B, n, S)."""
        count = symbols.shape[1]
        stream = self.rows[symbols] + self.positions[:count]
        return self.read(stream + self._attended(stream) if self.attends else stream)

    def _attended(self, stream: np.ndarray) -> np.ndarray:
        """What attention adds, shape (B, n, d)."""
        size, count, width = stream.shape
        queries, keys, values = (
            (stream @ self.attention[role].T).reshape(size, count, self.heads, -1).swapaxes(1, 2) for role in ATTENTION[:3]
        )
        scores, past = self.scale * queries @ keys.mT, np.tri(count, dtype=bool)
        if self.linear:
            weights = np.where(past, scores, 0.0) / past.sum(axis=-1, keepdims=True)
        else:
            scores = np.where(past, scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
        averaged = weights @ values
        return averaged.swapaxes(1, 2).reshape(size, count, width) @ self.attention["output"].T


def models_of(weights: Weights) -> list[Model]:
    """The models as they are, in float64; layer norms and biases within the layer are not looked at."""
    arrays = {role: numbers(array) for role, array in weights.arrays.items()}
    rows = _as_rows(arrays["embedding"])
    readers = _as_rows(arrays.get("head", arrays["embedding"]))
    places = arrays.get("positions", np.zeros((weights.members, 1, weights.width)))
    bias = arrays.get("bias", np.zeros((weights.members, readers.shape[1])))
    bias = np.stack([0.0 * bias, bias], axis=1) if bias.ndim == 1 else bias
    whole, names = set(ATTENTION) <= arrays.keys(), weights.names
    scale = 1.0 / math.sqrt(weights.width // names.heads) if names.scale is None else names.scale
    return [
        Model(
            rows[k], readers[k], places[k], arrays["inner"][k], arrays["outer"][k], bias[k],
            {role: arrays[role][k] for role in ATTENTION} if whole else {},
            scale, names.heads, names.scores == "linear",
        )
        for k in range(weights.members)
    ]


def _as_rows(embedding: np.ndarray) -> np.ndarray:
    return embedding if embedding.ndim == 3 else np.stack([0.0 * embedding, embedding], axis=1)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities along the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def gap(logits: np.ndarray) -> float:
    """The logit gap of logits after each symbol, shape (..., S, S), as the chains measure it; the mean over the first axes.

    With two symbols the logit of 1 against 0, after a 1 less after a 0; with more that of the symbol itself against the others.
    """
    count = logits.shape[-1]
    own = np.diagonal(logits, axis1=-2, axis2=-1)
    others = (logits.sum(axis=-1) - own) / (count - 1)
    return float((own - others).mean() * (2.0 if count == 2 else 1.0))


def expected_loss(model: Model, chain: Chain) -> float:
    """Loss in nats per symbol in the stationary law, without attention: exact, the mean over positions."""
    return float(-(chain.joint_law * log_softmax(model.state_logits())).sum(axis=(-2, -1)).mean())


@dataclass(frozen=True)
class Measured:
    """Loss in nats per symbol, its standard error, and the logit gap; NaN if a symbol did not occur on the drawn sequences."""

    loss: float
    error: float
    kappa: float


def measure(logits_of, chain: Chain, length: int, sequences: int, seed) -> Measured:
    """Measure a model on sequences from a chain, with its attention.

    Only the pasts are drawn: at each position the loss is that expected of the next symbol, and symbols count by the stationary law.

    Parameters
    ----------
    logits_of : callable
        Takes integers of shape (B, length), gives logits of shape (B, length, S).
    sequences : int
        Independent ones, at least 2.
    """
    symbols = chain.sample(length, sequences, seed=seed)
    portion = max(1, SCORES_AT_ONCE // length**2)
    logits = np.concatenate([logits_of(part) for part in np.split(symbols, range(portion, sequences, portion))])
    losses = -(chain.transition[symbols] * log_softmax(logits)).sum(axis=-1)
    occurs = symbols[..., None] == np.arange(chain.states)
    if not occurs.any(axis=(0, 1)).all():
        return Measured(math.nan, math.nan, math.nan)
    of_symbol = np.array([losses[occurs[..., x]].mean() for x in range(chain.states)])
    rest = (losses - of_symbol[symbols]).mean(axis=1)
    kappa = gap(np.stack([logits[occurs[..., x]].mean(axis=0) for x in range(chain.states)]))
    return Measured(float(chain.stationary @ of_symbol), float(rest.std(ddof=1)) / math.sqrt(sequences), kappa)
