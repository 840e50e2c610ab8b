"""How likely Gaussian starts are to end where they should not, against their spread."""

from __future__ import annotations

import functools

import numpy as np

from landscape import plots
from landscape.chains import BinaryChain, SymmetricChain
from landscape.initialise import recommend
from landscape.probabilities import StartProbabilities, start_probabilities

ABOVE, BELOW = BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3)
SPREADS = np.geomspace(0.02, 5.0, 60)
FEW = np.geomspace(0.15, 5.0, 9)
FLOOR = 1e-12  # of the axis
SAMPLES, SEED = 100_000, 0

CAPTIONS = {
    "risk_of_starts": (
        "Which spread is risky where. (a) Starts N(0, s²): above the threshold (orange) the probability to reach the bigram loss, below "
        "it (blue) the probability not to; solid for two symbols, dashed for five, by quadrature of the exact rule. Prediction: above "
        "the threshold a small spread fails almost surely, 1.8e-190 at s = 0.02. Dots: starts with attention, e, w, a ~ N(0, s²), by the exact "
        f"labels of {SAMPLES:,} draws; bars are two standard errors. (b) Starts N(mean, s²): the probability not to reach the bigram loss "
        "around (1, -1), which needs no data, and around what `recommend` gives for the chain."
    )
}


@functools.cache
def curves() -> dict[str, np.ndarray]:
    """Panel (a): the unlikely side for each chain, over `SPREADS`."""
    chains = {"p+q>1": ABOVE, "p+q<1": BELOW, "S = 5, p = 0.95": SymmetricChain(5, 0.95), "S = 5, p = 0.3": SymmetricChain(5, 0.3)}
    found = {}
    for name, chain in chains.items():
        values = start_probabilities(chain, SPREADS).values
        found[name] = values["global"] if chain.regime == "above" else values["local"] + values["saddle"]
    return found


@functools.cache
def with_attention(chain: BinaryChain) -> StartProbabilities:
    """Panel (a): the same with attention, over `FEW`."""
    return start_probabilities(chain, FEW, "attention", samples=SAMPLES, seed=SEED)


@functools.cache
def around() -> dict[str, np.ndarray]:
    """Panel (b): the share of starts around a mean that are not global, over `SPREADS`."""
    found = {}
    for chain, relation in ((ABOVE, ">"), (BELOW, "<")):
        told = recommend(chain, flow=False)
        for name, mean in (("(1, -1)", told.default.mean), (f"({told.mean[0]:.2f}, {told.mean[1]:.2f})", told.mean)):
            values = start_probabilities(chain, SPREADS, mean=mean).values
            found[f"p+q{relation}1, around {name}"] = values["local"] + values["saddle"]
    return found


def draw(name: str):
    """The 1 x 2 figure."""
    figure, axes = plots.new_figure(1, 2, 9.6, 4.2, share_horizontal=False, share_vertical=False)
    first, second = axes[0]
    orange, blue = plots.LINES["local minima"]["color"], plots.LINES["global minima"]["color"]
    words = {"p+q>1": "global, $p+q>1$", "p+q<1": "not global, $p+q<1$", "S = 5, p = 0.95": "global, $S=5$, $p=0.95$", "S = 5, p = 0.3": "not global, $S=5$, $p=0.3$"}
    for (which, values), colour, style in zip(curves().items(), (orange, blue, orange, blue), ("-", "-", "--", "--")):
        first.plot(SPREADS, np.where(values > 0.0, values, np.nan), color=colour, linestyle=style, label=words[which])
    for chain, colour, word in ((ABOVE, orange, "global"), (BELOW, blue, "local")):
        told = with_attention(chain)
        shown = told.values[word] > 0.0
        first.errorbar(FEW[shown], told.values[word][shown], 2.0 * told.errors[word][shown], color=colour, fmt="o", markersize=3.5,
                       label="with attention" if chain is ABOVE else None)
    first.set_title("(a) starts $N(0, s^2)$: the unlikely end", fontsize=9)
    for (which, values), colour, style in zip(around().items(), (orange, orange, blue, blue), ("-", ":", "-", ":")):
        second.plot(SPREADS, np.where(values > 0.0, values, np.nan), color=colour, linestyle=style, label=which.replace("p+q>1", "$p+q>1$").replace("p+q<1", "$p+q<1$"))
    second.set_title("(b) starts $N(\\mu, s^2)$: not global", fontsize=9)
    for axis in (first, second):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim(SPREADS[0], SPREADS[-1])
        axis.set_ylim(FLOOR, 2.0)
        axis.set_xlabel("spread $s$ of the start")
        axis.legend(fontsize=8, frameon=False, loc="lower right")
    first.set_ylabel("probability")
    return figure
