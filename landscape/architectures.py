"""The runtime face of an architecture: its kernels on a chain, exact limits, margins and critical sets.

An architecture is a function κ(θ); a chain is a function φ. The generated module
``landscape.kernels.<architecture>_<chain kind>`` joins the two, and everything here goes through it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import numpy as np

from landscape import parameters
from landscape.chains import Chain
from landscape.outcomes import CriticalSet
from landscape.parameters import ParameterError


@dataclass(frozen=True)
class Architecture:
    """An architecture with generated kernels and an exact rule for limits.

    A subclass adds what has a form of its own: `critical_sets`, and the boundary of the global basin as
    `separatrix` and `separatrix_residual`.

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
    def vocabulary(chain: Chain) -> tuple[float, ...]:
        """What the gap's kernels need of the chain: the number of symbols, where it is not two."""
        return () if chain.kind == "binary" else (float(chain.states),)

    def kappa(self, chain: Chain, points) -> np.ndarray:
        """Logit gap at points of shape (n, 2), shape (n,)."""
        return self.kernels(chain).gap_many(self.points("kappa", points), *self.vocabulary(chain))

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
        return self.kernels(chain).label_many(points, chain.target_sign, *self.vocabulary(chain))

    def label_grid(self, chain: Chain, axes: dict[str, np.ndarray]) -> np.ndarray:
        """Exact labels on a grid; int8, one dimension per parameter in order."""
        chain.require_interior("basin_map")
        nodes = (axes[name] for name in self.parameters)
        return self.kernels(chain).label_grid(*nodes, chain.target_sign, *self.vocabulary(chain))

    def margin(self, chain: Chain, points) -> np.ndarray:
        """E - E_sad where the start must pass the saddle to be global, else NaN; shape (n,)."""
        chain.require_interior("margin")
        points = self.points("margin", points)
        return self.kernels(chain).margin_many(points, chain.target_sign, *self.vocabulary(chain))

    def distance(self, chain: Chain, points) -> np.ndarray:
        """Euclidean distance to the boundary of the global basin, NaN where there is none; shape (n,)."""
        chain.require_interior("distance")
        points = self.points("distance", points)
        return self.kernels(chain).distance_many(points, chain.target_sign, *self.vocabulary(chain))

    def invariant_values(self, chain: Chain, points) -> dict[str, np.ndarray]:
        """The conserved quantities by name, each of shape (n,); NaN at w = 0, where E has no value."""
        found = self.kernels(chain).invariant_many(self.points("invariants", points), *self.vocabulary(chain))
        return dict(zip(self.invariants, (found,)))

    def critical_sets(self, chain: Chain) -> list[CriticalSet]:
        """The critical sets of the loss on this chain."""
        raise NotImplementedError

    def separatrix(self, chain: Chain, reach: float, n: int) -> np.ndarray:
        """The boundary of the global basin as points of shape (k, number of parameters); empty if there is none."""
        raise NotImplementedError

    def separatrix_residual(self, chain: Chain, curve: np.ndarray) -> float:
        """How far, at most, points of the boundary are off it, in the units of the margin."""
        raise NotImplementedError


# Name of a built-in architecture: the module of the package that defines it as `ARCHITECTURE`.
_BUILT_IN = {"canonical": "canonical"}


def names() -> tuple[str, ...]:
    """Names of the built-in architectures."""
    return tuple(_BUILT_IN)


def architecture(name: str | Architecture) -> Architecture:
    """The architecture of a given name; an architecture is handed back as it is.

    Raises
    ------
    ParameterError
        If there is none of that name.
    """
    if isinstance(name, Architecture):
        return name
    if name not in _BUILT_IN:
        raise ParameterError("architecture", "landscape", f"one of {', '.join(_BUILT_IN)}", name)
    return importlib.import_module(f"landscape.{_BUILT_IN[name]}").ARCHITECTURE


find = architecture  # under a name that a parameter called `architecture` does not hide


def loss(chain: Chain, points, architecture: str | Architecture = "canonical") -> np.ndarray:
    """Loss in nats at points of shape (n, 2), the bias minimised out; shape (n,)."""
    return find(architecture).loss(chain, points)


def gradient(chain: Chain, points, architecture: str | Architecture = "canonical") -> np.ndarray:
    """Gradient of the loss at points of shape (n, 2); shape (n, 2)."""
    return find(architecture).gradient(chain, points)


def hessian(chain: Chain, points, architecture: str | Architecture = "canonical") -> np.ndarray:
    """Hessian of the loss at points of shape (n, 2); shape (n, 2, 2)."""
    return find(architecture).hessian(chain, points)


def limit(chain: Chain, points, architecture: str | Architecture = "canonical") -> np.ndarray:
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
    return find(architecture).limit(chain, points)
