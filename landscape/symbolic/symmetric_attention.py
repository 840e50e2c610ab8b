"""Chapter: linear attention on the simplex ansatz: what it adds on the mean, how far it is off, the gap in the limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product

import mpmath
from mpmath import fdot, mpf
from sympy import And, Matrix, cancel, diff, expand, factor, sqrt

from landscape.chains import SymmetricChain
from landscape.symbolic import symbols as s
from landscape.symbolic.algebra import cancelled
from landscape.symbolic.attention_networks import GAINS
from landscape.symbolic.layers import Corners
from landscape.symbolic.modules import built_in_gap_module
from landscape.symbolic.references import softmax_loss
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbol_networks import SymbolNetwork, ansatz, corners, excess, path_law, transition
from landscape.symbolic.symbols import e, memory, own, sign_e, sign_w, slope, so_far, states, w
from landscape.symbolic.symmetric_closure import gated, tidy

OTHER = -1 / (states - 1)  # inner product of two corners
POWERS = (1 - memory**so_far) / (1 - memory)  # Σ λ^k over k < n
WEIGHTED = memory * diff(POWERS, memory)  # Σ k λ^k


def symmetric_attention(closure: Chapter, gap: Chapter) -> Chapter:
    """Mean and variance of what linear attention adds, and the gap with it."""
    chapter = Chapter(
        "symmetric-attention",
        "Many states: linear attention",
        "Linear attention on the [ansatz](symmetric-closure.md): $W_Q,W_K,W_V,W_O$ are $g_Q,\\dots,g_O$ times the identity on the span of the simplex, so that the stream "
        "$e\\,u_{x_n}$ gets $\\frac{g_Qg_Kg_Vg_O}{\\sqrt d}\\,e^3A_n$ with $A_n=\\frac1n\\sum_{i\\le n}\\langle u_{x_n},u_{x_i}\\rangle u_{x_i}$. For two symbols $A_n=u_{x_n}$ always. For more "
        "it depends on how often each symbol came. $\\lambda_2=1-pS/(S-1)$ is the second eigenvalue of the chain; all means are given $x_n=x$.",
        settles="*Claim*: linear attention multiplies the stream by a factor (Eq. 45, for two symbols; authors). *Settled*: with more symbols "
        "that is true in expectation, and in the limit of long sequences only. *Beyond*: the error, of order $n^{-1/2}$, and local "
        "minima on the surface where the factor is zero.",
    )
    mean, variance = _moments(chapter)
    _limits(chapter, mean, variance)
    _gap(chapter, gap)
    return chapter


# --- mean and variance at finite n -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sums:
    """A network with linear attention on sequences of n symbols, of which all are enumerated."""

    states: int
    p: mpf
    length: int

    def point(self) -> dict:
        return {states: mpf(self.states), so_far: self.length, memory: 1 - self.p * self.states / (self.states - 1)}

    @cached_property
    def moments(self) -> list:
        """Multiple of u_x that is the mean of A_n, and the mean squared distance from it, for the symbol 0."""
        n, d = self.states, self.states - 1
        network = SymbolNetwork(n, d, n, self.length, "linear")
        gains, length = (mpf("1.5"), mpf("-0.75"), mpf("1.25"), mpf("0.5")), mpf("0.875")
        arrays = ansatz(n, d, length, mpf(1), mpf(1))
        arrays |= {name: [[g * (i == j) for j in range(d)] for i in range(d)] for name, g in zip(("query", "key", "value", "output"), gains)}
        of = network.arrays(network.flat(arrays))
        unit = mpmath.fprod(gains) * length**3 / mpmath.sqrt(d)
        found = []
        for path in product(range(n), repeat=self.length):
            if path[-1] == 0:
                added = network.attended(of, [of["embedding"][x] for x in path])
                found.append((path_law(path, n, self.p) * n, [v / unit for v in added]))
        mean = [sum(weight * row[k] for weight, row in found) for k in range(d)]
        spread = sum(weight * sum((a - b) ** 2 for a, b in zip(row, mean)) for weight, row in found)
        return [fdot(mean, corners(n, d)[0]), spread]


ENUMERATED = tuple(Sums(n, mpf(p_), k) for n, p_, k in (
    (3, "0.9", 1), (3, "0.9", 5), (3, "0.3", 4), (5, "0.95", 3), (5, "0.6", 4), (4, "0.4", 3), (2, "0.7", 4)))


def _moments(chapter: Chapter):
    def share(there):  # P(x_{n-k} = j | x_n = x) as (constant, multiple of λ^k); there: j = x
        return (1 / states, (states - 1) / states) if there else (1 / states, -1 / states)

    def first(there):
        constant, multiple = share(there)
        return constant + multiple * POWERS / so_far

    def second(there):
        (a, b), (c, d) = share(there), share(True)
        pairs = (  # sums over k < l < n of 1, λ^k, λ^(l-k) and λ^l
            a * c * so_far * (so_far - 1) / 2 + b * c * ((so_far - 1) * POWERS - WEIGHTED)
            + a * d * (so_far * (POWERS - 1) - WEIGHTED) + b * d * WEIGHTED
        )
        return (so_far * first(there) + 2 * pairs) / so_far**2

    def square(on, each_off, off_sum):  # |Σ a_j u_j|² with a_x = on, Σ of squares and sum of the others
        return (1 - OTHER) * (on + each_off) + OTHER * off_sum

    on_multiple = first(True) - OTHER * first(False)  # Σ_j ⟨u_x, u_j⟩ F_j u_j, with Σ u_j = 0
    mean = factor(cancel((1 + (states - 2) * POWERS / so_far) / (states - 1)))
    chapter.add(
        "mean",
        "The mean of $A_n$ is $\\frac{1+(S-2)\\Lambda_n}{S-1}\\,u_{x_n}$ with $\\Lambda_n=\\frac1n\\sum_{k<n}\\lambda_2^k$: from $P(x_{n-k}=j\\mid x_n=x)=\\frac1S+\\lambda_2^k(\\delta_{jx}-\\frac1S)$. It is 1 at $n=1$, and for $S=2$.",
        r"\mathbb E[A_n]\big/u_{x_n}", mean, Matrix([cancel(mean - on_multiple), cancel(mean.subs(so_far, 1) - 1), cancel(mean.subs(states, 2) - 1)]),
        Check("all sequences of 1 to 5 of 2 to 5 symbols, through the matrices of networks with linear attention", cases=ENUMERATED, values=Sums.point, reference=lambda c: c.moments[0]),
    )
    here, there = (cancel(second(side) - first(side) ** 2) for side in (True, False))
    # f_j, what the frequencies are off by, have the sum 0: a_x = f_x, a_j = -f_j/(S-1), so Σ a = f_x S/(S-1)
    spread = square(here, (states - 1) * there * OTHER**2, here * (1 - OTHER) ** 2)
    variance = factor(cancel(spread))
    direct = _after_two()
    chapter.add(
        "variance",
        "How far $A_n$ is from its mean: frequencies $f_j$ off by their covariances, which fall off with powers of $\\lambda_2$, and $|A_n-\\mathbb EA_n|^2=\\frac S{(S-1)^3}\\left[S(S-3)f_x^2+\\sum_jf_j^2\\right]$. "
        "**For $S=2$ it is zero: there the attention is exactly a multiple of the stream, for every $n$. For $S\\ge3$ it is not, at any $n\\ge2$.**",
        r"\mathbb E\,|A_n-\mathbb EA_n|^2", variance, Matrix([cancel(variance.subs(states, 2)), cancel(variance.subs(so_far, 1)), cancel(variance.subs(so_far, 2) - direct)]),
        Check("all sequences of 1 to 5 of 2 to 5 symbols, through the matrices of networks with linear attention", cases=ENUMERATED, values=Sums.point, reference=lambda c: c.moments[1]),
    )
    return mean, variance


def _after_two():
    """The variance at n = 2: the earlier symbol is x, with A = u_x, or one of the others, with A = (u_x - u_j/(S-1))/2."""
    stay = (1 + (states - 1) * memory) / states
    apart = 1 - stay
    length = (1 + OTHER**2 - 2 * OTHER / (states - 1)) / 4  # |A|² of the second kind
    along = (1 - OTHER / (states - 1)) / 2
    return stay + apart * length - (stay + apart * along) ** 2


def _limits(chapter: Chapter, mean, variance) -> None:
    still = cancel(mean.subs(memory**so_far, 0))
    far = factor(cancel(still.subs(so_far, 1 / e)).subs(e, 0))
    chapter.add(
        "limit",
        "As $n\\to\\infty$ every symbol comes equally often, and attention adds a multiple of the stream. (For $|\\lambda_2|<1$.)", r"\lim_{n\to\infty}A_n\big/u_{x_n}", far,
        cancel(cancel((still - far) * so_far) - (states - 2) / ((states - 1) * (1 - memory))),
        Check("networks on sequences in which every symbol comes equally often", cases=BALANCED[:4], values=lambda c: {states: mpf(c.states)}, reference=lambda c: c.added),
    )
    constant = factor(cancel(cancel(variance.subs(memory**so_far, 0) * so_far).subs(so_far, 1 / e)).subs(e, 0))
    in_p = factor(cancel(constant.subs(memory, 1 - s.p * states / (states - 1))))
    chapter.add(
        "constant",
        "**The error is of order $n^{-1/2}$ with this constant, squared: $\\frac{S-2}{(S-1)^2}\\cdot\\frac{1+\\lambda_2}{1-\\lambda_2}$,** relative to the limit $\\frac1{S-1}$ by $\\sqrt{(S-2)(1+\\lambda_2)/((1-\\lambda_2)n)}$; "
        "the mean is off by $O(1/n)$ alone. The more often the chain moves, the smaller; at $S=2$ zero.",
        r"\lim_{n\to\infty}n\,\mathbb E\,|A_n-\mathbb EA_n|^2", in_p, cancel(constant - (states - 2) * (1 + memory) / ((states - 1) ** 2 * (1 - memory))),
        Check("covariance of the central limit theorem, from the inverse of the matrix 1 - P + J/S with J all ones, seen through the corners", cases=((3, mpf("0.9")), (3, mpf("0.3")), (5, mpf("0.95")), (7, mpf("0.4")), (2, mpf("0.3"))),
              values=lambda c: {states: mpf(c[0]), s.p: c[1]}, reference=_central_limit),
    )


def _central_limit(case):
    n, p_ = case
    law = mpf(1) / n
    fundamental = mpmath.matrix([[(i == j) - transition(i, j, n, p_) + law for j in range(n)] for i in range(n)]) ** -1
    covariance = mpmath.matrix([[law * (fundamental[i, j] + fundamental[j, i]) - (law if i == j else 0) - law**2 for j in range(n)] for i in range(n)])
    u = corners(n, n - 1)
    seen = mpmath.matrix([[fdot(u[0], u[j]) * u[j][k] for j in range(n)] for k in range(n - 1)])
    spread = seen * covariance * seen.T
    return sum(spread[k, k] for k in range(n - 1))


# --- the gap in the limit ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Balanced:
    """A network with linear attention at the end of a sequence in which every symbol comes equally often."""

    states: int
    e: mpf
    w: mpf
    gains: tuple
    p: mpf = mpf("0.9")
    width: int = 0

    @property
    def d(self) -> int:
        return self.width or self.states - 1

    def logits(self, e_, w_, scale=mpf(1)) -> list:
        network, of, symbols = self._built(e_, w_, scale)
        return network.logits(of, symbols)

    def gap(self, e_, w_, scale=mpf(1)):
        found = self.logits(e_, w_, scale)
        return found[0] - found[1]

    @property
    def added(self):
        """What attention adds to the stream, as a multiple of g e³/√d times the symbol's corner."""
        network, of, symbols = self._built(self.e, self.w, mpf(1))
        added = network.attended(of, [of["embedding"][x] for x in symbols])
        return fdot(added, corners(self.states, self.d)[0]) / (mpmath.fprod(self.gains) * self.e**3 / mpmath.sqrt(self.d))

    @property
    def attention(self):
        """a, measured: what is added over the stream, over e²."""
        return self.added * mpmath.fprod(self.gains) / mpmath.sqrt(self.d)

    def critical(self) -> Balanced:
        """The same with the output matrix that makes 1 + a e² = 0."""
        *others, last = self.gains
        return replace(self, gains=(*others, -last / (self.attention * self.e**2)))

    def _built(self, e_, w_, scale):
        n, d = self.states, self.d
        symbols = [*range(n - 1, -1, -1), *range(n - 1, -1, -1)]
        network = SymbolNetwork(n, d, n, len(symbols), "linear")
        arrays = ansatz(n, d, e_, 2 * abs(w_), 2 * w_)
        for name, g in zip(("query", "key", "value", "output"), (*self.gains[:3], scale * self.gains[3])):
            arrays[name] = [[g * (i == j and i < n - 1) for j in range(d)] for i in range(d)]
        return network, network.arrays(network.flat(arrays)), symbols

    def point(self) -> dict:
        f = 1 + self.attention * self.e**2
        return {
            states: mpf(self.states), s.width: mpf(self.d), e: self.e, w: self.w, s.attention: self.attention, sign_e: mpmath.sign(self.e), sign_w: mpmath.sign(self.w),
            s.sign_f: mpmath.sign(f), slope: excess(self.states, self.p), **dict(zip(GAINS, self.gains)),
        }


def _balanced(*values) -> tuple[Balanced, ...]:
    return tuple(
        Balanced(n, mpf(e_), mpf(w_), tuple(mpf(g) for g in gains), mpf(p_), width) for n, e_, w_, gains, p_, width in values
    )


BALANCED = _balanced(
    (3, "0.75", "-0.5", ("1.5", "-0.75", "1.25", "2"), "0.9", 0), (3, "-1.25", "0.75", ("2", "-1.5", "1.25", "2"), "0.3", 4), (5, "-0.875", "-1.5", ("1.5", "0.75", "1.25", "0.5"), "0.95", 0),
    (5, "1.25", "-1.25", ("2", "-2.5", "1.75", "2"), "0.6", 6), (2, "-1.125", "-0.5", ("1", "-2", "1.25", "1"), "0.7", 0), (4, "1.5", "1.25", ("1", "-2", "1.75", "1.5"), "0.5", 3),
)


def _gap(chapter: Chapter, gap: Chapter) -> None:
    everywhere = {"cases": BALANCED, "values": Balanced.point}
    g_q, g_k, g_v, g_o = GAINS
    a = g_q * g_k * g_v * g_o / sqrt(s.width) * chapter["limit"]
    chapter.add(
        "a", "So in the limit the stream is multiplied by $f=1+ae^2$ with this $a$, $1/(S-1)$ times what it is for two symbols.", "a", a,
        cancelled(a * (states - 1) * sqrt(s.width) - g_q * g_k * g_v * g_o),
        Check("networks on sequences in which every symbol comes equally often: what is added over the stream, over e²", reference=lambda c: c.attention, **everywhere),
    )
    size = s.factor * e
    active = gated(Corners(size, 0).products().scaled(2 * sign_w * w / sqrt(states)))
    logits = (Corners(size, 0) + active.scaled(2 * w / sqrt(states))).products().scaled(e)
    form = tidy(logits.on - logits.off)
    scale, curvature = gap["constants_simplex"]
    curvature = factor(cancelled(curvature.subs(sign_e, own)))
    written = scale * e**2 * s.factor * (1 + curvature * sign_w * w**2)
    kappa = written.subs({own: sign_e * s.sign_f, s.factor: 1 + s.attention * e**2})
    chapter.add(
        "gap",
        "$\\kappa=A\\,e^2(1+ae^2)(1+c\\,w|w|)$: [as for two symbols](attention-gap.md), but a symbol opens its own hidden unit or those of the others by the sign of $ef$, not of $e$: $c=4/S$ if $ef>0$ and $4/(S(S-1))$ if $ef<0$.",
        r"\kappa(e,w,a)", kappa, cancelled(tidy(form - written)),
        Check("networks on sequences in which every symbol comes equally often, multiplied out", reference=lambda c: c.gap(c.e, c.w), **everywhere),
    )
    slopes = Matrix([scale * e**4 * (1 + curvature.subs(own, side * sign_e) * sign_w * w**2) for side in (1, -1)])
    step = factor(cancelled(expand(curvature.subs(own, 1) - curvature.subs(own, -1))))
    chapter.add(
        "slopes_at_zero",
        "**For $S\\ge3$ the constant $c$ jumps across the surface $f=0$, that is $a=-1/e^2$:** the gap is zero on it, and has there these two slopes in $a$, from $f>0$ and from $f<0$. For two symbols they are the same.",
        r"\left(\frac{\partial\kappa}{\partial a}\Big|_{f\to0^+},\ \frac{\partial\kappa}{\partial a}\Big|_{f\to0^-}\right)", slopes,
        Matrix([
            *(cancelled(expand(slope_ - diff(scale * e**2 * (1 + s.attention * e**2) * (1 + curvature.subs(own, side * sign_e) * sign_w * w**2), s.attention))) for slope_, side in zip(slopes, (1, -1))),
            cancelled((slopes[0] - slopes[1]).subs(states, 2)),
        ]),
        Check("one-sided differences of the gap of networks with f = 0, on sequences in which every symbol comes equally often", cases=SURFACE, values=Balanced.point,
              reference=lambda c: [_one_sided(c, 1), _one_sided(c, -1)], tolerance=1e-15),
    )
    jump = scale * e**4 * step * sign_e * sign_w * w**2
    chapter.add(
        "jump", "By how much they differ. It is zero for $S=2$ alone.", r"\frac{\partial\kappa}{\partial a}\Big|_{f\to0^-}^{f\to0^+}", jump,
        cancelled(expand((slopes[0] - slopes[1] - jump)).subs(sign_e, 1)) + cancelled(expand((slopes[0] - slopes[1] - jump)).subs(sign_e, -1)),
        Check("one-sided differences of the gap of networks with f = 0", cases=SURFACE, values=Balanced.point, reference=lambda c: _one_sided(c, 1) - _one_sided(c, -1), tolerance=1e-15),
    )
    bends = [expand(cancelled(states * (states - 1) * value / (scale * e**4))) for value in slopes]
    rule = And(slope * bends[0] > 0, slope * bends[1] < 0)
    chapter.add(
        "kink_minima",
        "**So the surface $f=0$ holds local minima that two symbols do not have, with $e\\ne0$ and the unigram loss:** where the loss rises on both sides. With $B_\\pm=1+c_\\pm w|w|$ that is $B_{ef>0}<0<B_{ef<0}$, "
        "$-\\sqrt{S(S-1)}/2<w<-\\sqrt S/2$, and $e>0$ for $p<p_c$, $e<0$ for $p>p_c$. On the surface the gap is constant, so a flow that meets it stops. (In the limit $n\\to\\infty$, and on the ansatz.)",
        r"f=0\text{ is a local minimum iff}", rule, None,
        Check("whether the loss of networks with f = ±1e-9 is above the unigram loss", cases=SURFACE, values=Balanced.point, reference=_rises_on_both_sides),
    )


# Networks whose output matrix is to make f = 0: on both sides of the threshold, of e = 0 and of the edges in w.
SURFACE = _balanced(*(
    (n, e_, w_, ("1.5", "-0.75", "1.25", "2"), p_, 0)
    for n, p_ in ((3, "0.3"), (3, "0.9"), (4, "0.5"), (5, "0.95")) for e_ in ("0.75", "-1.25")
    for w_ in ("-2.5", "-1.9", "-1.5", "-1.15", "-0.95", "-0.8", "-0.25", "0.5")
))


def _one_sided(case: Balanced, side: int):
    """Slope of the gap in a from one side of f = 0; the output matrix is scaled, so a is."""
    on_it, step = case.critical(), side * mpf(10) ** -20
    return on_it.gap(case.e, case.w, 1 - step) / (-step * on_it.attention)


@cache
def _rises_on_both_sides(case: Balanced) -> bool:
    unigram, on_it = mpmath.log(case.states), case.critical()
    return all(softmax_loss(on_it.gap(case.e, case.w, 1 + side * mpf(10) ** -9), case.states, case.p) > unigram for side in (1, -1))


# --- kernels -----------------------------------------------------------------------------------------------------


def averaged_kernels(chapter: Chapter) -> str:
    """The generated module of the limit of long sequences: the gradient jumps where the embedding or the factor f vanishes."""
    kinks = ((sign_e, e), (s.sign_f, 1 + s.attention * e**2))
    return built_in_gap_module("attention", (e, w, s.attention), chapter["gap"], SymmetricChain, ((sign_w, w),), kinks, (states,))
