"""Do weights become of low rank in training, and do they come to share one direction of signs?"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np

from landscape import plots
from landscape.chains import BinaryChain
from validation.experiments.base import Arm, Experiment, Outcome, save_figure
from validation.experiments.verdicts import Finding
from validation.starts import GaussianStart, ManifoldStart
from validation.training import AdamW, Schedule
from validation.transformer import TransformerConfig

CONFIG = TransformerConfig(length=64, dimension=8, hidden=32)
CHAINS = (BinaryChain(0.2, 0.3), BinaryChain(0.5, 0.8))
STARTS = {
    "N(0, 0.02)": GaussianStart(0.02), "rank one, (1, -1)": ManifoldStart(1.0, -1.0), "rank one and noise 0.02, (1, -1)": ManifoldStart(1.0, -1.0, 0.02),
}
DECAYS = (0.01, 0.0)
SCHEDULE = Schedule(steps=2000, evaluate_every=100, held_out=512)
MATRICES = ("W1", "W2", "W_V", "W_QK", "embeddings")
ARRAYS = ("embedding", "W1", "W_Q", "W_K", "W_V")


def arms(quick: bool) -> list[Arm]:
    """Gaussian and rank-one starts on both sides, with weight decay and in full without."""
    return [
        Arm(f"{name}, ({chain.p:g}, {chain.q:g}), decay {decay:g}", chain, CONFIG, start, AdamW(5e-3, weight_decay=decay), SCHEDULE, None, measure="low_rank")
        for decay in DECAYS[: 1 if quick else 2]
        for chain in CHAINS
        for name, start in STARTS.items()
    ]


def ended(outcome: Outcome, arm: Arm, key: str) -> np.ndarray:
    """A measure at the end of every run of an arm."""
    return np.array([result[key][-1] for result in outcome.results[arm.name]], dtype=float)


def summary(outcome: Outcome) -> dict:
    """At the end, median over the runs: energy in the top direction of each matrix, pairwise cosines, spread of absolute entries."""
    pairs = [f"{a}, {b}" for a, b in combinations(ARRAYS, 2)]
    return {
        arm.name: {
            "energy": {name: float(np.median(ended(outcome, arm, f"energy {name}")[:, 0])) for name in MATRICES},
            "cosines": dict(zip(pairs, np.median(ended(outcome, arm, "cosines"), axis=0).tolist())),
            "spread": dict(zip(ARRAYS, np.median(ended(outcome, arm, "spread"), axis=0).tolist())),
        }
        for arm in outcome.arms
    }


def findings(outcome: Outcome) -> list[Finding]:
    """What the rebuttal says of trainings from Gaussian starts, and of low-rank starts."""
    gaussian = [arm for arm in outcome.arms if isinstance(arm.start, GaussianStart)]
    exact, noisy = ([arm for arm in outcome.arms if isinstance(arm.start, ManifoldStart) and bool(arm.start.noise) == off] for off in (False, True))

    def lowest(arms, key, column=0):
        return min(float(ended(outcome, arm, key)[:, column].min()) for arm in arms)

    found = [
        Finding(f"from N(0, 0.02) {name} comes to rank one", "at least 95 % of its energy in one direction, in every run", f"lowest {value:.1%}", value >= 0.95)
        for name in MATRICES
        for value in [lowest(gaussian, f"energy {name}")]
    ]
    cosines = np.concatenate([ended(outcome, arm, "cosines") for arm in gaussian])
    embedding = cosines[:, 0]  # embedding and W_1
    found.append(Finding(
        "from N(0, 0.02) embedding and W_1 come to share one direction", "cosine at least 0.95 in every run", f"lowest {embedding.min():.3f}", bool(embedding.min() >= 0.95),
    ))
    found.append(Finding(
        "from N(0, 0.02) embedding, W_1, W_Q, W_K and W_V come to share one direction", "every pairwise cosine at least 0.95 in every run",
        f"lowest {cosines.min():.3f}, median {np.median(cosines):.3f}", bool(cosines.min() >= 0.95),
    ))
    spread = np.concatenate([ended(outcome, arm, "spread") for arm in gaussian])[:, :2]
    found.append(Finding(
        "from N(0, 0.02) the direction of embedding and W_1 is one of signs", "entries' absolute values spread by at most 10 %, in every run",
        f"largest {spread.max():.1%}, median {np.median(spread):.1%}", bool(spread.max() <= 0.1),
    ))
    if len({arm.optimiser for arm in gaussian}) > 1:
        with_decay, without = (
            float(np.median(np.concatenate([ended(outcome, arm, "energy W1")[:, 0] for arm in gaussian if arm.optimiser.weight_decay == decay]))) for decay in DECAYS
        )
        found.append(Finding(
            "from N(0, 0.02) weight decay lowers the rank of W1", "median energy in one direction higher by at least 5 points",
            f"{with_decay:.1%} against {without:.1%} without", with_decay - without >= 0.05,
        ))
    for words, arms, least in (("a start of rank one keeps it", exact, 0.99), ("a start of rank one and noise keeps one leading direction", noisy, 0.9)):
        kept = min(lowest(arms, f"energy {name}") for name in ("W1", "W2", "embeddings"))
        found.append(Finding(words, f"at least {least:.0%} of the energy of W1, W2 and embeddings in one direction, in every run", f"lowest {kept:.1%}", kept >= least))
    return found


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Energy in the top direction of each matrix over the steps: median and range of the runs."""
    rows = len(outcome.arms) // len(STARTS)
    figure, axes = plots.new_figure(rows, len(STARTS), 10.0, 2.1 * rows + 0.6)
    for axis, arm in zip(axes.flat, outcome.arms):
        results = outcome.results[arm.name]
        for k, name in enumerate(MATRICES):
            values = np.array([[row[0] for row in result[f"energy {name}"]] for result in results], dtype=float)
            axis.fill_between(results[0]["evaluated"], values.min(axis=0), values.max(axis=0), color=f"C{k}", alpha=0.15, linewidth=0)
            axis.plot(results[0]["evaluated"], np.median(values, axis=0), color=f"C{k}", linewidth=1.4, label=name)
        axis.set_title(arm.name, fontsize=7.5)
        axis.set_ylim(0.0, 1.03)
    for axis in axes[:, 0]:
        axis.set_ylabel("energy in one direction", fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("steps")
    axes[0, 0].legend(fontsize=7, frameon=False, ncols=2)
    figure.suptitle("Share of the squared singular values in the largest: median and range of the runs (AdamW 0.005)", fontsize=9)
    return save_figure(figure, folder, "low_rank")


EXPERIMENT = Experiment(
    name="low_rank",
    prediction="What the authors' rebuttal claims and a reviewer doubts: in training from N(0, 0.02) W_1, W_2, W_V, W_Q^T W_K and the embeddings "
    "come to rank one; embedding, W_Q, W_K, W_V and W_1 come to share one direction, and its entries are of one size (signs); weight decay lowers the rank. "
    "A start of rank one keeps it, and with noise 0.02 on every weight keeps one leading direction.",
    horizon="2000 steps of AdamW at rate 0.005, with weight decay 0.01 and in full without. Batches of 16 sequences of 64 symbols, d = 8, r = 32.",
    success="The findings; each is of every run of its arms.",
    tolerance="As each finding says.",
    arms=arms,
    runs=lambda quick: 3 if quick else 6,
    draw=draw,
    summary=summary,
    findings=findings,
)
