"""The `canonical` architecture, κ = A e² (1 + c w|w|): its constants on a chain, critical sets and separatrix."""

from __future__ import annotations

import math

import numpy as np

from landscape.architectures import Architecture
from landscape.chains import Chain
from landscape.outcomes import CriticalSet


class Canonical(Architecture):
    """Two parameters: the embedding e and the MLP weight w."""

    def constants(self, chain: Chain, side: int = 1) -> tuple[float, float]:
        """A and c of κ = A e² (1 + c w|w|) on the side of e = 0 given by the sign of `side`."""
        return self.kernels(chain).constants(float(side), *self.vocabulary(chain))

    def saddles(self, chain: Chain) -> tuple[float, float]:
        """w at the saddle on e = 0, as seen from e > 0 and from e < 0."""
        return tuple(-1.0 / math.sqrt(self.constants(chain, side)[1]) for side in (1, -1))

    def invariant_values(self, chain: Chain, points, speeds: tuple[float, ...] = ()) -> dict[str, np.ndarray]:
        """E = e² - G(w), with speeds e²/s_e - G(w)/s_w; NaN at w = 0, where E has no value."""
        points = self.points("invariants", points)
        energy = self.kernels(chain).invariant_many(points, *self.vocabulary(chain))
        if not speeds:
            return {"E": energy}
        square = points[:, 0] ** 2
        return {"E": square / speeds[0] + (energy - square) / speeds[1]}

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


ARCHITECTURES = {"canonical": Canonical("canonical", ("e", "w"), ("E",))}
