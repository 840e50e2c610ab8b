"""The bridge chapter: which statement holds for which model, from (e, w) to a real training."""

from __future__ import annotations

from collections.abc import Mapping

from landscape.symbolic import statements as form
from landscape.symbolic.book import Page
from landscape.symbolic.statements import (
    DISPROVED, MEASURED, OPEN, PROVED, REFUTED, Derived, Ended, Judged, Statement, Verified, cell,
)
from landscape.symbolic.steps import Chapter

NAME = "bridge"
TITLE = "What holds for which model"
SETTLES = (
    "*Claim*: insights and guidelines of the analysis carry over to the full model with softmax attention (authors); simplifying it to "
    "weights of low rank is a limitation (a reviewer). *Settled*: statement by statement and model by model, since there is no one "
    "answer. *Beyond*: every verdict is a proof, a refutation or a measurement that can be repeated, and what none of them settles is "
    "called open."
)
INTRODUCTION = (
    "The picture in $(e,w)$ is a slice of a slice of a transformer. Here is what of it is left at each step on the way to a real "
    "training. *Proved* and *proved false* lead to the step of the derivation. *Measured true* means at least 98 % of the runs, or a "
    "finding confirmed; *measured false* the contrary; both lead to the outcome of an experiment (`python -m validation run NAME` "
    "repeats it) or to a test. *Open* is what neither settles here. An empty cell: the statement is not about that model, or "
    "the column before says it. In one sentence: **for $p+q<1$ the local basin of the map does not hold generic training, for $p+q>1$ it does under SGD, with the boundary "
    "that the `transverse` landscape gives, and for AdamW it is a matter of rate, width and precision.**"
)

CANONICAL, ATTENTION, UNTIED, REDUCED, MANIFOLD, GENERIC, SGD, ADAM = MODELS = (
    "canonical", "attention", "untied", "reduced", "manifold", "generic", "SGD", "AdamW",
)
MEANING = {
    CANONICAL: "gradient flow in $(e,w)$, no attention.",
    ATTENTION: "gradient flow in $(e,w,a)$, linear attention.",
    UNTIED: "gradient flow in $(e,c_h,w)$: a head $c_h$ of its own, no attention, two symbols. All other columns have a tied head.",
    REDUCED: "gradient flow in $(e,c,w_1,w_2)$: positions and both MLP matrices on their own, no attention.",
    MANIFOLD: "the full model with softmax attention, any $d$ and $r$, gradient flow from a start on the manifold of rank one. Without attention it is *reduced*.",
    GENERIC: "the same from a start off the manifold.",
    SGD: "training of the full model by stochastic gradient descent with batches.",
    ADAM: "the same by AdamW.",
}

# --- the landscape ---------------------------------------------------------------------------------------

_SETS, _ATTENTION_SETS, _REDUCED_SETS, _ACROSS = (
    "canonical-critical-sets", "attention-critical-sets", "reduced-critical-sets", "transverse-stability",
)

_STATES = "From three symbols on there are some, on the kink $e=0$."

LANDSCAPE = (
    Statement(
        "No critical points but global minima and the plateau",
        "A critical point is a global minimum or has embedding zero, where the loss is the unigram loss.",
        {
            CANONICAL: cell(PROVED, Derived(_SETS, "gap_gradient_squared")),
            ATTENTION: cell(DISPROVED, Derived(_ATTENTION_SETS, "curve"), Derived(_ATTENTION_SETS, "eigenvalues_on_curve"),
                            note="There is a curve of strict saddles with $e\\ne0$."),
            UNTIED: cell(DISPROVED, Derived("untied", "eigenvalues_on_lines"), note="On $w=-1/\\sqrt2$ there are strict saddles where the embedding or the head alone is zero."),
            REDUCED: cell(PROVED, Derived("reduced", "scaling"), note="On kinks too."),
            MANIFOLD: cell(OPEN, Derived(_ACROSS, "scaling"), note="Proved without attention, in any width."),
            GENERIC: cell(OPEN, Derived(_ACROSS, "scaling"), note="Proved without attention and with one position vector, on the manifold and off it."),
        },
    ),
    Statement(
        "Bad local minima below the threshold",
        "For $p+q<1$ a part of the unigram plateau of the manifold is a local minimum, and holds training that comes near it.",
        {
            CANONICAL: cell(PROVED, Derived(_SETS, "hessian_on_line"), note="Where $w<-1/\\sqrt2$."),
            ATTENTION: cell(PROVED, Derived(_ATTENTION_SETS, "hessian_on_plane"), note="Where $w<-1/\\sqrt2$."),
            UNTIED: cell(DISPROVED, Derived("untied", "meeting_cubic"), note=_STATES),
            REDUCED: cell(PROVED, Derived(_REDUCED_SETS, "hessian_on_plateau"), note="Where $w_1c>0$ and $w_1w_2<-1$."),
            MANIFOLD: cell(PROVED, Derived(_ACROSS, "on_manifold"), note="Among points of the manifold: where $(1+\\rho_Nt)(1+A_yw_1w_2)<0$."),
            GENERIC: cell(
                DISPROVED, Derived(_ACROSS, "on_manifold"), Derived(_ACROSS, "embedding"),
                Verified("tests/validation/test_hessian.py", "test_with_as_many_open_units_as_dimensions_there_are_bad_minima_below_the_threshold"),
                note="For $d\\ge2$ every plateau of the manifold is a strict saddle across it. (Far from the manifold, with $d$ open hidden units, there are bad minima.)",
            ),
            SGD: cell(REFUTED, Ended("basin_accuracy", "SGD 0.1, (0.2, 0.3), noise 0.0", "ended: local", 0, 112),
                      note="Off the manifold by 0.001 or 0.02 a weight, no run stays. On it exactly, 8 of 56 do."),
            ADAM: cell(REFUTED, Ended("basin_accuracy", "AdamW 0.005, (0.2, 0.3)", "ended: local", 0, 168), note="Not even from on the manifold, in single precision."),
        },
    ),
    Statement(
        "Bad local minima above the threshold",
        "For $p+q>1$ a part of the unigram plateau of the manifold is a local minimum, and holds training that comes near it.",
        {
            CANONICAL: cell(PROVED, Derived(_SETS, "hessian_on_line"), note="Where $w>-1/\\sqrt2$."),
            ATTENTION: cell(PROVED, Derived(_ATTENTION_SETS, "hessian_on_plane"), note="Where $w>-1/\\sqrt2$."),
            UNTIED: cell(
                DISPROVED, Derived("untied", "meeting_cubic"), Ended("tying", "untied, ", "ended: global", 48, 48),
                note=_STATES + " In training all untied runs reach the bigram loss, SGD and AdamW.",
            ),
            REDUCED: cell(PROVED, Derived(_REDUCED_SETS, "hessian_on_plateau"), note="Where $w_1c<0$, or $w_1w_2>-1$."),
            MANIFOLD: cell(PROVED, Derived(_ACROSS, "on_manifold"), note="Where $(1+\\rho_Nt)(1+A_yw_1w_2)>0$."),
            GENERIC: cell(PROVED, Derived(_ACROSS, "on_manifold"), Derived(_ACROSS, "embedding"), note="In every direction of the full model, and next to small weights whatever they are."),
            SGD: cell(MEASURED, Ended("basin_accuracy", "SGD 0.1, (0.5, 0.8)", "right: transverse", 168, 168),
                      note="30 of 56 starts end at the unigram loss, as they should, on the manifold and off it."),
            ADAM: cell(
                REFUTED, Ended("basin_accuracy", "AdamW 0.005, (0.5, 0.8), noise 0.0", "ended: local", 2, 112),
                Judged("adam_escapes", "in single precision more leave it", "18 of 25 against 4 of 25"),
                Judged("adam_escapes", "in single precision fewer leave it if eps", "0 of 25 against 18 of 25"),
                Judged("adam_escapes", "the lower the rate", "4 of 25, then 1 of 23, then 0 of 18"),
                Judged("adam_escapes", "the wider the model", "10 of 28 against 4 of 25"),
                note="Left within 1500 steps at rate 0.005. The minima are there; AdamW makes steps of the size of its rate out of noise and of rounding. In double "
                "precision, at lower rates, or with eps above rounding the plateau holds; in wider models less.",
            ),
        },
    ),
    Statement(
        "Global minima are flat but for the gap",
        "At a global minimum the Hessian is positive in the directions that change the logits, and zero in all others.",
        {
            CANONICAL: cell(PROVED, Derived(_SETS, "hessian_on_optimum")),
            ATTENTION: cell(PROVED, Derived("canonical-derivatives", "hessian"), note="$L''=\\varphi''\\nabla\\kappa\\nabla\\kappa^\\top$ there, for every gap."),
            UNTIED: cell(PROVED, Derived("untied", "hessian_on_optimum")),
            REDUCED: cell(PROVED, Derived("reduced", "gradient"), note="For the same reason."),
            GENERIC: cell(PROVED, Derived(_ACROSS, "nullity_of_optimum"), Verified("tests/validation/test_hessian.py", "test_global_minima_are_flat_across_the_manifold"),
                          note="Shown on the manifold without attention: nothing pulls back to it."),
        },
    ),
    Statement(
        "The direction does not matter",
        "Neither the loss nor training depends on the signs $\\alpha$ (line 203 of the paper).",
        {
            CANONICAL: cell(PROVED, Derived("canonical-gap", "gap_binary"), note="Nor on $d$ and $r$."),
            ATTENTION: cell(PROVED, Derived("attention-gap", "independence"), note="At given $a$; at given matrices $a$ depends on $d$."),
            REDUCED: cell(PROVED, Derived("reduced", "logits"), note="Nor on $d$ and $r$."),
            MANIFOLD: cell(PROVED, Derived("exact-reduction", "symmetry")),
            GENERIC: cell(PROVED, Derived("exact-reduction", "symmetry"), note="Any rotation of the stream turns every trajectory with it."),
            SGD: cell(PROVED, Derived("exact-reduction", "descent_step")),
            ADAM: cell(PROVED, Derived("exact-reduction", "adam_step"), Derived("exact-reduction", "adam_unequal"), note="For signs; not for other directions."),
        },
    ),
)

# --- the dynamics ----------------------------------------------------------------------------------------

DYNAMICS = (
    Statement(
        "An invariant",
        "The flow conserves a quantity, whatever the chain.",
        {
            CANONICAL: cell(PROVED, Derived("canonical-invariant", "E"), note="$E=e^2-G(w)$: every orbit is a level set."),
            ATTENTION: cell(PROVED, Derived(_ATTENTION_SETS, "E"), Derived("attention-invariant", "J"),
                            note="Two: $e^2-2a^2-G(w)$, and $J$ in Airy's functions, which together determine the orbit."),
            UNTIED: cell(PROVED, Derived("untied", "difference"), Derived("untied", "E"), note="Two: $e^2-c_h^2$ and $e^2+c_h^2-G(w)$."),
            REDUCED: cell(PROVED, Derived("reduced", "balance"), Derived("reduced", "slice_left"), note="$w_1^2-w_2^2$. The canonical $E$ is lost: it needs $c=-e/2$."),
            MANIFOLD: cell(PROVED, Derived("exact-reduction", "balance_on_manifold"), note="$w_1^2-w_2^2$, $O^2-V^2$, $Q^2-K^2$."),
            GENERIC: cell(PROVED, Derived("exact-reduction", "balance"), note="The same for each hidden unit, and as matrices for the attention."),
            SGD: cell(DISPROVED, Derived("exact-reduction", "balance"), note="Conserved up to second order in the rate."),
        },
    ),
    Statement(
        "The canonical slice is kept",
        "A start with positions $-\\mathbf e/2$ and $\\|W_1\\|=\\|W_2\\|$ stays such.",
        {
            REDUCED: cell(DISPROVED, Derived("reduced", "slice_left"), note="The position leaves $-e/2$ at once; $w_1=\\pm w_2$ stays."),
            MANIFOLD: cell(DISPROVED, Derived("reduced", "slice_left")),
            GENERIC: cell(DISPROVED, Derived("reduced", "slice_left")),
        },
    ),
    Statement(
        "The manifold of rank one is kept",
        "A start whose vectors are multiples of $\\alpha$ and whose matrices are outer products of $\\alpha$ and $\\mathbf1$ stays such.",
        {
            MANIFOLD: cell(PROVED, Derived("exact-reduction", "symmetry"), Derived("exact-reduction", "value_row"), note="Not with $W_V=\\alpha v^\\top$ for $v$ not along $\\alpha$."),
            SGD: cell(PROVED, Derived("exact-reduction", "descent_step"), Judged("canonical_vs_full", "what is off the manifold", "8.3e-16"), note="On every batch, with momentum and decay."),
            ADAM: cell(PROVED, Derived("exact-reduction", "adam_step"), Derived("exact-reduction", "adam_unequal"), note="For $\\alpha\\in\\{\\pm1\\}^d$; not for entries of unequal size."),
        },
    ),
    Statement(
        "On it, training is training in one dimension",
        "From a start on the manifold the losses are those of the transformer with $d=r=1$.",
        {
            MANIFOLD: cell(PROVED, Derived("exact-reduction", "tangent"), Derived("exact-reduction", "logit")),
            SGD: cell(PROVED, Derived("exact-reduction", "descent_run"), Judged("canonical_vs_full", "training losses", "3.3e-16")),
            ADAM: cell(
                DISPROVED, Derived("exact-reduction", "adam_step"), Derived("exact-reduction", "adam_run"), Judged("adam_escapes", "the twin ends", "53 of 56"),
                note="AdamW of the full model is AdamW in one dimension with a rate of its own for each array, larger by the root of the number of entries. "
                "With these rates the losses agree, until the plateau amplifies rounding.",
            ),
        },
    ),
    Statement(
        "The part across grows or decays at one rate",
        "Near a plateau of the manifold the embedding's part across $\\alpha$ changes at the rate $-2\\varphi'(0)$: it grows for $p+q<1$ and decays for $p+q>1$.",
        {
            GENERIC: cell(PROVED, Derived(_ACROSS, "on_manifold"), Verified("tests/test_reduced.py", "test_the_part_across_grows_at_twice_the_slope_of_phi")),
            SGD: cell(
                MEASURED, Verified("tests/validation/test_manifold.py", "test_the_part_across_grows_on_the_plateau_at_the_rate_of_the_local_minimum"),
                Verified("tests/validation/test_stability.py", "test_the_part_off_the_slice_grows_at_twice_the_slope_of_phi"), note="Within 10 %.",
            ),
            ADAM: cell(OPEN, note="AdamW has no rate in this sense: it divides by the size of the gradient."),
        },
    ),
    Statement(
        "Sliding where a hidden unit closes",
        "For $p+q<1$, $e>0$ and $w$ far below $-1/\\sqrt2$ training waits on $e=-c$ for a time in proportion to the number of positions.",
        {
            REDUCED: cell(PROVED, Derived(_REDUCED_SETS, "kink"), Derived(_REDUCED_SETS, "slide"), Verified("tests/test_reduced.py", "test_the_flow_slides_along_the_kink_at_the_derived_speed")),
            SGD: cell(REFUTED, Judged("canonical_vs_full", "half-way steps of full model on the manifold, (0.2, 0.3) and of the reduced flow", "4 of 6"),
                      Judged("canonical_vs_full", "losses at the horizon of the flows and of SGD simulated", "1.3%"),
                      note="It waits, but about 1.3 times less long than derived: the noise of batches crosses the kink. Simulated without it, SGD agrees with the flow."),
            ADAM: cell(OPEN),
        },
    ),
)


def _gaussian(words: str, local: int) -> tuple[Ended, ...]:
    """What became of Gaussian starts above the threshold, by chain."""
    return tuple(
        Ended("init_comparison", f"N(0, 0.02), {words}, ({law})", "ended: local", local, 12) for law in ("0.5, 0.8", "0.7, 0.7", "0.9, 0.9", "0.95, 0.6")
    )


# --- predictions -----------------------------------------------------------------------------------------

PREDICTIONS = (
    Statement(
        "The canonical map gives the limit",
        "A start on the canonical slice ends where the exact rule for $(e,w)$ says.",
        {
            CANONICAL: cell(PROVED, Derived("canonical-limits", "reaches_optimum"), Derived("canonical-limits", "reaches_local_minimum")),
            ATTENTION: cell(
                DISPROVED, Derived("attention-limits", "reaches_local_minimum"),
                Verified("tests/test_attention_limits.py", "test_attention_from_zero_takes_from_the_local_basin_and_never_adds_to_it"),
                note="From $a=0$ attention does not stay zero. What the map calls global is global; of what it calls local attention saves a part, "
                "about a third for $p+q>1$ and a twentieth for $p+q<1$ in the box $|e|,|w|\\le2$.",
            ),
            UNTIED: cell(DISPROVED, Derived("untied", "reaches_optimum"), Derived("untied", "planes_end_in_saddles"),
                         note="From $c_h=e$ exactly a part of what the map calls local ends in saddles; all else is global."),
            REDUCED: cell(DISPROVED, Derived(_REDUCED_SETS, "threshold_below"), Derived(_REDUCED_SETS, "threshold_above"), Verified("tests/test_reduced.py", "test_thresholds_of_the_canonical_slice"),
                          note="The boundary is elsewhere, and depends on the sign of $e$ and on the number of positions."),
            GENERIC: cell(DISPROVED, Derived(_ACROSS, "on_manifold"), note="For $p+q<1$ there is no trap to fall into."),
            SGD: cell(REFUTED, Ended("basin_accuracy", "SGD", "right: canonical", 296, 336)),
            ADAM: cell(REFUTED, Ended("basin_accuracy", "AdamW", "right: canonical", 242, 319)),
        },
    ),
    Statement(
        "The transverse flow gives the limit",
        "A start ends where the flow of `transverse` does, from the start's own $(e,c,w_1,w_2,b,u)$ and with $c$ at $1/N$ of the speed.",
        {
            GENERIC: cell(OPEN, note="It follows what is across $\\alpha$ in the embedding alone."),
            SGD: cell(MEASURED, Ended("basin_accuracy", "SGD", "right: transverse", 336, 336)),
            ADAM: cell(REFUTED, Ended("basin_accuracy", "AdamW", "right: transverse", 252, 319), Ended("basin_accuracy", "AdamW 0.005, (0.2, 0.3)", "right: simulation", 168, 168),
                       note="For $p+q<1$ a simulation of AdamW itself without the noise of batches is right in every run."),
        },
    ),
    Statement(
        "Small Gaussian starts stick above the threshold",
        "For $p+q>1$ a start with all weights from $N(0,0.02^2)$ stays at the unigram loss.",
        {
            CANONICAL: cell(PROVED, Derived("canonical-limits", "reaches_local_minimum"), note="From every $|e|<1$, $|w|<0.1$."),
            ATTENTION: cell(PROVED, Derived("attention-limits", "reaches_local_minimum"),
                            Verified("tests/test_attention_limits.py", "test_small_starts_stick_above_the_threshold"), note="From every $|e|,|w|,|a|<0.1$, but for $e=0$."),
            UNTIED: cell(DISPROVED, Derived("untied", "reaches_optimum"), Ended("tying", "untied, N(0, 0.02)", "ended: global", 16, 16)),
            GENERIC: cell(OPEN, Derived(_ACROSS, "embedding"), note="The plateau next to such a start is a local minimum in any width; that the flow ends there is measured alone."),
            SGD: cell(MEASURED, *_gaussian("SGD 0.3", 12)),
            ADAM: cell(REFUTED, *_gaussian("AdamW 0.005", 0), note="A waiting time, which depends on the precision (see 3): at $(0.5,0.8)$ all are still there at 500 steps, and none at 1500."),
        },
    ),
    Statement(
        "The start (1, -1) is safe",
        "From $(e,w)=(1,-1)$ the bigram law is reached on both sides of $p+q=1$.",
        {
            CANONICAL: cell(PROVED, Derived("canonical-limits", "reaches_optimum")),
            ATTENTION: cell(PROVED, Derived("attention-limits", "reaches_optimum"), Verified("tests/test_attention_limits.py", "test_the_recommended_start_is_safe_with_attention"),
                            note="From $a=0$."),
            UNTIED: cell(PROVED, Derived("untied", "planes_end_in_saddles"), note="With $c_h=e$; and for every other $c_h$ but for a set of measure zero."),
            REDUCED: cell(MEASURED, Verified("tests/test_reduced.py", "test_the_recommended_start_is_safe_on_both_sides"), note="By flow, on a grid of chains and speeds; with a part across too."),
            SGD: cell(
                REFUTED, Ended("init_comparison", "around (1, -1), SGD", "ended: global", 78, 84), Ended("init_comparison", "around (1, -1), SGD 0.3, (0.95, 0.6)", "ended: global", 6, 12),
                note="At six of seven $(p,q)$ all 72 runs; at $(0.95,0.6)$ 6 of 12 hover above the bigram loss at this rate, none at the unigram loss.",
            ),
            ADAM: cell(MEASURED, Ended("init_comparison", "around (1, -1), AdamW", "ended: global", 84, 84), note="At seven $(p,q)$ on both sides."),
        },
    ),
)

# --- many states -----------------------------------------------------------------------------------------

_STABILITY = "symmetric-stability"


def _ended(experiment: str, word: str, arms: tuple[str, ...]) -> tuple[Ended, ...]:
    """Arms of six runs that all ended in one way."""
    return tuple(Ended(experiment, arm, f"ended: {word}", 6, 6) for arm in arms)


MANY_STATES = (
    Statement(
        "Many states: small weights stick above (S-1)/S",
        "On the symmetric chain of $S\\ge3$ symbols the unigram plateau next to small weights holds what comes near it for $p>(S-1)/S$, and does not below.",
        {
            CANONICAL: cell(PROVED, Derived(_SETS, "hessian_on_line"), note="As for two symbols."),
            ATTENTION: cell(OPEN, Derived("symmetric-attention", "limit"), note="Attention multiplies the stream by a factor in the limit of long sequences only."),
            GENERIC: cell(PROVED, Derived(_STABILITY, "off_kinks"), Derived(_STABILITY, "tangent"),
                          note="But there are further plateaus, one for every way of taking symbols together, at losses between unigram and bigram."),
            SGD: cell(
                MEASURED, *_ended("multistate", "local", tuple(f"S = {each}, SGD" for each in ("5, d = 8, p = 1", "3, d = 8, p = 0.9", "10, d = 16, p = 1", "10, d = 4, p = 1"))),
                *_ended("multistate", "global", tuple(f"S = {each}, SGD" for each in ("5, d = 8, p = 0.6", "3, d = 8, p = 0.3", "10, d = 16, p = 0.3"))),
                Ended("multistate", "S = 10, d = 4, p = 0.3, SGD", "ended: local", 0, 6), Ended("multistate_init", "N(0, 0.02), p = 0.85, SGD", "ended: local", 5, 6),
                note="Ten symbols in four dimensions leave the unigram plateau at $p=0.3$ and stop on one between. Close to the threshold, at $p=0.85$, one run of six is between.",
            ),
            ADAM: cell(REFUTED, Ended("multistate_init", "N(0, 0.02), p = 0.95, AdamW", "ended: local", 0, 6), note="Above the threshold runs leave the unigram plateau and stop on one between."),
        },
    ),
    Statement(
        "Many states: a start of rank S-1 at (1, -1) is safe",
        "The start whose embeddings are the corners of a simplex reaches the bigram law on both sides of the threshold.",
        {
            CANONICAL: cell(PROVED, Derived("canonical-limits", "reaches_optimum")),
            GENERIC: cell(PROVED, Derived("symmetric-closure", "symmetry"), Derived("symmetric-closure", "reaches_optimum"),
                          note="From the start itself, whose simplex the full model keeps; next to it that is measured alone."),
            SGD: cell(MEASURED, *_ended("multistate_init", "global", tuple(f"rank 4, (1, -1), p = {p}, SGD" for p in ("0.85", "0.95", "1")))),
            ADAM: cell(
                REFUTED, Ended("multistate_init", "rank 4, (1, -1), p = 0.85, AdamW", "ended: global", 2, 6),
                *_ended("multistate_init", "global", tuple(f"rank 4, (1, -1), p = {p}, AdamW" for p in ("0.95", "1"))),
                note="At $p=0.85$ four of six are still above the bigram loss at the end, none at the unigram loss.",
            ),
        },
    ),
)

STATEMENTS = LANDSCAPE + DYNAMICS + PREDICTIONS + MANY_STATES


def page() -> Page:
    """What the book says of the chapter."""
    return Page(NAME, TITLE, SETTLES, tuple(statement.name for statement in STATEMENTS))


def bridge_files(chapters: Mapping[str, Chapter]) -> dict[str, str]:
    """The chapter as Markdown, LaTeX and JSON: text by path relative to the checkout. KeyError if a step is missing."""
    text = form.Text(NAME, TITLE, SETTLES, INTRODUCTION, MEANING, STATEMENTS)
    return {
        f"derivations/{NAME}.md": form.markdown(text, chapters),
        f"derivations/{NAME}.tex": form.latex(text, chapters),
        f"derivations/{NAME}.json": form.json_text(text, chapters),
    }
