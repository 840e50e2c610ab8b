"""The runtime face of an architecture: its kernels on a chain, exact limits, margins and critical sets.

An architecture is a function κ(θ); a chain is a function φ. The generated module
``landscape.kernels.<architecture>_<chain kind>`` joins the two, and everything here goes through it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from landscape import parameters
from landscape.chains import Chain
from landscape.landscapes import BOX, Landscape, landscape_of
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

    @staticmethod
    def from_symbolic(name: str, parameters, *, gap=None, logits=None, box=None) -> Architecture:
        """An architecture of one's own, by its gap κ(θ) or by its logits.

        Parameters
        ----------
        name : str
        parameters : sequence of str or sympy.Symbol
            One to six, in the order of every array of points. A symbol may be plain or real.
        gap : sympy.Expr or str
            κ(θ); it goes with every chain that has a φ, the bias being minimised out.
        logits : sequence of sequences of sympy.Expr or str
            Row x holds the logits after symbol x; goes with every chain on as many symbols.
        box : dict of str to (low, high), optional
            Where critical sets are looked for; [-2, 2] by default.

        Raises
        ------
        ParameterError
            If the expressions cannot be used; the message says why.

        Examples
        --------
        >>> from landscape import Architecture, BinaryChain, flow
        >>> untied = Architecture.from_symbolic("mine", ["e", "c", "w"], gap="e*c*(1 + 2*w*abs(w))")
        >>> flow(BinaryChain(0.5, 0.8), [(1, -1, 0.5)], untied).words
        ['global']
        """
        from landscape.derived import architecture_from_symbolic

        return architecture_from_symbolic(name, parameters, gap, logits, box)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names that maps may be gridded over: see `Landscape.coordinates`."""
        return self.parameters

    @property
    def periods(self) -> dict[str, float]:
        """Periods of those invariants that are angles: see `Landscape.periods`."""
        return {}

    def needed(self, given) -> tuple[str, ...]:
        """Names that have to be known for a start, given some of them: see `Landscape.needed`."""
        return self.parameters

    def place(self, chain: Chain, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Points of shape (n, d) from the values of coordinates."""
        return np.stack(np.broadcast_arrays(*(columns[name] for name in self.parameters)), axis=-1).astype(np.float64)

    def on(self, chain: Chain, speeds: Mapping[str, float] | None = None) -> Bound:
        """The landscape of this architecture on a chain; `speeds` are those of `Landscape.with_speeds`."""
        return Bound(self, chain).with_speeds(speeds)

    @property
    def is_exact(self) -> bool:
        """Whether limits are known without integrating."""
        return True

    @property
    def has_gap(self) -> bool:
        """Whether the loss depends on the parameters through one gap κ alone."""
        return True

    def constants_of(self, chain: Chain) -> tuple[float, ...]:
        """What the kernels of the loss take of a chain."""
        return tuple(chain.kernel_parameters)

    def kernels(self, chain: Chain):
        """The generated module for this architecture on a chain."""
        if not isinstance(chain, Chain):
            raise ParameterError("chain", self.name, "a BinaryChain or a SymmetricChain", chain)
        if chain.source is None:
            return importlib.import_module(f"landscape.kernels.{self.name}_{chain.kind}")
        from landscape.codegen import pair_source
        from landscape.modules import load

        return load(f"{self.name} {chain.name}", pair_source(self.name, "binary", chain.kernel_names, phi=chain.source))

    def points(self, owner: str, points) -> np.ndarray:
        """Check and shape points; see `landscape.parameters.points`."""
        return parameters.points(owner, "points", points, len(self.parameters))

    def starts(self, owner: str, chain: Chain, points) -> np.ndarray:
        """Points as a user may give them on a chain, in full; shape (n, d)."""
        return self.points(owner, points)

    @staticmethod
    def vocabulary(chain: Chain) -> tuple[float, ...]:
        """What the gap's kernels need of the chain: the number of symbols, where it is not two."""
        return (float(chain.states),) if chain.kind == "symmetric" else ()

    def kappa(self, chain: Chain, points) -> np.ndarray:
        """Logit gap at points of shape (n, d), shape (n,); NaN for logits of more than two symbols, which have none."""
        points = self.points("kappa", points)
        gap_many = getattr(self.kernels(chain), "gap_many", None)
        return np.full(len(points), np.nan) if gap_many is None else gap_many(points, *self.vocabulary(chain))

    def loss(self, chain: Chain, points) -> np.ndarray:
        """Loss in nats, the bias minimised out; shape (n,)."""
        chain.require_interior("loss")
        return self.kernels(chain).loss_many(self.points("loss", points), *self.constants_of(chain))

    def gradient(self, chain: Chain, points) -> np.ndarray:
        """Gradient of the loss; shape (n, d)."""
        chain.require_interior("gradient")
        return self.kernels(chain).gradient_many(self.points("gradient", points), *self.constants_of(chain))

    def hessian(self, chain: Chain, points) -> np.ndarray:
        """Hessian of the loss; shape (n, d, d). At w = 0, where it jumps, the mean of its two sides."""
        chain.require_interior("hessian")
        return self.kernels(chain).hessian_many(self.points("hessian", points), *self.constants_of(chain))

    def limit(self, chain: Chain, points) -> np.ndarray:
        """Exact label of the limit of every start; int8 codes of `Label`, shape (n,)."""
        chain.require_interior("limit")
        self.require_exact()
        points = self.points("limit", points)
        return self.kernels(chain).label_many(points, chain.target_sign, *self.vocabulary(chain))

    def label_grid(self, chain: Chain, axes: dict[str, np.ndarray]) -> np.ndarray:
        """Exact labels on a grid; int8, one dimension per parameter in order."""
        chain.require_interior("basin_map")
        self.require_exact()
        nodes = [axes[name] for name in self.parameters]
        out = np.empty([values.size for values in nodes], dtype=np.int8)
        self.kernels(chain).label_grid(*nodes, chain.target_sign, *self.vocabulary(chain), out)
        return out

    def require_exact(self) -> None:
        """Raise `ParameterError` if limits are known by integration only."""
        if not self.is_exact:
            raise ParameterError("method", self.name, "'flow', as its limits are not known in closed form", "exact")

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

    def invariant_values(self, chain: Chain, points, speeds: tuple[float, ...] = ()) -> dict[str, np.ndarray]:
        """The conserved quantities of the flow with these speeds, each of shape (n,); NaN where one has no value."""
        raise NotImplementedError

    def critical_sets(self, chain: Chain) -> list[CriticalSet]:
        """The critical sets of the loss on this chain, by a numeric search unless they are derived."""
        from landscape.critical import searched_sets

        return searched_sets(self.on(chain))

    def separatrix(self, chain: Chain, reach: float, n: int) -> np.ndarray:
        """The boundary of the global basin as points of shape (k, number of parameters); empty if there is none."""
        raise ParameterError("architecture", "separatrix", "one whose separatrix is known", self.name)

    def separatrix_residual(self, chain: Chain, curve: np.ndarray) -> float:
        """How far, at most, points of the boundary are off it, in the units of the margin."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Bound(Landscape):
    """The landscape of an architecture on a chain."""

    architecture: Architecture
    chain: Chain
    speeds: tuple[float, ...] = ()

    def __post_init__(self):
        self.chain.require_interior("a landscape")

    @property
    def name(self) -> str:
        return self.architecture.name

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.architecture.parameters

    @property
    def kernels(self):
        return self.architecture.kernels(self.chain)

    @property
    def constants(self) -> tuple[float, ...]:
        return self.architecture.constants_of(self.chain)

    @property
    def box(self) -> dict:
        return getattr(self.architecture, "box", None) or dict.fromkeys(self.parameters, BOX)

    def gap(self, points) -> np.ndarray:
        return self.architecture.kappa(self.chain, self.points("gap", points))

    def is_global(self, ends, tolerance):
        """By the gap, where there is one: at κ*, or as near to it as the end is to its limit."""
        chain, model = self.chain, self.architecture
        if not model.has_gap:
            return self.loss(ends) <= chain.bigram_loss + 1e-6 * (chain.unigram_loss - chain.bigram_loss) + 1e-12
        star = chain.kappa_star
        extra = model.vocabulary(chain)
        slope = np.linalg.norm(self.kernels.gap_gradient_many(ends, *extra), axis=1)
        near = 10.0 * tolerance * slope * (1.0 + np.abs(ends).max(axis=1))
        return np.abs(self.kernels.gap_many(ends, *extra) - star) <= near + (1e-3 * abs(star) if star else 1e-6)

    def invariant_values(self, points):
        return self.architecture.invariant_values(self.chain, points, self.speeds)

    def points(self, owner, points) -> np.ndarray:
        return self.architecture.starts(owner, self.chain, points)

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.architecture.coordinates

    @property
    def periods(self) -> dict[str, float]:
        return self.architecture.periods

    def needed(self, given) -> tuple[str, ...]:
        return self.architecture.needed(given)

    def place(self, columns) -> np.ndarray:
        return self.architecture.place(self.chain, columns)

    @property
    def title(self) -> str:
        told = {**self.chain.describe(), **{name.replace("_", " of "): value for name, value in self.paces.items()}}
        numbers = ", ".join(f"{name} = {value:g}" for name, value in told.items() if not isinstance(value, str))
        return f"{self.name}, {numbers}" if numbers else self.name

    def describe(self):
        return {"architecture": self.name, "chain": type(self.chain).__name__, **self.chain.describe(),
                "unigram_loss": self.chain.unigram_loss, "bigram_loss": self.chain.bigram_loss, **self.paces}


# Name of a built-in architecture: the module of the package that defines it in `ARCHITECTURES`.
_BUILT_IN = {"canonical": "canonical", "attention": "attention", "untied": "untied", "reduced": "reduced", "transverse": "reduced"}


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
    return importlib.import_module(f"landscape.{_BUILT_IN[name]}").ARCHITECTURES[name]


find = architecture  # under a name that a parameter called `architecture` does not hide


def loss(chain: Chain, points, architecture: str | Architecture = "canonical") -> np.ndarray:
    """Loss in nats at points of shape (n, d), the bias minimised out; shape (n,)."""
    return landscape_of(chain, architecture).loss(points)


def gradient(chain: Chain, points, architecture: str | Architecture = "canonical") -> np.ndarray:
    """Gradient of the loss at points of shape (n, d); shape (n, d)."""
    return landscape_of(chain, architecture).gradient(points)


def hessian(chain: Chain, points, architecture: str | Architecture = "canonical") -> np.ndarray:
    """Hessian of the loss at points of shape (n, d); shape (n, d, d)."""
    return landscape_of(chain, architecture).hessian(points)


def limit(chain: Chain, points, architecture: str | Architecture = "canonical") -> np.ndarray:
    """Exact label of the limit of every start under gradient flow, without integrating.

    Parameters
    ----------
    chain : BinaryChain or SymmetricChain
    points : array_like of shape (n, d) or (2,)
        Starts (e, w). One that is not finite is labelled ``INVALID``.

    Returns
    -------
    ndarray of int8, shape (n,)
        Codes of `landscape.Label`.
    """
    return find(architecture).limit(chain, points)
