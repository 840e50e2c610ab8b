"""Networks of actual matrices with linear attention on the canonical slice, for the checks of the gap with attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import mpmath
from mpmath import mpf

from landscape.symbolic import symbols as s
from landscape.symbolic.networks import Network
from landscape.symbolic.steps import DIGITS

GAINS = (s.query_size, s.key_size, s.value_size, s.output_size)


@dataclass(frozen=True)
class Case:
    """A network with linear attention, a sequence, and the two positions that a statement is about.

    Without `row` the value and output matrices are gains times ααᵀ; with it they are α·rowᵀ and the identity.
    """

    e: mpf
    w: mpf
    gains: tuple
    alpha: tuple[int, ...]
    hidden: int
    sequence: tuple[int, ...]
    here: int
    there: int
    row: tuple | None = None
    head: mpf | None = None
    kind: str = "linear"

    @cached_property
    def network(self) -> Network:
        return Network(len(self.alpha), self.hidden, len(self.sequence), self.kind, self.head is None)

    @cached_property
    def trace(self) -> dict:
        """The forward pass, every matrix written out."""
        d, r, alpha = len(self.alpha), self.hidden, self.alpha
        length, k = self.e / mpmath.sqrt(d), 2 / mpmath.sqrt(r * mpf(d))
        arrays = {f"position {n}": [-length * u / 2 for u in alpha] for n in range(len(self.sequence))}
        for name, gain in zip(("query", "key", "value", "output"), self.gains):
            arrays[name] = [gain * u * v for u in alpha for v in alpha]
        if self.row is not None:
            arrays["value"] = [u * v for u in alpha for v in self.row]
            arrays["output"] = [mpf(i == j) for i in range(d) for j in range(d)]
        arrays |= {
            "embedding": [length * u for u in alpha], "head": [(self.head or 0) / mpmath.sqrt(d) * u for u in alpha],
            "inner": [k * abs(self.w) * u for _ in range(r) for u in alpha],
            "outer": [k * self.w * u for u in alpha for _ in range(r)],
        }
        theta = [value for name in self.network.shapes for value in arrays.get(name, [mpf(0)])]
        return self.network.trace(theta, self.sequence)

    def gap(self):
        """Logit at the one position (where the symbol is 1) less that at the other (where it is 0)."""
        return self.trace["logits"][self.here] - self.trace["logits"][self.there]

    def score(self):
        """That between the two positions; the earlier is the source."""
        return self.trace["scores"][max(self.here, self.there)][min(self.here, self.there)]

    def added(self):
        """What the attention adds at the position `here`, as a multiple of the stream there, in the last entry."""
        return self.trace["attended"][self.here][-1] / self.trace["stream"][self.here][-1]

    def point(self) -> dict:
        """The numbers of the symbols."""
        d = len(self.alpha)
        signs = {s.sign_e: mpmath.sign(self.e), s.sign_w: mpmath.sign(self.w), s.sign_f: mpmath.sign(1 + self.added())}
        return signs | dict(zip(GAINS, self.gains)) | {
            s.e: self.e, s.w: self.w, s.width: mpf(d), s.hidden: mpf(self.hidden), s.multiple: self.e / mpmath.sqrt(d),
            s.head: self.head or mpf(0), s.attention: self.added() / self.e**2, s.so_far: mpf(self.here + 1),
            s.symbol_here: self.sequence[self.here], s.symbol_there: self.sequence[self.there],
            s.value_along: sum(u * v for u, v in zip(self.alpha, self.row or (0,) * d)),
        }


def _case(e_, w_, gains, alpha, r, sequence, here, there) -> Case:
    return Case(mpf(e_), mpf(w_), tuple(mpf(g) for g in gains), alpha, r, sequence, here, there)


# All signs of e, w and f, several widths and lengths; the symbol is 1 at the first position named and 0 at the other.
CASES = (
    _case("0.75", "0.5", ("0.5", "0.25", "0.5", "0.375"), (1, -1, -1), 2, (0, 1, 1, 0, 1), 4, 3),
    _case("-1.25", "0.875", ("0.5", "-0.5", "0.75", "0.5"), (-1, 1), 3, (1, 0, 0), 0, 2),
    _case("-0.625", "-0.375", ("0.25", "0.75", "-0.125", "-0.5"), (1, 1, -1, 1), 1, (0, 0, 1, 1), 2, 1),
    _case("1.125", "-1.25", ("0.75", "-0.5", "0.75", "1"), (-1, 1), 2, (1, 1, 0, 1), 3, 2),
    _case("-0.875", "-0.75", ("0.75", "0.5", "-1", "0.625"), (1, -1, 1), 2, (0, 1), 1, 0),
    _case("0.5", "-0.625", ("0.5", "0.5", "0.25", "0.125"), (1,), 1, (0, 1, 0, 1, 0, 1), 5, 0),
    _case("1.5", "0.375", ("-0.5", "1", "0.375", "1.5"), (1, -1), 1, (1, 0), 0, 1),
    _case("-0.5", "0.75", ("1", "0.5", "-1.5", "0.75"), (1, 1, -1), 3, (1, 0, 1), 2, 1),
)
ROWS = tuple(
    replace(case, row=tuple(case.gains[2] + mpf(j) / 4 - u * case.gains[3] for j, u in enumerate(case.alpha))) for case in CASES
)
HEADS = tuple(replace(case, head=mpf(value) / 8) for case, value in zip(CASES, (5, 7, -6, -9, 3, -4, 10, -2)))
UNDIVIDED = tuple(replace(case, kind="sum") for case in CASES)


def those(condition) -> tuple[Case, ...]:
    """The cases for which a condition holds, at the precision of checks, at which a case keeps its forward pass."""
    with mpmath.workdps(DIGITS):
        return tuple(case for case in CASES if condition(case))


def smallest(case: Case) -> Case:
    """The network with d = r = 1 and the same (e, c_h, w, a)."""
    a = case.added() / case.e**2
    return replace(case, alpha=(1,), hidden=1, gains=(mpf(1), mpf(2), 2 * a, mpf(1)))


def undivided_gap(case: Case):
    """The logit after a 1 less that after a 0, both at the position `here`."""
    sequences = [(*case.sequence[: case.here], x) for x in (1, 0)]
    one, zero = (replace(case, sequence=sequence).trace["logits"][-1] for sequence in sequences)
    return one - zero


def value_alone(case: Case) -> list:
    """g_Q g_K, score and a of the same network with a key matrix such that g_Q g_K = 4 d^(-3/2)."""
    product = 4 / mpmath.sqrt(len(case.alpha)) ** 3
    alone = replace(case, gains=(case.gains[0], product / case.gains[0], *case.gains[2:]))
    return [product, alone.score(), alone.added() / alone.e**2]
