"""The `reduced` and `transverse` architectures: positions, both MLP weights and the bias of their own.

`reduced` is what training of the full model without attention is on the manifold of rank one (derivations/reduced.md);
`transverse` has besides it the length u of the part of the embedding that lies across the manifold.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping

import numpy as np

from landscape.chains import BinaryChain, Chain
from landscape.derived import Inexact
from landscape.outcomes import CriticalSet
from landscape.parameters import ParameterError

SLICE = ("e", "w")


class Reduced(Inexact):
    """Parameters e, c, w1, w2, b (and u) in orthonormal coordinates; b is not minimised out.

    Wherever points are taken, two numbers (e, w) stand for the point of the canonical slice: c = -e/2, w1 = 2|w|,
    w2 = 2w, b at its minimiser, u = 0.
    """

    def on(self, chain: Chain, speeds: Mapping[str, float] | None = None):
        if not isinstance(chain, BinaryChain):
            raise ParameterError("states", self.name, "2, as in a BinaryChain", chain)
        return super().on(chain, speeds)

    def kernels(self, chain: Chain):
        return importlib.import_module(f"landscape.kernels.{self.name}")

    def constants_of(self, chain: Chain) -> tuple[float, ...]:
        return tuple(np.ravel(chain.joint_law).tolist())

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (*self.parameters, "w")

    def needed(self, given) -> tuple[str, ...]:
        off_slice = {"c", "w1", "w2"} & set(given) and "w" not in given
        return self.parameters if off_slice else SLICE

    def place(self, chain: Chain, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        if "w" not in columns:
            return super().place(chain, columns)
        e, w = np.broadcast_arrays(*(np.asarray(columns[name], dtype=np.float64) for name in SLICE))
        found = {"e": e, "c": -e / 2, "w1": 2 * np.abs(w), "w2": 2 * w, "b": np.zeros_like(e), "u": np.zeros_like(e)}
        others = {name: value for name, value in columns.items() if name not in SLICE}
        found |= {name: np.broadcast_to(value, e.shape) for name, value in others.items()}
        if "b" not in others:
            found["b"] = self.best_bias(chain, np.stack([found[name] for name in self.parameters], axis=1))
        return np.stack([found[name] for name in self.parameters], axis=1)

    def best_bias(self, chain: Chain, points: np.ndarray) -> np.ndarray:
        """The b that minimises the loss at points of shape (n, d), whatever their own b is; shape (n,)."""
        points = np.where(np.arange(len(self.parameters)) == self.parameters.index("b"), 0.0, points)
        return chain.best_bias(self.kappa(chain, points)) - self.logit_zero(chain, points)

    def logit_zero(self, chain: Chain, points: np.ndarray) -> np.ndarray:
        """Logit of "the next symbol is 1" after a 0 at points of shape (n, d), shape (n,)."""
        return self.kernels(chain).logit_zero_many(points)

    def starts(self, owner: str, chain: Chain, points) -> np.ndarray:
        array = np.atleast_2d(np.asarray(points, dtype=np.float64)) if np.ndim(points) in (1, 2) and len(np.atleast_1d(points)) else None
        if array is not None and array.shape[1] == len(SLICE):
            return self.place(chain, dict(zip(SLICE, array.T)))
        return super().starts(owner, chain, points)

    def invariant_values(self, chain: Chain, points, speeds: tuple[float, ...] = ()) -> dict[str, np.ndarray]:
        """w1² - w2², with speeds w1²/s1 - w2²/s2; on kinks too."""
        points = self.points("invariants", points)
        first, second = (self.parameters.index(name) for name in ("w1", "w2"))
        pace = speeds or (1.0,) * len(self.parameters)
        return {"w1^2 - w2^2": points[:, first] ** 2 / pace[first] - points[:, second] ** 2 / pace[second]}

    def critical_sets(self, chain: Chain) -> list[CriticalSet]:
        """Global minima, and the pieces of the plateau e = 0 off its kinks; derivations/reduced-critical-sets.md."""
        from landscape.kernels.reduced_sets import PIECES

        chain.require_interior("critical_sets")
        d = len(self.parameters)
        transverse = "u" in self.parameters
        plateau = "e = 0, u = 0" if transverse else "e = 0"
        dimension = d - (3 if transverse else 2)
        if chain.regime == "at":
            return [
                CriticalSet("global minima", "global minima", d - 2, 0, d - 2, chain.bigram_loss, "e != 0, kappa = 0, b = log(p/q)"),
                CriticalSet("global minima", "global minima", dimension, 0, d - 1, chain.bigram_loss, f"{plateau}, b = log(p/q)"),
            ]
        found = [CriticalSet(
            "global minima", "global minima", d - 2, 0, d - 2, chain.bigram_loss,
            f"kappa = {chain.kappa_star:.9g}, logit after 0 = {math.log(chain.p / (1 - chain.p)):.9g}",
        )]
        for row in PIECES:
            counts = row["index"][chain.regime]
            index = counts["along"] + (counts["across"] if transverse else 0)
            kind = "local minima" if index == 0 else "saddles"
            where = f"{plateau}, b = {math.log(chain.p / chain.q):.9g}, {row['equations']}"
            found.append(CriticalSet(kind, kind, dimension, index, dimension, chain.unigram_loss, where))
        return found


_ALONG = ("e", "c", "w1", "w2", "b")
ARCHITECTURES = {
    "reduced": Reduced("reduced", _ALONG, ("w1^2 - w2^2",)),
    "transverse": Reduced("transverse", (*_ALONG, "u"), ("w1^2 - w2^2",)),
}
