"""Chapter: a head of its own, κ = A e c_h (1 + c w|w|): gap, critical sets, invariants and limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mpmath
from mpmath import mpf
from sympy import Expr, Matrix, Symbol, diff, expand, factor, simplify, solve

from landscape.chains import BinaryChain, SymmetricChain
from landscape.symbolic.algebra import cancelled
from landscape.symbolic.attention import attention_gap
from landscape.symbolic.canonical import Setting, settings
from landscape.symbolic.layers import all_branches, canonical_simplex, in_branch, merge, reduce_signs
from landscape.symbolic.modules import built_in_gap_module
from landscape.symbolic.references import network_gap
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import attention, bend, curvature, e, head, scale, sign_e, sign_w, slope, states, w
from landscape.symbolic.untied_limits import add_invariants, add_limits

COORDINATES = (e, head, w)
PAIRS = tuple((i, j) for i in range(3) for j in range(i, 3))
EIGENVALUE = Symbol("lambda", real=True)


@dataclass(frozen=True)
class Place:
    """A place (e, c_h, w) at which a network of actual matrices with a head of its own is evaluated."""

    setting: Setting
    head: mpf

    @property
    def at(self) -> tuple:
        return self.setting.e, self.head, self.setting.w

    def gap(self, e_, c_, w_):
        return network_gap(e_, w_, self.setting.states, c_)

    def loss(self, e_, c_, w_):
        return self.setting.phi(self.gap(e_, c_, w_))

    def point(self, gap=None) -> dict:
        """The symbols' values; A and c are measured on the tied network."""
        return self.setting.point(self.gap(*self.at) if gap is None else gap) | {head: self.head}

    def slopes(self, function) -> list:
        """First numerical derivatives of a function of the place."""
        return [mpmath.diff(function, self.at, tuple(int(i == k) for k in range(3))) for i in range(3)]

    def seconds(self, function, at=None) -> list:
        """Second numerical derivatives of a function of the place, in the order of `PAIRS`."""
        orders = [tuple((i == k) + (j == k) for k in range(3)) for i, j in PAIRS]
        return [mpmath.diff(function, self.at if at is None else at, order) for order in orders]


def places(*values) -> tuple[Place, ...]:
    """Networks with two, two and three symbols in turn at the given (e, c_h, w)."""
    return tuple(Place(s, mpf(v[1])) for s, v in zip(settings(*((v[0], v[2]) for v in values)), values))


EVERYWHERE = places(
    ("0.75", "0.5", "0.5"), ("-1.25", "0.375", "0.875"), ("-0.625", "0.875", "-0.375"), ("1.125", "-0.5", "-1.25"),
    ("-0.5", "-1.25", "-0.9"), ("0.8", "-0.75", "0.3"),
)


def untied(gap: Chapter, canonical: Chapter, invariant: Chapter) -> Chapter:
    """The gap and its derivatives, all critical sets, both invariants, and the limit of every start."""
    chapter = Chapter(
        "untied",
        "A head of its own: critical sets, invariants, limits",
        "The head is $(c_h/\\sqrt d)\\,\\alpha$ (two symbols) or $c_h$ times the corners (S symbols); all else is as on the canonical "
        "slice. $B=1+c\\,w|w|$ with the canonical $c$, $w_s=-1/\\sqrt c$ is its zero, $\\varphi_1$ and $\\varphi_2$ are $\\varphi'$ and "
        "$\\varphi''$ at the gap, $\\tau=\\operatorname{sgn}\\kappa^*\\ne0$. For two symbols the landscape is smooth enough that "
        "**every critical point that is not a global minimum is a saddle.** For $S\\ge3$ symbols $c$ jumps at $e=0$, and **there are "
        "bad local minima on that kink.**",
        settles="*Claim*: none on a head that is not tied; that insights carry over to more general models is said in passing "
        "(authors). *Settled*: with two symbols a head of its own removes the bad minima, so that what is said of "
        "initialisation is special to tied heads. *Beyond*: with more symbols it does not remove all of them.",
    )
    kappa = _gap(chapter, gap, canonical)
    _derivatives(chapter, kappa)
    _saddles(chapter, kappa)
    _optimum(chapter, kappa)
    add_invariants(chapter, kappa, invariant, EVERYWHERE)
    add_limits(chapter, invariant)
    chapter.results["sets"] = _table(chapter)
    return chapter


def _gap(chapter: Chapter, gap: Chapter, canonical: Chapter) -> Expr:
    """κ for two symbols and for S symbols, and the form that both have."""
    two = gap["gap_untied"].subs(attention, 0)
    at = {"values": Place.point, "reference": lambda s: s.gap(*s.at)}
    chapter.add(
        "gap_binary", "Two symbols: the [gap with attention](attention-gap.md) at $a=0$.", r"\kappa_{\text{two symbols}}", two,
        expand(e * two - head * canonical["gap_binary"]),
        Check("a network with d = 3, r = 2 and a head of its own, multiplied out",
              cases=[s for s in EVERYWHERE if s.setting.states is None], **at),
    )
    branches = {branch: on - off for branch, (on, off) in all_branches(lambda signs: canonical_simplex(signs, tied=False)).items()}
    many = factor(merge(branches))
    chapter.add(
        "gap_simplex",
        "S symbols, from the layers in each branch of the signs. ReLU follows the sign of $e$; that of $c_h$ does not enter.",
        r"\kappa_{S\text{ symbols}}", many,
        Matrix([cancelled(in_branch(many, branch) - in_branch(value, branch)) for branch, value in branches.items()]),
        Check("networks with 3 and 5 symbols at the corners of a simplex and a head of its own, multiplied out",
              cases=[Place(Setting(s.at[0], s.at[2], mpf("0.5"), states=3 + 2 * (i % 2)), s.head) for i, s in enumerate(EVERYWHERE)],
              values=lambda s: {**s.point(), states: mpf(s.setting.states)}, reference=at["reference"]),
    )
    form = scale * head * e * (1 + curvature * sign_w * w**2)
    constants = [dict(zip((scale, curvature), canonical[f"constants_{which}"])) for which in ("binary", "simplex")]
    chapter.add(
        "common_form",
        "Both are this, with the $A$ and $c$ of [the tied case](canonical-gap.md). For $S\\ge3$ symbols $c$ depends on the sign of $e$: "
        "$c_+=4/S$ and $c_-=4/(S(S-1))$.",
        r"\kappa(e,c_h,w)", form,
        Matrix([cancelled(reduce_signs(form.subs(values) - found)) for values, found in zip(constants, (two, many))]),
        Check("networks with two and three symbols, multiplied out, of which A and c are measured without a head of its own",
              cases=EVERYWHERE, **at),
    )
    return form


def _derivatives(chapter: Chapter, kappa) -> None:
    """Gradient and Hessian of the gap."""
    everywhere = {"cases": EVERYWHERE, "values": Place.point}
    gradient = Matrix([diff(kappa, symbol) for symbol in COORDINATES])
    chapter.add(
        "gap_gradient", "The gradient of the gap; that of the loss is $\\varphi_1$ times it.", r"\nabla_{(e,c_h,w)}\kappa", gradient,
        Matrix([expand(diff(gradient[i], COORDINATES[j]) - diff(gradient[j], COORDINATES[i])) for i, j in PAIRS if i < j]),
        Check("numerical derivatives of the gap of networks with a head of its own", reference=lambda s: s.slopes(s.gap), **everywhere),
    )
    hessian = Matrix([diff(kappa, COORDINATES[i], COORDINATES[j]) for i, j in PAIRS])
    chapter.add(
        "gap_hessian",
        "Its Hessian, in the order $ee,ec,ew,cc,cw,ww$. That of the loss is $\\varphi_1$ times it and "
        "$\\varphi_2\\nabla\\kappa\\nabla\\kappa^\\top$.",
        r"\nabla^2_{(e,c_h,w)}\kappa", hessian,
        Matrix([expand(diff(gradient[i], COORDINATES[j]) - entry) for (i, j), entry in zip(PAIRS, hessian)]),
        Check("second numerical derivatives of the gap of networks with a head of its own",
              reference=lambda s: s.seconds(s.gap), **everywhere),
    )
    squared = factor(reduce_signs(gradient.dot(gradient)))
    b = cancelled(kappa / (scale * head * e))
    chapter.add(
        "gap_gradient_squared",
        "A sum of two squares, $A^2(e^2+c_h^2)B^2$ and $4A^2c^2e^2c_h^2w^2$. Both vanish on the line $e=c_h=0$ and, where $B=0$ and so "
        "$w=w_s\\ne0$, on the lines $c_h=0$ and $e=0$. **The gap has no other critical points**, it is zero on them all, and so the "
        "loss is the unigram loss there and $\\varphi_1=\\varphi'(0)\\ne0$.",
        r"\|\nabla\kappa\|^2", squared,
        cancelled(reduce_signs(squared - scale**2 * ((e**2 + head**2) * b**2 + 4 * curvature**2 * e**2 * head**2 * w**2))),
        Check("numerical derivatives of the gap of networks with a head of its own",
              reference=lambda s: sum(entry**2 for entry in s.slopes(s.gap)), **everywhere),
    )


def _matrix(expression) -> Matrix:
    return Matrix(3, 3, lambda i, j: diff(expression, COORDINATES[i], COORDINATES[j]))


def _square_of_eigenvalues(hessian: Matrix):
    """λ² of a matrix whose eigenvalues are 0 and ±λ, and what has to vanish for them to be that."""
    polynomial = expand((EIGENVALUE * Matrix.eye(3) - hessian).det())
    squared = factor(reduce_signs(cancelled(EIGENVALUE**2 - polynomial / EIGENVALUE)))
    return squared, cancelled(reduce_signs(expand(polynomial - EIGENVALUE**3 + squared * EIGENVALUE)))


def _half_of_squares(place: Place):
    """Half the sum of the squared eigenvalues of the numerical Hessian of a network's minimised loss; on a kink, from e > 0."""
    if place.setting.states is None or place.at[0] != 0:
        entries = dict(zip(PAIRS, place.seconds(place.loss)))
    else:
        _, c_, w_ = place.at  # on e = 0 itself the loss is constant

        def rise(at_c, at_w, order=1):
            return mpmath.diff(lambda side: place.loss(side, at_c, at_w), mpf(0), order, direction=1)

        mixed = mpmath.diff(lambda at: rise(at, w_), c_), mpmath.diff(lambda at: rise(c_, at), w_)
        entries = {(0, 0): rise(c_, w_, 2), (0, 1): mixed[0], (0, 2): mixed[1]}
    return sum(entry**2 * (1 if i == j else 2) for (i, j), entry in entries.items()) / 2


def _on_saddles(*values) -> tuple[Place, ...]:
    """Networks with two and with three symbols in turn; "w_s" is the saddle's w as seen from e > 0."""
    found = []
    for i, (e_, c_, w_) in enumerate(values):
        chain = Setting(mpf(e_), mpf(0), mpf("0.5"), mpf("0.8")) if i % 2 == 0 else Setting(mpf(e_), mpf(0), mpf("0.25"), states=3)
        with mpmath.workdps(60):
            found.append(Place(replace(chain, w=-1 / mpmath.sqrt(chain.constants[1]) if w_ == "w_s" else mpf(w_)), mpf(c_)))
    return tuple(found)


def _saddles(chapter: Chapter, kappa) -> None:
    """The Hessian of the loss on the three lines, and the cubic where they meet."""
    on_axis = _on_saddles(("0", "0", "-1.25"), ("0", "0", "0.5"))
    on_lines = _on_saddles(("-1.25", "0", "w_s"), ("0.75", "0", "w_s"), ("0", "0.625", "w_s"), ("0", "-1.25", "w_s"))[1:]
    method = "half the sum of the squared eigenvalues of the numerical Hessian of the minimised loss of networks with two and three symbols there, from e > 0"
    squared, rest = _square_of_eigenvalues(slope * _matrix(kappa).subs({e: 0, head: 0}))
    chapter.add(
        "eigenvalues_on_axis",
        "On the line $e=c_h=0$ the eigenvalues of the Hessian of the loss are $0,\\pm\\lambda$ with $\\lambda=|\\varphi_1AB|$; the zero is "
        "that along the line. Where $B\\ne0$: **index 1, nullity 1, a strict saddle on either side of $p+q=1$.** There the tied "
        "landscape has its bad minima: with $c_h$ free, $e=-c_h$ or $e=c_h$ leads down.",
        r"\lambda^2\big|_{e=c_h=0}", squared, rest,
        Check(method, cases=on_axis, values=lambda s: s.point(mpf(0)), reference=_half_of_squares, tolerance=1e-9),
    )
    saddle = next(root for root in solve((1 + curvature * sign_w * w**2).subs(sign_w, -1), w) if root.could_extract_minus_sign())
    results = [
        _square_of_eigenvalues(slope * _matrix(kappa).subs({sign_w: -1, w: saddle, gone: 0})) for gone in (head, e)
    ]
    chapter.add(
        "eigenvalues_on_lines",
        "The same at $w=w_s$ on the lines $c_h=0$ and $e=0$: **index 1, nullity 1, strict saddles** where the other of the two is not "
        "zero. The gap is $\\kappa_{cw}$ or $\\kappa_{ew}$ times a product there, which goes both ways.",
        r"\left(\lambda^2\big|_{c_h=0,\,w_s},\ \lambda^2\big|_{e=0,\,w_s}\right)", Matrix([value for value, _ in results]),
        Matrix([left for _, left in results]),
        Check(method + " (one of the two entries is zero at each)", cases=on_lines, values=lambda s: s.point(mpf(0)),
              reference=lambda s: [_half_of_squares(s) if there else mpf(0) for there in s.at[:2]], tolerance=1e-9),
    )
    size, offset = Symbol("h", positive=True), Symbol("delta", real=True)
    local = expand(kappa.subs({sign_w: -1, e: size * e, head: size * head, w: saddle + size * offset}))
    cubic = slope * local.coeff(size, 3)
    chapter.add(
        "meeting_cubic",
        "Where the three lines meet, at $(0,0,w_s)$, the Hessian vanishes: nullity 3. The first term of the expansion in $e$, $c_h$ and "
        "$\\delta=w-w_s$ is this product of all three, which is negative in every neighbourhood: **a degenerate saddle.** "
        "So every critical point with $\\kappa\\ne\\kappa^*$ has a way down, by its second order or by its third: "
        "**with two symbols there is no bad local minimum.**",
        r"L(e,c_h,w_s+\delta)-L(0,0,w_s)+O(4)", simplify(cubic),
        Matrix([local.coeff(size, n) for n in (0, 1, 2)]),
        Check("third numerical derivative of the minimised loss of networks with two and three symbols along rays from that point into e > 0",
              cases=_on_saddles(("0.5", "0.75", "0.25"), ("0.75", "-0.5", "0.5")),
              values=lambda s: {**s.point(mpf(0)), offset: s.setting.w}, reference=_third, tolerance=1e-9),
    )


def _third(place: Place):
    e_, c_, w_ = place.at
    saddle = -1 / mpmath.sqrt(place.setting.constants[1])
    return mpmath.diff(lambda h: place.loss(h * e_, h * c_, saddle + h * w_), mpf(0), 3, direction=1) / 6


def _optimum(chapter: Chapter, kappa) -> None:
    """The surface of global minima."""
    gradient = chapter["gap_gradient"]
    products = Matrix([bend * gradient[i] * gradient[j] for i, j in PAIRS])
    whole = slope * chapter["gap_hessian"] + products
    chapter.add(
        "hessian_on_optimum",
        "On the surface $\\kappa=\\kappa^*$ the Hessian is $\\varphi_2\\nabla\\kappa\\nabla\\kappa^\\top$: index 0, and nullity 2, which is "
        "the dimension of the surface. These are the global minima.",
        r"(L_{ee},\ L_{ec},\ L_{ew},\ L_{cc},\ L_{cw},\ L_{ww})\big|_{\kappa=\kappa^*}", products,
        (whole.subs(slope, 0) - products).applyfunc(expand),
        Check("second numerical derivatives of the minimised loss of a network on the surface",
              cases=[_moved(s) for s in EVERYWHERE[1:3]], values=Place.point, reference=lambda s: s.seconds(s.loss), tolerance=1e-12),
    )


def _moved(place: Place) -> Place:
    """The place with its head such that the gap is the best one."""
    with mpmath.workdps(60):
        s = place.setting
        star = mpmath.log((1 - s.p) * ((1 - s.q) / (s.p * s.q) if s.states is None else (s.states - 1) / s.p))
        return Place(s, star / place.gap(s.e, mpf(1), s.w))


def _table(chapter: Chapter) -> list[dict]:
    """Critical sets for two symbols and for S >= 3, with index and nullity from the eigenvalues just derived.

    {upper} and {lower} stand for the zeros of B seen from e > 0 and from e < 0, {c} for c with the sign of κ*, {star} for κ*.
    On the kink e = 0 index and nullity are those along it, where the loss is constant.
    """
    probe = {scale: 1, curvature: 2, slope: 1, e: 1, head: 1, sign_w: 1, w: 1}
    pairs = [int(bool(value.subs(probe) > 0)) for value in (chapter["eigenvalues_on_axis"], *chapter["eigenvalues_on_lines"])]

    def row(states_, name, dimension, equations, index, nullity, loss="unigram"):
        return {"states": states_, "name": name, "dimension": dimension, "index": index, "nullity": nullity, "loss": loss,
                "equations": equations}

    def pair(states_, equations, which):
        return row(states_, "saddles", 1, equations, pairs[which], 3 - 2 * pairs[which])

    found = [
        row("any", "global minima", 2, "kappa(e, c, w) = {star}", 0, 2, "bigram"),
        row("many", "local minima", 2, "e = 0, {lower} < w < {upper}, {c} > 0", 0, 2),
        row("many", "maxima", 2, "e = 0, {lower} < w < {upper}, {c} < 0", 0, 2),
        pair("two", "e = c = 0, w != {upper}", 0), pair("many", "e = c = 0, w != {lower}, w != {upper}", 0),
        pair("two", "c = 0, w = {upper}, e != 0", 1), pair("two", "e = 0, w = {upper}, c != 0", 2),
        pair("many", "c = 0, w = {upper}, e > 0", 1), pair("many", "c = 0, w = {lower}, e < 0", 1),
        row("two", "saddle", 0, "e = c = 0, w = {upper}", 0, 3),
    ]
    for end in ("{lower}", "{upper}"):  # the ends of the minima and of the maxima: the two sides of e = 0 are not alike
        found.append(row("many", "saddles", 1, f"e = 0, w = {end}, c != 0", None, 2))
        found.append(row("many", "saddle", 0, f"e = c = 0, w = {end}", None, 3))
    return found


def module_text(chapter: Chapter, chain) -> str:
    """The text of the module of kernels on a chain: its class, or one that brings a φ of its own."""
    if chain.kind == "symmetric":
        kinks, vocabulary, gap = ((sign_e, e),), (states,), chapter["gap_simplex"]
    else:
        kinks, vocabulary, gap = (), (), chapter["gap_binary"]
    return built_in_gap_module("untied", (e, head, w), gap, chain, ((sign_w, w),), kinks, vocabulary)


def untied_kernels(chapter: Chapter) -> dict[str, str]:
    """The generated modules by name."""
    rows = "".join(f"    {row!r},\n" for row in chapter["sets"])
    table = (
        '"""Critical sets of the untied loss, for two symbols and for more.\n\n'
        "The words in braces stand for the zeros of B seen from e > 0 and e < 0, c with the sign of κ*, and κ*.\n\n"
        f'Generated by `python -m landscape.derive` from derivations/{chapter.name}.md; do not edit.\n"""\n\nSETS = (\n{rows})\n'
    )
    modules = {f"untied_{chain.kind}": module_text(chapter, chain) for chain in (BinaryChain, SymmetricChain)}
    return modules | {"untied_sets": table}


def module_on(chain) -> str:
    """The module of a chain that brings a φ of its own, derived on the spot."""
    return module_text({"gap_binary": attention_gap()["gap_untied"].subs(attention, 0)}, chain)
