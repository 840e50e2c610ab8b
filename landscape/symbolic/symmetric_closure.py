"""Chapter: the simplex ansatz on the symmetric chain is kept by gradient flow of the full model, with which speeds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import mpmath
from mpmath import fdot, mpf
from sympy import And, Matrix, Or, diff, expand, log, sqrt
from sympy import factor as factored

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.layers import Corners
from landscape.symbolic.primitives import elementary
from landscape.symbolic.references import simplex_logits, softmax_loss
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbol_networks import SymbolNetwork, ansatz, corners
from landscape.symbolic.symbol_symmetry import fixed, symmetry
from landscape.symbolic.symbols import (
    curvature, e, first_weight, log_ratio, own, second_weight, sign_e, sign_w, size_w, slope, states, target, w,
)
from landscape.symbolic.symmetric_orbits import orbits


def symmetric_closure(gap: Chapter, conserved: Chapter, sets: Chapter) -> Chapter:
    """Why the ansatz is kept, the gradient on it, balance, speeds, invariant and limits of the full model."""
    chapter = Chapter(
        "symmetric-closure",
        "Many states: the simplex ansatz is kept",
        "The full model on the symmetric chain: embeddings $\\mathbf e_x\\in\\mathbb R^d$, $d\\ge S-1$, as the rows of $\\mathbf E$, "
        "tied head, one bias a symbol, an MLP with $S$ hidden units, positions $\\mathbf p_n$. On the *ansatz* "
        "$\\mathbf e_x=e\\,u_x$, $W_1=(w_1/\\sqrt S)\\,U$, $W_2=(w_2/\\sqrt S)\\,U^\\top$ with the corners $u_x$ of a regular simplex "
        "as the rows of $U$, positions and bias are zero, and $\\|W_1\\|_F=|w_1|$, $\\|W_2\\|_F=|w_2|$; the [canonical slice](canonical-gap.md) is "
        "$w_1=2|w|$, $w_2=2w$. $\\sigma_x$ says which hidden units a symbol opens: its own if $\\sigma_x=\\operatorname{sgn}(ew_1)=1$, "
        "those of all others if $\\sigma_x=-1$.",
        settles="*Claim*: gradient flow can be analysed for many states as for two (authors; a reviewer asks whether the low-rank "
        "start helps there). *Settled*: on the symmetric chain the full model keeps the simplex ansatz of rank $S-1$, and moves on "
        "it by the flow of $(e,w)$ with speeds of its own. *Beyond*: summary and replies have no ansatz for many states.",
    )
    symmetry(chapter)
    fixed(chapter)
    _gradient(chapter)
    _speeds(chapter, gap)
    _orbits(chapter, conserved, sets)
    return chapter


# --- the gradient on the ansatz -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A point of the ansatz and a chain."""

    states: int
    width: int
    e: mpf
    w_1: mpf
    w_2: mpf
    p: mpf

    @cached_property
    def network(self) -> SymbolNetwork:
        return SymbolNetwork(self.states, self.width, self.states)

    @property
    def theta(self) -> list:
        return self.network.flat(ansatz(self.states, self.width, self.e, self.w_1, self.w_2))

    @property
    def unit(self) -> list[list]:
        """The arrays U, U and Uᵀ as directions in parameter space."""
        whole = ansatz(self.states, self.width, mpf(1), mpmath.sqrt(self.states), mpmath.sqrt(self.states))
        return [self.network.flat({name: rows}) for name, rows in whole.items()]

    def gap_slope(self):
        """φ′ at the network's gap."""
        of = self.network.arrays(self.theta)
        logits = self.network.logits(of, [0])
        return mpmath.diff(lambda k: softmax_loss(k, self.states, self.p), logits[0] - logits[1])

    def point(self) -> dict:
        return {
            states: mpf(self.states), e: self.e, first_weight: self.w_1, second_weight: self.w_2,
            own: mpmath.sign(self.e * self.w_1), slope: self.gap_slope(),
        }


PLACES = tuple(
    Place(n, d, *(mpf(v) for v in numbers)) for n, d, *numbers in (
        (3, 2, "0.75", "1.5", "-1.25", "0.9"), (3, 4, "-0.875", "1.25", "0.75", "0.3"),
        (5, 4, "-0.75", "1.5", "-2.25", "0.95"), (5, 6, "0.625", "-1.75", "1.5", "0.6"), (4, 3, "1.125", "-0.75", "-1.5", "0.4"),
    )
)
OPEN = Corners((1 + own) / 2, (1 - own) / 2)


def gated(row: Corners) -> Corners:
    return Corners(OPEN.on * row.on, OPEN.off * row.off)


def tidy(expression):
    """One denominator, with σ_x² = 1."""
    numerator = expand(expression)
    reduced = sum(c * own ** (k % 2) for (k,), c in numerator.as_poly(own).terms()) if numerator.has(own) else numerator
    return factored(cancelled(reduced))


def layers() -> tuple[Corners, Corners, Corners]:
    """Hidden units, final stream and logits after a symbol, for itself (`on`) and the others (`off`)."""
    root = sqrt(states)
    active = gated(Corners(e, 0).products().scaled(first_weight / root))
    final = Corners(e, 0) + active.scaled(second_weight / root)
    return active, final, final.products().scaled(e)


def _gradient(chapter: Chapter) -> None:
    active, final, logits = layers()
    kappa = tidy(logits.on - logits.off)
    chapter.add(
        "gap", "The gap with both MLP weights on their own.", r"\kappa(e,w_1,w_2)", kappa, tidy(kappa - (logits.on - logits.off)),
        Check("networks with 3, 4 and 5 symbols, d = S - 1 and d = S + 1, multiplied out", cases=PLACES, values=Place.point,
              reference=lambda place: _difference(place.network.logits(place.network.arrays(place.theta), [0]))),
    )
    error = Corners(slope / states, -slope / (states * (states - 1)))  # π_x times what each logit's probability is off by
    root, upstream = sqrt(states), error.scaled(e)
    into_hidden = gated(upstream.products().scaled(second_weight / root))
    # a row of each gradient: sums over symbols, by symmetry multiples on and off of corners
    by_head = _convolved(error, final)
    by_input = upstream + into_hidden.scaled(first_weight / root)
    rows = {"E": by_head + by_input, "1": into_hidden.scaled(e), "2": _convolved(active, upstream)}
    sizes = [tidy(row.on - row.off) for row in rows.values()]  # Σ u = 0
    left_over = [tidy(Corners(row.off, row.off).products().on) for row in rows.values()]
    position = Corners(by_input.on + (states - 1) * by_input.off, by_input.on + (states - 1) * by_input.off).products().on
    result = Matrix([*sizes, *left_over, tidy(error.on + (states - 1) * error.off), tidy(position)])
    norms = (states, sqrt(states), sqrt(states))
    chapter.add(
        "gradient",
        "The gradient of the full loss on the ansatz, by backpropagation for symbolic $S$ and any $d$: as multiples of $U$, $U$ and "
        "$U^\\top$ in $\\mathbf E$, $W_1$ and $W_2$; what is left of the three beside them; in the bias; in a position. "
        "$\\varphi_1=\\varphi'(\\kappa)$. **Five zeros: no component leads off the ansatz.**",
        r"\left(\gamma_{\mathbf E},\ \gamma_1,\ \gamma_2,\ \text{rest}_{\mathbf E},\ \text{rest}_1,\ \text{rest}_2,\ \partial_{\mathbf b},\ \partial_{\mathbf p}\right)", result,
        Matrix([tidy(norm * size - slope * diff(kappa, v)) for norm, size, v in zip(norms, sizes, (e, first_weight, second_weight))]),
        Check("numerical derivatives of the full loss, summed from its definition, in every single parameter: coefficients, and the largest "
              "entry of the rest", cases=PLACES, values=Place.point, reference=_full_gradient),
    )
    rates = [tidy(first_weight * sizes[1] / root * states), tidy(second_weight * sizes[2] / root * states)]
    chapter.add(
        "balance",
        "The same for both, so that $w_1^2-w_2^2$ is conserved: what starts with $|w_1|=|w_2|$ stays on the canonical slice, and as $w=0$ is not "
        "crossed, signs stay. (For each hidden unit it is so [in every network](exact-reduction.md#18-balance).)",
        r"w_1\frac{\partial L}{\partial w_1}=w_2\frac{\partial L}{\partial w_2}", rates[0], tidy(rates[0] - rates[1]),
        Check("numerical derivative of the full loss along W_2", cases=PLACES, values=Place.point, reference=lambda place: place.network.slope(
            place.theta, place.p, [place.w_2 / mpmath.sqrt(place.states) * v for v in place.unit[2]])),
    )


def _convolved(left: Corners, right: Corners) -> Corners:
    """Σ_x left(x, y) right(x) as corners seen from y: left is a number for x = y and another for x ≠ y."""
    on = left.on * right.on + (states - 1) * left.off * right.off
    off = left.on * right.off + left.off * right.on + (states - 2) * left.off * right.off
    return Corners(on, off)


def _difference(logits):
    return logits[0] - logits[1]


@cache
def _numeric_gradient(place: Place) -> dict:
    network, theta = place.network, place.theta
    slopes = [network.slope(theta, place.p, [mpf(i == j) for j in range(network.size)]) for i in range(network.size)]
    return network.arrays(slopes)


def _full_gradient(place: Place) -> list:
    by, u = _numeric_gradient(place), corners(place.states, place.width)
    found, rest = [], []
    for name, shape in (("embedding", u), ("inner", u), ("outer", [list(column) for column in zip(*u)])):
        size = sum(fdot(a, b) for a, b in zip(by[name], shape)) / place.states
        found.append(size)
        rest.append(max(abs(g - size * v) for row, line in zip(by[name], shape) for g, v in zip(row, line)))
    return [*found, *rest, max(map(abs, by["bias"][0])), max(map(abs, by["position"][0]))]


# --- speeds ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Canonical:
    """A point of the canonical slice of S symbols."""

    states: int
    e: mpf
    w: mpf
    p: mpf

    @property
    def place(self) -> Place:
        return Place(self.states, self.states - 1, self.e, 2 * abs(self.w), 2 * self.w, self.p)

    def loss(self, e_, w_):
        logits = simplex_logits(e_, w_, self.states)
        return softmax_loss(logits[0] - logits[1], self.states, self.p)

    @property
    def constant(self):
        """c of the gap at this sign of e, measured."""
        side = mpmath.sign(self.e)
        gaps = [_difference(simplex_logits(side, mpf(k), self.states)) for k in (0, 1)]
        return gaps[1] / gaps[0] - 1

    def point(self) -> dict:
        return {
            states: mpf(self.states), e: self.e, w: self.w, sign_e: mpmath.sign(self.e), sign_w: mpmath.sign(self.w),
            curvature: self.constant,
        }


def canonicals(*values) -> tuple[Canonical, ...]:
    return tuple(Canonical(n, mpf(e_), mpf(w_), mpf(p_)) for n, e_, w_, p_ in values)


SLICE = canonicals(
    (3, "0.75", "0.5", "0.9"), (3, "-0.875", "-1.25", "0.3"), (5, "-0.625", "0.75", "0.95"), (5, "1.125", "-0.875", "0.6"),
)


def _speeds(chapter: Chapter, gap: Chapter) -> None:
    sides = Corners(1, 0).products().on
    length = states * (e**2 + (2 * w / sqrt(states)) ** 2 + (2 * w / sqrt(states)) ** 2) * sides
    pace = Matrix([cancelled(2 / diff(length, v, 2)) for v in (e, w)])
    on_slice = {first_weight: 2 * sign_w * w, second_weight: 2 * w, own: sign_e}
    size_e, size_1 = (chapter["gradient"][i].subs(on_slice) for i in (0, 1))
    kappa = gap["gap_simplex"]
    flow = [-size_e, -sign_w * sqrt(states) / 2 * size_1]
    residual = [
        cancelled(expand(rate + c * slope * diff(kappa, v)).subs(sign_w, side)) for rate, c, v in zip(flow, pace, (e, w)) for side in (1, -1)
    ]
    chapter.add(
        "speeds",
        "$\\|\\mathbf E\\|_F^2=Se^2$ and $\\|W_1\\|_F^2=\\|W_2\\|_F^2=4w^2$, so that gradient flow of all parameters is, in $(e,w)$, the flow "
        "$\\dot e=-c_e\\,\\partial_eL$, $\\dot w=-c_w\\,\\partial_wL$ with these speeds. **It is the plain canonical flow, slowed down, for $S=8$ "
        "alone**; for fewer states $w$ is slower than $e$ by comparison. As a landscape: `landscape_of(chain).with_speeds({\"e\": 1 / S, \"w\": 1 / 8})`.",
        r"(c_e,\ c_w)", pace, Matrix(residual),
        Check("velocity of the full network, from numerical derivatives of its loss along U, over the numerical slope of the loss of the slice",
              cases=SLICE, values=Canonical.point, reference=_measured_speeds),
    )


def _velocity(at: Canonical) -> tuple:
    """ė and ẇ of the full model."""
    place = at.place
    by_e, by_2 = (place.network.slope(place.theta, place.p, direction) / place.states for direction in place.unit[::2])
    return -by_e, -by_2 * mpmath.sqrt(place.states) / 2


def _measured_speeds(at: Canonical) -> list:
    slopes = [mpmath.diff(at.loss, (at.e, at.w), order) for order in ((1, 0), (0, 1))]
    return [-v / g for v, g in zip(_velocity(at), slopes)]


def _orbits(chapter: Chapter, conserved: Chapter, sets: Chapter) -> None:
    c_e, c_w = chapter["speeds"]
    g = conserved["G"]
    energy = expand(e**2 / c_e - g / c_w)
    form = e**2 * (1 + curvature * sign_w * w**2)
    rates = [cancelled(sum(c * diff(energy, v) * diff(form, v) for c, v in ((c_e, e), (c_w, w))).subs(sign_w, side)) for side in (1, -1)]
    chapter.add(
        "invariant",
        "What the flow of the full model conserves on the ansatz, for every chain: $\\|\\mathbf E\\|_F^2-\\|W_1\\|_F^2-\\|W_2\\|_F^2$ less the logarithm, "
        "with $c=4/S$ for $e>0$ and $4/(S(S-1))$ for $e<0$.",
        "E_S(e,w)", energy, Matrix(rates),
        Check("Se² - 8 less the quadrature of the velocity of the full network from w = ±1", cases=SLICE, values=Canonical.point,
              reference=lambda at: at.states * at.e**2 - 8 - at.states * _rise(at, mpmath.sign(at.w), at.w), tolerance=1e-10),
    )
    ratio = cancelled(c_e / c_w)
    threshold = ratio * elementary(conserved["threshold_in_s"]).subs(log_ratio, log(curvature * w**2))
    chapter.add(
        "separatrix",
        "The boundary between the basins, for $w<0$: the canonical one times $8/S$. [The depth of the half-stable part](canonical-limits.md#4-half-stable-depth) "
        "is multiplied likewise.",
        r"e^2_{\text{sep}}(w)", threshold, cancelled((threshold / ratio).subs(w, -size_w).subs(log(curvature * size_w**2), log_ratio) - (
            curvature * size_w**2 - 1 - log_ratio) / curvature),
        Check("quadrature of the velocity of the full network from where its gap changes sign", cases=canonicals(
            (3, "0.75", "-0.5", "0.9"), (3, "-0.875", "-1.5", "0.3"), (5, "-0.625", "-1.75", "0.95"), (5, "1.125", "-0.875", "0.6")),
              values=Canonical.point, reference=lambda at: _rise(at, -1 / mpmath.sqrt(at.constant), at.w), tolerance=1e-10),
    )
    b = sets["hessian_on_line"][0].as_independent(curvature, sign_w, w)[1]
    rule = Or(target * b > 0, And(w < 0, e**2 - threshold > 0))
    chapter.add(
        "reaches_optimum",
        "The [rule for the limit](canonical-limits.md#3-reaches-optimum) with this boundary: where the full model ends from a start on the ansatz, "
        "exactly. $\\tau=\\operatorname{sgn}\\kappa^*$. Off the ansatz it [may end elsewhere](symmetric-stability.md).",
        r"\text{global for } e\ne0,\ \kappa^*\ne0 \text{ iff}", rule, None,
        Check("orbits of the full model with 3 and 5 symbols, all parameters free, followed in arc length (double precision)", cases=orbits(),
              values=lambda case: {**Canonical(case["states"], mpf(case["e"]), mpf(case["w"]), mpf(case["p"])).point(), target: case["target"]},
              reference=lambda case: case["end"] == "global"),
    )


@cache
def _rise(at: Canonical, start, end):
    """Change of e² from one w to another along an orbit of the full model."""
    def field(along):
        place = Canonical(at.states, mpmath.sign(at.e), along, at.p)
        by_e, by_w = _velocity(place)
        return 2 * place.e * by_e / by_w

    with mpmath.workdps(20):
        return mpmath.quad(field, [start, end], maxdegree=4)
