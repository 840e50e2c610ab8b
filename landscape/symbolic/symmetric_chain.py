"""Chapter: the chain that stays or moves uniformly among S states."""

from __future__ import annotations

import mpmath
from mpmath import mpf
from sympy import diff, exp, expand, factor, log, simplify, solve

from landscape.symbolic.algebra import cancelled, factored, inverse_variance, vanishing
from landscape.symbolic.primitives import elementary, log_sum, softplus
from landscape.symbolic.references import conditional_entropy, long_run_law, minimised_loss, softmax_loss
from landscape.symbolic.steps import Chapter, Check, Kernel
from landscape.symbolic.symbols import kappa, p, q, states

POINTS = tuple(
    {kappa: mpf(k), states: mpf(s), p: mpf(a) / 100}
    for k, s, a in (("-7.5", 5, 90), ("-1.25", 3, 20), ("0.5", 2, 45), ("4.75", 7, 66))
)


def symmetric_chain(binary: Chapter) -> Chapter:
    """The S-state switching chain: φ from the softmax, its derivatives, κ*, and S = 2 against `binary`."""
    chapter = Chapter(
        "symmetric-chain",
        "The symmetric chain on S states",
        "A symbol stays with probability $1-p$ and else moves to one of the other $S-1$ with equal probability. By "
        "symmetry the best model has one logit for *the current symbol again*, larger by the gap $\\kappa$ than the "
        "other $S-1$ logits, which are equal; no bias is left to choose.",
        settles="*Claim*: the chain that stays with probability $1-p$ and else moves to any other state alike generalises the "
        "two-state chain with $p=q$, and on five states training ends at the unigram or at the bigram loss depending on "
        "$p$ (authors). *Settled*: at $S=2$ it is that chain, with gaps in units half as large, and the slope at zero "
        "changes sign at a threshold in $p$. *Beyond*: the threshold is $p=(S-1)/S$ for every $S$, 0.8 for five states. "
        "The authors leave many states to later work.",
    )
    at = {"cases": POINTS}

    def transition(point):
        n = int(point[states])
        off = point[p] / (n - 1)
        return mpmath.matrix([[1 - point[p] if i == j else off for j in range(n)] for i in range(n)])

    def numbers(point):
        return point[kappa], point[states], point[p]

    uniform = 1 / states
    chapter.add(
        "stationary",
        "The uniform law is stationary: mass comes from the symbol itself and from the $S-1$ others.",
        r"\pi_x",
        uniform,
        simplify(uniform * (1 - p) + (states - 1) * uniform * p / (states - 1) - uniform),
        Check("a row of the 4096th power of the transition matrix",
              reference=lambda point: long_run_law(transition(point))[0], **at),
    )
    total = exp(kappa) + states - 1
    definition = -(1 - p) * log(exp(kappa) / total) - p * log(1 / total)
    pooled = log_sum(kappa, log(states - 1))
    value = expand((1 - p) * (pooled - kappa) + p * pooled)
    chapter.add(
        "phi",
        "The cross-entropy of the softmax, with the larger logit factored out of the sum.",
        r"\varphi(\kappa)",
        value,
        vanishing(elementary(definition - value)),
        Check("cross-entropy of a softmax over S explicit logits",
              reference=lambda point: softmax_loss(*numbers(point)), **at),
    )
    slope = diff(value, kappa)
    chapter.add(
        "phi_prime", "The probability given to the current symbol, less the right one.", r"\varphi'(\kappa)", slope,
        simplify(elementary(diff(value, kappa) - slope)),
        Check("numerical derivative of the cross-entropy of the softmax",
              reference=lambda point: mpmath.diff(lambda k: softmax_loss(k, point[states], point[p]), point[kappa]),
              **at),
    )
    bend = 1 / inverse_variance(kappa - log(states - 1))
    chapter.add(
        "phi_second", "Positive: $\\varphi$ is strictly convex.", r"\varphi''(\kappa)", bend,
        simplify((elementary(diff(slope, kappa)) - bend.rewrite(exp))),
        Check("second numerical derivative of the cross-entropy of the softmax",
              reference=lambda point: mpmath.diff(lambda k: softmax_loss(k, point[states], point[p]), point[kappa], 2),
              **at),
    )
    star = solve(elementary(slope), kappa)[0]
    closed = log(factored(exp(star)))
    chapter.add(
        "kappa_star", "The only zero of $\\varphi'$.", r"\kappa^*", closed,
        simplify(exp(star) - exp(closed)),
        Check("zero of the numerical derivative of the cross-entropy of the softmax",
              reference=lambda point: mpmath.findroot(
                  lambda k: mpmath.diff(lambda g: softmax_loss(g, point[states], point[p]), k), (-12, 12),
                  solver="anderson", tol=1e-40), **at),
    )

    def star_of(point):
        return mpmath.log((1 - point[p]) * (point[states] - 1) / point[p])

    def entropy_rate(point):
        return conditional_entropy([1 / point[states]] * int(point[states]), transition(point))

    unigram = log(states)
    bigram = -(1 - p) * log(1 - p) - p * log(p / (states - 1))
    for name, text, left, result, found, reference in (
        ("unigram_loss", "At $\\kappa=0$: the entropy of the uniform law.", r"\varphi(0)", unigram,
         value.subs(kappa, 0), lambda point: softmax_loss(mpf(0), point[states], point[p])),
        ("bigram_loss", "At $\\kappa=\\kappa^*$: the entropy rate.", r"\varphi(\kappa^*)", bigram,
         value.subs(kappa, closed), entropy_rate),
        ("slope_at_zero", "Its sign changes at $p=(S-1)/S$, the threshold of this chain.", r"\varphi'(0)",
         factor(cancelled(elementary(slope.subs(kappa, 0)))), slope.subs(kappa, 0),
         lambda point: mpmath.diff(lambda k: softmax_loss(k, point[states], point[p]), mpf(0))),
        ("bend_at_star", "The curvature at the optimum.", r"\varphi''(\kappa^*)", factored(bend.rewrite(exp).subs(kappa, closed)),
         bend.rewrite(exp).subs(kappa, closed),
         lambda point: mpmath.diff(lambda k: softmax_loss(k, point[states], point[p]), star_of(point), 2)),
    ):
        chapter.add(
            name, text, left, result, vanishing(elementary(found) - result),
            Check("the cross-entropy of the softmax and its numerical derivatives; the entropy rate from paths",
                  reference=reference, **at),
        )
    two = value.subs({states: 2, kappa: kappa / 2})
    from_binary = binary["phi_closed"].subs(q, p)
    in_one_sign = from_binary.replace(softplus, lambda x: softplus(-x) + x if x.could_extract_minus_sign() else softplus(x))
    chapter.add(
        "two_states", "At $S=2$ this is the two-state chain with $q=p$, whose gap is counted in units half as large.",
        r"\varphi_{\text{binary}}(\kappa;\,p,p)", two, simplify(in_one_sign - two),
        Check("minimisation of the two-state cross-entropy over the bias",
              reference=lambda point: minimised_loss(point[kappa], point[p], point[p]), **at),
    )
    arguments = (kappa, states, p)
    chapter.results["kernels"] = (
        Kernel("phi", arguments, (value,), "Loss in nats at the gap kappa."),
        Kernel("phi_prime", arguments, (slope,), "First derivative of phi."),
        Kernel("phi_second", arguments, (bend,), "Second derivative of phi."),
    )
    return chapter
