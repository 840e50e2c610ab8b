"""Causal softmax attention where symbol 1 shifts queries, keys and values by the same vectors at every position.

With queries q_n + y r, keys k_j + x c and values v_j + x f of symbols y and x, the exponential of a score is

    exp(q_n . k_j)  exp(y r . k_j)  exp(x (q_n + y r) . c),

so one exponential in a pair of positions serves every symbol of every sequence: what a sequence sums over its past
is linear in the first factors, which are a matrix of positions, and the others belong to one position each.
"""

from __future__ import annotations

import math

import torch

from validation.attention import attended

BLOCK = 64  # query positions at a time: their factors stay in the cache
NUMBERS = 2**19  # in the rows of a group of models, for the same reason
FEW = 256  # positions of all models together: with fewer, one pass over all states has less to set up
REACH = 20.0  # exp(-3 REACH) is a normal number in float32
SHIFTS = {torch.float32: 4.0, torch.float64: 6.0}  # exp(this) times the rounding error is about 1e-5 and 1e-13

Shifted = tuple[torch.Tensor, torch.Tensor]  # of symbol 0 at each position, (M, n, d), and what symbol 1 adds, (M, d)


def averages(symbols: torch.Tensor, queries: Shifted, keys: Shifted, values: Shifted, scale: float) -> torch.Tensor | None:
    """Softmax averages of values over the past of each position.

    Parameters
    ----------
    symbols : integer Tensor of 0 and 1, shape (M, B, n)
    queries, keys, values : pairs of Tensors, shapes (M, n, d) and (M, d)
        Of symbol 0 at each position, and what symbol 1 adds.
    scale : float
        Factor of the scores.

    Returns
    -------
    Tensor of shape (M, B, n, d), or None
        None where `attended` has none. It is asked where positions are `FEW` and where factors may be too far from 1.
    """
    few = queries[0].shape[0] * queries[0].shape[1] < FEW
    places = keys[0] - keys[0].mean(1, keepdim=True).detach()  # all scores of a query move alike: its averages do not change
    pairs = (queries, (scale * places, scale * keys[1]), values)
    reach, shift = (math.inf, math.inf) if few else _sizes(pairs[0], pairs[1])
    if not (reach <= REACH and shift <= REACH):  # nor where they are not numbers
        return attended(symbols, *(torch.cat([zero, zero + one.unsqueeze(1)], 1) for zero, one in (queries, keys, values)), scale)
    careful = shift > SHIFTS[values[0].dtype]
    numbers = 2 * (symbols.shape[1] + 1) * symbols.shape[2] * (values[1].shape[1] + 1)
    tensors = [symbols, *(tensor for pair in pairs for tensor in pair)]
    groups = zip(*(tensor.split(max(1, NUMBERS // numbers)) for tensor in tensors))
    return torch.cat([_averages(*group, careful) for group in groups]).mT


def _sizes(queries: Shifted, keys: Shifted) -> tuple[float, float]:
    """A bound of the logarithms of factors of pairs, and the largest logarithm of a factor that a symbol of the past adds."""
    with torch.no_grad():
        both = torch.cat([queries[0], queries[0] + queries[1].unsqueeze(1), queries[1].unsqueeze(1)], 1)
        reach = (both.square().sum(-1).amax(1) * keys[0].square().sum(-1).amax(1)).amax().sqrt()
        shift = torch.bmm(both, keys[1].unsqueeze(-1)).abs().amax()
        return reach.item(), shift.item()


def _averages(symbols, queries, query_shift, keys, key_shift, values, value_shift, careful) -> torch.Tensor:
    """The averages, of shape (M, B, d, n), with keys that have the scale in them.

    What the 0s of a past add is the sum over all positions less that over the 1s, or the sum over the 0s if `careful`:
    the difference has few digits where all but 1s is a small part of the first sum and a large one of the answer.
    """
    size = symbols.shape[1]
    ones = symbols.to(values.dtype)
    log_ratio = torch.bmm(key_shift.unsqueeze(1), queries.mT)
    log_ratio = torch.addcmul(log_ratio, ones, (query_shift * key_shift).sum(-1)[:, None, None]).unsqueeze(2)
    of_query = torch.bmm(query_shift.unsqueeze(1), keys.mT).exp()
    others = 1 - ones if careful else torch.ones_like(ones[:, :1])
    occurs = torch.cat([ones, others], 1).unsqueeze(2)
    summed = torch.cat([values.mT, torch.ones_like(values[..., :1]).mT], 1).unsqueeze(1)
    rows = (occurs * summed).unsqueeze(1) * torch.stack([torch.ones_like(of_query), of_query], 1).unsqueeze(2)
    sums = PastSums.apply(rows.flatten(1, 3), queries, keys).view(rows.shape)
    own = torch.stack([1 - ones, ones], 1).unsqueeze(3)
    of_ones, of_others = ((part * own).sum(1) for part in sums.split([size, others.shape[1]], 2))
    ratio = log_ratio.exp()
    total = torch.addcmul(of_others, ratio if careful else torch.expm1(log_ratio), of_ones)
    above, below = total.split([values.shape[-1], 1], 2)
    return torch.addcmul(above, value_shift[:, None, :, None], ratio * of_ones[:, :, -1:]) / below


class PastSums(torch.autograd.Function):
    """Sums of rows, shape (M, R, n), over the past j <= n of each position with weights exp(keys_j . queries_n)."""

    @staticmethod
    def forward(ctx, rows, queries, keys):
        ctx.save_for_backward(rows, queries, keys)
        sums = torch.empty_like(rows)
        for start, stop in _blocks(rows):
            sums[..., start:stop] = torch.bmm(rows[..., :stop], _weights(queries, keys, start, stop))
        return sums

    @staticmethod
    def backward(ctx, pulled):
        rows, queries, keys = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives are asked for
            rows, queries, keys = (tensor.view_as(tensor) for tensor in (rows, queries, keys))  # rows are made of keys: not a way to them
            sums = torch.bmm(rows, torch.bmm(keys, queries.mT).exp().triu())
            return torch.autograd.grad(sums, (rows, queries, keys), pulled, create_graph=True)
        of_rows, of_queries, of_keys = torch.empty_like(rows), torch.empty_like(queries), torch.empty_like(keys)
        fresh = 0.0  # the last block comes first: it has all keys and overwrites
        for start, stop in reversed(_blocks(rows)):
            weights, block = _weights(queries, keys, start, stop), pulled[..., start:stop]
            scores = torch.bmm(rows[..., :stop].mT, block).mul_(weights)
            of_queries[:, start:stop] = torch.bmm(scores.mT, keys[:, :stop])
            of_keys[:, :stop].baddbmm_(scores, queries[:, start:stop], beta=fresh)
            of_rows[..., :stop].baddbmm_(block, weights.mT, beta=fresh)
            fresh = 1.0
        return of_rows, of_queries, of_keys


def _blocks(rows: torch.Tensor) -> list[tuple[int, int]]:
    """First and last position, the last excluded, of the blocks of queries."""
    count = rows.shape[-1]
    return [(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]


def _weights(queries: torch.Tensor, keys: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    """Weights of the past, shape (M, stop, stop - start), for the queries of a block."""
    weights = torch.bmm(keys[:, :stop], queries[:, start:stop].mT).exp_()
    weights[:, start:].triu_()
    return weights
