"""Why does AdamW leave unigram plateaus that hold under SGD? Trainings at lower rates, in two precisions, and twins.

On the plateau the mean gradient vanishes; what is left is the noise of batches, and rounding. SGD makes small steps of
both. AdamW divides a gradient by its own size: every weight goes on making steps of the size of the rate, whatever the
gradient is made of, until it is small against eps. One cause at a time is looked at: the rate at equal rate times steps,
single against double precision, eps above the size of rounding, the width (in the coordinates of the manifold the rate
grows with the root of the number of entries), batches, weight decay. All on the one-dimensional twin, which in double
precision has to end as the model itself does.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from landscape import plots
from landscape.chains import BinaryChain
from validation.experiments import basin_accuracy
from validation.experiments.base import Arm, Experiment, Outcome, save_figure
from validation.experiments.predictors import simulated_limits
from validation.experiments.verdicts import Finding, real_limit
from validation.manifold import TwinAdamW
from validation.starts import GridStart
from validation.training import AdamW, Schedule
from validation.transformer import TransformerConfig

CHAIN = BinaryChain(0.5, 0.8)
FULL = replace(basin_accuracy.CONFIG, dtype="float64")  # rounding alone would part the twin from the model
TWIN = TransformerConfig(length=FULL.length, dimension=1, hidden=1, dtype="float64")
RATE, STEPS, LARGE_EPS, WIDTHS = 5e-3, 1500, 1e-6, (8, 32)

MODEL = f"full model, AdamW {RATE:g}, {STEPS} steps"
FALLING = {f"twin, AdamW {RATE / divisor:g}, {divisor * STEPS} steps": divisor for divisor in (1, 4, 16)}
TWINS = next(iter(FALLING))
SINGLE, SINGLE_LARGE_EPS = "twin in float32", f"twin in float32, eps {LARGE_EPS:g}"
WIDER = "twin of d = {}, r = {}".format(*WIDTHS)


def arms(quick: bool) -> list[Arm]:
    """The twin at falling rates; in full also the model itself, and the twin with one thing changed at a time."""
    grid = basin_accuracy.COARSE if quick else basin_accuracy.GRID

    def arm(name, optimiser, divisor=1, batch=16, dtype="float64"):
        twin = isinstance(optimiser, TwinAdamW)
        # on the manifold alpha alpha^T of width d is the number d of the twin
        attention = 0.02 * (optimiser.dimension if twin else 1)
        config = replace(TWIN, score_scale=optimiser.dimension**-0.5, dtype=dtype) if twin else FULL
        schedule = Schedule(steps=divisor * STEPS, batch=batch, evaluate_every=divisor * STEPS // 6, held_out=2048)
        return Arm(
            name, CHAIN, config, GridStart(grid["e"], grid["w"], 0.0, attention), optimiser, schedule, predict, least=0.98, undecided=0.05,
        )

    def twin(divisor=1, widths=(FULL.dimension, FULL.hidden), **others):
        return TwinAdamW(AdamW(RATE / divisor, **others), *widths)

    found = [arm(name, twin(divisor), divisor) for name, divisor in list(FALLING.items())[: 2 if quick else 3]]
    if quick:
        return found
    return [
        arm(MODEL, AdamW(RATE)), *found,
        arm(SINGLE, twin(), dtype="float32"), arm(SINGLE_LARGE_EPS, twin(eps=LARGE_EPS), dtype="float32"),
        arm(WIDER, twin(widths=WIDTHS)), arm("twin, batches of 64", twin(), batch=64), arm("twin, no weight decay", twin(weight_decay=0.0)),
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
    """What makes more runs leave the plateau, and what fewer; the twin ends as the model does."""
    counts = outcome.summary["plateau"]
    left = {name: found["left"] for name, found in counts.items()}

    def shares(*names, between=" against "):
        return between.join(f"{left[name]} of {counts[name]['arrived']}" for name in names)

    falling = [name for name in FALLING if name in counts]
    found = [Finding(
        "the lower the rate at equal rate times steps, the fewer of the runs that sat on the plateau leave it", "never more, and in the end none",
        shares(*falling, between=", then "), all(left[a] >= left[b] for a, b in zip(falling, falling[1:])) and left[falling[-1]] == 0,
    )]
    if MODEL not in counts:
        return found
    pairs = list(zip(*([result["observed"] for result in outcome.results[name]] for name in (MODEL, TWINS)), strict=True))
    same = sum(a == b for a, b in pairs)
    return found + [
        Finding("the twin ends as the full model does on the same batches", "in every run", f"{same} of {len(pairs)}", same == len(pairs)),
        Finding("in single precision more leave it", "more than twice as many", shares(SINGLE, TWINS), left[SINGLE] > 2 * left[TWINS]),
        Finding(
            "in single precision fewer leave it if eps is above the size of rounding", "less than half as many",
            shares(SINGLE_LARGE_EPS, SINGLE), 2 * left[SINGLE_LARGE_EPS] < left[SINGLE],
        ),
        Finding("the wider the model, the more leave it", "more than twice as many", shares(WIDER, TWINS), left[WIDER] > 2 * left[TWINS]),
    ]


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Training losses of the runs that should have stayed, over rate times steps."""
    shown = [arm for arm in outcome.arms if arm.name in (*FALLING, SINGLE, SINGLE_LARGE_EPS, WIDER)]
    rows = math.ceil(len(shown) / 3)
    figure, axes = plots.new_figure(rows, math.ceil(len(shown) / rows), 9.2, 3.0 * rows + 0.3)
    counts = outcome.summary["plateau"]
    for axis, arm in zip(axes.flat, shown):
        rate = _rate(arm)
        for result in outcome.results[arm.name]:
            if result["predicted"] == "local":
                time = rate * np.array(result["steps"])
                axis.plot(time, np.array(result["training"], dtype=float), color="#d55e00" if result["observed"] == "local" else "#0072b2", linewidth=0.7, alpha=0.7)
        for loss, style in ((CHAIN.unigram_loss, (0, (5, 2))), (CHAIN.bigram_loss, (0, (1, 1.5)))):
            axis.axhline(loss, color="black", linewidth=1.2, linestyle=style)
        found = counts[arm.name]
        axis.set_title(f"{arm.name}\n{found['should_stay']} should stay, {found['arrived']} arrive, {found['left']} leave", fontsize=8.5)
        axis.set_xlabel("rate x steps")
        axis.set_ylim(CHAIN.bigram_loss - 0.03, CHAIN.unigram_loss + 0.06)
    for axis in axes[:, 0]:
        axis.set_ylabel("training loss (nats per symbol)")
    figure.suptitle(
        "Runs of AdamW that should end at the unigram loss (dashed), and do (red) or do not (blue)\n"
        f"in float64 and at rate {RATE:g} unless said otherwise", fontsize=10,
    )
    return save_figure(figure, folder, "adam_escapes")


EXPERIMENT = Experiment(
    name="adam_escapes",
    prediction="Starts of `basin_accuracy` on the manifold at (p, q) = (0.5, 0.8), trained by AdamW in double precision. Of the runs "
    "that end at the unigram loss when AdamW is simulated without the noise of batches, fewer leave the plateau the lower the rate at the "
    "same rate times steps; more leave it in single precision, unless eps is above the size of rounding, and more in a wider model; the "
    "one-dimensional twin ends as the model does. (Said after runs of seed 0; to be judged by another seed.)",
    horizon=f"Rate {RATE:g} for {STEPS} steps, and rates 4 and (in full) 16 times lower for as many times more steps; batches of 16 and (one arm) of 64 sequences.",
    success="The findings. Beside them: whether the simulation is right on at least 98 % of the decided runs of an arm, at most 5 % being "
    "undecided, which is expected of the lowest rate alone.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local), else "
    "undecided. A run has sat on the plateau if its mean training loss for rate * steps from 1.5 to 2.5 is local.",
    arms=arms,
    runs=basin_accuracy.EXPERIMENT.runs,
    draw=draw,
    summary=summary,
    findings=findings,
)
