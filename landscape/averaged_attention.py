"""`attention` on the symmetric chain, κ = A e² (1 + a e²) (1 + c w|w|): what attention is for long sequences.

With S >= 3 symbols linear attention multiplies the stream in the limit of long sequences only, with an error of order n^(-1/2);
c depends on the sign of e (1 + a e²), so the gradient jumps where either factor vanishes (derivations/symmetric-attention.md).
Limits are found by flow.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass

import numpy as np

from landscape import airy
from landscape.architectures import Architecture
from landscape.chains import Chain, SymmetricChain
from landscape.derived import Inexact
from landscape.kernels.attention import airy_coordinates
from landscape.parameters import ParameterError


@dataclass(frozen=True)
class Averaged(Inexact):
    """Three parameters: the embedding e, the MLP weight w and the strength a of linear attention, averaged over the chain."""

    @property
    def has_gap(self) -> bool:
        return True

    @property
    def coordinates(self) -> tuple[str, ...]:
        return ("a", "e", "w")

    @property
    def periods(self) -> dict[str, float]:
        return {"arctan J": math.pi}

    vocabulary = staticmethod(Architecture.vocabulary)

    def kernels(self, chain: Chain):
        if not isinstance(chain, SymmetricChain):
            raise ParameterError("chain", self.name, "a SymmetricChain", chain)
        return importlib.import_module(f"landscape.kernels.{self.name}_symmetric")

    def invariant_values(self, chain: Chain, points, speeds: tuple[float, ...] = ()) -> dict[str, np.ndarray]:
        """J as the angle arctan J, as for two symbols: B scales the rates of e and of a alike, so c does not enter. None with speeds."""
        if speeds:
            return {}
        e, _, a = self.points("invariants", points).T
        with np.errstate(all="ignore"):
            return {"arctan J": airy.solve(*airy_coordinates(e, a)).angle}


AVERAGED = Averaged("attention", ("e", "w", "a"), ("arctan J",))
