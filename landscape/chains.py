"""First-order Markov chains: probabilities, entropies, sampling, and the loss φ as a function of the logit gap.

Losses are cross-entropies in nats per symbol. φ and its derivatives come from the generated kernels
(derivations/binary-chain.md and derivations/symmetric-chain.md).
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from landscape import parameters
from landscape.parameters import ParameterError


def entropy(*probabilities: float) -> float:
    """Shannon entropy in nats, with 0 log 0 = 0."""
    return sum(-p * math.log(p) for p in probabilities if p > 0.0)


def binary_entropy(p: float) -> float:
    """Entropy of (p, 1 - p) in nats, to full precision for small p."""
    if p in (0.0, 1.0):
        return 0.0
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p)


class Chain:
    """What every chain offers; `BinaryChain` and `SymmetricChain` are the two there are.

    Attributes
    ----------
    kind : str
        Names the generated module of φ and the vocabulary for which an architecture has kernels.
    kernel_names : tuple of str
        What the kernels call the numbers of `kernel_parameters`.
    source : str or None
        The text of the kernels of φ, for a chain that has no module of its own.
    """

    kind: ClassVar[str]
    kernel_names: ClassVar[tuple[str, ...]]
    source: ClassVar[str | None] = None

    @staticmethod
    def from_symbolic(name: str, phi, gap="kappa", values=None) -> Chain:
        """A chain of one's own, by its loss φ as a function of the logit gap.

        Parameters
        ----------
        name : str
        phi : sympy.Expr or str
            The loss in nats at the gap, with everything but the gap minimised out; convex.
        gap : str or sympy.Symbol
            What the gap is called in `phi`.
        values : dict of (str or sympy.Symbol) to float
            The numbers of this chain that occur in `phi`.

        Raises
        ------
        ParameterError
            If the expression cannot be used; the message says why.
        """
        from landscape.derived import chain_from_symbolic

        return chain_from_symbolic(name, phi, gap, values)

    @property
    def joint_law(self) -> np.ndarray:
        """Probabilities of pairs of successive symbols in the stationary law, shape (states, states)."""
        return self.stationary[:, None] * self.transition

    def describe(self) -> dict:
        """The numbers that make this chain, by name."""
        return dict(vars(self))

    @property
    def interior(self) -> bool:
        """Whether every transition has positive probability, so that κ* is finite."""
        raise NotImplementedError

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        """The numbers that the generated kernels take for this chain."""
        raise NotImplementedError

    @property
    def entropy_rate(self) -> float:
        """What no model can do better than, in nats per symbol: the bigram loss, the chain being of order one."""
        return self.bigram_loss

    @property
    def target_sign(self) -> int:
        """Sign of κ*: +1 below the threshold, 0 at it, -1 above."""
        return {"below": 1, "at": 0, "above": -1}[self.regime]

    def require_interior(self, purpose: str) -> None:
        """Raise `ParameterError` unless κ* is finite."""
        if not self.interior:
            name, value = self._boundary_parameter()
            raise ParameterError(name, purpose, "strictly between 0 and 1, so that the optimal logit gap is finite", value)

    def _phi(self, kernel: str, kappa):
        self.require_interior(f"{type(self).__name__}.{kernel}")
        module = importlib.import_module(f"landscape.kernels.{self.kind}_chain")
        gaps = np.asarray(kappa, dtype=np.float64)
        values = getattr(module, f"{kernel}_many")(gaps.ravel(), *self.kernel_parameters)
        return values.reshape(gaps.shape) if gaps.ndim else float(values[0])

    def phi(self, kappa):
        """Loss in nats at the logit gap `kappa` (float or array), the bias minimised out."""
        return self._phi("phi", kappa)

    def phi_prime(self, kappa):
        """First derivative of `phi`."""
        return self._phi("phi_prime", kappa)

    def phi_second(self, kappa):
        """Second derivative of `phi`; positive."""
        return self._phi("phi_second", kappa)

    def sample(self, length: int, size: int = 1, *, seed, initial: int | None = None) -> np.ndarray:
        """Draw independent paths.

        Parameters
        ----------
        length : int
            Symbols in a path, at least 1.
        size : int
            Number of paths.
        seed : int, numpy.random.SeedSequence or numpy.random.Generator
            Source of randomness; a generator is advanced.
        initial : int, optional
            First symbol of every path. Without it the first symbol follows the stationary law.

        Returns
        -------
        ndarray of int64, shape (size, length)

        Raises
        ------
        ParameterError
            If the stationary law is not unique and `initial` is not given, or a value is out of range.
        """
        owner = f"{type(self).__name__}.sample"
        length = parameters.count(owner, "length", length, 1)
        size = parameters.count(owner, "size", size, 1)
        generator = np.random.default_rng(seed)
        if initial is None:
            law = np.cumsum(self.stationary)
            first = np.minimum(np.searchsorted(law, generator.random(size), side="right"), self.states - 1)
        else:
            if parameters.count(owner, "initial", initial, 0) >= self.states:
                raise ParameterError("initial", owner, f"a symbol below {self.states}", initial)
            first = np.full(size, initial)
        out = np.empty((size, length), dtype=np.int64)
        self._fill(generator.random((size, length - 1)), first.astype(np.int64), out)
        return out


@dataclass(frozen=True)
class BinaryChain(Chain):
    """A chain on {0, 1} that switches 0 → 1 with probability `p` and 1 → 0 with probability `q`.

    Parameters
    ----------
    p, q : float in [0, 1]
        At p = q = 0 the stationary law is not unique: what needs one raises `ParameterError`. What needs
        a finite κ* (φ, and everything about the landscape) asks for p and q strictly inside (0, 1).

    Attributes
    ----------
    states : int
        2.
    threshold : float
        1; the regime is "below", "at" or "above" as p + q is.
    """

    p: float
    q: float
    kind: ClassVar[str] = "binary"
    kernel_names: ClassVar[tuple[str, ...]] = ("p", "q")
    states: ClassVar[int] = 2
    threshold: ClassVar[float] = 1.0

    def best_bias(self, kappa):
        """The logit after a 0 that minimises the loss at the logit gap `kappa` (float or array)."""
        return self._phi("best_bias", kappa)

    def __post_init__(self):
        object.__setattr__(self, "p", parameters.probability("BinaryChain", "p", self.p))
        object.__setattr__(self, "q", parameters.probability("BinaryChain", "q", self.q))

    @classmethod
    def from_matrix(cls, matrix) -> BinaryChain:
        """Build a chain from its transition matrix, rows summing to 1 within 1e-12.

        Raises
        ------
        ParameterError
            Naming the row that is not a probability vector.
        """
        rows = np.asarray(matrix, dtype=np.float64)
        if rows.shape != (2, 2):
            raise ParameterError("matrix", "BinaryChain.from_matrix", "of shape (2, 2)", rows.shape)
        for name, row in zip(("matrix[0]", "matrix[1]"), rows):
            if not (np.all(row >= 0.0) and abs(row.sum() - 1.0) <= 1e-12):
                raise ParameterError(name, "BinaryChain.from_matrix", "non-negative with sum 1", row.tolist())
        return cls(p=float(rows[0, 1] / rows[0].sum()), q=float(rows[1, 0] / rows[1].sum()))

    @property
    def interior(self) -> bool:
        return 0.0 < self.p < 1.0 and 0.0 < self.q < 1.0

    def _boundary_parameter(self):
        return ("q", self.q) if 0.0 < self.p < 1.0 else ("p", self.p)

    @property
    def kernel_parameters(self) -> tuple[float, float]:
        return self.p, self.q

    @property
    def regime(self) -> str:
        """ "below", "at" or "above": p + q against 1, decided in floating point."""
        total = self.p + self.q
        return "at" if total == 1.0 else "below" if total < 1.0 else "above"

    @property
    def transition(self) -> np.ndarray:
        """Transition matrix, shape (2, 2)."""
        return np.array([[1.0 - self.p, self.p], [self.q, 1.0 - self.q]])

    @property
    def stationary(self) -> np.ndarray:
        """Stationary law (q, p) / (p + q), shape (2,); `ParameterError` at p = q = 0."""
        if self.p == 0.0 and self.q == 0.0:
            raise ParameterError("p", "BinaryChain", "positive where q is 0, or the stationary law is not unique", self.p)
        total = self.p + self.q
        return np.array([self.q / total, self.p / total])

    @property
    def unigram_loss(self) -> float:
        """Entropy of the stationary law, in nats."""
        return entropy(*self.stationary.tolist())

    @property
    def bigram_loss(self) -> float:
        """Entropy rate, in nats per symbol."""
        zero, one = self.stationary
        return float(zero * binary_entropy(self.p) + one * binary_entropy(self.q))

    @property
    def kappa_star(self) -> float | None:
        """Optimal logit gap log[(1-p)(1-q)/(pq)]: -inf if p or q is 1; None if the chain is absorbed."""
        if self.p == 0.0 or self.q == 0.0:
            return None
        if self.p == 1.0 or self.q == 1.0:
            return -math.inf
        if self.regime == "at":
            return 0.0
        excess = (1.0 - self.p - self.q) / self.p / self.q
        if abs(excess) < 0.5:
            return math.log1p(excess)
        return math.log1p(-self.p) - math.log(self.p) + math.log1p(-self.q) - math.log(self.q)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is special about this chain, in words."""
        found = []
        if self.p == 0.0 or self.q == 0.0:
            found.append("absorbed: the stationary law sits on one symbol and every loss on it is 0")
        elif self.p == 1.0 and self.q == 1.0:
            found.append("periodic: the two symbols alternate")
        if self.kappa_star == -math.inf:
            found.append("the optimal gap is infinite: the bigram loss is approached, not attained")
        if self.regime == "at":
            found.append("successive symbols are independent: unigram and bigram losses agree")
        return tuple(found)

    def _fill(self, uniform, first, out):
        from landscape.kernels.sampling import two_states

        two_states(uniform, first, self.p, self.q, out)


@dataclass(frozen=True)
class SymmetricChain(Chain):
    """A chain on `states` symbols that stays with probability 1 - p and else moves uniformly.

    Parameters
    ----------
    states : int
        At least 2. With 2 it is `BinaryChain(p, p)`, with the gap measured in units half as large.
    p : float in [0, 1]
        Probability of leaving a symbol. At p = 0 the stationary law is not unique.

    Attributes
    ----------
    threshold : float
        (states - 1) / states; the regime is "below", "at" or "above" as p is.
    """

    states: int
    p: float
    kind: ClassVar[str] = "symmetric"
    kernel_names: ClassVar[tuple[str, ...]] = ("S", "p")

    def __post_init__(self):
        object.__setattr__(self, "states", parameters.count("SymmetricChain", "states", self.states, 2))
        object.__setattr__(self, "p", parameters.probability("SymmetricChain", "p", self.p))

    @property
    def threshold(self) -> float:
        return (self.states - 1) / self.states

    @property
    def interior(self) -> bool:
        return 0.0 < self.p < 1.0

    def _boundary_parameter(self):
        return "p", self.p

    @property
    def kernel_parameters(self) -> tuple[float, float]:
        return float(self.states), self.p

    @property
    def regime(self) -> str:
        """ "below", "at" or "above": p against the threshold, decided in floating point."""
        return "at" if self.p == self.threshold else "below" if self.p < self.threshold else "above"

    @property
    def transition(self) -> np.ndarray:
        """Transition matrix, shape (states, states)."""
        matrix = np.full((self.states, self.states), self.p / (self.states - 1))
        np.fill_diagonal(matrix, 1.0 - self.p)
        return matrix

    @property
    def stationary(self) -> np.ndarray:
        """The uniform law, shape (states,); `ParameterError` at p = 0, where it is not unique."""
        self._require_unique_law()
        return np.full(self.states, 1.0 / self.states)

    def _require_unique_law(self) -> None:
        if self.p == 0.0:
            raise ParameterError("p", "SymmetricChain", "positive, or the stationary law is not unique", self.p)

    @property
    def unigram_loss(self) -> float:
        """log(states), in nats; `ParameterError` at p = 0."""
        self._require_unique_law()
        return math.log(self.states)

    @property
    def bigram_loss(self) -> float:
        """Entropy rate, in nats per symbol; `ParameterError` at p = 0."""
        self._require_unique_law()
        return binary_entropy(self.p) + self.p * math.log(self.states - 1)

    @property
    def kappa_star(self) -> float | None:
        """Optimal logit gap log[(1-p)(S-1)/p]: -inf at p = 1, None at p = 0."""
        if self.p == 0.0:
            return None
        if self.p == 1.0:
            return -math.inf
        if self.regime == "at":
            return 0.0
        excess = (self.states * (1.0 - self.p) - 1.0) / self.p
        if abs(excess) < 0.5:
            return math.log1p(excess)
        return math.log1p(-self.p) + math.log(self.states - 1) - math.log(self.p)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is special about this chain, in words."""
        found = []
        if self.p == 1.0:
            if self.states == 2:
                found.append("periodic: the two symbols alternate")
            found.append("the optimal gap is infinite: the bigram loss is approached, not attained")
        if self.regime == "at":
            found.append("successive symbols are independent: unigram and bigram losses agree")
        return tuple(found)

    def _fill(self, uniform, first, out):
        from landscape.kernels.sampling import switching

        switching(uniform, first, self.states, self.p, out)
