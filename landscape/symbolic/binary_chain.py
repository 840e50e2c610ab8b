"""Chapter: the two-state chain, from its transition matrix to the loss φ as a function of the logit gap."""

from __future__ import annotations

import mpmath
from mpmath import mpf
from sympy import (
    Abs, Matrix, Max, Piecewise, Poly, Rational, Symbol, asinh, diff, exp, expand, factor, log, powdenest, roots,
    simplify, sinh, solve, sqrt,
)

from landscape.symbolic.algebra import cancelled, factored, inverse_variance, upright, vanishing
from landscape.symbolic.primitives import asinh_exp_excess, elementary, shift_maximum, softplus
from landscape.symbolic.references import (
    best_bias, best_logits, conditional_entropy, cross_entropy, long_run_law, minimised_loss,
)
from landscape.symbolic.steps import Chapter, Check, Kernel
from landscape.symbolic.symbols import bias, kappa, logit_one, logit_zero, p, q

POINTS = tuple(
    {kappa: mpf(k), p: mpf(a) / 100, q: mpf(b) / 100}
    for k, a, b in (("-9.25", 50, 80), ("-1.5", 20, 30), ("0.375", 81, 17), ("2.75", 7, 61), ("6.5", 33, 33))
)

# p above and below q, with either argument of the maximum the larger one.
BOTH_ARGUMENTS = tuple(
    {kappa: mpf(k), p: mpf(a) / 100, q: mpf(b) / 100}
    for k, a, b in ((-6, 81, 17), (5, 81, 17), (-9, 20, 30), (4, 20, 30), (-7, 50, 80), (3, 45, 85))
)


def binary_chain() -> Chapter:
    """The two-state chain: from the transition matrix to φ, φ′, φ″ and κ*."""
    chapter = Chapter(
        "binary-chain",
        "The two-state chain",
        "The chain on $\\{0,1\\}$ switches $0\\to1$ with probability $p$ and $1\\to0$ with probability $q$. A model of the "
        "next symbol that sees the current one has two logits, $b$ after a 0 and $\\kappa+b$ after a 1. Its loss is the "
        "cross-entropy $L(\\kappa,b)=\\sum_x\\pi_x\\sum_yP(y\\mid x)\\operatorname{softplus}(-(2y-1)(\\kappa x+b))$; "
        "minimised over the bias $b$ it is a function $\\varphi(\\kappa)$ of the gap alone.",
        settles="*Claim*: the kernel $P(x_{n+1}=1\\mid x_1^n)=x_n(1-p-q)+p$ is linear in the last symbol, so that $a\\approx0$, "
        "no attention, is a viable solution (authors). *Settled*: two logits, one after each symbol, reach the bigram "
        "loss, and at one gap only. *Beyond*: the loss at the best bias in closed form, a strictly convex function of the "
        "gap for all $p,q\\in(0,1)$; $p+q=1$ is where its slope at zero changes sign.",
    )
    at = {"cases": POINTS}

    def numbers(point):
        return point[kappa], point[p], point[q]

    matrix = Matrix([[1 - p, p], [q, 1 - q]])
    first = Symbol("pi_0", positive=True)
    law_row = Matrix([[first, 1 - first]])
    solved = solve((law_row * matrix - law_row)[0], first)[0]
    law = chapter.add(
        "stationary",
        "The stationary law solves $\\pi P=\\pi$.",
        r"\pi",
        Matrix([solved, cancelled(1 - solved)]),
        (Matrix([[solved, 1 - solved]]) * (matrix - Matrix.eye(2))).applyfunc(cancelled),
        Check(
            "a row of the 4096th power of the transition matrix",
            reference=lambda point: long_run_law(
                mpmath.matrix([[1 - point[p], point[p]], [point[q], 1 - point[q]]])
            ),
            **at,
        ),
    )
    weights = (law[0], law[1])

    def entropy(probability):
        return -probability * log(probability) - (1 - probability) * log(1 - probability)

    unigram = chapter.add(
        "unigram_loss",
        "Without the current symbol ($\\kappa=0$) the best loss is the entropy of the stationary law.",
        r"\varphi_{\text{unigram}}",
        -law[0] * log(law[0]) - law[1] * log(law[1]),
        simplify(-law[0] * log(law[0]) - law[1] * log(law[1]) - entropy(law[1]).subs(1 - law[1], law[0])),
        Check(
            "minimisation of the cross-entropy over one common logit",
            reference=lambda point: minimised_loss(mpf(0), point[p], point[q]),
            **at,
        ),
    )
    bigram_value = law[0] * entropy(p) + law[1] * entropy(q)

    def expected(zero, one, weights=weights):
        return sum(
            weights[x] * matrix[x, y] * softplus(-(2 * y - 1) * (zero, one)[x]) for x in (0, 1) for y in (0, 1)
        )

    best = {logit_zero: log(p / (1 - p)), logit_one: log((1 - q) / q)}
    gradient = [
        elementary(diff(expected(logit_zero, logit_one), logit)).subs(best) for logit in (logit_zero, logit_one)
    ]
    bigram = chapter.add(
        "bigram_loss",
        "With both logits free they take the log-odds of the rows of $P$, where the gradient of the loss vanishes; the "
        "loss there is the entropy rate.",
        r"\varphi_{\text{bigram}}",
        bigram_value,
        Matrix([cancelled(entry) for entry in gradient]),
        Check(
            "entropy of all paths of three symbols less that of two",
            reference=lambda point: conditional_entropy(
                (point[q] / (point[p] + point[q]), point[p] / (point[p] + point[q])),
                mpmath.matrix([[1 - point[p], point[p]], [point[q], 1 - point[q]]]),
            ),
            **at,
        ),
    )

    loss = expected(bias, kappa + bias)
    odds, boost = Symbol("B", positive=True), Symbol("K", positive=True)
    in_powers = {bias: log(odds), kappa: log(boost)}
    in_odds = elementary(diff(loss, bias)).subs(in_powers)
    cleared = expand(cancelled(in_odds * (p + q) * (1 + odds) * (1 + boost * odds)))
    chapter.add(
        "stationarity",
        "In $B=e^{b}$ and $K=e^{\\kappa}$ the condition $\\partial L/\\partial b=0$ is a quadratic.",
        r"(p+q)(1+B)(1+KB)\,\frac{\partial L}{\partial b}\Big|_{B=e^b,\,K=e^\kappa}",
        cleared.subs({odds: exp(bias), boost: exp(kappa)}),
        cancelled(in_odds * (p + q) * (1 + odds) * (1 + boost * odds) - cleared),
        Check(
            "numerical derivative of the cross-entropy in the bias",
            cases=tuple({**point, bias: mpf(b)} for point, b in zip(POINTS, ("0.5", "-1", "2", "-0.25", "1"))),
            reference=lambda point: (point[p] + point[q])
            * (1 + mpmath.exp(point[bias]))
            * (1 + mpmath.exp(point[kappa] + point[bias]))
            * mpmath.diff(lambda b: cross_entropy((b, point[kappa] + b), point[p], point[q]), point[bias]),
        ),
    )
    root = next(r for r in roots(Poly(cleared, odds)) if r.subs({p: Rational(1, 3), q: Rational(1, 5), boost: 2}) > 0)
    chapter.add(
        "best_odds",
        "Its positive root is the minimiser, since $L$ is convex in $b$.",
        r"e^{b^*}",
        root.subs(boost, exp(kappa)),
        simplify(expand(cleared.subs(odds, root))),
        Check(
            "minimisation of the cross-entropy over the bias",
            reference=lambda point: mpmath.exp(best_bias(*numbers(point))),
            **at,
        ),
    )

    # The same root, centred: B = sqrt(p / (q K)) e^t turns the quadratic into one hyperbolic sine.
    t = Symbol("t", real=True)
    centre = log(p / q) / 2 - kappa / 2
    centred = expand(cleared.subs(odds, sqrt(p / (q * boost)) * exp(t)) * exp(-t) / p)
    asymmetry = powdenest(expand(-centred.subs(t, 0)), force=True)
    balance = expand(powdenest(centred - (2 * sinh(t)).rewrite(exp) + asymmetry, force=True))
    sinh_argument = factor(asymmetry / 2).subs(boost, exp(kappa))
    best_value = centre + asinh(sinh_argument)
    chapter.add(
        "best_bias",
        "Put $b=\\tfrac12\\log(p/q)-\\kappa/2+t$, the ansatz that treats the two logits alike. The quadratic becomes "
        "$2\\sinh t$ equal to a constant, so that $t$ is an inverse hyperbolic sine.",
        r"b^*",
        best_value,
        balance,
        Check(
            "minimisation of the cross-entropy over the bias",
            reference=lambda point: best_bias(*numbers(point)),
            **at,
        ),
    )

    # A form without cancellation: asinh(±e^u) = ±(max(u, 0) + ρ(u)), and the maximum takes up the other terms.
    offset = log(Abs(sinh_argument.subs(kappa, 0)))
    ell_c, rho = Symbol("lambda", real=True), Symbol("rho", real=True)
    half = centre.subs(kappa, 0)
    above = [shift_maximum(shared + Max(ell_c - kappa / 2, 0)) + half + rho for shared in (-kappa / 2, kappa / 2)]
    below = [shift_maximum(shared - Max(ell_c - kappa / 2, 0)) + half - rho for shared in (-kappa / 2, kappa / 2)]
    logits = [Piecewise((upper, p >= q), (lower, True)) for upper, lower in zip(above, below)]
    spelled = {rho: asinh_exp_excess(ell_c - kappa / 2)}
    closed = [logit.subs(spelled).subs(ell_c, offset) for logit in logits]
    size = Symbol("u", positive=True)
    split = [
        simplify(sign * (Max(u, 0) + elementary(asinh_exp_excess(u))) - sign * asinh(exp(u)))
        for sign in (1, -1)
        for u in (size, -size)
    ]
    chapter.add(
        "logits",
        "With $\\lambda=\\log\\frac{|p-q|}{2\\sqrt{pq}}$ and $\\rho(u)=\\operatorname{asinh}e^u-\\max(u,0)$ the two "
        "logits are sums in which large terms never cancel. This is the form that the kernels use.",
        r"(\ell_0,\ \ell_1)=(b^*,\ \kappa+b^*)",
        Matrix(closed),
        Matrix(split),
        Check(
            "minimisation of the cross-entropy over the bias",
            cases=BOTH_ARGUMENTS,
            reference=lambda point: (best_bias(*numbers(point)), point[kappa] + best_bias(*numbers(point))),
        ),
    )

    l0, l1 = logit_zero, logit_one
    at_optimum = {l0: bias, l1: kappa + bias}

    def with_logits(point):
        b = best_bias(*numbers(point))
        return {**point, l0: b, l1: point[kappa] + b}

    at_logits = {"values": with_logits, **at}
    value = expected(l0, l1)
    chapter.add(
        "phi",
        "The loss at the best bias, written in its two logits $\\ell_0=b^*$ and $\\ell_1=\\kappa+b^*$.",
        r"\varphi(\kappa)",
        value,
        simplify(value.subs(at_optimum) - loss),
        Check(
            "minimisation of the cross-entropy over the bias",
            reference=lambda point: minimised_loss(*numbers(point)),
            **at_logits,
        ),
    )
    chapter.results["phi_closed"] = value.subs({l1: kappa + l0}).subs(l0, best_value)
    # The bias equation, σ(ℓ0) = p - π1 (σ(ℓ1) - (1 - q)) / π0, is used through the envelope theorem only.
    slope = factor(expand(upright(diff(value, l1))))
    chapter.add(
        "phi_prime",
        "The envelope theorem: $\\varphi'=\\partial L/\\partial\\kappa$ at $b=b^*$.",
        r"\varphi'(\kappa)",
        slope,
        simplify(elementary(diff(loss, kappa) - slope.subs(at_optimum))),
        Check(
            "numerical derivative of the minimised loss",
            reference=lambda point: mpmath.diff(lambda k: minimised_loss(k, point[p], point[q]), point[kappa]),
            **at_logits,
        ),
    )
    v0, v1 = Symbol("v_0", positive=True), Symbol("v_1", positive=True)
    curvatures = {v0: diff(value, l0, 2), v1: diff(value, l1, 2)}
    schur = diff(loss, kappa, 2) - diff(loss, kappa, bias) ** 2 / diff(loss, bias, 2)
    harmonic = 1 / expand(1 / cancelled(v1 - v1**2 / (v0 + v1)))
    inverses = {v: inverse_variance(logit) / weight for v, logit, weight in zip((v0, v1), (l0, l1), weights)}
    bend = 1 / sum(inverses.values())
    chapter.add(
        "phi_second",
        "The Schur complement of the bias in the Hessian of $L(\\kappa,b)$. With $v_x=\\pi_x\\sigma(\\ell_x)\\sigma(-\\ell_x)$ "
        "it is $v_0v_1/(v_0+v_1)>0$: $\\varphi$ is strictly convex.",
        r"\varphi''(\kappa)",
        bend,
        Matrix(
            [cancelled(elementary(schur - bend.rewrite(exp).subs(at_optimum)).subs(in_powers))]
            + [cancelled(elementary(curvatures[v] * inverses[v].rewrite(exp)).subs(l0, log(odds)).subs(l1, log(odds)) - 1)
               for v in (v0, v1)]
            + [cancelled(harmonic - 1 / (1 / v0 + 1 / v1))]
        ),
        Check(
            "second numerical derivative of the minimised loss",
            reference=lambda point: mpmath.diff(lambda k: minimised_loss(k, point[p], point[q]), point[kappa], 2),
            **at_logits,
        ),
    )
    optimum = best[logit_one] - best[logit_zero]
    star = log(factored(exp(optimum)))
    chapter.add(
        "kappa_star",
        "The gap of the best logits, the only zero of $\\varphi'$.",
        r"\kappa^*",
        star,
        simplify(exp(optimum) - exp(star)),
        Check(
            "minimisation of the cross-entropy over each of the two logits",
            reference=lambda point: best_logits(point[p], point[q])[1] - best_logits(point[p], point[q])[0],
            **at,
        ),
    )
    at_star = {l0: best[logit_zero], l1: best[logit_one]}
    at_zero = {l0: log(law[1] / law[0]), l1: log(law[1] / law[0])}
    for name, text, left, result, found, reference in (
        (
            "phi_at_zero", "At $\\kappa=0$ both logits are the log-odds of $\\pi$: the unigram loss.", r"\varphi(0)",
            unigram, value.subs(at_zero), lambda point: minimised_loss(mpf(0), point[p], point[q]),
        ),
        (
            "phi_at_star", "At $\\kappa=\\kappa^*$: the bigram loss.", r"\varphi(\kappa^*)",
            bigram, value.subs(at_star),
            lambda point: minimised_loss(
                mpmath.log((1 - point[p]) * (1 - point[q]) / (point[p] * point[q])), point[p], point[q]
            ),
        ),
        (
            "slope_at_zero",
            "Its sign is that of $p+q-1$: below the threshold a larger gap helps, above it a smaller one.",
            r"\varphi'(0)", factor(cancelled(elementary(slope.subs(at_zero)))), slope.subs(at_zero),
            lambda point: mpmath.diff(lambda k: minimised_loss(k, point[p], point[q]), mpf(0)),
        ),
        (
            "bend_at_star", "The curvature at the optimum.", r"\varphi''(\kappa^*)",
            factored(bend.subs(at_star).rewrite(exp)), bend.subs(at_star).rewrite(exp),
            lambda point: mpmath.diff(
                lambda k: minimised_loss(k, point[p], point[q]),
                mpmath.log((1 - point[p]) * (1 - point[q]) / (point[p] * point[q])), 2,
            ),
        ),
    ):
        chapter.add(
            name, text, left, result, vanishing(elementary(found) - result),
            Check("minimisation over the bias, and numerical derivatives of it", reference=reference,
                  **at),
        )

    # The kernels take the stationary law as numbers of their own, as 1 / (p + q) may overflow where p / (p + q) does not.
    named = Symbol("pi_0", positive=True), Symbol("pi_1", positive=True)
    value = expected(l0, l1, named)
    slope = factor(expand(upright(diff(value, l1))))
    bend = 1 / sum(inverse_variance(logit) / weight for logit, weight in zip((l0, l1), named))
    lets = (
        *zip(named, weights),
        (ell_c, offset),
        (rho, asinh_exp_excess(ell_c - kappa / 2)),
        (l0, logits[0]),
        (l1, logits[1]),
    )
    arguments = (kappa, p, q)
    chapter.results["kernels"] = (
        Kernel("phi", arguments, (value,), "Loss in nats at the gap kappa, the bias minimised out.", lets),
        Kernel("phi_prime", arguments, (slope,), "First derivative of phi.", lets),
        Kernel("phi_second", arguments, (bend,), "Second derivative of phi.", lets),
        Kernel("best_bias", arguments, (l0,), "The bias that minimises the loss at the gap kappa: the logit after a 0.", lets),
    )
    return chapter
