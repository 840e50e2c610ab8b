"""Chapter: training on the manifold is training of the transformer with d = r = 1."""

from __future__ import annotations

from dataclasses import replace

from mpmath import fdot
from sympy import Matrix, Max, Rational, Symbol, collect, diff, expand, factor, sqrt
from sympy import symbols as numbered

from landscape.symbolic import manifold
from landscape.symbolic import symbols as s
from landscape.symbolic.algebra import cancelled
from landscape.symbolic.attention import FROM_ROW
from landscape.symbolic.balance import conserved
from landscape.symbolic.layers import ALPHA, ONES, Direction, Outer, Ray, score
from landscape.symbolic.manifold import Place
from landscape.symbolic.networks import Network, projected
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symmetry import ACROSS, BATCH, fixed_set, symmetry
from landscape.symbolic.training import optimisers

ACROSS_UNITS = Direction("across units", Symbol("units_square", positive=True), products=((ONES.name, Rational(0)),))
WITH_SLOPE = {
    "head": s.head, "query": s.query, "key": s.key, "value": s.value, "output": s.output, "inner": s.first_weight,
    "outer": s.second_weight,
}
METHOD = "networks with d = 2 to 4, r = 1 to 3, multiplied out"

# Coordinates (sixteenths): e, positions, Q, K, V, O, w_1, w_2, head unless tied, b. ReLU is open in some and closed in others.
PLACES = (
    Place(Network(3, 2, 3, "softmax", False), (1, -1, -1), (12, -9, 5, -7, 19, 14, -11, 13, 20, -9, 15, 3), (0, 1, 1)),
    Place(Network(2, 3, 3, "linear"), (1, -1), (-14, 6, 11, 9, 15, -18, 12, 10, -17, 21, -5), (1, 0, 1)),
    Place(Network(4, 1, 3, "softmax"), (-1, -1, 1, 1), (17, -8, 3, -13, -20, 11, 14, 9, 12, 16, 4), (1, 1, 0)),
    Place(Network(3, 1, 3, "linear", False), (1, 1, -1), (9, 7, -6, 13, 16, 12, -9, 14, -15, -11, -8, 2), (1, 1, 1)),
)
ROWS = tuple(replace(place, row=row) for place, row in zip(manifold.PAIRS, ((8, 4, -13), (9, 5), (-3, 7, 11, 2))))


def exact_reduction() -> Chapter:
    """The symmetry, the set it fixes, the network on it, its training, and what is conserved."""
    chapter = Chapter(
        "exact-reduction",
        "The exact reduction to one dimension",
        "The whole one-layer transformer: $y_n=x_n\\mathbf e+\\mathbf p_n$, attention weights from the scores $\\langle "
        "W_Qy_n,W_Ky_i\\rangle/\\sqrt d$ over $i\\le n$ (softmax, or the scores over $n$), $W_V$ and $W_O$, ReLU MLP, "
        "head $\\mathbf c$ (or $\\mathbf e$, tied), bias $b$. The *manifold* is the set where $\\mathbf e,\\mathbf "
        "p_n,\\mathbf c$ are multiples of $\\alpha$, $W_Q,W_K,W_V,W_O$ of $\\alpha\\alpha^\\top$, $W_1$ of "
        "$\\mathbf1\\alpha^\\top$ and $W_2$ of $\\alpha\\mathbf1^\\top$, for one $\\alpha$ with $\\|\\alpha\\|^2=d$. "
        "That training stays on it does not say that it is stable: nothing here is about its neighbourhood.",
        settles="*Claim*: the canonical model has the dynamics of the full one-layer transformer from a start of rank one, for "
        "which evidence was still lacking, and what starts at low rank stays so (authors). *Settled*: for gradient "
        "descent on any batch, with softmax attention, a start on the manifold of rank one stays on it, and training is "
        "that of the transformer with $d=r=1$ at the same rate. That is not yet the canonical model: see [the reduced "
        "landscape](reduced.md). *Beyond*: Adam keeps the manifold if $\\alpha$ is of signs, but trains another "
        "one-dimensional model; with $W_V=\\alpha v^\\top$ and $v$ not along $\\alpha$ rank one in this sense is not "
        "kept; the quantities that gradient flow conserves in any such network.",
    )
    symmetry(chapter)
    fixed_set(chapter)
    _network(chapter)
    _gradient(chapter)
    _value_row(chapter)
    optimisers(chapter)
    conserved(chapter)
    return chapter


def _network(chapter: Chapter) -> None:
    """Coordinates, score and logit on the manifold, against those of the transformer with d = r = 1."""
    arrays = (Ray(ALPHA, 1), Outer(ALPHA, ALPHA, 1), Outer(ONES, ALPHA, 1))
    norms = Matrix([array.coordinate for array in arrays])
    chapter.add(
        "coordinates",
        "The Frobenius norms of $\\alpha$, $\\alpha\\alpha^\\top$ and $\\mathbf1\\alpha^\\top$. An array that is $x$ "
        "times one of them has the orthonormal coordinate $x$ times its norm: $e=\\sqrt d\\,\\varepsilon$ for $\\mathbf "
        "e=\\varepsilon\\alpha$, $Q=d\\,g_Q$, $w_1=\\sqrt{rd}\\,\\omega_1$ and so on. Below, "
        "$e,p_n,c_h,Q,K,V,O,w_1,w_2,b$ are these coordinates: one number an array.",
        r"\left(\|\alpha\|,\ \|\alpha\alpha^\top\|,\ \|\mathbf1\alpha^\top\|\right)",
        norms,
        Matrix([norms[0] ** 2 - s.width, norms[1] ** 2 - s.width**2, norms[2] ** 2 - s.hidden * s.width]),
        Check("arrays of the networks, entry by entry", cases=PLACES, values=Place.point, reference=_norms),
    )
    here, there = manifold.stream(1), manifold.stream(0)
    between = score(manifold.QUERY, manifold.KEY, here, there)
    chapter.add(
        "scores",
        "The score between streams of coordinates $y_1$ and $y_2$: that of one dimension, with queries and keys that "
        "are numbers, but divided by the root of the *original* $d$. Equal scores have equal weights, whatever the rule "
        "that makes weights of scores.",
        r"\langle W_Qy_2,W_Ky_1\rangle/\sqrt d",
        between, expand(between - manifold.scalar_score(s.streams[1], s.streams[0])),
        Check(METHOD, cases=PLACES, values=Place.point, reference=lambda place: place.trace["scores"][1][0]),
    )
    entering = manifold.unit(ALPHA).scaled(s.e).scaled(s.symbols_seen[2]) + manifold.unit(ALPHA).scaled(s.positions[2])
    logit = manifold.last_logit(3)
    chapter.add(
        "logit",
        "The stream and the logit at the third position, with the attention weights $\\rho_i$: those of the transformer "
        "with $d=r=1$ in which the coordinates are the parameters.",
        r"\left(y_3,\ \ell_3\right)",
        Matrix([expand(entering.coordinate), collect(logit, s.head)]),
        expand(logit - manifold.scalar_logit(s.streams, s.weights).replace(Max, lambda *arguments: Max(*map(factor, arguments)))),
        Check(METHOD + ", softmax and linear attention", cases=PLACES, values=Place.point,
              reference=lambda place: [place.along(place.trace["stream"][-1]), place.trace["logits"][-1]]),
    )


def _norms(place: Place) -> list:
    alpha, ones = place.alpha, (1,) * place.network.hidden
    arrays = (alpha, [u * v for u in alpha for v in alpha], [u * v for u in ones for v in alpha])
    return [fdot(entries, entries) ** 0.5 for entries in arrays]


def _gradient(chapter: Chapter) -> None:
    """The backward pass on the manifold: tangent to it, and the gradient of the transformer with d = r = 1."""
    found = manifold.backward(2)
    streams = s.streams[:2]
    softmax = manifold.softmax([manifold.scalar_score(streams[1], y) for y in streams])
    weights = dict(zip(s.weights, softmax))
    scalar = manifold.scalar_logit(list(streams), softmax, s.opened)

    def differences(arrays, variables):
        return Matrix([cancelled((a.coordinate - diff(scalar, v)).subs(weights)) for a, v in zip(arrays, variables)])

    in_weights, in_streams = differences(found.weights, WITH_SLOPE.values()), differences(found.streams, streams)
    chapter.add(
        "gradient",
        "The backward pass, for symbolic $d$ and $r$: the gradient of the logit at the second position, softmax "
        "attention. $H$ is 1 where ReLU is open and 0 where it is closed, $y_i$ the coordinates of the streams, "
        "$\\rho_2=1-\\rho_1$ the weight of the second position. Each entry is the derivative of the one-dimensional "
        "logit.",
        r"\frac{\partial\ell_2}{\partial(c_h,Q,K,V,O,w_1,w_2)}",
        Matrix([manifold.sorted_slope(array.coordinate) for array in found.weights]), in_weights,
        Check("numerical gradient in the matrices of networks with d = 2 to 4, r = 1 to 3", cases=manifold.PAIRS, values=Place.point,
              reference=lambda place: place.slope(*WITH_SLOPE)),
    )
    chapter.add(
        "stream_gradient",
        "The same in what enters the layer; $\\partial\\mathbf p_i=\\partial y_i$ and $\\partial\\mathbf "
        "e=\\sum_ix_i\\,\\partial y_i$ (and $\\partial\\mathbf c$ besides, when tied).",
        r"\frac{\partial\ell_2}{\partial(y_1,y_2)}",
        Matrix([manifold.sorted_slope(array.coordinate) for array in found.streams]), in_streams,
        Check("numerical gradient in the positions of the networks", cases=manifold.PAIRS, values=Place.point,
              reference=lambda place: place.slope("position 0", "position 1")),
    )
    off = [part for array in (*found.weights, *found.streams) for part in _across(array)]
    chapter.add(
        "tangent",
        "Every one of these gradients is a multiple of $\\alpha$, $\\alpha\\alpha^\\top$, $\\mathbf1\\alpha^\\top$ or "
        "$\\alpha\\mathbf1^\\top$: nothing is left of it in directions across $\\alpha$ or $\\mathbf1$, and its length "
        "is that of the one-dimensional gradient. So it is for the loss of any batch, a function of such logits. Shown: "
        "the part off the manifold, and the difference to one dimension. The coordinates are orthonormal, so a step of "
        "gradient descent at a rate is a step at the same rate.",
        r"\left(\|\nabla_{\mathrm{off}}L\|,\ \|\nabla_{\mathrm{on}}L-\nabla L_1\|\right)",
        Matrix([sum(off), sum(in_weights) + sum(in_streams)]), Matrix([*off, *in_weights, *in_streams]),
        Check("numerical gradient of the loss of two sequences, entry by entry, and that of the network with d = r = 1",
              cases=PLACES, values=Place.point, reference=_off_and_difference),
    )


def _across(array: Ray | Outer) -> list:
    """The parts of a vector or matrix across the manifold's directions, on its left and on its right."""
    if isinstance(array, Ray):
        return [array.inner(Ray(ACROSS, 1))]
    left, right = (Ray(ACROSS_UNITS if side == ONES else ACROSS, 1) for side in (array.output, array.input))
    return [(array.T @ left).size, (array @ right).size]


def _off_and_difference(place: Place) -> list:
    along, off = projected(place.network, place.alpha, place.network.gradient(place.theta, BATCH))
    alone = place.alone.gradient(place.coordinates, BATCH)
    return [max(map(abs, off)), max(abs(u - v) for u, v in zip(along, alone))]


def _value_row(chapter: Chapter) -> None:
    """W_V = α vᵀ: the embedding's gradient has a part along v across α."""
    parts = [manifold.through_value(FROM_ROW, n).scaled(s.symbols_seen[n]) for n in range(2)]
    coefficient = factor((parts[0] + parts[1]).size)
    chapter.add(
        "value_row",
        "With $W_V=\\alpha v^\\top$ instead, $v=\\tfrac{\\nu}{d}\\alpha+v_\\perp$, the forward pass reads "
        "$\\nu=\\langle v,\\alpha\\rangle$ alone, but the gradient of the embedding has the part below times "
        "$v_\\perp$, and $v_\\perp$ itself has none: the set with $v$ not a multiple of $\\alpha$ is not invariant, and "
        "in general one step takes the embedding off $\\alpha$.",
        r"\left(\frac{\partial\ell_2}{\partial\mathbf e}\right)_\perp\Big/\,v_\perp",
        coefficient, _explicit_row(coefficient),
        Check("numerical gradient in the embedding of networks with such a value matrix", cases=ROWS, values=Place.point,
              reference=_row_part),
    )


def _explicit_row(coefficient):
    """The same by differentiating the logit of a network with d = 2, r = 1, α = (1, -1), along (1, 1)."""
    row, shift = numbered("v_1 v_2", real=True), Symbol("t", real=True)
    alpha, two = (1, -1), sqrt(2)
    entering = [
        [x * (s.e / two * u + shift) + place / two * u for u in alpha] for x, place in zip(s.symbols_seen[:2], s.positions[:2])
    ]
    along = [(y[0] - y[1]) / two for y in entering]  # coordinates
    rho = manifold.softmax([s.query * along[1] * s.key * y / two for y in along])
    values = [row[0] * y[0] + row[1] * y[1] for y in entering]
    after = along[1] + s.output * two * (rho[0] * values[0] + rho[1] * values[1])
    logit = s.head * (after + s.second_weight * s.opened * s.first_weight * after)
    slope = diff(logit, shift).subs(shift, 0)
    stated = coefficient.subs(s.width, 2).subs(dict(zip(s.weights, rho))).subs(shift, 0)
    return cancelled(slope - stated * (row[0] + row[1]))


def _row_part(place: Place):
    """The embedding's gradient along the row's part across α, over its squared length."""
    d = place.network.width
    row = [value - fdot(place.row, place.alpha) / d * u for value, u in zip(place.row, place.alpha)]
    row = [value / 16 for value in row]
    return fdot(place.slopes[place.network.spans["embedding"]], row) / fdot(row, row)
