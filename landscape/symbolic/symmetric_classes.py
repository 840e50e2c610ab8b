"""Of the full model on the symmetric chain: the bound on its loss, plateaus where classes of symbols are told apart, global minima."""

from __future__ import annotations

import random
from functools import cache

import mpmath
import numpy as np
from mpmath import fdot, mpf
from sympy import Matrix, expand, factor, log, solve, sqrt, symbols

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.references import newton
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbol_networks import LAWS, SymbolNetwork, ansatz, corners, excess, transition
from landscape.symbolic.symbols import all_logits, e, first_weight, lag, own_logits, p, slope, states, together, width
from landscape.symbolic.symmetric_orbits import loss_and_gradient, simplex

# --- no way below the unigram loss for small MLPs -------------------------------------------------------------


def tangent(chapter: Chapter) -> None:
    on, off = (entry.subs(lag, 0) for entry in chapter["errors"])
    total = on * own_logits + off * (all_logits - own_logits)
    rate = slope / (states - 1) * (own_logits - all_logits / states)
    chapter.add(
        "tangent",
        "The loss is convex in the logits, so it lies above its tangent at zero: $L\\ge\\log S+$ this number, with $\\ell_{\\text{own}}=\\sum_x\\ell_{xx}$ and "
        "$\\ell_{\\text{all}}=\\sum_{xy}\\ell_{xy}$; here it is $\\frac{\\varphi_1}{S-1}\\sum_x\\langle\\tilde{\\mathbf e}_x,F(\\mathbf e_x)\\rangle$ with "
        "$F(y)=y+W_2\\max(W_1y,0)$, for any weights. As $F-1$ changes by at most $\\|W_1\\|\\|W_2\\|$ (spectral norms) times what $y$ changes by, "
        "**for $p>p_c$ no weights with $\\|W_1\\|\\|W_2\\|\\le1$ have a loss below $\\log S$, for any $S$, $d$, $r$, embedding, bias and one position vector. Without the MLP "
        "the unigram loss is the global minimum above $p_c$.** On the ansatz $\\|W_1\\|\\|W_2\\|=|m|/(S-1)$, so the bound is sharp: beyond it the plateau is [unstable](symmetric-stability.md#5-edges). It also proves the local minima of [step 4](symmetric-stability.md#4-offset) with "
        "$m<0$; for $m\\ge0$ write $W_2=cW_1^\\top+\\Delta$ with $c\\ge0$: $\\sum_x\\langle\\tilde{\\mathbf e}_x,cW_1^\\top\\max(W_1\\mathbf e_x,0)\\rangle\\ge0$, and $\\Delta$ is small near the ansatz.",
        r"\frac d{dt}L(t\ell)\Big|_{t=0}", rate, cancelled(expand(total - rate)),
        Check("numerical derivative of the cross-entropy along generic logits of 3 and 5 symbols", cases=range(len(LAWS)), values=_logit_sums, reference=_along_logits),
    )


def _some_logits(case: int) -> list:
    draw = random.Random(case)
    n = LAWS[case][0]
    return [[mpf(draw.randint(-32, 32)) / 16 for _ in range(n)] for _ in range(n)]


def _logit_sums(case: int) -> dict:
    logits, (n, p_) = _some_logits(case), LAWS[case]
    return {states: mpf(n), slope: excess(n, p_), own_logits: sum(logits[x][x] for x in range(n)), all_logits: sum(map(sum, logits))}


def _cross_entropy(logits, p_):
    n = len(logits)
    return sum(
        transition(x, y, n, p_) / n * (mpmath.log(sum(mpmath.exp(v) for v in row)) - row[y]) for x, row in enumerate(logits) for y in range(n)
    )


def _along_logits(case: int):
    logits, p_ = _some_logits(case), LAWS[case][1]
    return mpmath.diff(lambda t: _cross_entropy([[t * v for v in row] for row in logits], p_), mpf(0))


# --- plateaus on which classes of symbols are told apart ------------------------------------------------------


def classes(chapter: Chapter) -> None:
    inside = 1 - p + (together - 1) * p / (states - 1)
    outside = p / (states - 1)
    entropy = -inside * log(inside / together) - (states - together) * outside * log(outside)
    best = solve(inside - together * symbols("h", positive=True), symbols("h", positive=True))[0]
    chapter.add(
        "class_loss",
        "Give the symbols of a class one embedding, other classes others. Permutations within classes keep this, and where the model does the best it can for the classes "
        "its loss is critical among them, hence critical in the full model: a plateau for every way of taking the symbols together that the weights can tell apart. Its loss is the mean "
        "over symbols of this, for a class of $s$; with $s=S$ it is $\\log S$, with $s=1$ throughout the bigram loss. **At $S=5$, $p=0.95$: 1.5421 for classes of 2, 1, 1, 1; 1.5687 for 2, 2, 1 and "
        "1.5649 for 3, 1, 1, the plateaus of rank two; 1.5873 for 4, 1; 1.5915 for 3, 2.** A simplex of $C$ classes has rank $C-1$.",
        r"H(s)", entropy, cancelled(best - inside / together),
        Check("minimisation of the cross-entropy after a symbol of the class over the common logit of the class", cases=[(*law, s) for law in LAWS for s in (1, 2, law[0])],
              values=lambda c: {states: mpf(c[0]), p: c[1], together: mpf(c[2])}, reference=_class_loss),
    )
    on, off = (cancelled((best - entry) / states) for entry in (1 - p, outside))
    first, second = (cancelled(entry / chapter["errors"][0].subs({lag: 0, slope: p - (states - 1) / states})) * slope / states for entry in (on, off))
    whole = Matrix([factor(first), factor(second)])
    chapter.add(
        "class_errors",
        "The gradient in the logits of two symbols of one class, for the symbol itself and the other: $\\frac{\\varphi_1}{S-1}(1-\\mathbf1\\mathbf1^\\top/s)$ with the $\\varphi_1=\\varphi'(0)$ and $S$ of the whole "
        "chain, **the same for a class of any size: each class is a unigram plateau in small, with the threshold $p_c$ of the whole chain.** Pulling its embeddings apart by $\\tilde{\\mathbf e}_x$ "
        "costs $\\frac{\\varphi_1}{S-1}\\sum_x\\langle\\tilde{\\mathbf e}_x,(1+W_2D_CW_1)\\tilde{\\mathbf e}_x\\rangle$, $D_C$ the gates of the class, and what changes in the logits at first order, squared, which is never "
        "negative. **So for $p>p_c$ a plateau of classes is stable against splitting if $2+W_2D_CW_1+(W_2D_CW_1)^\\top>0$ in each class of two or more. For $p<p_c$ it is a strict saddle if some $v$ is orthogonal to all "
        "embeddings, final streams and rows of $W_1$: the curvature along it is $2\\varphi_1/(S-1)$.** Fewer than $d$ dimensions in use leave such a $v$; in few dimensions plateaus of classes may hold below $p_c$ too.",
        r"\left(\frac{\partial L}{\partial\ell_{xx}},\ \frac{\partial L}{\partial\ell_{xy}}\right)_{x,y\in C}", whole,
        Matrix([cancelled(whole[0] + (together - 1) * whole[1])]),
        Check("numerical derivatives of the cross-entropy in single logits, at the logits of a class of the first s symbols", cases=[(*law, s) for law in LAWS for s in (2, 3)],
              values=lambda c: {states: mpf(c[0]), slope: excess(c[0], c[1]), together: mpf(c[2])}, reference=_class_errors),
    )


def _class_gap(n, p_, s):
    """The best common logit of the first s of n symbols after the first of them, the others at zero."""
    def loss(logit):
        total = mpmath.log(s * mpmath.exp(logit) + n - s)
        return sum(transition(0, y, n, p_) * (total - (logit if y < s else 0)) for y in range(n))

    at = newton(loss, mpf(0)) if s < n else mpf(0)
    return at, loss(at)


def _class_loss(case):
    return _class_gap(*case)[1]


def _class_errors(case) -> list:
    n, p_, s = case
    logit, _ = _class_gap(n, p_, s)
    base = [[logit if x < s and y < s else mpf(0) for y in range(n)] for x in range(n)]

    def moved(y, t):
        return [[v + (t if (i, j) == (0, y) else 0) for j, v in enumerate(row)] for i, row in enumerate(base)]

    return [mpmath.diff(lambda t: _cross_entropy(moved(y, t), p_), mpf(0)) for y in (0, 1)]


# --- the global minima ------------------------------------------------------------------------------------------


def optimum(chapter: Chapter) -> None:
    active = e * first_weight / sqrt(states)  # what a symbol's own unit lets through
    own_law, other_law = 1 - p, p / (states - 1)
    other = -1 / (states - 1)
    along = own_law * 1 + (states - 1) * other_law * other**2 - (own_law + (states - 1) * other_law * other) ** 2
    beside = other_law * (states / (states - 1))  # Σ_y ⟨u_y, ζ⟩² = S/(S-1) and ⟨u_j, ζ⟩ = 0
    result = Matrix([factor(active**2 * e**2 / states * value) for value in (along, beside)])
    chapter.add(
        "second_layer_on_optimum",
        "On the global minima the residuals vanish, and the Hessian is $\\sum_x\\pi_x\\,\\nabla\\ell_x^\\top(\\operatorname{diag}P-PP^\\top)\\nabla\\ell_x\\ge0$. In $W_2$ alone, $ew_1>0$: along $u_j$ in the column of the unit of $j$, and "
        "orthogonal to it in the span. Both are positive, and columns do not mix: all $S(S-1)$ differences of logits are moved. (For $ew_1<0$ the units of the others are open, and $\\mathbf1\\mathbf1^\\top-1$ is invertible too.)",
        r"\left(L_{u_ju_j},\ L_{\zeta\zeta}\right)\big|_{\kappa=\kappa^*}", result, Matrix([cancelled(along - p * (1 - p) * (1 - other) ** 2)]),
        Check("second numerical derivatives of the full loss of networks with 3 and 5 symbols at the bigram loss", cases=OPTIMA,
              values=lambda c: {states: mpf(c[0]), p: c[1], e: c[2], first_weight: mpf(2)}, reference=_second_layer, tolerance=1e-15),
    )
    parameters = states * width + 2 * states * width + states
    result = expand(parameters - states * (states - 1))
    chapter.add(
        "nullity_of_optimum",
        "So among the $3Sd+S$ parameters without positions the rank of the Hessian is $S(S-1)$, and **every direction that leaves the logits alone is flat: nothing pulls back to the ansatz**, as for two symbols.",
        r"\operatorname{nullity}(\kappa=\kappa^*)", result, expand(result + states * (states - 1) - parameters),
        Check("eigenvalues of the whole Hessian of networks with S = 3 and 5, d from S - 1 to S + 1, by differences of gradients (double precision)",
              cases=[(law, d, side) for law, d, side in ((0, 2, 1), (1, 3, -1), (2, 4, 1), (3, 6, -1))],
              values=lambda c: {states: mpf(LAWS[c[0]][0]), width: mpf(c[1])}, reference=_nullity),
    )


OPTIMA = tuple((n, p_, mpf(e_)) for (n, p_), e_ in zip(LAWS, ("0.75", "0.875", "0.625", "1.25")))


def _optimal_weight(n, p_, e_):
    """w_2 at which the ansatz has the bigram loss with w_1 = 2."""
    star = mpmath.log((1 - p_) * (n - 1) / p_)
    open_ = 1 if e_ > 0 else mpf(1) / (n - 1)
    return (star * (n - 1) / (n * e_**2) - 1) * n / open_ / 2


def _second_layer(case) -> list:
    n, p_, e_ = case
    network = SymbolNetwork(n, n - 1, n)
    theta = network.flat(ansatz(n, n - 1, e_, mpf(2), _optimal_weight(n, p_, e_)))
    u = corners(n, n - 1)

    def column(vector):
        norm = mpmath.sqrt(fdot(vector, vector))
        return network.flat({"outer": [[v / norm, *[mpf(0)] * (n - 1)] for v in vector]})

    across = [a - b for a, b in zip(u[1], u[2])]
    return [network.second(theta, p_, direction, direction) for direction in (column(u[0]), column(across))]


@cache
def _nullity(case) -> mpf:
    """Eigenvalues of the Hessian that are zero to rounding."""
    law, d, side = case
    n, p_ = LAWS[law]
    u, second = simplex(n, d), float(_optimal_weight(n, p_, mpf(side)))
    theta = [side * u, 2 / np.sqrt(n) * u, second / np.sqrt(n) * u.T, np.zeros(n)]
    flat, step = np.concatenate([a.ravel() for a in theta]), 1e-5
    cuts = np.cumsum([a.size for a in theta])[:-1]
    moved = np.concatenate([flat + sign * step * np.eye(len(flat)) for sign in (1, -1)])
    models = [part.reshape(len(moved), *a.shape) for part, a in zip(np.split(moved, cuts, axis=1), theta)]
    ahead, behind = np.split(np.concatenate([g.reshape(len(moved), -1) for g in loss_and_gradient(models, float(p_))[1]], axis=1), 2)
    return mpf(int(np.sum(np.abs(np.linalg.eigvalsh((ahead - behind) / (2 * step))) < 1e-7)))
