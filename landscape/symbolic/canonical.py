"""Chapters: from the layers to the canonical gap, and from the gap to the gradient and Hessian of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import mpmath
from mpmath import mpf
from sympy import Function, Matrix, Piecewise, diff, factor, simplify

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.layers import all_branches, canonical_binary, canonical_simplex, merge, reduce_signs
from landscape.symbolic.references import minimised_loss, network_gap, network_logits, softmax_loss
from landscape.symbolic.steps import Chapter, Check, Kernel
from landscape.symbolic.symbols import (
    bend, curvature, e, scale, sign_e, sign_w, size_e, size_w, slope, states, w,
)


@dataclass(frozen=True)
class Setting:
    """A place at which the network of actual matrices is evaluated, and the numbers the statements need."""

    e: mpf
    w: mpf
    p: mpf
    q: mpf | None = None
    states: int | None = None

    def phi(self, gap):
        if self.states is None:
            return minimised_loss(gap, self.p, self.q)
        return softmax_loss(gap, self.states, self.p)

    def gap(self, e_, w_):
        return network_gap(e_, w_, self.states)

    def loss(self, e_, w_):
        return self.phi(self.gap(e_, w_))

    @property
    def constants(self):
        """A and c, measured: the gap at w = 0, and what one unit of w adds to it, at this sign of e."""
        side = mpmath.sign(self.e) or mpf(1)
        base = self.gap(side, mpf(0))
        return base, self.gap(side, mpf(1)) / base - 1

    def point(self, gap=None) -> dict:
        """The symbols' values, with φ′ and φ″ by numerical derivatives, at the network's gap or another."""
        where = self.gap(self.e, self.w) if gap is None else gap
        a, c = self.constants
        return {
            e: self.e, w: self.w, sign_e: mpmath.sign(self.e), sign_w: mpmath.sign(self.w), scale: a, curvature: c,
            **_slopes(self, where, mpmath.mp.dps),
        }


@cache
def _slopes(setting: Setting, gap, digits: int) -> dict:
    """φ′ and φ″ at a gap, by numerical derivatives; kept, as many steps ask for them at the same place."""
    return {slope: mpmath.diff(setting.phi, gap), bend: mpmath.diff(setting.phi, gap, 2)}


def settings(*values) -> tuple[Setting, ...]:
    """Binary networks at (.5, .8) and (.2, .3) and one with three symbols, at the given (e, w)."""
    chains = ({"p": mpf(5) / 10, "q": mpf(8) / 10}, {"p": mpf(2) / 10, "q": mpf(3) / 10}, {"p": mpf(9) / 10, "states": 3})
    return tuple(
        Setting(mpf(e_), mpf(w_), **chains[i % len(chains)]) for i, (e_, w_) in enumerate(values)
    )


EVERYWHERE = (("0.75", "0.5"), ("-1.25", "0.875"), ("-0.625", "-0.375"), ("1.125", "-1.25"), ("-0.5", "-0.9"), ("0.8", "0.3"))


def canonical_gap() -> Chapter:
    """The gap κ from the layers, for two symbols and for S symbols."""
    chapter = Chapter(
        "canonical-gap",
        "From the layers to the canonical gap",
        "Two symbols: $\\alpha\\in\\{\\pm1\\}^d$, embedding $\\mathbf e=(e/\\sqrt d)\\,\\alpha$, positions $-\\mathbf e/2$, "
        "$W_1=k|w|\\,\\mathbf 1\\alpha^\\top$, $W_2=kw\\,\\alpha\\mathbf 1^\\top$ with $k=2/\\sqrt{rd}$, tied head, no "
        "attention. S symbols: embeddings $e\\,u_x$ at the corners of a regular simplex, $S$ hidden units along the same "
        "corners, $W_1=(2|w|/\\sqrt S)\\,U$, $W_2=(2w/\\sqrt S)\\,U^\\top$, no positions. SymPy carries the forward pass "
        "to the logits for symbolic $d$, $r$ and $S$, in each branch of the signs $\\sigma_e,\\sigma_w$ of $e$ and $w$.",
        settles="*Claim*: the loss (line 203 of the paper) does not depend on $\\alpha$ but on a few scalars only (authors). "
        "*Settled*: true without attention for $\\alpha\\in\\{\\pm1\\}^d$: neither $\\alpha$ nor $d$ nor $r$ is left in "
        "the logits (for the third scalar see [attention](attention-gap.md)). *Beyond*: the same form of the gap for $S$ "
        "symbols, from weights of rank $S-1$ along a simplex. A reviewer asked whether starts of low rank carry over to "
        "many states; for $S\\ge3$ the sign of $e$ comes to matter.",
    )
    two = [s for s in settings(*EVERYWHERE) if s.states is None]
    many = tuple(Setting(mpf(e_), mpf(w_), p=mpf("0.5"), states=3 + 2 * (i % 2)) for i, (e_, w_) in enumerate(EVERYWHERE))

    def signs(setting):
        return {e: setting.e, w: setting.w, sign_e: mpmath.sign(setting.e), sign_w: mpmath.sign(setting.w)}

    binary = all_branches(canonical_binary)
    constant = merge({branch: logits[0] for branch, logits in binary.items()})
    chapter.add(
        "constant",
        "The logit after a 0, up to the bias. It depends on the sign of $e$; the bias takes it up. Neither $\\alpha$ nor "
        "$d$ nor $r$ is left.",
        r"\ell(0)-b",
        constant,
        Matrix([_in_branch(constant, branch) - logits[0] for branch, logits in binary.items()]),
        Check("a network with d = 3, r = 2 and α = (1, -1, -1), multiplied out",
              cases=[signs(s) for s in two], reference=lambda at: network_logits(at[e], at[w])[0]),
    )
    gaps = {branch: logits[1] - logits[0] for branch, logits in binary.items()}
    gap = merge(gaps)
    chapter.add(
        "gap_binary",
        "The gap, one expression for all four branches: $\\kappa=e^2(1+2w|w|)$.",
        r"\kappa_{\text{two symbols}}",
        gap,
        Matrix([_in_branch(gap, branch) - value for branch, value in gaps.items()]),
        Check("a network with d = 3, r = 2 and α = (1, -1, -1), multiplied out",
              cases=[signs(s) for s in two], reference=lambda at: network_gap(at[e], at[w])),
    )
    simplex = all_branches(canonical_simplex)
    gaps = {branch: logits[0] - logits[1] for branch, logits in simplex.items()}
    gap_many = factor(merge(gaps))
    chapter.add(
        "gap_simplex",
        "The gap for S symbols. ReLU lets one unit through if $e>0$ and $S-1$ units if $e<0$, so the symmetry "
        "$e\\to-e$ is lost for $S\\ge3$.",
        r"\kappa_{S\text{ symbols}}",
        gap_many,
        Matrix([cancelled(_in_branch(gap_many, branch) - value) for branch, value in gaps.items()]),
        Check("networks with 3 and 5 symbols at the corners of a simplex, multiplied out",
              cases=[{**signs(s), states: mpf(s.states)} for s in many],
              reference=lambda at: network_gap(at[e], at[w], int(at[states]))),
    )
    common = scale * e**2 * (1 + curvature * sign_w * w**2)
    chapter.add(
        "common_form",
        "Both are $\\kappa=A\\,e^2(1+c\\,w|w|)$ with two constants, read off here; all that follows holds for any positive "
        "$A$ and $c$.",
        r"\kappa(e,w)",
        common,
        Matrix([cancelled(reduce_signs(common.subs(_constants(found)) - found)) for found in (gap, gap_many)]),
        Check("networks with two and three symbols, multiplied out, of which A and c are measured",
              cases=settings(*EVERYWHERE), values=Setting.point, reference=lambda s: s.gap(s.e, s.w)),
    )
    for name, found, which in (("constants_binary", gap, "two"), ("constants_simplex", gap_many, "S")):
        values = _constants(found)
        where = two if which == "two" else many
        chapter.add(
            name, f"The constants for {which} symbols.", rf"(A,\ c)_{{\text{{{which} symbols}}}}",
            Matrix([values[scale], values[curvature]]),
            cancelled(reduce_signs(found.subs({sign_w: 1, w: 1}) - (values[scale] * (1 + values[curvature]) * e**2))),
            Check("A as the network's gap at (e, w) = (±1, 0), c from its gap at (±1, 1)",
                  cases=where, values=lambda s: {sign_e: mpmath.sign(s.e), states: mpf(s.states or 2)},
                  reference=lambda s: s.constants),
        )
    return chapter


def _in_branch(expression, branch):
    return cancelled(expression.subs({e: branch[0] * size_e, w: branch[1] * size_w, sign_e: branch[0], sign_w: branch[1]}))


def _constants(gap) -> dict:
    """A and c of a gap of the form A e² (1 + c σ w²)."""
    base = cancelled(gap.subs(w, 0) / e**2)
    rise = factor(cancelled(reduce_signs(sign_w * (gap / e**2 - base).subs(w, 1)) / base))
    return {scale: base, curvature: rise}


def canonical_derivatives(gap_chapter: Chapter) -> Chapter:
    """Gradient and Hessian of the gap and of the loss L = φ(κ(e, w))."""
    chapter = Chapter(
        "canonical-derivatives",
        "Gradient and Hessian",
        "$L(e,w)=\\varphi(\\kappa(e,w))$ with $\\kappa=A\\,e^2(1+c\\,w|w|)$. In each branch of the sign $\\sigma_w$ of $w$ "
        "the gap is a polynomial, so no derivative of $|w|$ is ever taken. $\\varphi_1$ and $\\varphi_2$ are $\\varphi'$ "
        "and $\\varphi''$ at $\\kappa(e,w)$.",
        settles="*Claim*: the analysis first leaves attention out and follows gradient flow in $(e,w)$, which shows its main "
        "ideas (authors). *Settled*: this is the gradient that it follows, and the Hessian: one factor from the chain "
        "times a field that knows no chain. *Beyond*: so the curves of the flow are the same for every chain; $p$ and $q$ "
        "decide the direction along them, the speed, and where it stops. The same expressions serve $S$ symbols.",
    )
    where = settings(*EVERYWHERE)
    gap = gap_chapter["common_form"]

    def derivative(*variables):
        return diff(_Loss(gap), *variables).replace(_Slope, lambda _: slope).replace(_Bend, lambda _: bend)

    def reference(*orders):
        return lambda s: [mpmath.diff(s.loss, (s.e, s.w), order) for order in orders]

    at = {"cases": where, "values": Setting.point}
    gap_gradient = Matrix([diff(gap, v) for v in (e, w)])
    chapter.add(
        "gap_gradient", "The gradient of the gap, continuous at $w=0$.", r"\nabla\kappa", gap_gradient,
        Matrix([simplify(gap_gradient[0].diff(w) - gap_gradient[1].diff(e))]),
        Check("numerical derivatives of the gap of a network, multiplied out",
              reference=lambda s: [mpmath.diff(s.gap, (s.e, s.w), o) for o in ((1, 0), (0, 1))], **at),
    )
    gradient = Matrix([derivative(v) for v in (e, w)])
    chapter.add(
        "gradient", "The chain rule: gradient flow moves along the field lines of $\\nabla\\kappa$.", r"\nabla L", gradient,
        (gradient - slope * gap_gradient).applyfunc(simplify),
        Check("numerical derivatives of the minimised loss of a network", reference=reference((1, 0), (0, 1)), **at),
    )
    entries = Matrix([derivative(e, e), derivative(e, w), derivative(w, w)])
    by_parts = Matrix([
        bend * diff(gap, a) * diff(gap, b) + slope * diff(gap, a, b) for a, b in ((e, e), (e, w), (w, w))
    ])
    chapter.add(
        "hessian",
        "The entries $L_{ee},L_{ew},L_{ww}$. $L_{ww}$ jumps at $w=0$ where $\\varphi_1e\\ne0$; the kernels give the mean of the "
        "two sides there.",
        r"(L_{ee},\ L_{ew},\ L_{ww})", entries, (entries - by_parts).applyfunc(simplify),
        Check("second numerical derivatives of the minimised loss of a network", cases=where[:4], values=Setting.point,
              reference=reference((2, 0), (1, 1), (0, 2))),
    )
    return chapter


class _Bend(Function):
    """φ″ of an open chain."""


class _Slope(Function):
    """φ′ of an open chain."""

    def fdiff(self, argindex=1):
        return _Bend(self.args[0])


class _Loss(Function):
    """φ of an open chain."""

    def fdiff(self, argindex=1):
        return _Slope(self.args[0])


def canonical_kernels(gap: Chapter, derivatives: Chapter) -> dict[str, tuple[Kernel, ...]]:
    """Kernels of the gap and its derivatives in (A, c), and of A and c for each vocabulary."""
    arguments = (e, w, scale, curvature)
    branch = ((sign_w, Piecewise((1, w > 0), (-1, w < 0), (0, True))),)
    many = gap["constants_simplex"].subs(sign_e, Piecewise((-1, e < 0), (1, True)))
    return {
        "canonical": (
            Kernel("kappa", arguments, (gap["common_form"],), "Logit gap A e² (1 + c w|w|).", branch),
            Kernel("kappa_gradient", arguments, tuple(derivatives["gap_gradient"]), "Gradient of the gap: (e, w).", branch),
            Kernel("loss_gradient", (*arguments, slope), tuple(derivatives["gradient"]),
                   "Gradient of the loss, given phi' at the gap: (e, w).", branch),
            Kernel("loss_hessian", (*arguments, slope, bend), tuple(derivatives["hessian"]),
                   "Hessian of the loss, given phi' and phi'' at the gap: (ee, ew, ww).", branch),
        ),
        "binary": (Kernel("constants", (e,), tuple(gap["constants_binary"]), "A and c for two symbols."),),
        "symmetric": (Kernel("constants", (e, states), tuple(many), "A and c for S symbols, on the side of e."),),
    }
