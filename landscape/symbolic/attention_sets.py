"""Chapter: where the canonical loss with linear attention is critical, and what its flow keeps."""

from __future__ import annotations

from dataclasses import replace

import mpmath
from mpmath import mpf
from sympy import Matrix, Symbol, diff, expand, factor, integrate, simplify, solve

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.attention_networks import CASES, Case
from landscape.symbolic.references import CHAINS, best_bias, cross_entropy, plateau_slope
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import attention, curvature, e, sign_w, slope, w

COORDINATES = (e, w, attention)
PAIRS = tuple((i, j) for i in range(3) for j in range(i, 3))
EIGENVALUE = Symbol("lambda", real=True)


def network_gap(case: Case, e_, w_, a):
    """Gap of a network with the matrices of `case` but at (e, w, a); the output matrix makes a."""
    *gains, _ = case.gains
    gains.append(4 * a / (mpmath.sqrt(len(case.alpha)) ** 7 * mpmath.fprod(gains)))
    return replace(case, e=e_, w=w_, gains=tuple(gains)).gap()


def _place(case: Case) -> tuple:
    return case.e, case.w, case.added() / case.e**2


def _second(function, place) -> list:
    orders = [tuple((i == k) + (j == k) for k in range(3)) for i, j in PAIRS]
    return [mpmath.diff(function, place, order) for order in orders]


def _loss(case: Case, law):
    """The cross-entropy with the bias at its minimiser, as a function of the place."""
    def at(*place):
        gap = network_gap(case, *place)
        bias = best_bias(gap, *law)
        return cross_entropy([bias, gap + bias], *law)

    return at


def attention_sets(gap: Chapter, canonical: Chapter, invariant: Chapter) -> Chapter:
    """∇κ = 0, the Hessian there, and E."""
    chapter = Chapter(
        "attention-critical-sets",
        "With linear attention: critical sets and an invariant",
        "$\\kappa=e^2(1+ae^2)(1+2w|w|)$ from [the layers](attention-gap.md). As everywhere, critical points are $\\kappa=\\kappa^*$ or "
        "$\\nabla\\kappa=0$. $f=1+ae^2$, $B=1+2w|w|$, and $\\varphi_1$ is $\\varphi'$ at the gap.",
        settles="*Claim*: with attention there are global minima with $a\\ne0$ (Figure 4 and Section 4.1 of the paper), in a "
        "landscape characterised by its Theorem 9 of Appendix G (authors). *Settled*: yes: where $e\\ne0$ and $B\\ne0$ "
        "one $a$ solves $\\kappa=\\kappa^*$, as $\\kappa$ is linear in $a$. Local minima at the unigram loss stay on "
        "either side of $p+q=1$. *Beyond*: a curve of strict saddles off $e=0$, which the picture without attention does "
        "not have, and an invariant.",
    )
    kappa = gap["gap_tied"]
    gradient = Matrix([factor(diff(kappa, symbol)) for symbol in COORDINATES])
    everywhere = {"cases": CASES, "values": Case.point}
    chapter.add(
        "gap_gradient",
        "The gradient of the gap. The last entry is $e^4B$ and the second $4e^2f|w|$: off the plane $e=0$ both vanish only if $B=0$, "
        "so $w\\ne0$, and $f=0$; then the first, $2e(1+2ae^2)B$, vanishes too.",
        r"\nabla_{(e,w,a)}\kappa", gradient,
        Matrix([expand(diff(gradient[i], COORDINATES[j]) - diff(gradient[j], COORDINATES[i])) for i, j in PAIRS if i < j]),
        Check("numerical derivatives of the gap of networks with linear attention, multiplied out",
              reference=lambda c: [mpmath.diff(lambda *at: network_gap(c, *at), _place(c), order) for order in ((1, 0, 0), (0, 1, 0), (0, 0, 1))],
              **everywhere),
    )
    saddle_w = solve((1 + 2 * sign_w * w**2).subs(sign_w, -1), w)[0]
    curve = Matrix([saddle_w, solve(1 + attention * e**2, attention)[0]])
    on_curve = {sign_w: -1, w: curve[0], attention: curve[1]}
    chapter.add(
        "curve",
        "**The gap has critical points off $e=0$: this curve, on which it is zero and the loss is the unigram loss.** Without "
        "attention there are none.",
        r"(w,a)\big|_{e\ne0,\,\nabla\kappa=0}", curve,
        Matrix([simplify(entry.subs(on_curve)) for entry in gradient]),
        Check("the zero of the numerical gradient of the gap of a network nearest to a guess, by Newton's method",
              cases=CASES[:4], values=lambda c: {e: c.e}, reference=_zero),
    )
    hessian = _hessian(kappa).subs(on_curve)
    polynomial = expand(cancelled((EIGENVALUE * Matrix.eye(3) - hessian).det()))
    squared = factor(cancelled(EIGENVALUE**2 - polynomial / EIGENVALUE))
    chapter.add(
        "eigenvalues_on_curve",
        "The Hessian of $\\kappa$ on the curve has the eigenvalues $0,\\pm\\lambda$: one direction is along the curve. The Hessian of "
        "the loss is $\\varphi'(0)$ times it, with one eigenvalue of each sign on either side of $p+q=1$: **index 1, nullity 1, a strict "
        "saddle.**",
        r"\lambda^2", squared,
        Matrix([expand(polynomial.subs(EIGENVALUE, 0)), expand(polynomial - EIGENVALUE**3 + squared * EIGENVALUE)]),
        Check("half the sum of the squared eigenvalues of the numerical Hessian of the gap of a network on the curve",
              cases=CASES[:4], values=lambda c: {e: c.e}, reference=_squares),
    )
    on_plane = Matrix([slope * diff(kappa, COORDINATES[i], COORDINATES[j]).subs(e, 0) for i, j in PAIRS])
    chapter.add(
        "hessian_on_plane",
        "On the plane $e=0$ the one entry is that of the line without attention. Where $\\varphi'(0)B>0$ it is positive and its kernel is "
        "the tangent plane: **local minima at the unigram loss on either side of $p+q=1$, with attention too**; where it is negative, "
        "maxima (saddles, with the bias kept). Nullity 2, and 3 on the line $B=0$.",
        r"(L_{ee},\ L_{ew},\ L_{ea},\ L_{ww},\ L_{wa},\ L_{aa})\big|_{e=0}", on_plane,
        (on_plane - Matrix([2 * slope * (1 + 2 * sign_w * w**2), 0, 0, 0, 0, 0])).applyfunc(expand),
        Check("second numerical derivatives of the minimised loss of a network on the plane",
              cases=[(case, law) for case, law in zip(CASES[:4], CHAINS * 2)],
              values=lambda c: {sign_w: mpmath.sign(c[0].w), w: c[0].w, slope: plateau_slope(*c[1])},
              reference=lambda c: _second(_loss(*c), (mpf(0), c[0].w, mpf("0.25")))),
    )
    _energy(chapter, gradient, invariant["G"].subs(curvature, canonical["constants_binary"][1]))
    return chapter


def attention_kernels(gap: Chapter) -> str:
    """The text of the module of `attention` on the two-state chain."""
    from landscape.chains import BinaryChain
    from landscape.symbolic.modules import built_in_gap_module

    return built_in_gap_module("attention", COORDINATES, gap["gap_tied"], BinaryChain, ((sign_w, w),))


def _hessian(expression) -> Matrix:
    """Hessian in (e, w, a)."""
    return Matrix(3, 3, lambda i, j: diff(expression, COORDINATES[i], COORDINATES[j]))


def _zero(case: Case) -> list:
    """(w, a) where the numerical gradient in w and a vanishes, e held."""
    def field(w_, a):
        return [mpmath.diff(lambda *at: network_gap(case, case.e, *at), (w_, a), order) for order in ((1, 0), (0, 1))]

    return list(mpmath.findroot(field, (mpf("-0.7"), -mpf("0.95") / case.e**2)))


def _squares(case: Case):
    place = (case.e, -1 / mpmath.sqrt(2), -1 / case.e**2)
    entries = dict(zip(PAIRS, _second(lambda *at: network_gap(case, *at), place)))
    matrix = mpmath.matrix(3, 3)
    for (i, j), value in entries.items():
        matrix[i, j] = matrix[j, i] = value
    return sum(value**2 for value in mpmath.eigsy(matrix, eigvals_only=True)) / 2


def _energy(chapter: Chapter, gradient, g) -> None:
    """The ansatz E = e² - A(a) - G(w) with the G of the case without attention."""
    kappa_e, kappa_w, kappa_a = gradient
    sides = (1, -1)
    rates = [cancelled(((2 * e * kappa_e - diff(g, w) * kappa_w) / kappa_a).subs(sign_w, side)) for side in sides]
    energy = e**2 - integrate(rates[0], attention) - g
    chapter.add(
        "E",
        "The flow keeps this, for every chain: $\\nabla E\\cdot\\nabla\\kappa=0$. From the ansatz $e^2-A(a)-G(w)$ with the "
        "[$G$ without attention](canonical-invariant.md): what is left for $A'$ depends on $a$ alone.",
        "E(e,w,a)", energy,
        Matrix([
            rates[0] - rates[1], diff(rates[0], e), diff(rates[0], w),
            *(cancelled(sum(diff(energy, symbol) * entry for symbol, entry in zip(COORDINATES, gradient)).subs(sign_w, side)) for side in sides),
        ]),
        Check("e² less quadratures, in w and then in a, of the numerical field of a network from w = ±1 and a = 0", cases=CASES[:4],
              values=Case.point, reference=_by_quadrature, tolerance=1e-12),
    )


def _by_quadrature(case: Case):
    def slope_in(coordinate, *place):
        order = [0, 0, 0]
        order[coordinate] = 1
        return mpmath.diff(lambda *at: network_gap(case, *at), place, tuple(order))

    def along_w(at):
        return 2 * case.e * slope_in(0, case.e, at, mpf(0)) / slope_in(1, case.e, at, mpf(0))

    def along_a(at):
        place = (case.e, case.w, at)
        return (2 * case.e * slope_in(0, *place) - along_w(case.w) * slope_in(1, *place)) / slope_in(2, *place)

    with mpmath.workdps(24):
        first = mpmath.quad(along_w, [mpmath.sign(case.w), case.w], maxdegree=5)
        return case.e**2 - 1 - first - mpmath.quad(along_a, [mpf(0), _place(case)[2]], maxdegree=4)
