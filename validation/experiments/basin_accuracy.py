"""A grid of starts on the canonical slice, on the manifold and off it: where real training goes, and who predicts it."""

from __future__ import annotations

import math
from pathlib import Path

from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome, canonical_labels, save_figure
from validation.experiments.maps import draw_maps
from validation.experiments.predictors import first_below, flow_limits, simulated, simulated_limits
from validation.starts import GridStart
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

CHAINS = (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8))
CONFIG = TransformerConfig(length=32, dimension=4, hidden=16)
NOISES = (0.0, 1e-3, 0.02)
GRID = {"e": (-1.4, -1.0, -0.6, -0.2, 0.2, 0.6, 1.0, 1.4), "w": (-1.6, -1.2, -0.8, -0.4, 0.1, 0.5, 1.0)}
COARSE = {"e": (-1.0, -0.2, 0.2, 1.0), "w": (-1.6, -1.2, -0.4, 0.5)}
TRAININGS = (
    (SGD(0.1), Schedule(steps=5000, evaluate_every=1000, held_out=2048)),
    (AdamW(5e-3), Schedule(steps=1500, evaluate_every=250, held_out=2048)),
)


def arms(quick: bool) -> list[Arm]:
    """Every optimiser, chain and noise; in short SGD alone, on a coarser grid, on the manifold and near it."""
    grid = COARSE if quick else GRID
    return [
        Arm(
            f"{optimiser.words}, ({chain.p:g}, {chain.q:g}), noise {noise:g}", chain, CONFIG, GridStart(grid["e"], grid["w"], noise),
            optimiser, schedule, predict, least=0.98, undecided=0.05,
        )
        for optimiser, schedule in TRAININGS[: 1 if quick else 2]
        for chain in CHAINS
        for noise in NOISES[: 2 if quick else 3]
    ]


def predict(arm: Arm, results: list[dict]) -> dict[str, list[str]]:
    """What each predictor says of each run, from its own start; the simulation is judged."""
    flows = {name: flow_limits(arm, results, name) for name in ("transverse", "reduced")}
    return {"simulation": simulated_limits(arm, results), **flows, **canonical_labels(arm, results)}


def escapes(arm: Arm, results: list[dict]) -> list[dict]:
    """When runs that canonical calls local, off the manifold below the threshold, pass half-way down: observed and predicted.

    `formula` is log(√κ*/u₀) steps at the rate log(1 + 2|φ′(0)|η) of the part across; of SGD alone.
    """
    chain = arm.chain
    if chain.target_sign < 0 or not isinstance(arm.optimiser, SGD):
        return []
    rows = [result for result in results if result["predictions"]["canonical"] == "local" and result["start"][5] > 0]
    if not rows:
        return []
    looks = rows[0]["steps"]
    middle = (chain.unigram_loss + chain.bigram_loss) / 2
    curves = simulated(arm, rows, looks)
    rate = math.log1p(-2 * chain.phi_prime(0.0) * arm.optimiser.rate)
    return [
        {
            "point": row["point"], "observed": first_below(row["training"], looks, middle), "simulated": first_below(curve, looks, middle),
            "formula": math.log(math.sqrt(chain.kappa_star) / row["start"][5]) / rate,
        }
        for row, curve in zip(rows, curves)
    ]


def summary(outcome: Outcome) -> dict:
    """Escape times of every arm that has them."""
    return {"escapes": {arm.name: found for arm in outcome.arms if (found := escapes(arm, outcome.results[arm.name]))}}


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Maps of the outcomes over the predicted basins, and escape times."""
    figure = draw_maps(outcome, outcome.summary["escapes"])
    return save_figure(figure, folder, "basin_accuracy")


EXPERIMENT = Experiment(
    name="basin_accuracy",
    prediction="Starts at every point (e, w) of a grid of the canonical slice with b = 0, on the manifold of rank one (attention on it "
    "too) or with noise of standard deviation 0.001 or 0.02 on every weight, at (p, q) = (0.2, 0.3) and (0.5, 0.8). The run ends "
    "where the optimiser, simulated without the noise of batches on the transverse landscape from the run's own start, ends at the "
    "same horizon. Beside it: the limits of the flow on `transverse` and `reduced` (c at 1/N), and the exact canonical label.",
    horizon="5000 steps of SGD at rate 0.1; in full also 1500 of AdamW at rate 0.005. Batches of 16 sequences of 32 symbols, d = 4, r = 16.",
    success="In each arm the simulation is right on at least 98 % of the decided runs, and at most 5 % of the runs are undecided.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local), "
    "else undecided; no held-out loss more than 4 standard errors below the bigram loss.",
    arms=arms,
    runs=lambda quick: len(COARSE["e"]) * len(COARSE["w"]) if quick else len(GRID["e"]) * len(GRID["w"]),
    draw=draw,
    summary=summary,
)
