"""The training loop: stochastic gradient steps on all models of an ensemble at once."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from tqdm import tqdm

from landscape import parameters
from validation.transformer import Transformer

SCORES_AT_ONCE = 2**22
SYMBOLS_A_THREAD = 2**16  # in the batches of a step: with fewer, a second thread does not pay


@dataclass(frozen=True)
class SGD:
    """Plain stochastic gradient descent at a constant learning rate."""

    rate: float = 0.3
    weight_decay: float = 0.0

    @property
    def words(self) -> str:
        """The optimiser as tables and figures spell it."""
        return f"SGD {self.rate:g}"

    def factor(self, step: int, steps: int) -> float:
        """The rate at a step, relative to `rate`: constant."""
        return 1.0

    def build(self, model: Transformer) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=self.rate, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class AdamW:
    """AdamW; it acts on each number alone, so on each model alone.

    Parameters
    ----------
    rate : float
        Constant; with `cosine` the largest: it rises in a line over the first `warm_up` of the steps, and falls by a cosine
        to zero over the rest.
    """

    rate: float = 5e-3
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.01
    eps: float = 1e-8
    cosine: bool = False
    warm_up: float = 0.02

    @property
    def words(self) -> str:
        """The optimiser as tables and figures spell it."""
        return f"AdamW {self.rate:g}"

    def factor(self, step: int, steps: int) -> float:
        """The rate at a step (from 1) of so many, relative to `rate`."""
        if not self.cosine:
            return 1.0
        rising = max(1.0, self.warm_up * steps)
        if step <= rising:
            return step / rising
        return 0.5 * (1.0 + math.cos(math.pi * (step - rising) / (steps - rising)))

    def build(self, model: Transformer) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            model.parameters(), lr=self.rate, betas=self.betas, eps=self.eps, weight_decay=self.weight_decay
        )


Optimiser = SGD | AdamW
AUTHORS = AdamW(2e-3, (0.9, 0.95), 1e-3, cosine=True)  # what the paper's own trainings use


@dataclass(frozen=True)
class Schedule:
    """How long to train, and how often to look.

    Parameters
    ----------
    steps : int
        Gradient steps.
    batch : int
        Sequences in a batch of one model.
    log_every : int
        The training loss is averaged over this many steps; a shorter rest at the end is averaged too.
    evaluate_every : int
        Steps between evaluations on the held-out set; there is one before the first step and one after the last.
    held_out : int
        Sequences in the held-out set of one model, at least 2.

    Raises
    ------
    ParameterError
        If a number is not an integer or too small.
    """

    steps: int
    batch: int = 16
    log_every: int = 25
    evaluate_every: int = 500
    held_out: int = 4096

    def __post_init__(self):
        for name, least in {"steps": 1, "batch": 1, "log_every": 1, "evaluate_every": 1, "held_out": 2}.items():
            parameters.count("Schedule", name, getattr(self, name), least)

    def evaluates(self, step: int) -> bool:
        """Whether the held-out loss is measured after `step` steps."""
        return step % self.evaluate_every == 0 or step == self.steps

    def logs(self, step: int) -> bool:
        """Whether a window of the training loss ends after `step` steps."""
        return step % self.log_every == 0 or step == self.steps


@dataclass(frozen=True)
class Curves:
    """Losses in nats per symbol along M trainings; not finite where a training ran away.

    Attributes
    ----------
    steps : ndarray of int64, shape (T,)
        Steps done at the end of each window of the training loss.
    training : ndarray of float64, shape (M, T)
        Mean loss of the batches of the window, each taken before its step.
    evaluated : ndarray of int64, shape (V,)
        Steps done at each evaluation.
    held_out, held_out_error : ndarray of float64, shape (M, V)
        Mean loss of the held-out set and its standard error.
    measures : dict of str to ndarray of float64, shape (M, V) or (M, V, k)
        What else was measured at each evaluation.
    """

    steps: np.ndarray
    training: np.ndarray
    evaluated: np.ndarray
    held_out: np.ndarray
    held_out_error: np.ndarray
    measures: dict[str, np.ndarray]


@contextlib.contextmanager
def one_thread():
    """Let torch use one processor thread: its threads wait for each other at every operation, those of `_parts` at every step."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_thread()
@torch.no_grad()
def evaluate(model: Transformer, symbols: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Mean loss of each model and its standard error.

    Parameters
    ----------
    symbols : Tensor of int64, shape (M, S, n + 1)
        S independent sequences for each model.

    Returns
    -------
    mean, error : ndarray of float64, shape (M,)
        In nats per symbol. The error comes from the spread of the S sequence means, which are independent.
    """
    members, _, symbols_each = symbols.shape
    portion = max(16, SCORES_AT_ONCE // (members * symbols_each**2))
    device = model.bias.device
    means = torch.cat(
        [model.losses(part.to(device)).double().mean(-1) for part in symbols.split(portion, dim=1)], dim=1
    )
    error = means.std(dim=1) / math.sqrt(means.shape[1])
    return means.mean(dim=1).cpu().numpy(), error.cpu().numpy()


@one_thread()
def train(
    model: Transformer,
    batches: Iterator[torch.Tensor],
    held_out: torch.Tensor,
    optimiser: Optimiser,
    schedule: Schedule,
    *,
    measure: Callable[[Transformer, torch.Tensor], dict[str, np.ndarray]] | None = None,
    title: str = "training",
) -> Curves:
    """Train every model in place, each on the mean loss of its own batches.

    The losses of the models are summed for one backward pass; no weight is shared, so the gradients are
    those of separate trainings. Progress goes to standard error where that is a terminal.

    Parameters
    ----------
    batches : iterator of Tensor, shape (M, batch, n + 1)
    held_out : Tensor, shape (M, S, n + 1)
    measure : callable, optional
        Takes the models and the held-out sequences and gives arrays with a row for each model; called at each evaluation.
    """
    parts = _parts(model, schedule.batch * (held_out.shape[-1] - 1))
    steppers = [optimiser.build(part) for part in parts]
    rates = [group["lr"] for group in steppers[0].param_groups]
    sizes = [part.members for part in parts]
    device = model.bias.device
    window = torch.zeros(model.members, dtype=torch.float64, device=device)
    steps, training, evaluated, measured, seen = [], [], [], [], []
    since = 0
    with ThreadPoolExecutor(len(parts), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        run = map if len(parts) == 1 else pool.map

        def look(step):
            evaluated.append(step)
            measured.append([np.concatenate(found) for found in zip(*run(evaluate, parts, held_out.split(sizes)))])
            seen.append({} if measure is None else measure(model, held_out))

        look(0)
        for step in tqdm(range(1, schedule.steps + 1), desc=title, unit="step", disable=None, leave=False):
            for stepper in steppers:
                for group, rate in zip(stepper.param_groups, rates):
                    group["lr"] = rate * optimiser.factor(step, schedule.steps)
            window += torch.cat(list(run(_step, parts, steppers, next(batches).to(device).split(sizes))))
            if schedule.logs(step):
                steps.append(step)
                training.append((window / (step - since)).cpu().numpy())
                window.zero_()
                since = step
            if schedule.evaluates(step):
                look(step)
    means, errors = zip(*measured)
    return Curves(
        steps=np.array(steps),
        training=np.stack(training, axis=1),
        evaluated=np.array(evaluated),
        held_out=np.stack(means, axis=1),
        held_out_error=np.stack(errors, axis=1),
        measures={name: np.stack([each[name] for each in seen], axis=1) for name in seen[0]},
    )


def _parts(model: Transformer, symbols: int) -> list[Transformer]:
    """Parts of an ensemble to train side by side, a thread for each, given the symbols in a batch of one model.

    The weights of a part are those of the ensemble, in the same memory.
    """
    threads = min(os.cpu_count() or 1, model.members, model.members * symbols // SYMBOLS_A_THREAD)
    if threads < 2 or model.bias.device.type != "cpu":
        return [model]
    parts = []
    for indices in torch.arange(model.members).tensor_split(threads):
        part = model.config.build(len(indices))
        for name, weights in part.named_parameters():
            weights.data = getattr(model, name).data[indices[0] : indices[-1] + 1]
        parts.append(part)
    return parts


def _step(model: Transformer, stepper: torch.optim.Optimizer, batch: torch.Tensor) -> torch.Tensor:
    """Take one step; the loss of each model before it."""
    stepper.zero_grad(set_to_none=True)
    losses = model.losses(batch).mean(dim=(1, 2))
    losses.sum().backward()
    stepper.step()
    return losses.detach()
