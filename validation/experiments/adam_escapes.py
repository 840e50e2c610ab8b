"""Does AdamW leave unigram plateaus that hold under SGD because of the noise of batches? Trainings at lower rates, and twins.

On the plateau the mean gradient vanishes and the noise of batches is what is left. SGD makes small steps of it; AdamW
divides the noise by its own size, so that every weight goes on making steps of the size of the rate. If that is why runs
leave, then the share that leaves has to fall with the rate at the same rate times steps, and the one-dimensional twin has
to leave as the full model does. The trainings are in float64, where twin and model are one. Beside `basin_accuracy`, which
trains the same starts on the same batches in float32, they show what rounding does: there most of the runs leave, here few.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from landscape import plots
from landscape.chains import BinaryChain
from validation.experiments import basin_accuracy
from validation.experiments.base import Arm, Experiment, Finding, Outcome, real_limit, save_figure
from validation.experiments.predictors import simulated_limits
from validation.manifold import TwinAdamW
from validation.starts import GridStart
from validation.training import AdamW, Schedule
from validation.transformer import TransformerConfig

CHAIN = BinaryChain(0.5, 0.8)
FULL = replace(basin_accuracy.CONFIG, dtype="float64")  # rounding alone would part the twin from the model
TWIN = TransformerConfig(length=FULL.length, dimension=1, hidden=1, dtype="float64", score_scale=FULL.scale)
RATE, STEPS = 5e-3, 1500
DIVISORS = (1, 4, 16)


def arms(quick: bool) -> list[Arm]:
    """The twin at falling rates; in full also the model itself, larger batches, and no weight decay."""
    grid = basin_accuracy.COARSE if quick else basin_accuracy.GRID

    def arm(name, optimiser, divisor=1, batch=16):
        twin = isinstance(optimiser, TwinAdamW)
        # on the manifold alpha alpha^T of width d is the number d of the twin
        attention = 0.02 * (FULL.dimension if twin else 1)
        schedule = Schedule(steps=divisor * STEPS, batch=batch, evaluate_every=divisor * STEPS // 6, held_out=2048)
        return Arm(
            name, CHAIN, TWIN if twin else FULL, GridStart(grid["e"], grid["w"], 0.0, attention), optimiser, schedule,
            predict, least=0.98, undecided=0.05,
        )

    def twin(divisor=1, **others):
        return TwinAdamW(AdamW(RATE / divisor, **others), FULL.dimension, FULL.hidden)

    divisors = DIVISORS[: 2 if quick else 3]
    found = [arm(f"twin, AdamW {RATE / divisor:g}, {divisor * STEPS} steps", twin(divisor), divisor) for divisor in divisors]
    if quick:
        return found
    return [
        arm(f"full model, AdamW {RATE:g}, {STEPS} steps", AdamW(RATE)), *found,
        arm("twin, batches of 64", twin(), batch=64), arm("twin, no weight decay", twin(weight_decay=0.0)),
    ]


def predict(arm: Arm, results: list[dict]) -> dict[str, list[str]]:
    """Where AdamW ends without the noise of batches."""
    return {"simulation": simulated_limits(arm, results)}


def summary(outcome: Outcome) -> dict:
    """Of the runs that should have stayed on the plateau: how many sat on it, how many of these left it; by arm."""
    found = {}
    for arm in outcome.arms:
        stay = [result for result in outcome.results[arm.name] if result["predicted"] == "local"]
        sat = [result for result in stay if _sat(arm, result)]
        found[arm.name] = {
            "should_stay": len(stay), "arrived": len(sat), "left": sum(result["observed"] != "local" for result in sat),
            "ends": dict(sorted(Counter(result["observed"] for result in stay).items())),
        }
    return {"plateau": found}


def _rate(arm: Arm) -> float:
    """The rate of AdamW, of a twin that of the model it is the twin of."""
    return getattr(arm.optimiser, "adam", arm.optimiser).rate


def _sat(arm: Arm, result: dict) -> bool:
    """Whether the mean training loss for rate * steps from 1.5 to 2.5 is the unigram loss, within 10 % of the difference."""
    losses = [
        loss for step, loss in zip(result["steps"], result["training"]) if 1.5 <= _rate(arm) * step <= 2.5
    ]
    return bool(losses) and None not in losses and real_limit(sum(losses) / len(losses), arm.chain) == "local"


def findings(outcome: Outcome) -> list[Finding]:
    """Fewer leave the plateau at lower rates; the twin ends as the model does."""
    counts = outcome.summary["plateau"]
    left = [counts[arm.name]["left"] for arm in outcome.arms if _falling(arm)]
    found = [Finding(
        "the lower the rate at equal rate times steps, the fewer of the runs that sat on the plateau leave it", "strictly fewer each time",
        ", then ".join(f"{counts[arm.name]['left']} of {counts[arm.name]['arrived']}" for arm in outcome.arms if _falling(arm)), all(more > less for more, less in zip(left, left[1:])),
    )]
    full = [arm for arm in outcome.arms if arm.config == FULL]
    if full:
        twin = next(arm for arm in outcome.arms if _falling(arm))
        pairs = list(zip(*([result["observed"] for result in outcome.results[arm.name]] for arm in (full[0], twin)), strict=True))
        same = sum(a == b for a, b in pairs)
        found.append(Finding("the twin ends as the full model does on the same batches", "in every run", f"{same} of {len(pairs)}", same == len(pairs)))
    return found


def _falling(arm: Arm) -> bool:
    """Whether it is one of the twins that differ in the rate alone."""
    return arm.config == TWIN and arm.schedule.batch == 16 and arm.optimiser.adam.weight_decay > 0.0


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Training losses of the runs that should have stayed, over rate times steps."""
    shown = [arm for arm in outcome.arms if arm.config == FULL or _falling(arm)]
    figure, axes = plots.new_figure(1, len(shown), 2.9 * len(shown) + 0.4, 3.1)
    counts = outcome.summary["plateau"]
    for axis, arm in zip(axes[0], shown):
        rate = _rate(arm)
        for result in outcome.results[arm.name]:
            if result["predicted"] == "local":
                time = rate * np.array(result["steps"])
                axis.plot(time, np.array(result["training"], dtype=float), color="#d55e00" if result["observed"] == "local" else "#0072b2", linewidth=0.7, alpha=0.7)
        for loss, style in ((CHAIN.unigram_loss, (0, (5, 2))), (CHAIN.bigram_loss, (0, (1, 1.5)))):
            axis.axhline(loss, color="black", linewidth=1.2, linestyle=style)
        kind = "twin" if arm.config == TWIN else "full model"
        found = counts[arm.name]
        axis.set_title(f"{kind}, rate {rate:g}\n{found['should_stay']} should stay, {found['arrived']} arrive, {found['left']} leave", fontsize=8.5)
        axis.set_xlabel("rate x steps")
        axis.set_ylim(CHAIN.bigram_loss - 0.03, CHAIN.unigram_loss + 0.06)
    axes[0, 0].set_ylabel("training loss (nats per symbol)")
    figure.suptitle("Runs of AdamW that end at the unigram loss (upper line) without the noise of batches", fontsize=10)
    return save_figure(figure, folder, "adam_escapes")


EXPERIMENT = Experiment(
    name="adam_escapes",
    prediction="Starts of `basin_accuracy` on the manifold at (p, q) = (0.5, 0.8), trained by AdamW. Runs that end at the unigram loss when "
    "AdamW is simulated without the noise of batches leave the plateau under that noise, fewer the lower the rate at the same rate times "
    "steps; the one-dimensional twin of the model leaves as the model does.",
    horizon=f"Rate {RATE:g} for {STEPS} steps, and rates 4 and (in full) 16 times lower for as many times more steps; batches of 16 and (one arm) of 64 sequences.",
    success="In an arm the simulation is right on at least 98 % of the decided runs, and at most 5 % are undecided: expected of the lowest rate, "
    "which is trained in full alone, and not of the higher ones.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local), else undecided.",
    arms=arms,
    runs=basin_accuracy.EXPERIMENT.runs,
    draw=draw,
    summary=summary,
    findings=findings,
)
