"""A one-layer transformer as people write it with torch.nn, in several layouts of its weights."""

from __future__ import annotations

import math

import torch
from torch import nn

from landscape import WeightNames


class Conv1D(nn.Module):
    """y = x W + b, with W of shape (in, out)."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs)), nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Small(nn.Module):
    """Tokens of shape (B, n) to logits (B, n, S), or (B, n) with a scalar head."""

    def __init__(self, symbols=2, width=4, hidden=8, length=6, head="tied", fused=False, transposed=False, positions=True):
        super().__init__()
        matrix = Conv1D if transposed else nn.Linear
        self.tokens = nn.Embedding(symbols, width)
        self.places = nn.Embedding(length, width) if positions else None
        if fused:
            self.qkv = matrix(width, 3 * width)
        else:
            self.q, self.k, self.v = (matrix(width, width) for _ in range(3))
        self.o, self.up, self.down = matrix(width, width), matrix(width, hidden), matrix(hidden, width)
        self.out = nn.Linear(width, 1 if head == "scalar" else symbols)
        if head == "tied":
            self.out.weight = self.tokens.weight
        self.double()

    def forward(self, symbols):
        y = self.tokens(symbols)
        y = y if self.places is None else y + self.places.weight[: symbols.shape[1]]
        q, k, v = self.qkv(y).chunk(3, -1) if hasattr(self, "qkv") else (self.q(y), self.k(y), self.v(y))
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).tril(), -math.inf)
        y = y + self.o(scores.softmax(-1) @ v)
        logits = self.out(y + self.down(torch.relu(self.up(y))))
        return logits[..., 0] if logits.shape[-1] == 1 else logits


def names_of(model: Small) -> WeightNames:
    """The mapping of such a model."""
    fused = hasattr(model, "qkv")
    attention = {"fused": "qkv.weight"} if fused else {"query": "q.weight", "key": "k.weight", "value": "v.weight"}
    matrices = (*attention, "output", "inner", "outer")
    layers = ("qkv", "o", "up", "down") if fused else ("q", "k", "v", "o", "up", "down")
    return WeightNames(
        embedding="tokens.weight", positions=None if model.places is None else "places.weight", inner="up.weight", outer="down.weight",
        output="o.weight", head="out.weight", bias="out.bias", biases=tuple(f"{layer}.bias" for layer in layers),
        transposed=matrices if isinstance(model.up, Conv1D) else (), **attention,
    )
