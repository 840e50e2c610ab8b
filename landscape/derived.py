"""Architectures and chains that a user gives as expressions: everything but exact limits."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from landscape.architectures import Architecture
from landscape.chains import Chain
from landscape.landscapes import checked_box, parameter_names
from landscape.modules import load
from landscape.parameters import ParameterError, real

FURTHEST = 1e9  # how far the optimal gap of a chain is looked for


@dataclass(frozen=True)
class Inexact(Architecture):
    """An architecture whose limits are known by integration alone."""

    @property
    def is_exact(self) -> bool:
        return False

    @property
    def has_gap(self) -> bool:
        return False

    def vocabulary(self, chain: Chain) -> tuple[float, ...]:
        return ()

    def margin(self, chain, points):
        return np.full(len(self.points("margin", points)), np.nan)

    distance = margin

    def invariant_values(self, chain, points, speeds=()):
        return {}


@dataclass(frozen=True)
class Derived(Inexact):
    """An architecture given by its gap or its logits; see `Architecture.from_symbolic`."""

    gap: object = None
    logits: tuple | None = None
    declared: tuple = ()
    box: Mapping = field(default_factory=dict, compare=False)

    @property
    def has_gap(self) -> bool:
        return self.gap is not None

    @functools.cached_property
    def _texts(self) -> dict:
        return {}

    def kernels(self, chain: Chain):
        """The generated module for a chain: one for all chains of its kind, or of its number of symbols."""
        from landscape.symbolic import modules

        if not isinstance(chain, Chain):
            raise ParameterError("chain", self.name, "a chain", chain)
        if self.logits is not None and len(self.logits) != len(chain.joint_law):
            raise ParameterError("chain", self.name, f"a chain on {len(self.logits)} symbols", chain)
        if chain.kind not in self._texts:
            self._texts[chain.kind] = (
                modules.gap_module(self.name, self.parameters, self.gap, chain, self.declared, self.box) if self.has_gap
                else modules.logits_module(self.name, self.parameters, self.logits, self.declared, self.box)
            )
        return load(self.name, self._texts[chain.kind])

    def constants_of(self, chain: Chain) -> tuple[float, ...]:
        return tuple(chain.kernel_parameters) if self.has_gap else tuple(np.ravel(chain.joint_law).tolist())


def architecture_from_symbolic(name, parameters, gap, logits, box) -> Derived:
    """See `Architecture.from_symbolic`."""
    from landscape.symbolic.models import checked

    if (gap is None) == (logits is None):
        raise ParameterError("gap", name, "given, or else logits, but not both", gap)
    names, declared = parameter_names(name, parameters)
    rows = None if logits is None else tuple(tuple(row) for row in logits)
    for expression in (gap,) if rows is None else (entry for row in rows for entry in row):
        checked(name, expression, names, declared)
    return Derived(name, names, (), gap=gap, logits=rows, declared=declared, box=checked_box(name, names, box))


@dataclass(frozen=True)
class SymbolicChain(Chain):
    """A chain given by its φ; see `Chain.from_symbolic`."""

    name: str
    source: str = field(repr=False)
    values: tuple[tuple[str, float], ...]
    states: ClassVar[None] = None

    @property
    def kind(self) -> str:
        return f"{self.name}:{hash(self.source)}"

    @property
    def interior(self) -> bool:
        return math.isfinite(self.kappa_star)

    def require_interior(self, purpose: str) -> None:
        if not self.interior:
            raise ParameterError("phi", purpose, "of a finite optimal gap", self.name)

    @property
    def joint_law(self):
        raise ParameterError("chain", self.name, "one with symbols, for an architecture given by logits", self.name)

    def describe(self) -> dict:
        return {"chain_name": self.name, **dict(self.values)}

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        return tuple(value for _, value in self.values)

    @property
    def kernel_names(self) -> tuple[str, ...]:
        return tuple(f"constant_{i}" for i in range(len(self.values)))

    def _phi(self, kernel: str, kappa):
        from landscape.symbolic.modules import chain_module

        module = load(self.name, chain_module(self.name, self.source, self.kernel_names))
        gaps = np.asarray(kappa, dtype=np.float64)
        values = getattr(module, f"{kernel}_many")(gaps.ravel(), *self.kernel_parameters)
        return values.reshape(gaps.shape) if gaps.ndim else float(values[0])

    @functools.cached_property
    def kappa_star(self) -> float:
        """Where φ′ changes its sign: ±inf if it does not within 1e9."""
        from scipy.optimize import brentq

        slope = self.phi_prime(0.0)
        if slope == 0.0:
            return 0.0
        side, reach = -math.copysign(1.0, slope), 1.0
        while not self.phi_prime(side * reach) * slope < 0.0:  # a slope that rounding makes zero has not changed its sign
            reach *= 2.0
            if reach > FURTHEST:
                return side * math.inf
        return float(brentq(self.phi_prime, 0.0, side * reach, xtol=1e-300, rtol=8.9e-16))

    @property
    def regime(self) -> str:
        """ "below", "at" or "above": by the sign of κ*."""
        return "at" if self.kappa_star == 0.0 else "below" if self.kappa_star > 0.0 else "above"

    @property
    def unigram_loss(self) -> float:
        """φ(0)."""
        return self.phi(0.0)

    @property
    def bigram_loss(self) -> float:
        """φ(κ*), or what φ falls to."""
        return self.phi(max(min(self.kappa_star, FURTHEST), -FURTHEST))


def chain_from_symbolic(name, phi, gap, values) -> SymbolicChain:
    """See `Chain.from_symbolic`."""
    from landscape.symbolic.modules import chain_source

    values = dict(values or {})
    names, declared = parameter_names(name, (gap, *values))
    numbers = tuple((word, real(name, word, value)) for word, value in zip(names[1:], values.values()))
    return SymbolicChain(name, chain_source(name, names[0], names[1:], phi, declared), numbers)

