"""A landscape: a loss of real parameters that flows run down, whoever defined it.

It is an architecture on a chain, or a user's plain loss. Flows, critical sets and maps know nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from landscape import parameters
from landscape.parameters import ParameterError

BOX = (-2.0, 2.0)


class Landscape:
    """What every landscape offers.

    Attributes
    ----------
    name : str
    parameters : tuple of str
        Names of the coordinates, in the order of every array of points.
    constants : tuple of float
        What the kernels take besides a point.
    speeds : tuple of float
        With speeds s_i its flow is dθ_i/dt = -s_i ∂L/∂θ_i; empty if all are 1.
    """

    name: str
    parameters: tuple[str, ...]
    constants: tuple[float, ...] = ()
    speeds: tuple[float, ...] = ()

    @property
    def kernels(self) -> ModuleType:
        """The generated module of the loss, its gradient and Hessian."""
        raise NotImplementedError

    def points(self, owner: str, points) -> np.ndarray:
        """Check and shape points; see `landscape.parameters.points`."""
        return parameters.points(owner, "points", points, len(self.parameters))

    def with_speeds(self, speeds: Mapping[str, float] | None) -> Landscape:
        """The same landscape, with other speeds for the flow: positive numbers by name of a parameter; the others have 1.

        Loss, critical sets and their index are the same; the ways of the flow, and so the basins, are not.

        Raises
        ------
        ParameterError
            If a name is not a parameter, or a speed not a positive finite number.
        """
        found = dict.fromkeys(self.parameters, 1.0)
        for name, speed in (speeds or {}).items():
            if name not in found:
                raise ParameterError("speeds", self.name, f"speeds of {', '.join(self.parameters)}", name)
            found[name] = parameters.real(self.name, "speeds", speed)
            if not found[name] > 0.0:
                raise ParameterError("speeds", self.name, "positive", speed)
        plain = all(speed == 1.0 for speed in found.values())
        return dataclasses.replace(self, speeds=() if plain else tuple(found.values()))

    @property
    def stretch(self) -> np.ndarray | float:
        """√s_i: in θ_i / √s_i the flow with speeds is the plain gradient flow."""
        return np.sqrt(np.array(self.speeds)) if self.speeds else 1.0

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names that maps may be gridded over: the parameters, and what else describes starts."""
        return self.parameters

    def needed(self, given) -> tuple[str, ...]:
        """Which coordinates have to be known for a start, given the names of some."""
        return self.parameters

    def place(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Points of shape (n, d) from the values of coordinates, arrays of shape (n,) or numbers."""
        return np.stack(np.broadcast_arrays(*(columns[name] for name in self.parameters)), axis=-1).astype(np.float64)

    def loss(self, points) -> np.ndarray:
        """Loss at points of shape (n, d), shape (n,)."""
        return self.kernels.loss_many(self.points("loss", points), *self.constants)

    def gradient(self, points) -> np.ndarray:
        """Gradient at points, shape (n, d)."""
        return self.kernels.gradient_many(self.points("gradient", points), *self.constants)

    def hessian(self, points) -> np.ndarray:
        """Hessian at points, shape (n, d, d)."""
        return self.kernels.hessian_many(self.points("hessian", points), *self.constants)

    def gap(self, points) -> np.ndarray:
        """Logit gap κ at points, shape (n,); NaN for a landscape that has none."""
        return np.full(len(self.points("gap", points)), np.nan)

    def is_global(self, ends: np.ndarray, tolerance: float) -> np.ndarray:
        """Whether minima are global ones; `tolerance` is how near the ends are, in units of 1 + |θ|."""
        raise NotImplementedError

    def invariant_values(self, points) -> dict[str, np.ndarray]:
        """Conserved quantities that are known, by name."""
        return {}

    @property
    def periods(self) -> dict[str, float]:
        """Periods of those conserved quantities that are angles, by name."""
        return {}

    @property
    def title(self) -> str:
        """What the landscape is, in a few words."""
        return self.name

    @property
    def paces(self) -> dict[str, float]:
        """The speeds that are not 1, as attributes of files."""
        return {f"speed_{name}": speed for name, speed in zip(self.parameters, self.speeds) if speed != 1.0}

    def describe(self) -> dict:
        """What the landscape is, for the attributes of files."""
        return {"landscape": self.name, **self.paces}


@dataclass(frozen=True, eq=False)
class PlainLoss(Landscape):
    """A loss of one to six real parameters that is given by an expression; see `from_symbolic`.

    Attributes
    ----------
    name : str
    parameters : tuple of str
    text : str
        The text of its generated module.
    box : dict of str to (low, high)
        Where its critical sets are looked for.
    minimum : float or None
        The least value of the loss, if it is known; else that of the lowest minimum found from the box.
    """

    name: str
    parameters: tuple[str, ...]
    text: str = field(repr=False)
    box: Mapping[str, tuple[float, float]]
    minimum: float | None = None
    speeds: tuple[float, ...] = ()

    @classmethod
    def from_symbolic(cls, name: str, loss, parameters: Sequence, *, box: Mapping | None = None, minimum=None) -> PlainLoss:
        """Derive a landscape from an expression.

        Parameters
        ----------
        name : str
        loss : sympy.Expr or str
            Text is parsed safely: it may hold numbers, the parameters and the usual functions, and runs no code.
        parameters : sequence of str or sympy.Symbol
            One to six. A symbol may be plain or real; it is taken for real.
        box : dict of str to (low, high), optional
            Where critical sets are looked for; [-2, 2] by default.
        minimum : float, optional
            The least value of the loss, if it is known.

        Raises
        ------
        ParameterError
            If the expression cannot be used; the message says why.
        """
        from landscape.symbolic.modules import loss_module

        names, declared = parameter_names(name, parameters)
        box = checked_box(name, names, box)
        return cls(name, names, loss_module(name, names, loss, declared, box), box, minimum)

    @property
    def kernels(self) -> ModuleType:
        from landscape.modules import load

        return load(self.name, self.text)

    def is_global(self, ends, tolerance):
        floor, slack = self.floor
        return self.loss(ends) <= floor + slack

    @functools.cached_property
    def floor(self) -> tuple[float, float]:
        """The least value of the loss, and by how much a minimum may be off it and still be global.

        If the least value is not known, it is the lowest that a search for minima or flows from the box come to, converged
        or not: where the loss falls without end, no minimum is global.
        """
        from landscape.critical import lowest_minimum
        from landscape.flows import flow

        low, high = np.array(list(self.box.values())).T
        starts = np.random.default_rng(0).uniform(low, high, size=(256, len(low)))
        losses = self.loss(starts)
        losses = losses[np.isfinite(losses)]
        floor = self.minimum
        if floor is None:
            ends = flow(dataclasses.replace(self, minimum=-np.inf), starts).ends
            with np.errstate(invalid="ignore"):
                reached = self.loss(ends)
            floor = float(min(lowest_minimum(self), np.min(reached, where=np.isfinite(reached), initial=np.inf)))
        nearest = float(losses.min()) - floor if losses.size else 0.0
        rise = float(np.median(np.abs(losses - floor))) if losses.size and np.isfinite(floor) else 0.0
        return floor, max(1e-6 * nearest if np.isfinite(nearest) else 0.0, 1e-12 * rise, 1e-15 * abs(floor) if np.isfinite(floor) else 0.0)

    def describe(self):
        return {"landscape": self.name, "parameters": ", ".join(self.parameters), **self.paces}


def parameter_names(owner: str, given: Sequence) -> tuple[tuple[str, ...], tuple]:
    """Names of one to six parameters, and the symbols among them."""
    names = tuple(getattr(parameter, "name", parameter) for parameter in given)
    usable = all(isinstance(name, str) and name.isidentifier() for name in names)
    if not 1 <= len(names) <= 6 or len(set(names)) < len(names) or not usable:
        raise ParameterError("parameters", owner, "one to six different names", list(map(str, given)))
    return names, tuple(parameter for parameter in given if hasattr(parameter, "name"))


def checked_box(owner: str, names: Sequence[str], box: Mapping | None) -> dict[str, tuple[float, float]]:
    """A box with an interval for every parameter."""
    found = {name: BOX for name in names}
    for name, bounds in (box or {}).items():
        if name not in found:
            raise ParameterError("box", owner, f"intervals of {', '.join(names)}", name)
        low, high = (parameters.real(owner, "box", bound) for bound in bounds)
        if not low < high:
            raise ParameterError("box", owner, "intervals (low, high) with low < high", (low, high))
        found[name] = (low, high)
    return found


def landscape_of(chain, architecture="canonical") -> Landscape:
    """The landscape that a chain and an architecture make; a landscape is handed back as it is."""
    if isinstance(chain, Landscape):
        return chain
    from landscape.architectures import find

    return find(architecture).on(chain)
