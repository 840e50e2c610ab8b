"""Chapter: the gap κ from the layers with linear attention, with a tied head or one of its own."""

from __future__ import annotations

from dataclasses import replace

from sympy import Matrix, Rational, diff, expand, factor, powsimp, sqrt, summation

from landscape.symbolic import symbols as s
from landscape.symbolic.attention_networks import CASES, HEADS, ROWS, UNDIVIDED, Case, smallest, undivided_gap, value_alone
from landscape.symbolic.layers import (
    ALPHA, Direction, Outer, Ray, all_branches, attended, attentive_binary, in_branch, merge, score,
)
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import attention, e, hidden, multiple, so_far, symbol_here, symbol_there, width

VALUE_ROW = Direction("v", s.width, products=((ALPHA.name, s.value_along),))  # its own length never enters
QUERY, KEY = Outer(ALPHA, ALPHA, s.query_size), Outer(ALPHA, ALPHA, s.key_size)
VALUE, OUTPUT = Outer(ALPHA, ALPHA, s.value_size), Outer(ALPHA, ALPHA, s.output_size)
FROM_ROW = Outer(ALPHA, VALUE_ROW, 1)
HALF = Rational(1, 2)


# --- the layers ------------------------------------------------------------------------------------------


def stream(symbol, size=None) -> Ray:
    """The residual stream before the attention: the embedding times the symbol, less half the embedding."""
    embedding = Ray(ALPHA, e / sqrt(width) if size is None else size)
    return embedding.scaled(symbol) + embedding.scaled(-HALF)


def binary(expression):
    """Use x² = x for the symbol at a position i."""
    polynomial = expand(expression).as_poly(symbol_there)
    return sum(coefficient * (symbol_there if power else 1) for (power,), coefficient in polynomial.terms())


def term(output: Outer | None, value: Outer, size=None):
    """What position i adds to position n, before the division by n, as a multiple of the stream at n."""
    here, there = stream(symbol_here, size), stream(symbol_there, size)
    weight = score(QUERY, KEY, here, there)
    added = value @ there.scaled(weight) if output is None else attended(output, value, (weight,), (there,))
    return powsimp(factor(binary(added.size) / here.size))


MULTIPLIED = "networks of d = 1 to 4, r = 1 to 3 and sequences of 2 to 6 symbols, multiplied out"


def _check(cases, reference, values=Case.point) -> Check:
    return Check(MULTIPLIED, cases=cases, values=values, reference=reference)


def attention_gap() -> Chapter:
    """The score, the factor f = 1 + a e², the gap and the constant, for symbolic d and r."""
    chapter = Chapter(
        "attention-gap",
        "From the layers to the gap, with attention and a head of its own",
        "$\\alpha\\in\\{\\pm1\\}^d$, embedding $\\mathbf e=(e/\\sqrt d)\\,\\alpha$, positions $-\\mathbf e/2$, so that "
        "the residual stream is $y_n=(x_n-\\tfrac12)\\,\\mathbf e$. Linear attention adds $W_O\\,\\tfrac1n\\sum_{i\\le "
        "n}\\mathrm{attn}_{n,i}W_V y_i$ with $\\mathrm{attn}_{n,i}=\\langle W_Qy_n,W_Ky_i\\rangle/\\sqrt d$. "
        "$W_Q=g_Q\\,\\alpha\\alpha^\\top$ and $W_K=g_K\\,\\alpha\\alpha^\\top$; value and output are either "
        "$g_V\\,\\alpha\\alpha^\\top$ and $g_O\\,\\alpha\\alpha^\\top$ or, as in the source, $W_V=\\alpha v^\\top$ and "
        "no output matrix, with $\\nu=\\langle v,\\alpha\\rangle$. The MLP is that of the canonical slice. The head is "
        "$\\mathbf e$ (tied) or $(c_h/\\sqrt d)\\,\\alpha$. $\\sigma_e,\\sigma_w,\\sigma_f$ are the signs of $e$, $w$ "
        "and $f=1+ae^2$. With softmax attention what is added depends on the whole sequence and no such gap exists.",
        settles="*Claims*: the score is $a\\,(x_n-\\tfrac12)(x_i-\\tfrac12)$ with a trainable $a$ (Eq. 45), and the loss depends "
        "on $(e,w,a)$ alone and not on $\\alpha$, even if $\\alpha$ is trained (authors); two definitions of $a$ "
        "circulate, which differ in where the scalar sits, and the length of a trained $\\alpha$ changes (a reviewer). "
        "*Settled*: Eq. 45 holds with a coefficient that contains $e^2$. The two definitions give the same gap, in other "
        "units or with $W_Q$ and $W_K$ held fixed. The loss is free of $\\alpha\\in\\{\\pm1\\}^d$ at given $(e,w,a)$; at "
        "given matrices $a$ depends on $d$. That the length of a trained $\\alpha$ does change is "
        "[measured](../validation/results/report.md). *Beyond*: a head of its own, and the reason why linear attention "
        "has to be divided by $n$ for one gap to exist.",
    )
    _scores(chapter)
    _definitions(chapter)
    _gap(chapter, "tied", CASES, "")
    _gap(chapter, "untied", HEADS, " with a head of its own")
    _what_does_not_enter(chapter)
    return chapter


def _scores(chapter: Chapter) -> None:
    """Eq. 45, and that the attention multiplies the stream by a factor."""
    weight = score(QUERY, KEY, stream(symbol_here), stream(symbol_there))
    coefficient = diff(weight, symbol_here, symbol_there)
    chapter.add(
        "score",
        "The score: a coefficient times $(x_n-\\tfrac12)(x_i-\\tfrac12)$. This is Eq. 45 of the source, which writes "
        "$a$ for the whole coefficient; it contains $e^2$.",
        r"\mathrm{attn}_{n,i}",
        coefficient * (symbol_here - HALF) * (symbol_there - HALF),
        expand(weight - coefficient * (symbol_here - HALF) * (symbol_there - HALF)),
        _check(CASES, Case.score),
    )
    one = term(OUTPUT, VALUE)
    mean = summation(one, (s.position_there, 1, so_far)) / so_far
    chapter.add(
        "added",
        "What the attention adds at position $n$, as a multiple of $y_n$. Since $(x_i-\\tfrac12)^2=\\tfrac14$ every "
        "position adds the same multiple of the stream at $n$, and the mean over $i\\le n$ does not depend on $n$: "
        "attention multiplies the stream by $f=1+ae^2$.",
        r"f-1=ae^2",
        mean,
        Matrix([diff(one, symbol_there), diff(one, symbol_here), diff(mean, so_far), expand(mean - one)]),
        _check(CASES, Case.added),
    )


def _definitions(chapter: Chapter) -> None:
    """The definitions of a, in the units in which each holds."""
    of_gains = powsimp(chapter["added"] / e**2)
    chapter.add(
        "a_four_matrices",
        "The parameter $a$ for four outer products. Scores and values enter as a product: the coefficient of the score "
        "times the factor $g_Vg_Od^2$ of the values is $4ae^2$.",
        "a", of_gains,
        Matrix([diff(of_gains, e), powsimp(chapter["score"].subs({symbol_here: 1, symbol_there: 1}) * s.value_size * s.output_size
                                           * width**2 - of_gains * e**2)]),
        _check(CASES, lambda c: c.added() / c.e**2),
    )
    one = term(None, FROM_ROW)
    of_row = powsimp(one / e**2)
    chapter.add(
        "a_value_row",
        "The same for $W_V=\\alpha v^\\top$ without output matrix: of $v$ only $\\nu=\\langle v,\\alpha\\rangle$ "
        "enters. This package's $a$ is this one and the one before: $f=1+ae^2$ with $\\mathbf e=(e/\\sqrt d)\\,\\alpha$.",
        "a", of_row, Matrix([diff(one, symbol_there), diff(one, symbol_here), diff(of_row, e)]),
        _check(ROWS, lambda c: c.added() / c.e**2),
    )
    in_multiples = powsimp(term(None, FROM_ROW, multiple) / multiple**2)
    chapter.add(
        "a_in_multiples",
        "With the embedding written $\\mu\\alpha$, so $\\mu=e/\\sqrt d$, and $f=1+a_\\mu\\mu^2$: at $g_Q=g_K=q$ this is "
        "the second definition that circulates, $a=\\tfrac{q^2d^{5/2}}4\\langle v,\\alpha\\rangle$. It holds in units "
        "of $\\mu$; the conversion is $a_\\mu=d\\,a$.",
        r"a_\mu", in_multiples, powsimp(expand(in_multiples - width * of_row)),
        _check(ROWS, lambda c: c.added() / (c.e**2 / len(c.alpha))),
    )
    gains = s.query_size * s.key_size
    unit = powsimp(gains / (of_row / s.value_along))  # the g_Q g_K at which a = ν
    fixed = chapter["score"].subs(s.query_size, unit / s.key_size)
    chapter.add(
        "a_value_alone",
        "The first definition, $a=\\langle v,\\alpha\\rangle$, is the special case $g_Qg_K=4d^{-3/2}$ ($4d^{-5/2}$ in "
        "units of $\\mu$): then the scores are $\\pm e^2$ and $W_Q$, $W_K$ are held fixed. $g_Qg_K$ and $\\nu$ enter "
        "$a$ as a product, so the scalar can sit with the scores or with $V$; the gap is the same, the gradient flow in "
        "the matrices is not.",
        r"\left(g_Qg_K,\ \mathrm{attn}_{n,i},\ a\right)",
        Matrix([unit, fixed, of_row.subs(s.query_size, unit / s.key_size)]),
        Matrix([diff(fixed, s.key_size), powsimp(of_row.subs(s.query_size, unit / s.key_size) - s.value_along)]),
        _check(ROWS, value_alone),
    )


def _gap(chapter: Chapter, name: str, cases, words: str) -> None:
    """The constant and the gap for every sign of e, w and f."""
    branches = all_branches(lambda branch: attentive_binary(branch, name == "tied"), 3)
    inserted = {s.factor: 1 + attention * e**2}
    constant = merge({branch: logits[0] for branch, logits in branches.items()})
    gap = merge({branch: logits[1] - logits[0] for branch, logits in branches.items()})
    chapter.add(
        f"constant_{name}",
        f"The logit after a 0{words}, up to the bias. ReLU is open after a 1 if $ef>0$ and after a 0 if $ef<0$, whence "
        "$-\\tfrac{ec_hf}2\\cdot\\{1$ or $1+4w|w|\\}$ (with $c_h=e$ when tied); the bias takes it up.",
        r"\ell(0)-b",
        factor(constant).subs(inserted),
        Matrix([expand(in_branch(constant, branch) - logits[0]) for branch, logits in branches.items()]),
        _check(cases, lambda c: c.trace["logits"][c.there]),
    )
    chapter.add(
        f"gap_{name}",
        "The gap" + words + ", one expression for all eight branches: $" + ("e^2" if name == "tied" else "e\\,c_h") + "f(1+2w|w|)$. "
        "Neither $\\alpha$ nor $d$ nor $r$ nor $n$ is left.",
        rf"\kappa_{{\text{{{name}}}}}",
        factor(gap).subs(inserted),
        Matrix([expand(in_branch(gap, branch) - logits[1] + logits[0]) for branch, logits in branches.items()]),
        _check(cases, Case.gap),
    )


def _what_does_not_enter(chapter: Chapter) -> None:
    """The gap at d = r = 1 is the gap; without the division by n it depends on n."""
    branches = all_branches(lambda branch: attentive_binary(branch, False), 3)
    gaps = [logits[1] - logits[0] for logits in branches.values()]
    changes = [gap - gap.subs({width: 1, hidden: 1}) for gap in gaps]
    chapter.add(
        "independence",
        "The gap less that of the network with $d=r=1$, $\\alpha=1$ and the same $(e,c_h,w,a)$, in the eight branches: "
        "the loss does not depend on $\\alpha$ (line 203), and $\\mathbf e$, $W_1$ and $W_2$ need only have their "
        "directions and lengths. At given matrix sizes $a$ depends on $d$.",
        r"\kappa(d,r,\alpha)-\kappa(1,1,1)",
        Matrix([expand(change) for change in changes]),
        Matrix([diff(gap, size) for gap in gaps for size in (width, hidden)]),
        _check(HEADS, lambda c: [c.gap() - smallest(c).gap()] * len(gaps)),
    )
    total = summation(attention * e**2, (s.position_there, 1, so_far))
    undivided = chapter["gap_tied"].subs(attention, total / e**2)
    chapter.add(
        "undivided",
        "Without the division by $n$ the same terms add up to $f_n=1+n\\,ae^2$: the gap at position $n$, against the "
        "logit after a 0 at the same position, would depend on $n$.",
        r"\kappa_n",
        undivided,
        expand(undivided.subs(so_far, 1) - chapter["gap_tied"]),
        _check(UNDIVIDED, undivided_gap, values=lambda c: replace(c, kind="linear").point()),
    )


