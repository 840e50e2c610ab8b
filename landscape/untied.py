"""The `untied` architecture, κ = A e c (1 + c_S w|w|): a head c of its own; derivations/untied.md."""

from __future__ import annotations

import numpy as np

from landscape.architectures import Architecture, find
from landscape.chains import Chain
from landscape.outcomes import CriticalSet
from landscape.parameters import ParameterError


class Untied(Architecture):
    """Three parameters: the embedding e, the head c and the MLP weight w.

    With two symbols every critical point but the global minima is a saddle, and all starts are global but for a set of
    measure zero. With S >= 3 symbols c_S jumps where e changes its sign, and a piece of that kink is a bad local minimum.
    """

    def curvatures(self, chain: Chain) -> tuple[float, float]:
        """c_S for e > 0 and for e < 0."""
        canonical = find("canonical")
        return tuple(float(canonical.constants(chain, side)[1]) for side in (1, -1))

    def saddles(self, chain: Chain) -> tuple[float, float]:
        """w where 1 + c_S w|w| = 0, as seen from e > 0 and from e < 0."""
        return find("canonical").saddles(chain)

    def kernels(self, chain: Chain):
        if not isinstance(chain, Chain) or chain.source is None:
            return super().kernels(chain)
        from landscape.modules import load
        from landscape.symbolic.untied import module_on

        return load(f"{self.name} {chain.name}", module_on(chain))

    def limit(self, chain: Chain, points) -> np.ndarray:
        from landscape.kernels.untied_labels import label_many

        chain.require_interior("limit")
        return label_many(self.points("limit", points), chain.target_sign, *self.curvatures(chain))

    def label_grid(self, chain: Chain, axes: dict[str, np.ndarray]) -> np.ndarray:
        from landscape.kernels.untied_labels import label_grid

        chain.require_interior("basin_map")
        return label_grid(*(axes[name] for name in self.parameters), chain.target_sign, *self.curvatures(chain))

    def margin(self, chain: Chain, points) -> np.ndarray:
        """For S >= 3 symbols, where e may meet the kink between its two saddles: negative if it is held there; else NaN.

        It is zero on the boundary of the local basin, and NaN everywhere for two symbols, where there is none.
        """
        from landscape.kernels.untied_labels import margin_many

        chain.require_interior("margin")
        return margin_many(self.points("margin", points), chain.target_sign, *self.curvatures(chain))

    def distance(self, chain: Chain, points) -> np.ndarray:
        """NaN: with two symbols there is no boundary, with more the distance to it has no closed form."""
        chain.require_interior("distance")
        return np.full(len(self.points("distance", points)), np.nan)

    def invariant_values(self, chain: Chain, points, speeds: tuple[float, ...] = ()) -> dict[str, np.ndarray]:
        """e² - c² and E = e² + c² - G(w), each term over its speed.

        E is NaN at w = 0, where it has no value, and for S >= 3 symbols, where the flow keeps it only until e changes its sign.
        """
        points = self.points("invariants", points)
        e_squared, c_squared = (points[:, k] ** 2 / (speeds[k] if speeds else 1.0) for k in (0, 1))
        at_w = np.column_stack([np.zeros(len(points)), points[:, 2]])
        minus_g = find("canonical").invariant_values(chain, at_w)["E"] / (speeds[2] if speeds else 1.0)
        upper, lower = self.curvatures(chain)
        energy = e_squared + c_squared + minus_g if upper == lower else np.full(len(points), np.nan)
        return {"e^2 - c^2": e_squared - c_squared, "E": energy}

    def critical_sets(self, chain: Chain) -> list[CriticalSet]:
        """The critical sets of the loss on this chain, from derivations/untied.md.

        For S >= 3 symbols those with e = 0 lie on the kink, and index and nullity of the minima and maxima there are those
        along it; the loss rises, or falls, to both of its sides. The index is None where the two sides are not alike.
        """
        from landscape.kernels.untied_sets import SETS

        chain.require_interior("critical_sets")
        upper, lower = self.saddles(chain)
        if chain.target_sign == 0:  # the zeros of the gap; where two of its factors vanish the Hessian does too
            name, zeros = "global minima", sorted({upper, lower})
            factors = f"e = 0 or c = 0 or w = {' or '.join(f'{zero:.9g}' for zero in zeros)}"
            return [
                CriticalSet(name, name, dimension, 0, nullity, chain.bigram_loss, f"{factors}, {how}")
                for dimension, nullity, how in ((2, 2, "one of them alone"), (1, 3, "two of them or all"))
            ]
        words = {"star": f"{chain.kappa_star:.9g}", "upper": f"{upper:.9g}", "lower": f"{lower:.9g}"}
        words["c"] = "c" if chain.target_sign > 0 else "-c"
        losses = {"bigram": chain.bigram_loss, "unigram": chain.unigram_loss}
        states = ("any", "two" if upper == lower else "many")
        return [
            CriticalSet(
                row["name"], row["name"], row["dimension"], row["index"], row["nullity"], losses[row["loss"]],
                row["equations"].format(**words),
            )
            for row in SETS if row["states"] in states
        ]

    def separatrix(self, chain: Chain, reach: float, n: int) -> np.ndarray:
        """There is no curve.

        Raises
        ------
        ParameterError
            Always: with two symbols almost every start is global, and with more the boundary is a surface.
        """
        raise ParameterError("architecture", "separatrix", "one whose basins are separated by a curve", self.name)


ARCHITECTURES = {"untied": Untied("untied", ("e", "c", "w"), ("e^2 - c^2", "E"))}
