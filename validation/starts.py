"""Where trainings start: weights drawn around zero, and points of the canonical slice (`landscape.pytorch` fills those)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from landscape.pytorch import canonical_, simplex_
from validation.transformer import NORMS, Transformer


@torch.no_grad()
def gaussian_(model: Transformer, std: float = 0.02, *, generator: torch.Generator | None = None) -> Transformer:
    """Draw every weight from N(0, std^2); the bias is 0, and layer norm multiplies by 1 and adds 0.

    Parameters
    ----------
    std : float
        Standard deviation of a weight.
    """
    for name, parameter in model.named_parameters():
        if name == "bias" or any(f"_{kind}" in name for kind in NORMS):
            parameter.zero_()
        else:
            parameter.normal_(0.0, std, generator=generator)
    return model


class EveryRun:
    """A start that is the same for every run of an arm, but for what is drawn."""

    def at(self, index: int):
        """The start of run `index`."""
        return self


@dataclass(frozen=True)
class GaussianStart(EveryRun):
    """Every weight from N(0, std^2).

    Such a start is not on the canonical slice. The basin map's counterpart of it is a point
    (e, w) of two draws from the same law; `point` draws that point, on its own.
    """

    std: float = 0.02

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """Draw (e, w) ~ N(0, std^2), the counterpart in the basin map."""
        e, w = random.normal(0.0, self.std, size=2)
        return float(e), float(w)

    def fill_(self, model: Transformer, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model; `point` does not enter."""
        gaussian_(model, self.std, generator=generator)


@dataclass(frozen=True)
class CanonicalStart(EveryRun):
    """A point of the canonical slice, (e, w) ~ N((`e`, `w`), std^2), with weak random attention and b = 0."""

    e: float
    w: float
    std: float = 0.02
    attention_std: float = 0.02

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """Draw the start's own (e, w)."""
        e, w = random.normal((self.e, self.w), self.std)
        return float(e), float(w)

    def fill_(self, model: Transformer, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model at the drawn point."""
        canonical_(model, *point, attention_std=self.attention_std, generator=generator)


@dataclass(frozen=True)
class SimplexStart(EveryRun):
    """The point (`e`, `w`) of the canonical slice of S symbols in a random orientation, with `noise` on every weight."""

    e: float
    w: float
    noise: float = 0.02

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """The point (e, w); nothing is drawn."""
        return self.e, self.w

    def fill_(self, model: Transformer, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model."""
        simplex_(model, *point, noise=self.noise, generator=generator)


@dataclass(frozen=True)
class ManifoldStart(EveryRun):
    """The point (`e`, `w`) of the canonical slice, with attention on the manifold of rank one, b = 0, and `noise` on every weight."""

    e: float
    w: float
    noise: float = 0.0
    attention: float = 0.02

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """The point (e, w); nothing is drawn."""
        return self.e, self.w

    def fill_(self, model: Transformer, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model."""
        canonical_(model, *point, attention=self.attention, noise=self.noise, generator=generator)


@dataclass(frozen=True)
class GridStart:
    """A `ManifoldStart` for each run: run k starts at point k of the grid, w running fastest, and the grid repeats."""

    e: tuple[float, ...]
    w: tuple[float, ...]
    noise: float = 0.0
    attention: float = 0.02

    @property
    def size(self) -> int:
        """Number of points of the grid."""
        return len(self.e) * len(self.w)

    def at(self, index: int) -> ManifoldStart:
        """The start of run `index`."""
        row, column = divmod(index % self.size, len(self.w))
        return ManifoldStart(self.e[row], self.w[column], self.noise, self.attention)


Start = GaussianStart | CanonicalStart | SimplexStart | ManifoldStart | GridStart
