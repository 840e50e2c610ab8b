"""Chapter: the critical sets of the canonical loss and their types."""

from __future__ import annotations

import mpmath
from mpmath import mpf
from sympy import Matrix, Symbol, diff, expand, factor, log, simplify, solve

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.canonical import EVERYWHERE, Setting, settings
from landscape.symbolic.layers import reduce_signs
from landscape.symbolic.primitives import elementary, softplus
from landscape.symbolic.references import best_bias, cross_entropy
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import bend, bias, curvature, e, kappa, p, q, scale, sign_w, slope, w

UNIGRAM_LINE = settings(("0", "0.5"), ("0", "-0.875"), ("0", "-0.75"), ("0", "-0.25"))
HESSIAN = ((2, 0), (1, 1), (0, 2))


def critical_sets(gap: Chapter, derivatives: Chapter) -> Chapter:
    """Where ∇L = 0, and what kind of critical point is there; the table of sets for both regimes."""
    chapter = Chapter(
        "canonical-critical-sets",
        "Critical sets and their types",
        "$\\nabla L=\\varphi'(\\kappa)\\nabla\\kappa$ vanishes where $\\kappa=\\kappa^*$, since $\\varphi$ is strictly convex, or "
        "where $\\nabla\\kappa=0$. Write $B=1+c\\,w|w|$. All sets are continua; the Morse-Bott index counts the negative "
        "eigenvalues of the Hessian on a set, the nullity the zero ones.",
        settles="*Claim*: parameters converge to global or to local minima of the loss (summary, authors). *Settled*: these are "
        "all its critical points without attention: the curve $\\kappa=\\kappa^*$ of global minima, and the line $e=0$ at "
        "the unigram loss, which a degenerate saddle divides into minima and maxima. *Beyond*: index and nullity of each "
        "set, with the bias minimised out or kept, and for $S$ symbols.",
    )
    kappa_gradient, form = derivatives["gap_gradient"], gap["common_form"]
    squared = factor(reduce_signs(expand(kappa_gradient.dot(kappa_gradient))))
    rest = expand(cancelled(squared / e**2))
    chapter.add(
        "gap_gradient_squared",
        "The second factor is a sum of two squares, $B^2$ and $c^2e^2w^2$. They vanish together only if $w=-1/\\sqrt c$ and "
        "$e=0$: the gap is critical exactly on the line $e=0$.",
        r"\|\nabla\kappa\|^2",
        squared,
        Matrix([
            cancelled(reduce_signs(expand(kappa_gradient.dot(kappa_gradient) - squared))),
            cancelled(reduce_signs(expand(rest - 4 * scale**2 * ((1 + curvature * sign_w * w**2) ** 2 + (curvature * e * w) ** 2)))),
        ]),
        Check("numerical derivatives of the gap of a network, multiplied out", cases=settings(*EVERYWHERE),
              values=Setting.point,
              reference=lambda s: sum(mpmath.diff(s.gap, (s.e, s.w), o) ** 2 for o in ((1, 0), (0, 1)))),
    )
    on_line = derivatives["hessian"].subs(e, 0)
    at_line = {"cases": UNIGRAM_LINE, "values": lambda s: s.point(mpf(0))}
    chapter.add(
        "hessian_on_line",
        "On $e=0$, where the loss is the unigram loss: one eigenvalue is $2A\\varphi'(0)B$, the others vanish. Minima where "
        "it is positive, maxima where it is negative, and a degenerate saddle where it is zero. For $S\\ge3$ the constant $c$ "
        "is that of the side of $e=0$ from which one looks.",
        r"(L_{ee},\ L_{ew},\ L_{ww})\big|_{e=0}",
        on_line,
        (on_line - Matrix([slope * diff(form, e, 2).subs(e, 0), 0, 0])).applyfunc(simplify),
        Check("second numerical derivatives of the minimised loss of a network on the line",
              reference=_upper_side, tolerance=1e-9, **at_line),
    )
    saddle = solve((1 + curvature * sign_w * w**2).subs(sign_w, -1), w)
    saddle = next(root for root in saddle if root.could_extract_minus_sign())
    chapter.add(
        "saddle",
        "The saddle: the only point of the line where $B=0$.",
        r"w_s",
        saddle,
        simplify(1 - curvature * saddle**2),
        Check("bisection on the gap of a network along e = 1 and e = -1, where it changes sign",
              cases=settings(("1", "0"), ("-1", "0"), ("-1", "0"), ("1", "0"), ("1", "0"), ("1", "0"))[1:], values=Setting.point,
              reference=lambda s: mpmath.findroot(lambda x: s.gap(s.e, x), (-4, mpf(-1) / 10), solver="anderson", tol=1e-90)),
    )
    size, offset = Symbol("h", positive=True), Symbol("delta", real=True)
    local = form.subs({sign_w: -1, e: size * e, w: saddle + size * offset})
    cubic = slope * expand(local).coeff(size, 3)
    chapter.add(
        "saddle_cubic",
        "At the saddle the Hessian vanishes. The first term of the expansion in $e$ and $\\delta=w-w_s$ is a cubic that takes "
        "both signs in every neighbourhood (and $e=0$ is a line of critical points through it): a degenerate saddle.",
        r"L(e,w_s+\delta)-L(0,w_s)+O(4)",
        cubic,
        Matrix([expand(local).coeff(size, n) for n in (0, 1, 2)]),
        Check("third numerical derivative of the minimised loss of a network along rays from the saddle",
              cases=settings(("0.5", "0.25"), ("-0.75", "0.5"), ("1", "-0.5")),
              values=lambda s: {**s.point(mpf(0)), offset: s.w},
              reference=lambda s: mpmath.diff(
                  lambda h: s.loss(h * s.e, -1 / mpmath.sqrt(s.constants[1]) + h * s.w), mpf(0), 3, direction=1) / 6,
              tolerance=1e-9),
    )
    on_curve = derivatives["hessian"].subs(slope, 0)
    gradient_products = Matrix([
        bend * kappa_gradient[0] ** 2, bend * kappa_gradient[0] * kappa_gradient[1], bend * kappa_gradient[1] ** 2
    ])
    curve = settings(("1", "-0.9"), ("1", "0.4"), ("-1", "-1.5"), ("-1", "-1.25"))
    curve = tuple(moved_to_optimum(s) for s in curve)
    chapter.add(
        "hessian_on_optimum",
        "On $\\kappa=\\kappa^*$ the Hessian is $\\varphi''(\\kappa^*)\\,\\nabla\\kappa\\nabla\\kappa^\\top$: one positive eigenvalue "
        "across the curve, a zero along it. These are the global minima.",
        r"(L_{ee},\ L_{ew},\ L_{ww})\big|_{\kappa=\kappa^*}",
        on_curve,
        (on_curve - gradient_products).applyfunc(simplify),
        Check("second numerical derivatives of the minimised loss of a network on the curve", cases=curve,
              values=Setting.point,
              reference=lambda s: [mpmath.diff(s.loss, (s.e, s.w), o) for o in HESSIAN], tolerance=1e-12),
    )
    loss = sum(
        weight * softplus(-(2 * y - 1) * (kappa * x + bias))
        for x, y, weight in ((0, 0, q * (1 - p)), (0, 1, q * p), (1, 0, p * q), (1, 1, p * (1 - q)))
    ) / (p + q)
    in_bias = cancelled(elementary(diff(loss, bias, 2)).subs(kappa, 0).subs(bias, log(p / q)))
    kept = Matrix([on_line[0], diff(form, e).subs(e, 0), in_bias])
    chapter.add(
        "bias_kept",
        "With the bias kept as a parameter (two symbols) the Hessian on the line gains the entries $L_{eb}$, which is zero, and "
        "$L_{bb}>0$. What is a maximum with the bias minimised out is a saddle in $(e,w,b)$; the minima stay minima.",
        r"(L_{ee},\ L_{eb},\ L_{bb})\big|_{e=0,\,b=b^*}",
        kept,
        simplify(in_bias - p * q / (p + q) ** 2),
        Check("second numerical derivatives of the cross-entropy of a network, in e and b",
              cases=[s for s in UNIGRAM_LINE if s.states is None],
              values=lambda s: {**s.point(mpf(0)), p: s.p, q: s.q},
              reference=_with_bias),
    )
    chapter.results["sets"] = _table(chapter, derivatives)
    return chapter


def moved_to_optimum(setting: Setting) -> Setting:
    """The point of the curve of global minima at this setting's w, where there is one."""
    with mpmath.workdps(60):
        if setting.states is None:
            star = mpmath.log((1 - setting.p) * (1 - setting.q) / (setting.p * setting.q))
        else:
            star = mpmath.log((1 - setting.p) * (setting.states - 1) / setting.p)
        a, c = setting.constants
        along = setting.w if star * (1 + c * setting.w * abs(setting.w)) > 0 else -setting.w if star > 0 else mpf(-2)
        size = mpmath.sqrt(star / (a * (1 + c * along * abs(along))))
        return Setting(mpmath.sign(setting.e) * size, along, setting.p, setting.q, setting.states)


def _upper_side(s: Setting):
    """Second derivatives on e = 0 taken from e > 0: the gap for S >= 3 symbols differs on the two sides."""
    half = mpmath.diff(lambda h: s.loss(h, s.w), mpf(0), 2, direction=1)
    mixed = mpmath.diff(lambda v: mpmath.diff(lambda h: s.loss(h, v), mpf(0), direction=1), s.w)
    return [half, mixed, mpmath.diff(lambda v: s.loss(mpf(0), v), s.w, 2)]


def _with_bias(s: Setting):
    start = (s.e, best_bias(mpf(0), s.p, s.q))

    def loss(e_, b_):
        gap = s.gap(e_, s.w)
        return cross_entropy((b_, gap + b_), s.p, s.q)

    return [mpmath.diff(loss, start, o) for o in HESSIAN]


def _table(chapter: Chapter, derivatives: Chapter) -> list[dict]:
    """The sets with index and nullity, by the sign of κ*, from the eigenvalues just derived.

    The sign of φ′(0) is opposite to that of κ*. `side` is the sign of κ*·B on the set.
    """
    probe = {scale: 1, curvature: 2}
    line = chapter["hessian_on_line"][0]
    rows = [{
        "name": "global minima", "kind": "global minima", "dimension": 1, "index": 0, "nullity": 1, "side": 0,
        "loss": "bigram", "equations": "kappa(e, w) = kappa_star",
    }]
    for side, name in ((-1, "local minima"), (1, "maxima")):
        eigenvalue = line.subs({slope: -1, sign_w: -1, w: 0 if side > 0 else -1}).subs(probe)  # κ* > 0, B of sign `side`
        index = 1 if eigenvalue < 0 else 0
        rows.append({
            "name": name, "kind": "local minima" if index == 0 else "maxima", "dimension": 1, "index": index,
            "nullity": 1, "side": side, "loss": "unigram",
            "equations": f"e = 0, kappa_star (1 + c w |w|) {'<' if side < 0 else '>'} 0",
        })
    rows.append({
        "name": "saddle", "kind": "saddle", "dimension": 0, "index": 0, "nullity": 2, "side": 0,
        "loss": "unigram", "equations": "e = 0, w = -1/sqrt(c)",
    })
    return rows
