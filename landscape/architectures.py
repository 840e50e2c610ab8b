"""The runtime face of an architecture: its kernels on a chain, exact limits, margins and critical sets.

An architecture is a function κ(θ); a chain is a function φ. The generated module
``landscape.kernels.<architecture>_<chain kind>`` joins the two, and everything here goes through it.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass

import numpy as np

from landscape import parameters
from landscape.chains import Chain
from landscape.outcomes import CriticalSet
from landscape.parameters import ParameterError


@dataclass(frozen=True)
class Architecture:
    """An architecture with generated kernels and an exact rule for limits.

    Attributes
    ----------
    name : str
    parameters : tuple of str
        Names of the coordinates of θ, in the order of every array of points.
    invariants : tuple of str
        Names of the conserved quantities of its gradient flow.
    """

    name: str
    parameters: tuple[str, ...]
    invariants: tuple[str, ...]

    def kernels(self, chain: Chain):
        """The generated module for this architecture on a chain."""
        if not isinstance(chain, Chain):
            raise ParameterError("chain", self.name, "a BinaryChain or a SymmetricChain", chain)
        return importlib.import_module(f"landscape.kernels.{self.name}_{chain.kind}")

    def points(self, owner: str, points) -> np.ndarray:
        """Check and shape points; see `landscape.parameters.points`."""
        return parameters.points(owner, "points", points, len(self.parameters))

    @staticmethod
    def _vocabulary(chain: Chain) -> tuple[float, ...]:
        """What the gap's kernels need of the chain: the number of symbols, where it is not two."""
        return () if chain.kind == "binary" else (float(chain.states),)

    def constants(self, chain: Chain, side: int = 1) -> tuple[float, float]:
        """A and c of κ = A e² (1 + c w|w|) on the side of e = 0 given by the sign of `side`."""
        return self.kernels(chain).constants(float(side), *self._vocabulary(chain))

    def kappa(self, chain: Chain, points) -> np.ndarray:
        """Logit gap at points of shape (n, 2), shape (n,)."""
        return self.kernels(chain).gap_many(self.points("kappa", points), *self._vocabulary(chain))

    def loss(self, chain: Chain, points) -> np.ndarray:
        """Loss in nats, the bias minimised out; shape (n,)."""
        chain.require_interior("loss")
        return self.kernels(chain).loss_many(self.points("loss", points), *chain.kernel_parameters)

    def gradient(self, chain: Chain, points) -> np.ndarray:
        """Gradient of the loss; shape (n, 2)."""
        chain.require_interior("gradient")
        return self.kernels(chain).gradient_many(self.points("gradient", points), *chain.kernel_parameters)

    def hessian(self, chain: Chain, points) -> np.ndarray:
        """Hessian of the loss; shape (n, 2, 2). At w = 0, where it jumps, the mean of its two sides."""
        chain.require_interior("hessian")
        return self.kernels(chain).hessian_many(self.points("hessian", points), *chain.kernel_parameters)

    def limit(self, chain: Chain, points) -> np.ndarray:
        """Exact label of the limit of every start; int8 codes of `Label`, shape (n,)."""
        chain.require_interior("limit")
        points = self.points("limit", points)
        return self.kernels(chain).label_many(points, chain.target_sign, *self._vocabulary(chain))

    def label_grid(self, chain: Chain, axes: dict[str, np.ndarray]) -> np.ndarray:
        """Exact labels on a grid; int8, one dimension per parameter in order."""
        chain.require_interior("basin_map")
        nodes = (axes[name] for name in self.parameters)
        return self.kernels(chain).label_grid(*nodes, chain.target_sign, *self._vocabulary(chain))

    def margin(self, chain: Chain, points) -> np.ndarray:
        """E - E_sad where the start must pass the saddle to be global, else NaN; shape (n,)."""
        chain.require_interior("margin")
        points = self.points("margin", points)
        return self.kernels(chain).margin_many(points, chain.target_sign, *self._vocabulary(chain))

    def distance(self, chain: Chain, points) -> np.ndarray:
        """Euclidean distance to the boundary of the global basin, NaN where there is none; shape (n,)."""
        chain.require_interior("distance")
        points = self.points("distance", points)
        return self.kernels(chain).distance_many(points, chain.target_sign, *self._vocabulary(chain))

    def invariant_values(self, chain: Chain, points) -> dict[str, np.ndarray]:
        """The conserved quantities by name, each of shape (n,); NaN at w = 0, where E has no value."""
        found = self.kernels(chain).invariant_many(self.points("invariants", points), *self._vocabulary(chain))
        return dict(zip(self.invariants, (found,)))

    def saddles(self, chain: Chain) -> tuple[float, float]:
        """w at the saddle on e = 0, as seen from e > 0 and from e < 0."""
        return tuple(-1.0 / math.sqrt(self.constants(chain, side)[1]) for side in (1, -1))

    def critical_sets(self, chain: Chain) -> list[CriticalSet]:
        """The critical sets of the loss on this chain, from derivations/canonical-critical-sets.md."""
        from landscape.kernels.canonical_sets import SETS

        chain.require_interior("critical_sets")
        losses = {"bigram": chain.bigram_loss, "unigram": chain.unigram_loss}
        if chain.target_sign == 0:
            # κ* = 0: the gap vanishes across B = 0, and to second order on e = 0, where the loss grows like e⁴
            lines = " or ".join(f"w = {saddle:.9g}" for saddle in sorted(set(self.saddles(chain))))
            found = ((1, f"e != 0, {lines}"), (2, "e = 0"))
            return [CriticalSet("global minima", "global minima", 1, 0, n, losses["bigram"], where) for n, where in found]
        rows = {row["name"]: row for row in SETS}
        found = [self._set(rows["global minima"], losses, f"kappa(e, w) = {chain.kappa_star:.9g}")]
        for name, low, high in self.line_pieces(chain):
            bounds = f"{low:.9g} <= w <= {high:.9g}" if math.isfinite(low) and math.isfinite(high) else (
                f"w < {high:.9g}" if math.isfinite(high) else f"w > {low:.9g}"
            )
            row = rows["saddle" if name == "half-stable saddles" else name]
            found.append(self._set(row, losses, f"e = 0, w = {low:.9g}" if low == high else f"e = 0, {bounds}", name))
        return found

    @staticmethod
    def _set(row: dict, losses: dict, equations: str, name: str | None = None) -> CriticalSet:
        plain = {key: row[key] for key in ("name", "kind", "dimension", "index", "nullity")} | {"name": name or row["name"]}
        if name == "half-stable saddles":  # a line, not a point; the second derivative differs between its sides
            plain |= {"kind": "saddles", "dimension": 1, "index": None, "nullity": 1}
        return CriticalSet(**plain, loss=losses[row["loss"]], equations=equations)

    def line_pieces(self, chain: Chain) -> list[tuple[str, float, float]]:
        """The pieces of the line e = 0 by kind: (name of the critical set, lowest w, highest w).

        Where c differs across e = 0 (S >= 3 symbols) the piece between the two saddles attracts from one
        side of the line and repels on the other.
        """
        if chain.target_sign == 0:
            return [("global minima", -math.inf, math.inf)]
        low, high = sorted(self.saddles(chain))
        left, right = ("local minima", "maxima") if chain.target_sign > 0 else ("maxima", "local minima")
        middle = "saddle" if low == high else "half-stable saddles"
        return [(left, -math.inf, low), (right, high, math.inf), (middle, low, high)]

    def separatrix(self, chain: Chain, reach: float, n: int) -> np.ndarray:
        """Points of the separatrix from the end of one branch through the saddle to the end of the other.

        Parameters
        ----------
        reach : float
            |e| and |w| go at least this far, unless the branch stays closer to e = 0.
        n : int
            Points on each branch, crowded towards the saddle.

        Returns
        -------
        ndarray of shape (2 n, 2); empty where there is no separatrix (at the threshold)
        """
        from landscape.kernels.canonical import threshold

        chain.require_interior("separatrix")
        sign = chain.target_sign
        if sign == 0:
            return np.empty((0, 2))
        branches = []
        for side in (1, -1):
            c = self.constants(chain, side)[1]
            furthest = c * reach**2 + 1.0 if sign < 0 else max(math.log(c * reach**2) + 1.0, 1.0)
            s = sign * furthest * np.linspace(0.0, 1.0, n) ** 2
            w = -np.exp(s / 2) / math.sqrt(c)
            e = side * np.sqrt(np.maximum([threshold(along, c) for along in w], 0.0))
            e[0] = 0.0
            branches.append(np.stack([e, w], axis=1))
        return np.concatenate([branches[1][::-1], branches[0]])

    def separatrix_residual(self, chain: Chain, curve: np.ndarray) -> float:
        """Largest |E - E_sad| over a curve, by the invariant; its own rounding is about 1e-15 times its terms."""
        lowest = {side: (1.0 + math.log(c)) / c for side in (1, -1) for c in [self.constants(chain, side)[1]]}
        energy = self.invariant_values(chain, curve)["E"] if len(curve) else np.empty(0)
        expected = np.array([-lowest[1 if e >= 0 else -1] for e in curve[:, 0]])
        away = curve[:, 0] != 0.0  # both branches start at e = 0, where the side cannot be read off
        return float(np.max(np.abs(energy - expected)[away], initial=0.0))


_ARCHITECTURES = {
    "canonical": Architecture("canonical", ("e", "w"), ("E",)),
}


def names() -> tuple[str, ...]:
    """Names of the built-in architectures."""
    return tuple(_ARCHITECTURES)


def architecture(name: str | Architecture) -> Architecture:
    """The architecture of a given name; an architecture is handed back as it is.

    Raises
    ------
    ParameterError
        If there is none of that name.
    """
    if isinstance(name, Architecture):
        return name
    if name not in _ARCHITECTURES:
        raise ParameterError("architecture", "landscape", f"one of {', '.join(_ARCHITECTURES)}", name)
    return _ARCHITECTURES[name]


def loss(chain: Chain, points, architecture_name: str | Architecture = "canonical") -> np.ndarray:
    """Loss in nats at points of shape (n, 2), the bias minimised out; shape (n,)."""
    return architecture(architecture_name).loss(chain, points)


def gradient(chain: Chain, points, architecture_name: str | Architecture = "canonical") -> np.ndarray:
    """Gradient of the loss at points of shape (n, 2); shape (n, 2)."""
    return architecture(architecture_name).gradient(chain, points)


def hessian(chain: Chain, points, architecture_name: str | Architecture = "canonical") -> np.ndarray:
    """Hessian of the loss at points of shape (n, 2); shape (n, 2, 2)."""
    return architecture(architecture_name).hessian(chain, points)


def limit(chain: Chain, points, architecture_name: str | Architecture = "canonical") -> np.ndarray:
    """Exact label of the limit of every start under gradient flow, without integrating.

    Parameters
    ----------
    chain : BinaryChain or SymmetricChain
    points : array_like of shape (n, 2) or (2,)
        Starts (e, w). One that is not finite is labelled ``INVALID``.

    Returns
    -------
    ndarray of int8, shape (n,)
        Codes of `landscape.Label`.
    """
    return architecture(architecture_name).limit(chain, points)
