"""The same starts four times: canonical flow, reduced flow, the one-dimensional twin, and the full model on the manifold and off it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from landscape import plots
from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome, canonical_labels, save_figure
from validation.experiments.predictors import first_below, flow_limits, flow_losses, simulated
from validation.experiments.verdicts import Finding, real_limit
from validation.starts import GridStart
from validation.training import SGD, Schedule
from validation.transformer import TransformerConfig

CHAINS = (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8))
FULL = TransformerConfig(length=32, dimension=8, hidden=32, dtype="float64")
TWIN = TransformerConfig(length=32, dimension=1, hidden=1, dtype="float64", score_scale=FULL.scale)
E, W = (-0.3, 0.8), (-1.5, -1.0, -0.4)
NOISE = 1e-3
ATTENTION = 0.02
OPTIMISER = SGD(0.1)
KINDS = {"twin": (TWIN, 0.0), "full model on the manifold": (FULL, 0.0), f"full model, noise {NOISE:g}": (FULL, NOISE)}
TRAININGS = (
    {"color": "#000000", "linewidth": 2.2, "alpha": 0.35}, {"color": "#e69f00", "linewidth": 0.9}, {"color": "#0072b2", "linewidth": 0.9},
)
FLOWS = {
    "canonical": {"color": "#009e73", "linestyle": (0, (1, 1)), "linewidth": 1.4},
    "reduced": {"color": "#cc79a7", "linestyle": (0, (5, 1, 1, 1)), "linewidth": 1.4},
    "transverse": {"color": "#cc3311", "linestyle": (0, (4, 2)), "linewidth": 1.1},
}
SAME, NEAR, SLACK = 1e-12, 0.2, 10


def arms(quick: bool) -> list[Arm]:
    """Each chain's starts as twin, as full model on the manifold, and with noise on every weight."""
    schedule = Schedule(steps=500 if quick else 1500, batch=32, log_every=5, evaluate_every=500, held_out=2048)
    return [
        Arm(
            f"{kind}, ({chain.p:g}, {chain.q:g})", chain, config,
            # on the manifold alpha alpha^T of width d is the number d of the twin
            GridStart(E, W, noise, ATTENTION * FULL.dimension / config.dimension), OPTIMISER, schedule, predict,
        )
        for chain in CHAINS
        for kind, (config, noise) in KINDS.items()
    ]


def flow_of(arm: Arm) -> str:
    """The flow that an arm should follow."""
    return "transverse" if arm.start.noise > 0.0 else "reduced"


def predict(arm: Arm, results: list[dict]) -> dict[str, list[str]]:
    """Where the flow of the arm is at the horizon by its loss, and its limit; the canonical label beside."""
    name = flow_of(arm)
    horizon = [real_limit(flow_losses(arm, result, name, [arm.schedule.steps])[0], arm.chain) for result in results]
    return {name: horizon, f"limit of {name}": flow_limits(arm, results, name), **canonical_labels(arm, results)}


def halves(arm: Arm, results: list[dict], name: str) -> list[dict]:
    """When each run's training loss is half-way down from the unigram to the bigram loss, and when that of a flow is."""
    middle = (arm.chain.unigram_loss + arm.chain.bigram_loss) / 2
    return [
        {
            "point": result["point"], "observed": first_below(result["training"], result["steps"], middle),
            "flow": first_below(flow_losses(arm, result, name, result["steps"]), result["steps"], middle),
        }
        for result in results
    ]


def summary(outcome: Outcome) -> dict:
    """Half-way steps of every run, by the arm's flow and by the canonical one, and how far runs ended off the manifold."""
    found = {}
    for arm in outcome.arms:
        results = outcome.results[arm.name]
        found[arm.name] = {
            "half_way": halves(arm, results, flow_of(arm)), "half_way_canonical": halves(arm, results, "canonical"),
            "off_manifold": [result["off_manifold"] for result in results],
        }
    return found


def findings(outcome: Outcome) -> list[Finding]:
    """Twin and model are one training; it stays on the manifold; flows say when it happens."""
    found, measured = [], outcome.summary
    pairs = [(outcome.arms[k], outcome.arms[k + 1]) for k in range(0, len(outcome.arms), len(KINDS))]
    apart = max(
        float(np.abs(np.array(a["training"]) - b["training"]).max())
        for twin, full in pairs for a, b in zip(outcome.results[twin.name], outcome.results[full.name], strict=True)
    )
    found.append(Finding("training losses of the full model on the manifold and of its twin", f"differ by at most {SAME:g} nats", f"{apart:.1e}", apart <= SAME))
    off = max(result["off_manifold"][1] for _, full in pairs for result in outcome.results[full.name])
    found.append(Finding("what is off the manifold after training from on it", f"at most {SAME:g} of the weights", f"{off:.1e}", off <= SAME))
    for arm in outcome.arms:
        rows = measured[arm.name]["half_way"]
        words = f"within {NEAR:.0%} or {SLACK} steps, or both beyond the horizon"
        good = [_near(row["observed"], row["flow"]) for row in rows]
        found.append(Finding(f"half-way steps of {arm.name} and of the {flow_of(arm)} flow", words, f"{sum(good)} of {len(good)}", all(good)))
        good = [_near(row["observed"], row["flow"]) for row in measured[arm.name]["half_way_canonical"]]
        found.append(Finding(f"half-way steps of {arm.name} and of the canonical flow (the authors)", words, f"{sum(good)} of {len(good)}", all(good)))
    noiseless = max(_off_flow(arm, outcome.results[arm.name]) for arm in outcome.arms)
    words = f"within {NEAR / 4:.0%} of the unigram-bigram difference"
    found.append(Finding("losses at the horizon of the flows and of SGD simulated without the noise of batches", words, f"{noiseless:.1%}", noiseless <= NEAR / 4))
    return found


def _off_flow(arm: Arm, results: list[dict]) -> float:
    """How far SGD without the noise of batches is from the flow at the horizon, over the unigram-bigram difference."""
    steps = [arm.schedule.steps]
    flows = [flow_losses(arm, result, flow_of(arm), steps)[0] for result in results]
    gap = arm.chain.unigram_loss - arm.chain.bigram_loss
    return float(np.abs(simulated(arm, results, steps)[:, 0] - flows).max() / gap)


def _near(seen: int | None, said: int | None) -> bool:
    if seen is None or said is None:
        return seen is said
    return abs(seen - said) <= max(SLACK, NEAR * said)


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """A panel for each start: losses of the flows and of the trainings."""
    columns = len(E) * len(W)
    figure, axes = plots.new_figure(len(CHAINS), columns, 2.3 * columns, 2.3 * len(CHAINS) + 0.7, share_vertical="row")
    for k, arm in enumerate(outcome.arms):
        row, kind = divmod(k, len(KINDS))
        name = list(KINDS)[kind]
        for axis, result in zip(axes[row], outcome.results[arm.name]):
            steps = np.array(result["steps"])
            if kind == 0:
                _frame(axis, arm, result)
                for flow in ("canonical", "reduced"):
                    axis.plot(steps, flow_losses(arm, result, flow, steps), label=f"{flow} flow", **FLOWS[flow])
            axis.plot(steps, np.array(result["training"], dtype=float), label=name, **TRAININGS[kind])
            if kind == 2:
                axis.plot(steps, flow_losses(arm, result, "transverse", steps), label="transverse flow", **FLOWS["transverse"])
    for axis in axes[-1]:
        axis.set_xlabel("training steps")
    for line, chain in zip(axes, CHAINS):
        line[0].set_ylabel(f"loss, $p={chain.p:g}, q={chain.q:g}$")
    figure.legend(handles=axes[0, 0].get_legend_handles_labels()[0], loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    return save_figure(figure, folder, "canonical_vs_full")


def _frame(axis, arm: Arm, result: dict) -> None:
    """The unigram and the bigram loss, and the start."""
    for loss in (arm.chain.unigram_loss, arm.chain.bigram_loss):
        axis.axhline(loss, color="#777777", linewidth=0.8, linestyle=(0, (1, 1.5)))
    axis.set_title(f"$e={result['point'][0]:g}, w={result['point'][1]:g}$", fontsize=9)
    axis.set_ylim(arm.chain.bigram_loss - 0.02, arm.chain.unigram_loss + 0.04)


EXPERIMENT = Experiment(
    name="canonical_vs_full",
    prediction="Six starts of the canonical slice at (p, q) = (0.2, 0.3) and at (0.5, 0.8), in float64. The full model (d = 8, r = 32, softmax "
    "attention on the manifold) and its one-dimensional twin on the same batches are one training; it follows the flow on `reduced` (c at 1/N), and with noise "
    f"of standard deviation {NOISE:g} on every weight the flow on `transverse`. The canonical flow is drawn beside, and need not be followed.",
    horizon="1500 steps of SGD at rate 0.1 (500 in short), batches of 32 sequences of 32 symbols.",
    success="Every run is at the horizon where its flow is; losses, manifold and half-way steps agree within their tolerances.",
    tolerance=f"Held-out loss within 10 % of the unigram-bigram difference; losses of twin and model to {SAME:g}; half-way steps to {NEAR:.0%} or {SLACK} steps.",
    arms=arms,
    runs=lambda quick: len(E) * len(W),
    draw=draw,
    summary=summary,
    findings=findings,
)
