"""What the authors claimed and the reviewers doubted (seeds of this project), and what here decides each.

A claim is decided by findings and arms of experiments, counted: by how many it is borne out. Claims that a derivation settles
name the step instead.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Findings:
    """Findings of an experiment whose statements contain a text."""

    experiment: str
    contains: str
    refuted: bool = False  # whether the claim is borne out where the finding is refuted


@dataclass(frozen=True)
class Arms:
    """Arms of an experiment whose names contain all of some texts: the runs that ended as one word says, or as predicted."""

    experiment: str
    contains: tuple[str, ...]
    ended: str | None = None


@dataclass(frozen=True)
class Step:
    """A step of a derivation, by chapter and anchor."""

    address: str


@dataclass(frozen=True)
class Claim:
    """Who said what, and what decides it.

    Attributes
    ----------
    who : {"authors", "reviewer", "summary"}
    text : str
    decided_by : tuple of Findings, Arms and Step
    note : str
        What a reader has to know beside the numbers.
    """

    who: str
    text: str
    decided_by: tuple[Findings | Arms | Step, ...]
    note: str = ""


CLAIMS = (
    Claim("authors", "The start (1, -1) brings the full softmax model to the bigram loss, for repeated trials and various (p, q): SGD",
          (Arms("init_comparison", ("around (1, -1)", "SGD"), "global"),)),
    Claim("authors", "The same under AdamW", (Arms("init_comparison", ("around (1, -1)", "AdamW"), "global"),)),
    Claim("authors", "The standard start N(0, 0.02) sticks at the unigram loss for p + q > 1: SGD",
          tuple(Arms("init_comparison", ("N(0, 0.02), SGD", f"({p})"), "local") for p in ("0.5, 0.8", "0.7, 0.7", "0.9, 0.9", "0.95, 0.6"))),
    Claim("authors", "The same under AdamW",
          tuple(Arms("init_comparison", ("N(0, 0.02), AdamW", f"({p})"), "local") for p in ("0.5, 0.8", "0.7, 0.7", "0.9, 0.9", "0.95, 0.6")),
          "a waiting time: `adam_escapes` says what it is made of"),
    Claim("authors", "With the authors' own settings N(0, 0.02) sticks at the unigram loss at (0.5, 0.8)", (Arms("authors_settings", ("N(0, 0.02)",), "local"),)),
    Claim("authors", "With the authors' own settings the start (1, -1) reaches the bigram loss there", (Arms("authors_settings", ("around (1, -1)",), "global"),)),
    Claim("authors", "Starts around (-1, -1) reach the bigram loss at (0.5, 0.8); around (0, -0.5), (0, 0.5), (0, 0) they do not: SGD", (Arms("init_around", ("SGD",)),)),
    Claim("authors", "The same under AdamW", (Arms("init_around", ("AdamW",)),)),
    Claim("authors", "With five states a Gaussian start reaches the bigram loss or not, depending on p: SGD", (Arms("multistate", ("S = 5", "SGD 0.3")),)),
    Claim("authors", "The same under AdamW", (Arms("multistate", ("S = 5", "AdamW")),), "above the threshold runs stop on plateaus between the two losses"),
    Claim("authors", "In training from Gaussian starts weights come to rank one (two states)", (Findings("low_rank", "comes to rank one"),)),
    Claim("authors", "Weights that start at low rank keep it, with two states and with five", (Findings("low_rank", "a start of rank one"), Findings("multistate", "keeps rank 4"))),
    Claim("authors", "Weight decay is what leads to low rank", (Findings("low_rank", "weight decay lowers the rank"),)),
    Claim("authors", "Embedding and attention always come to share one direction", (Findings("low_rank", "share one direction"),)),
    Claim("reviewer", "x_n, W_Q and W_K need not align after training from a random start", (Findings("low_rank", "W_Q, W_K and W_V come to share", True),)),
    Claim("authors", "That direction is one of signs", (Findings("low_rank", "is one of signs"), Findings("alpha_trained", "comes to signs"))),
    Claim("authors", "The loss does not depend on a trainable alpha, as its length is constant", (Findings("alpha_trained", "stays constant (the authors)"),),
          "at a fixed length it does not ([derived](../../derivations/attention-gap.md#11-independence)); the length moves"),
    Claim("reviewer", "The length of a trainable alpha changes", (Findings("alpha_trained", "stays constant (the authors)", True),)),
    Claim("authors", "Attention scores are learnt too: a is trainable (Eq. 45)", (Step("attention-gap.md#1-score"),)),
    Claim("reviewer", "Two definitions of a circulate; they are equivalent up to where the scalar sits", (Step("attention-gap.md#5-a-in-multiples"), Step("attention-gap.md#6-a-value-alone"))),
    Claim("authors", "For first-order chains attention fades, a = 0", (Findings("attention_vanishes", "attention adds next to nothing"), Findings("attention_vanishes", "strong attention fades"))),
    Claim("authors", "There are global minima with a other than 0", (Step("attention-gap.md#8-gap-tied"),), "the surface where the gap is optimal holds them"),
    Claim("reviewer", "What helps the softmax model is the low-rank start and not linear against softmax attention", (Findings("attention_kinds", "end alike"),)),
    Claim("authors", "Canonical training resembles that of a full model from a rank-one start",
          (Findings("canonical_vs_full", "full model on the manifold and of its twin"), Findings("canonical_vs_full", "half-way steps of full model")),
          "exactly so in one dimension; for the canonical map itself see [what holds for which model](../../derivations/bridge.md)"),
    Claim("reviewer", "Does the low-rank start help with many states? SGD", (Arms("multistate_init", ("rank 4", "SGD"), "global"),)),
    Claim("reviewer", "The same under AdamW", (Arms("multistate_init", ("rank 4", "AdamW"), "global"),)),
    Claim("reviewer", "With S states W_1 comes to rank S - 1", (Findings("multistate", "comes to rank 4"),)),
    Claim("reviewer", "Does the picture hold where S - 1 exceeds the width d? SGD", (Arms("multistate", ("S = 10, d = 4", "SGD")),)),
    Claim("summary", "Beyond one layer and order one: does the guideline still reach the bigram loss where N(0, 0.02) does not? SGD",
          (Arms("beyond", ("guideline", "SGD"), "global"),), "explored, not predicted; with layer norm and GELU it does not"),
)
