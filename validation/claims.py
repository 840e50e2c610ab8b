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
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Predicted:
    """Runs of arms, of which a predictor beside the prediction was right, of those whose limit it and the run decide."""

    experiment: str
    contains: tuple[str, ...]
    predictor: str


@dataclass(frozen=True)
class Step:
    """A step of a derivation, by chapter and anchor, that proves the claim or disproves it."""

    address: str
    disproves: bool = False


@dataclass(frozen=True)
class Claim:
    """Who said what, and what decides it.

    Attributes
    ----------
    who : {"authors", "reviewer", "summary"}
    text : str
    decided_by : tuple of Findings, Arms, Predicted or Step, all of one kind of evidence: trainings, or derivations
    note : str
        What a reader has to know beside the numbers.
    """

    who: str
    text: str
    decided_by: tuple[Findings | Arms | Predicted | Step, ...]
    note: str = ""


_ABOVE = ("0.5, 0.8", "0.7, 0.7", "0.9, 0.9", "0.95, 0.6")
_BELOW = ("0.1, 0.2", "0.2, 0.3", "0.3, 0.4")

CLAIMS = (
    Claim("authors", "The start (1, -1) brings the full softmax model to the bigram loss, for repeated trials and various (p, q): SGD",
          (Arms("init_comparison", ("around (1, -1)", "SGD"), "global"),), "the others hover above the bigram loss at (0.95, 0.6); none is at the unigram loss"),
    Claim("authors", "The start (1, -1) does so under AdamW", (Arms("init_comparison", ("around (1, -1)", "AdamW"), "global"),),
          "N(0, 0.02) gets there too within these steps, so that nothing is gained"),
    Claim("authors", "The start (1, -1) is in the region that converges to the global minimum", (Step("canonical-limits.md#3-reaches-optimum"),)),
    Claim("authors", "The standard start N(0, 0.02) sticks at the unigram loss for p + q > 1: SGD",
          tuple(Arms("init_comparison", ("N(0, 0.02), SGD", f"({p})"), "local") for p in _ABOVE)),
    Claim("authors", "The standard start sticks for p + q > 1 under AdamW",
          tuple(Arms("init_comparison", ("N(0, 0.02), AdamW", f"({p})"), "local") for p in _ABOVE),
          "a waiting time: `adam_escapes` says what it is made of"),
    Claim("authors", "The standard start reaches the bigram loss for p + q < 1: SGD and AdamW", tuple(Arms("init_comparison", ("N(0, 0.02)", f"({p})"), "global") for p in _BELOW)),
    Claim("authors", "With the authors' own settings N(0, 0.02) sticks at the unigram loss at (0.5, 0.8)", (Arms("authors_settings", ("N(0, 0.02)",), "local"),)),
    Claim("authors", "With the authors' own settings the start (1, -1) reaches the bigram loss there", (Arms("authors_settings", ("around (1, -1)",), "global"),)),
    Claim("authors", "Starts around (-1, -1) reach the bigram loss at (0.5, 0.8); around (0, -0.5), (0, 0.5), (0, 0) they do not: SGD", (Arms("init_around", ("SGD",)),)),
    Claim("authors", "Starts around these four places end so under AdamW", (Arms("init_around", ("AdamW",)),), "500 steps"),
    Claim("authors", "The canonical map (Figure 1d) says where full training ends: SGD", (Predicted("basin_accuracy", ("SGD",), "canonical"),),
          "what goes wrong is for p + q < 1: see [what holds for which model](../../derivations/bridge.md)"),
    Claim("authors", "The canonical map says where full training ends: AdamW", (Predicted("basin_accuracy", ("AdamW",), "canonical"),)),
    Claim("authors", "It suffices to analyse the scalars (e, w, a): low rank is no restriction",
          (Step("transverse-stability.md#3-on-manifold", True), Step("reduced.md#8-slice-left", True)),
          "for p + q < 1 every plateau of the manifold is a strict saddle of the full model; training leaves the slice at once"),
    Claim("authors", "Canonical training resembles that of a full model from a rank-one start",
          (Findings("canonical_vs_full", "of the canonical flow"),), "of six starts in each arm; the flow on `reduced` says more of them, and the twin of d = 1 all"),
    Claim("authors", "W_1 and W_2 start constant but are trained", (Step("exact-reduction.md#5-fixed-mlp"), Step("exact-reduction.md#13-descent-step")),
          "from rank one each keeps its form, and one number moves"),
    Claim("authors", "With five states a Gaussian start reaches the bigram loss or not, depending on p: SGD", (Arms("multistate", ("S = 5", "SGD 0.3"), None, ("from rank",)),)),
    Claim("authors", "With five states it depends on p so under AdamW", (Arms("multistate", ("S = 5", "AdamW")),), "above the threshold runs stop on plateaus between the two losses"),
    Claim("authors", "The analysis of gradient flow can be generalised to many states",
          (Step("canonical-gap.md#3-gap-simplex"), Step("canonical-limits.md#5-reaches-local-minimum"), Step("symmetric-chain.md#8-slope-at-zero")), "on the simplex ansatz"),
    Claim("authors", "The five-state chain generalises the two-state one with p = q", (Step("symmetric-chain.md#10-two-states"),)),
    Claim("authors", "In training from Gaussian starts weights come to rank one (two states)", (Findings("low_rank", "comes to rank one"),), "AdamW, 2000 steps; not the authors' settings"),
    Claim("authors", "Weights that start at low rank keep it, with two states and with five",
          (Findings("low_rank", "a start of rank one keeps it"), Findings("canonical_vs_full", "off the manifold"), Findings("multistate", "keeps rank 4"))),
    Claim("authors", "A start of rank one with noise keeps one leading direction", (Findings("low_rank", "rank one and noise"),)),
    Claim("authors", "Weight decay is what leads to low rank", (Findings("low_rank", "weight decay lowers the rank"),),
          "W_1 only, AdamW, 2000 steps at decay 0.01: it goes the way that is claimed, but not by 5 points; long SGD was not tried"),
    Claim("authors", "Embedding and attention always come to share one direction", (Findings("low_rank", "share one direction"),)),
    Claim("reviewer", "x_n, W_Q and W_K need not align after training from a random start", (Findings("low_rank", "W_Q, W_K and W_V come to share", True),),
          "W_Q and W_K nearly do at (0.2, 0.3) (cosines .93 to 1.00) and do not at (0.5, 0.8) (.05 to .91)"),
    Claim("authors", "That direction is one of signs", (Findings("low_rank", "is one of signs"), Findings("alpha_trained", "comes to signs"))),
    Claim("authors", "The loss does not depend on a trainable alpha, as its length is constant", (Findings("alpha_trained", "stays constant (the authors)"),),
          "at a fixed length it does not ([derived](../../derivations/attention-gap.md#11-independence)); the length moves"),
    Claim("reviewer", "The length of a trainable alpha changes", (Findings("alpha_trained", "stays constant (the authors)", True),), "in every run, in some by less than 1 %"),
    Claim("authors", "Attention scores are learnt too: a is trainable (Eq. 45)", (Step("attention-gap.md#1-score"),),
          "the a of Eq. 45 is the whole coefficient; with the definition by the values alone W_Q and W_K are held fixed ([derived](../../derivations/attention-gap.md#6-a-value-alone))"),
    Claim("reviewer", "Two definitions of a circulate", (Step("attention-gap.md#5-a-in-multiples"), Step("attention-gap.md#6-a-value-alone")),
          "equal up to where the scalar sits in the loss, but not in the gradient flow"),
    Claim("authors", "For first-order chains a = 0 is a viable solution", (Step("attention-gap.md#8-gap-tied"),), "at a = 0 the gap takes every value that the flow seeks"),
    Claim("authors", "For first-order chains trained attention adds next to nothing", (Findings("attention_vanishes", "attention adds next to nothing"),)),
    Claim("authors", "Strong attention fades in training", (Findings("attention_vanishes", "strong attention fades"),), "for p + q > 1; not for p + q < 1"),
    Claim("authors", "There are global minima with a other than 0", (Step("attention-gap.md#8-gap-tied"),), "the surface where the gap is optimal holds them"),
    Claim("authors", "With attention trained too the landscape is as without (Section 4.1, Figure 4)",
          (Step("attention-critical-sets.md#4-hessian-on-plane"), Step("attention-limits.md#8-reaches-local-minimum")), "bad minima on e = 0 as before; [a curve of saddles](../../derivations/attention-critical-sets.md#2-curve) is new"),
    Claim("authors", "Where training ends is decided by the landscape and not by linear against softmax attention", (Findings("attention_kinds", "end alike"),), "AdamW for 500 steps"),
    Claim("reviewer", "A start of low rank is what prevents the local minimum",
          (Arms("init_around", ("around (0", "SGD"), "global"), Arms("attention_kinds", ("around (0.3, 0.5), (0.5, 0.8)", "softmax"), "global")),
          "starts of rank one outside the basin: the place decides, not the rank"),
    Claim("reviewer", "Does the low-rank start help with many states? SGD", (Arms("multistate_init", ("rank 4", "SGD"), "global"),)),
    Claim("reviewer", "Does the low-rank start help with many states under AdamW?", (Arms("multistate_init", ("rank 4", "AdamW"), "global"),)),
    Claim("reviewer", "With many states N(0, 0.02) sticks above the threshold: SGD", (Arms("multistate_init", ("N(0, 0.02)", "SGD"), "local"),), "under AdamW plateaus between the two losses hold it"),
    Claim("reviewer", "With S states W_1 comes to rank S - 1", (Findings("multistate", "comes to rank 4"),), "S = 5 under AdamW alone"),
    Claim("summary", "Does the picture hold where S - 1 exceeds the width d? SGD", (Arms("multistate", ("S = 10, d = 4", "SGD")),),
          "with logits of rank d the bigram law of p = 0.3 is out of reach, whatever the training"),
    Claim("summary", "With a head of its own the standard start sticks too: SGD and AdamW", (Arms("tying", ("untied, N(0, 0.02)",), "local"),), "two symbols: [derived](../../derivations/untied.md)"),
    Claim("summary", "Beyond one layer and order one: does the guideline still reach the bigram loss? SGD",
          tuple(Findings("beyond", f"below: {kind}, SGD") for kind in ("two layers", "two heads", "layer norm, GELU", "order two", "order two, two layers")),
          "explored, not predicted; with layer norm and GELU it does not"),
    Claim("summary", "Does the guideline bring a GPT-2 of one layer (layer norm, GELU) to the bigram loss at (0.5, 0.8)? SGD",
          (Arms("gpt2", ("around (1, -1)", "SGD", "(0.5, 0.8)"), "global"),), "at rate 0.05 in every run, at 0.3 it overshoots in most; GPT-2's own start N(0, 0.02) stays at the unigram loss at both"),
)
