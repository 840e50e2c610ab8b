"""Beyond the theory: two layers, several heads, layer norm with GELU, order two. Does the guideline still help? Nothing is predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from landscape.chains import BinaryChain
from landscape.pytorch import canonical_
from validation.experiments.base import Arm, Experiment, Outcome
from validation.experiments.curves import draw_curves
from validation.experiments.verdicts import Finding
from validation.second_order import SecondOrderChain
from validation.starts import EveryRun, GaussianStart, gaussian_
from validation.training import SGD, AdamW, Schedule
from validation.transformer import TransformerConfig

CHAIN = BinaryChain(0.5, 0.8)
ORDER_TWO = SecondOrderChain(0.2, 0.6, 0.9, 0.3)
PLAIN = TransformerConfig(length=64, dimension=4, hidden=16)
MODELS = {
    "two layers": (replace(PLAIN, layers=2), CHAIN), "two heads": (replace(PLAIN, heads=2), CHAIN),
    "layer norm, GELU": (replace(PLAIN, norm=True, activation="gelu"), CHAIN),
    "order two": (PLAIN, ORDER_TWO), "order two, two layers": (replace(PLAIN, layers=2), ORDER_TWO),
}
TRAININGS = ((SGD(0.3), Schedule(steps=1500)), (AdamW(5e-3), Schedule(steps=1500)))


@dataclass(frozen=True)
class GuidelineStart(EveryRun):
    """The canonical point (`e`, `w`) in embedding, positions and the first MLP; N(0, `std`^2) in all other weights."""

    e: float = 1.0
    w: float = -1.0
    std: float = 0.02

    def point(self, random: np.random.Generator) -> tuple[float, float]:
        """The point (e, w); nothing is drawn."""
        return self.e, self.w

    @torch.no_grad()
    def fill_(self, model, point: tuple[float, float], generator: torch.Generator) -> None:
        """Fill one model."""
        gaussian_(model, self.std, generator=generator)
        canonical_(model, *point, attention_std=self.std, generator=generator)


TOLERANCE = 0.1  # of the unigram-bigram difference, as for limits
STARTS = {"N(0, 0.02)": GaussianStart(0.02), "guideline": GuidelineStart()}


def arms(quick: bool) -> list[Arm]:
    """Both starts in every model, under SGD and in full under AdamW too."""
    return [
        Arm(f"{kind}, {name}, {optimiser.words}", chain, config, start, optimiser, schedule, None)
        for optimiser, schedule in TRAININGS[: 1 if quick else 2]
        for kind, (config, chain) in MODELS.items()
        for name, start in STARTS.items()
    ]


def summary(outcome: Outcome) -> dict:
    """Held-out loss at the end (median over the runs) beside those of the best laws of order 0, 1 and 2, by arm."""
    return {
        arm.name: {
            "loss": float(np.median([result["held_out"][-1] for result in outcome.results[arm.name]])), "unigram": arm.chain.unigram_loss,
            "bigram": arm.chain.bigram_loss, "entropy rate": arm.chain.entropy_rate,
        }
        for arm in outcome.arms
    }


def findings(outcome: Outcome) -> list[Finding]:
    """Whether the guideline comes to the bigram loss or below it (a chain of order two allows that), beside N(0, 0.02)."""
    found = []
    for plain, guided in zip(outcome.arms[::2], outcome.arms[1::2]):
        floor = plain.chain.bigram_loss + TOLERANCE * (plain.chain.unigram_loss - plain.chain.bigram_loss)
        reached = [[result["held_out"][-1] <= floor for result in outcome.results[arm.name]] for arm in (plain, guided)]
        seen = f"{sum(reached[1])} of {len(reached[1])}, from N(0, 0.02) {sum(reached[0])} of {len(reached[0])}"
        kind = guided.name.replace(", guideline", "")
        found.append(Finding(f"the guideline reaches the bigram loss or below: {kind}", "in every run", seen, all(reached[1])))
    return found


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Loss curves of every arm."""
    return draw_curves(outcome, folder, "Beyond the theory: nothing was predicted")


EXPERIMENT = Experiment(
    name="beyond",
    prediction="None: outside the theory. Two layers, two heads, and layer norm with GELU at p = 0.5, q = 0.8, and a chain of order two, each from N(0, 0.02) and "
    "from the guideline (1, -1) in embedding, positions and first MLP.",
    horizon="1500 steps of SGD at rate 0.3; in full also of AdamW at rate 0.005. Batches of 16 sequences of 64 symbols, d = 4, r = 16.",
    success="No run runs away or falls below the entropy rate.",
    tolerance="Held-out loss within 10 % of the unigram-bigram difference of the bigram loss (global) or of the unigram loss (local).",
    arms=arms,
    runs=lambda quick: 3 if quick else 6,
    draw=draw,
    summary=summary,
    findings=findings,
)
