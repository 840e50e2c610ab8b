"""What is predicted of trainings from their own starts: limits of flows, and simulations of the optimiser."""

from __future__ import annotations

import numpy as np

import landscape
from landscape import architecture
from landscape.flows import trajectory
from landscape.outcomes import Label
from validation.experiments.base import Arm
from validation.experiments.verdicts import real_limit
from validation.manifold import TwinAdamW
from validation.simulation import simulate


def landscape_of_training(name: str, arm: Arm):
    """The architecture `name` with the speeds that training gives it: the common position moves at 1/N."""
    return architecture(name).on(arm.chain, {} if name == "canonical" else {"c": 1.0 / arm.config.length})


def starts_on(name: str, results: list[dict]) -> np.ndarray:
    """Where runs start in the coordinates of `canonical`, `reduced` or `transverse`, shape (runs, k)."""
    if name == "canonical":
        return np.array([result["point"] for result in results])
    return np.array([result["start"] for result in results])[:, : len(architecture(name).parameters)]


def flow_limits(arm: Arm, results: list[dict], name: str) -> list[str]:
    """Limits of the flow on `reduced` or `transverse`.

    Flows that end in a saddle (on the manifold exactly, below the threshold) are read by their loss, as trainings are.
    """
    model = landscape_of_training(name, arm)
    ends = landscape.flow(model, starts_on(name, results))
    losses = model.loss(ends.ends)
    return [
        Label(int(code)).word if code in (Label.GLOBAL, Label.LOCAL) else real_limit(loss, arm.chain) for code, loss in zip(ends.labels, losses)
    ]


def flow_losses(arm: Arm, result: dict, name: str, steps) -> np.ndarray:
    """Loss along the flow from the start of one run, in nats, after the time rate * steps."""
    model = landscape_of_training(name, arm)
    times = arm.optimiser.rate * np.asarray(steps, dtype=np.float64)
    way = trajectory(model, starts_on(name, [result])[0], t_max=float(times[-1]))
    return model.loss(way(np.minimum(times, way.times[-1])))


def simulated(arm: Arm, results: list[dict], steps) -> np.ndarray:
    """Population losses of the simulated optimiser from the runs' own starts after so many steps, shape (runs, len(steps))."""
    starts, across = (np.array([result[key] for result in results]) for key in ("start", "across"))
    optimiser, config = arm.optimiser, arm.config
    if isinstance(optimiser, TwinAdamW):
        optimiser, config, across = optimiser.adam, optimiser.full(config), None
    return simulate(architecture("transverse").on(arm.chain), starts, optimiser, config, steps, across=across).losses


def simulated_limits(arm: Arm, results: list[dict]) -> list[str]:
    """Where the optimiser, simulated without the noise of batches, is at the horizon."""
    return [real_limit(loss, arm.chain) for loss in simulated(arm, results, [arm.schedule.steps])[:, -1]]


def first_below(losses, steps, level: float) -> int | None:
    """The first logged step at which a loss is below a level; None if there is none."""
    return next((int(step) for step, loss in zip(steps, losses) if loss is not None and loss < level), None)
