"""Binary chains of order two, for trainings beyond the theory: the next symbol depends on the last two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from landscape import parameters


@dataclass(frozen=True)
class SecondOrderChain:
    """P(next = 1) after (0, 0), (0, 1), (1, 0) and (1, 1), the later symbol last; each strictly between 0 and 1.

    Attributes
    ----------
    unigram_loss, bigram_loss, entropy_rate : float
        In nats: of the best law that knows nothing, the last symbol, the last two.
    """

    after_00: float
    after_01: float
    after_10: float
    after_11: float

    def __post_init__(self):
        for name, value in zip(("after_00", "after_01", "after_10", "after_11"), self._ones):
            parameters.real("SecondOrderChain", name, value)
            if not 0.0 < value < 1.0:
                raise parameters.ParameterError(name, "SecondOrderChain", "strictly between 0 and 1", value)

    @property
    def _ones(self) -> np.ndarray:
        return np.array([self.after_00, self.after_01, self.after_10, self.after_11])

    @property
    def pairs(self) -> np.ndarray:
        """Stationary probabilities of the last two symbols, shape (4,), in the order of the parameters."""
        moves = np.zeros((4, 4))
        for pair, one in enumerate(self._ones):
            last = pair % 2
            moves[pair, 2 * last], moves[pair, 2 * last + 1] = 1.0 - one, one
        system = np.vstack([moves.T - np.eye(4), np.ones(4)])
        return np.linalg.lstsq(system, np.array([0.0, 0.0, 0.0, 0.0, 1.0]), rcond=None)[0]

    @property
    def transition(self) -> np.ndarray:
        """The best first-order law: rows of P(next | last)."""
        law = self.pairs.reshape(2, 2)
        ones = (law * self._ones.reshape(2, 2)).sum(axis=0) / law.sum(axis=0)
        return np.stack([1.0 - ones, ones], axis=1)

    @property
    def entropy_rate(self) -> float:
        return float(self.pairs @ (entr(self._ones) + entr(1.0 - self._ones)))

    @property
    def bigram_loss(self) -> float:
        return float(self.pairs.reshape(2, 2).sum(axis=0) @ entr(self.transition).sum(axis=1))

    @property
    def unigram_loss(self) -> float:
        return float(entr(self.pairs.reshape(2, 2).sum(axis=0)).sum())

    @property
    def target_sign(self) -> int:
        """+1 if a symbol makes itself more likely next, -1 if less."""
        return int(np.sign(self.transition[1, 1] - self.transition[0, 1]))

    def sample(self, length: int, size: int = 1, *, seed) -> np.ndarray:
        """Draw stationary paths, int64, shape (size, length)."""
        generator = np.random.default_rng(seed)
        out = np.empty((size, max(length, 2)), dtype=np.int64)
        pair = generator.choice(4, size=size, p=self.pairs / self.pairs.sum())
        out[:, 0], out[:, 1] = pair // 2, pair % 2
        uniform = generator.random((size, out.shape[1]))
        for n in range(2, out.shape[1]):
            out[:, n] = uniform[:, n] < self._ones[2 * out[:, n - 2] + out[:, n - 1]]
        return out[:, :length]
