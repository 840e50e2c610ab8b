"""Causal softmax attention over sequences of few symbols, from the scores of states instead of positions of sequences.

What enters the attention at position i is x_i e + p_i: one of 2 N vectors, whatever the batch. So there are (2 N)^2
scores in a model and not n^2 in each of its sequences, and what a sequence attends to is linear in the indicators
of its states. The numbers are those of the usual route up to rounding, at a fraction of the cost.
"""

from __future__ import annotations

import torch

SPREAD = 60.0  # exp(-SPREAD) is a normal number in float32


def attended(
    symbols: torch.Tensor, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float
) -> torch.Tensor | None:
    """Softmax averages of values over the past of each position.

    Parameters
    ----------
    symbols : integer Tensor of 0 and 1, shape (M, B, n)
    queries, keys, values : Tensor, shape (M, 2 n, d)
        Of the states (x, i), state x n + i being symbol x at position i.
    scale : float
        Factor of the scores.

    Returns
    -------
    Tensor of shape (M, B, n, d), or None
        None if scores of one query differ by more than `SPREAD`: a state that does not occur could then hide those that do.
    """
    members, size, count = symbols.shape
    past = torch.ones(count, count, dtype=values.dtype, device=values.device).triu().tile(2, 2)  # (key state, query state)
    scores = torch.bmm(scale * keys, queries.mT)
    top, lowest = scores.detach().amax(1, keepdim=True), scores.detach().amin(1, keepdim=True)
    if not bool((top - lowest <= SPREAD).all()):
        return None
    weights = (scores - top).exp() * past
    ones = symbols.to(values.dtype)
    occurs = torch.cat([1 - ones, ones], dim=-1)
    weighted = torch.cat([occurs.unsqueeze(2) * values.mT.unsqueeze(1), occurs.unsqueeze(2)], dim=2)
    sums = torch.bmm(weighted.flatten(1, 2), weights).view(members, size, -1, 2, count)
    own = torch.where(symbols.bool().unsqueeze(2), sums[..., 1, :], sums[..., 0, :]).mT
    return own[..., :-1] / own[..., -1:]
