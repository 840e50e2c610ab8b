"""Chapter: the gap κ from the layers with linear attention, with a tied head or one of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import mpmath
from mpmath import mpf
from sympy import Matrix, Rational, diff, expand, factor, powsimp, sqrt, summation

from landscape.symbolic import symbols as s
from landscape.symbolic.layers import ALPHA, Direction, Outer, Ray, all_branches, attended, attentive_binary, in_branch, merge, score
from landscape.symbolic.networks import Network
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import attention, so_far, e, hidden, multiple, symbol_here, symbol_there, w, width

VALUE_ROW = Direction("v", s.width, products=((ALPHA.name, s.value_along),))  # its own length never enters
QUERY, KEY = Outer(ALPHA, ALPHA, s.query_size), Outer(ALPHA, ALPHA, s.key_size)
VALUE, OUTPUT = Outer(ALPHA, ALPHA, s.value_size), Outer(ALPHA, ALPHA, s.output_size)
FROM_ROW = Outer(ALPHA, VALUE_ROW, 1)
HALF = Rational(1, 2)
GAINS = (s.query_size, s.key_size, s.value_size, s.output_size)


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


# --- networks of actual matrices ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A network with linear attention, a sequence, and the two positions that a statement is about.

    Without `row` the value and output matrices are gains times ααᵀ; with it they are α·rowᵀ and the identity.
    """

    e: mpf
    w: mpf
    gains: tuple
    alpha: tuple[int, ...]
    hidden: int
    sequence: tuple[int, ...]
    here: int
    there: int
    row: tuple | None = None
    head: mpf | None = None
    kind: str = "linear"

    @cached_property
    def network(self) -> Network:
        return Network(len(self.alpha), self.hidden, len(self.sequence), self.kind, self.head is None)

    @cached_property
    def trace(self) -> dict:
        """The forward pass, every matrix written out."""
        d, r, alpha = len(self.alpha), self.hidden, self.alpha
        length, k = self.e / mpmath.sqrt(d), 2 / mpmath.sqrt(r * mpf(d))
        arrays = {f"position {n}": [-length * u / 2 for u in alpha] for n in range(len(self.sequence))}
        for name, gain in zip(("query", "key", "value", "output"), self.gains):
            arrays[name] = [gain * u * v for u in alpha for v in alpha]
        if self.row is not None:
            arrays["value"] = [u * v for u in alpha for v in self.row]
            arrays["output"] = [mpf(i == j) for i in range(d) for j in range(d)]
        arrays |= {
            "embedding": [length * u for u in alpha], "head": [(self.head or 0) / mpmath.sqrt(d) * u for u in alpha],
            "inner": [k * abs(self.w) * u for _ in range(r) for u in alpha],
            "outer": [k * self.w * u for u in alpha for _ in range(r)],
        }
        theta = [value for name in self.network.shapes for value in arrays.get(name, [mpf(0)])]
        return self.network.trace(theta, self.sequence)

    def gap(self):
        """Logit at the one position (where the symbol is 1) less that at the other (where it is 0)."""
        return self.trace["logits"][self.here] - self.trace["logits"][self.there]

    def added(self):
        """What the attention adds at the position `here`, as a multiple of the stream there, in the last entry."""
        return self.trace["attended"][self.here][-1] / self.trace["stream"][self.here][-1]

    def point(self) -> dict:
        """The numbers of the symbols."""
        d = len(self.alpha)
        signs = {s.sign_e: mpmath.sign(self.e), s.sign_w: mpmath.sign(self.w), s.sign_f: mpmath.sign(1 + self.added())}
        return signs | dict(zip(GAINS, self.gains)) | {
            e: self.e, w: self.w, width: mpf(d), hidden: mpf(self.hidden), multiple: self.e / mpmath.sqrt(d),
            s.head: self.head or mpf(0), attention: self.added() / self.e**2, so_far: mpf(self.here + 1),
            symbol_here: self.sequence[self.here], symbol_there: self.sequence[self.there],
            s.value_along: sum(u * v for u, v in zip(self.alpha, self.row or (0,) * d)),
        }


def _case(e_, w_, gains, alpha, r, sequence, here, there) -> Case:
    return Case(mpf(e_), mpf(w_), tuple(mpf(g) for g in gains), alpha, r, sequence, here, there)


# All signs of e, w and f, several widths and lengths; the symbol is 1 at the first position named and 0 at the other.
CASES = (
    _case("0.75", "0.5", ("0.5", "0.25", "0.5", "0.375"), (1, -1, -1), 2, (0, 1, 1, 0, 1), 4, 3),
    _case("-1.25", "0.875", ("0.5", "-0.5", "0.75", "0.5"), (-1, 1), 3, (1, 0, 0), 0, 2),
    _case("-0.625", "-0.375", ("0.25", "0.75", "-0.125", "-0.5"), (1, 1, -1, 1), 1, (0, 0, 1, 1), 2, 1),
    _case("1.125", "-1.25", ("0.75", "-0.5", "0.75", "1"), (-1, 1), 2, (1, 1, 0, 1), 3, 2),
    _case("-0.875", "-0.75", ("0.75", "0.5", "-1", "0.625"), (1, -1, 1), 2, (0, 1), 1, 0),
    _case("0.5", "-0.625", ("0.5", "0.5", "0.25", "0.125"), (1,), 1, (0, 1, 0, 1, 0, 1), 5, 0),
    _case("1.5", "0.375", ("-0.5", "1", "0.375", "0.75"), (1, -1), 1, (1, 0), 0, 1),
    _case("-0.5", "0.75", ("0.25", "0.5", "-0.5", "-0.5"), (1, 1, -1), 3, (1, 0, 1), 2, 1),
)
ROWS = tuple(
    replace(case, row=tuple(case.gains[2] + mpf(j) / 4 - u * case.gains[3] for j, u in enumerate(case.alpha))) for case in CASES
)
HEADS = tuple(replace(case, head=mpf(value) / 8) for case, value in zip(CASES, (5, 7, -6, -9, 3, -4, 10, -2)))
UNDIVIDED = tuple(replace(case, kind="sum") for case in CASES)
MULTIPLIED = "networks of d = 1 to 4, r = 1 to 3 and sequences of 2 to 6 symbols, multiplied out"


def _check(cases, reference, values=Case.point, method=MULTIPLIED) -> Check:
    return Check(method, cases=cases, values=values, reference=reference)


def attention_gap() -> Chapter:
    """The score, the factor f = 1 + a e², the gap and the constant, for symbolic d and r."""
    chapter = Chapter(
        "attention-gap",
        "From the layers to the gap, with attention and a head of its own",
        "$\\alpha\\in\\{\\pm1\\}^d$, embedding $\\mathbf e=(e/\\sqrt d)\\,\\alpha$, positions $-\\mathbf e/2$, so that the residual "
        "stream is $y_n=(x_n-\\tfrac12)\\,\\mathbf e$. Linear attention adds $W_O\\,\\tfrac1n\\sum_{i\\le n}\\mathrm{attn}_{n,i}W_V y_i$ "
        "with $\\mathrm{attn}_{n,i}=\\langle W_Qy_n,W_Ky_i\\rangle/\\sqrt d$. $W_Q=g_Q\\,\\alpha\\alpha^\\top$ and "
        "$W_K=g_K\\,\\alpha\\alpha^\\top$; value and output are either $g_V\\,\\alpha\\alpha^\\top$ and $g_O\\,\\alpha\\alpha^\\top$ or, as "
        "in the source, $W_V=\\alpha v^\\top$ and no output matrix, with $\\nu=\\langle v,\\alpha\\rangle$. The MLP is that of the "
        "canonical slice. The head is $\\mathbf e$ (tied) or $(c_h/\\sqrt d)\\,\\alpha$. $\\sigma_e,\\sigma_w,\\sigma_f$ are the signs of "
        "$e$, $w$ and $f=1+ae^2$. With softmax attention what is added depends on the whole sequence and no such gap exists.",
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
        "The score: a coefficient times $(x_n-\\tfrac12)(x_i-\\tfrac12)$. This is Eq. 45 of the source, where the letter $a$ stands "
        "for the whole coefficient; it holds $e^2$.",
        r"\mathrm{attn}_{n,i}",
        coefficient * (symbol_here - HALF) * (symbol_there - HALF),
        expand(weight - coefficient * (symbol_here - HALF) * (symbol_there - HALF)),
        _check(CASES, lambda c: c.trace["scores"][max(c.here, c.there)][min(c.here, c.there)]),
    )
    one = term(OUTPUT, VALUE)
    mean = summation(one, (s.position_there, 1, so_far)) / so_far
    chapter.add(
        "added",
        "What the attention adds at position $n$, as a multiple of $y_n$. Since $(x_i-\\tfrac12)^2=\\tfrac14$ every position adds "
        "the same multiple of the stream at $n$, and the mean over $i\\le n$ does not depend on $n$: attention multiplies the stream "
        "by $f=1+ae^2$.",
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
        "The parameter $a$ for four outer products. It has no dimension left but the sizes of the matrices; only the product of "
        "the scores' and the values' sizes enters.",
        "a", of_gains, diff(of_gains, e), _check(CASES, lambda c: c.added() / c.e**2),
    )
    one = term(None, FROM_ROW)
    of_row = powsimp(one / e**2)
    chapter.add(
        "a_value_row",
        "The same for $W_V=\\alpha v^\\top$ without output matrix: of $v$ only $\\nu=\\langle v,\\alpha\\rangle$ enters. This package's "
        "$a$ is this one and the one before: $f=1+ae^2$ with $\\mathbf e=(e/\\sqrt d)\\,\\alpha$.",
        "a", of_row, Matrix([diff(one, symbol_there), diff(one, symbol_here), diff(of_row, e)]),
        _check(ROWS, lambda c: c.added() / c.e**2),
    )
    in_multiples = powsimp(term(None, FROM_ROW, multiple) / multiple**2)
    chapter.add(
        "a_in_multiples",
        "With the embedding written $\\mu\\alpha$, so $\\mu=e/\\sqrt d$, and $f=1+a_\\mu\\mu^2$: at $g_Q=g_K=q$ this is the second "
        "definition that circulates, $a=\\tfrac{q^2d^{5/2}}4\\langle v,\\alpha\\rangle$. It holds in units of $\\mu$; the conversion is "
        "$a_\\mu=d\\,a$.",
        r"a_\mu", in_multiples, powsimp(expand(in_multiples - width * of_row)),
        _check(ROWS, lambda c: c.added() / (c.e**2 / len(c.alpha))),
    )
    gains = s.query_size * s.key_size
    unit = powsimp(gains / (of_row / s.value_along))  # the g_Q g_K at which a = ν
    fixed = chapter["score"].subs(s.query_size, unit / s.key_size)
    chapter.add(
        "a_value_alone",
        "The first definition, $a=\\langle v,\\alpha\\rangle$, is the special case $g_Qg_K=4d^{-3/2}$ ($4d^{-5/2}$ in units of $\\mu$): "
        "then the scores are $\\pm e^2$ and $W_Q$, $W_K$ are not trained. $g_Qg_K$ and $\\nu$ enter $a$ as a product, so the scalar "
        "can sit with the scores or with $V$; the gap is the same, the gradient flow in the matrices is not.",
        r"\left(g_Qg_K,\ \mathrm{attn}_{n,i},\ a\right)",
        Matrix([unit, fixed, of_row.subs(s.query_size, unit / s.key_size)]),
        Matrix([diff(fixed, s.key_size), powsimp(of_row.subs(s.query_size, unit / s.key_size) - s.value_along)]),
        _check(VALUE_ALONE, lambda c: [
            c.gains[0] * c.gains[1], c.trace["scores"][max(c.here, c.there)][min(c.here, c.there)], c.added() / c.e**2,
        ]),
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
        "The gap less that of the network with $d=r=1$, $\\alpha=1$ and the same $(e,c_h,w,a)$, in the eight branches: the loss "
        "does not depend on $\\alpha$ (line 203), and $\\mathbf e$, $W_1$ and $W_2$ need only have their directions and lengths. At "
        "given matrix sizes $a$ depends on $d$.",
        r"\kappa(d,r,\alpha)-\kappa(1,1,1)",
        Matrix([expand(change) for change in changes]),
        Matrix([diff(gap, size) for gap in gaps for size in (width, hidden)]),
        _check(HEADS, lambda c: [c.gap() - _smallest(c).gap()] * len(gaps)),
    )
    total = summation(attention * e**2, (s.position_there, 1, so_far))
    undivided = chapter["gap_tied"].subs(attention, total / e**2)
    chapter.add(
        "undivided",
        "Without the division by $n$ the same terms add up to $f_n=1+n\\,ae^2$: the gap at position $n$, against the logit after a "
        "0 at the same position, would depend on $n$.",
        r"\kappa_n",
        undivided,
        expand(undivided.subs(so_far, 1) - chapter["gap_tied"]),
        _check(UNDIVIDED, _undivided_gap, values=lambda c: replace(c, kind="linear").point()),
    )


def _smallest(case: Case) -> Case:
    """The network with d = r = 1 and the same (e, c_h, w, a)."""
    a = case.added() / case.e**2
    return replace(case, alpha=(1,), hidden=1, gains=(mpf(1), mpf(2), 2 * a, mpf(1)))


def _undivided_gap(case: Case):
    """The logit after a 1 less that after a 0, both at the position `here`."""
    sequences = [(*case.sequence[: case.here], x) for x in (1, 0)]
    one, zero = (replace(case, sequence=sequence).trace["logits"][-1] for sequence in sequences)
    return one - zero


def _value_alone(case: Case) -> Case:
    """The same with a key matrix such that g_Q g_K = 4 d^(-3/2)."""
    with mpmath.workdps(60):
        return replace(case, gains=(case.gains[0], 4 / (case.gains[0] * mpmath.sqrt(len(case.alpha)) ** 3), *case.gains[2:]))


VALUE_ALONE = tuple(_value_alone(case) for case in ROWS)
