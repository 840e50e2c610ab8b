"""Batches of Markov sequences, each model of an ensemble with a stream of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from landscape.chains import Chain

STREAMS = ("point", "weights", "training", "held_out")
STEPS_DRAWN_AT_ONCE = 32


def stream(seed: int, index: int, purpose: str) -> np.random.SeedSequence:
    """The source of randomness of run `index`, for one purpose.

    It depends on nothing else, so a run draws the same numbers alone and in any ensemble, and the runs
    with one index of different arms see the same data.

    Parameters
    ----------
    purpose : {"point", "weights", "training", "held_out"}
    """
    return np.random.SeedSequence(seed, spawn_key=(index, STREAMS.index(purpose)))


def torch_generator(source: np.random.SeedSequence) -> torch.Generator:
    """A generator for drawing weights, seeded from `source`."""
    return torch.Generator().manual_seed(int(source.generate_state(1, np.uint64)[0] >> 1))


def batches(
    chains: Sequence[Chain], sources: Sequence[np.random.SeedSequence], length: int, size: int
) -> Iterator[torch.Tensor]:
    """Yield batches for ever, one for all models at each step.

    Parameters
    ----------
    chains, sources : sequences of length M
        The chain and the source of randomness of each model.
    length : int
        Inputs in a sequence. One more symbol is drawn: the target of position t is symbol t + 1.
    size : int
        Sequences in a model's batch. The first symbol of each follows the stationary law.

    Yields
    ------
    Tensor of int64, shape (M, size, length + 1)
    """
    generators = [np.random.default_rng(source) for source in sources]
    while True:
        drawn = [
            chain.sample(length + 1, size * STEPS_DRAWN_AT_ONCE, seed=generator)
            for chain, generator in zip(chains, generators, strict=True)
        ]
        yield from torch.from_numpy(np.stack(drawn)).split(size, dim=1)


def held_out(chains: Sequence[Chain], sources: Sequence[np.random.SeedSequence], length: int, size: int) -> torch.Tensor:
    """Draw a set of sequences that no training sees, for each model its own.

    Returns
    -------
    Tensor of int64, shape (M, size, length + 1)
    """
    drawn = [chain.sample(length + 1, size, seed=source) for chain, source in zip(chains, sources, strict=True)]
    return torch.from_numpy(np.stack(drawn))


def bigram_loss(chain: Chain, symbols: np.ndarray) -> float:
    """Mean loss in nats of the chain's own bigram law on sequences, shape (S, n + 1): what a perfect model has on them."""
    counts = np.zeros(chain.transition.shape)
    np.add.at(counts, (symbols[:, :-1], symbols[:, 1:]), 1.0)
    with np.errstate(divide="ignore"):
        logarithms = np.where(counts > 0.0, np.log(chain.transition), 0.0)
    return float(-(counts * logarithms).sum() / counts.sum())
