"""What gradient flow conserves in the one-layer transformer, for every network and on the manifold."""

from __future__ import annotations

import mpmath
from sympy import Matrix, expand, together
from sympy import symbols as numbered

from landscape.symbolic import manifold
from landscape.symbolic import symbols as s
from landscape.symbolic.algebra import cancelled
from landscape.symbolic.manifold import Place
from landscape.symbolic.networks import Network
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symmetry import BATCH, GENERIC
from landscape.symbolic.words import letter, transposed


def conserved(chapter: Chapter) -> None:
    """Balancedness of the MLP and of the attention, for every network and on the manifold."""
    query, key, value, output, slope, here, there = (letter(name) for name in ("W_Q", "W_K", "W_V", "W_O", "G", "y_n", "y_i"))
    mixed = letter("m")  # Σ ρ_i y_i
    by_output, by_value = slope * transposed(value * mixed), transposed(output) * slope * transposed(mixed)
    by_query, by_key = key * there * transposed(here), query * here * transposed(there)  # times ∂score, a number
    row, column, stream, upper = (Matrix(numbered(f"{name}_1:4", real=True)) for name in ("a", "b", "y", "g"))
    through = s.opened * upper.dot(column) * row.dot(stream)  # the part of the logit that a hidden unit carries
    unit = row.dot(Matrix([through]).jacobian(row)) - column.dot(Matrix([through]).jacobian(column))
    rates = [
        expand(2 * unit),
        expand(_symmetric(transposed(by_output) * output) - _symmetric(by_value * transposed(value))),
        expand(_symmetric(by_query * transposed(query)) - _symmetric(by_key * transposed(key))),
    ]
    chapter.add(
        "balance",
        "Gradient flow conserves these for every network, batch and attention rule, tied or not: for each hidden unit "
        "$j$ (ReLU is homogeneous: a unit's row of $W_1$ times $s$ and its column of $W_2$ over $s$ change nothing), "
        "and for the attention (nor do $MW_V$, $W_OM^{-1}$ and $MW_Q$, $M^{-\\top}W_K$). With $m=\\sum_i\\rho_iy_i$ and "
        "$G$ the gradient after the attention, $\\partial W_O=G(W_Vm)^\\top$ and $\\partial W_V=W_O^\\top Gm^\\top$; "
        "$\\partial W_Q$ and $\\partial W_K$ are sums of $W_Ky_iy_n^\\top$ and $W_Qy_ny_i^\\top$ with the same numbers. "
        "Gradient descent with a finite step changes them at second order.",
        r"\frac{d}{dt}\left(\|(W_1)_{j\cdot}\|^2-\|(W_2)_{\cdot j}\|^2,\ W_O^\top W_O-W_VW_V^\top,\ W_QW_Q^\top-W_KW_K^\top\right)",
        Matrix(rates), Matrix(rates),
        Check("numerical gradients of generic networks, softmax and linear attention: largest entry", cases=GENERIC,
              values=lambda case: {}, reference=_balances),
    )
    _conserved_on_manifold(chapter)


def _conserved_on_manifold(chapter: Chapter) -> None:
    """The same in the coordinates: three numbers."""
    found = manifold.backward(2)
    pairs = ((manifold.INNER, found.inner), (manifold.VALUE, found.value), (manifold.QUERY, found.query))
    others = ((manifold.OUTER, found.outer), (manifold.OUTPUT, found.output), (manifold.KEY, found.key))
    rates, same = (
        [expand(array.coordinate * gradient.coordinate) for array, gradient in side]
        for side in (pairs, others)
    )
    chapter.add(
        "balance_rates",
        "On the manifold, for the logit of the chapter's gradient: $w_1\\partial_{w_1}=w_2\\partial_{w_2}$, "
        "$V\\partial_V=O\\partial_O$ and $Q\\partial_Q=K\\partial_K$.",
        r"\left(w_2\frac{\partial\ell_2}{\partial w_2},\ O\frac{\partial\ell_2}{\partial O},\ K\frac{\partial\ell_2}{\partial K}\right)",
        Matrix([manifold.sorted_slope(rate) for rate in rates]), Matrix([expand(rate - other) for rate, other in zip(rates, same)]),
        Check("numerical gradient of networks of actual matrices in the other matrix of each pair", cases=manifold.PAIRS, values=Place.point,
              reference=lambda place: [x * g for x, g in zip(_values(place), place.slope("outer", "output", "key"))]),
    )
    inner, outer, out, value, query, key = (
        getattr(manifold, name) for name in ("INNER", "OUTER", "OUTPUT", "VALUE", "QUERY", "KEY")
    )
    squares = [(inner @ inner.T, outer.T @ outer), (out.T @ out, value @ value.T), (query @ query.T, key @ key.T)]
    multiples = [one.size - other.size for one, other in squares]
    chapter.add(
        "balance_on_manifold",
        "There the conserved matrices are these multiples of $\\mathbf1\\mathbf1^\\top$ (its diagonal: one and the same "
        "number for every hidden unit), $\\alpha\\alpha^\\top$ and $\\alpha\\alpha^\\top$: $w_1^2-w_2^2$, $O^2-V^2$ and "
        "$Q^2-K^2$ are conserved.",
        r"\left(W_1W_1^\top-W_2^\top W_2,\ W_O^\top W_O-W_VW_V^\top,\ W_QW_Q^\top-W_KW_K^\top\right)",
        Matrix([together(multiple) for multiple in multiples]),
        Matrix([
            cancelled(multiple * size - (one.coordinate - other.coordinate))
            for multiple, size, (one, other) in zip(multiples, (s.hidden, s.width, s.width), squares)
        ]),
        Check("products of actual matrices", cases=manifold.PAIRS, values=Place.point, reference=_first_entries),
    )


def _symmetric(expression):
    return expression + transposed(expression)


def _matrices(network: Network, theta: list) -> dict:
    return {
        name: mpmath.matrix(entries) for name, entries in network.arrays(theta).items() if isinstance(entries[0], list)
    }


def _balances(case) -> list:
    """Largest entry of the time derivatives, from a numerical gradient of the loss."""
    at = _matrices(case.network, case.theta)
    by = _matrices(case.network, case.network.gradient(case.theta, BATCH))
    units = at["inner"] * by["inner"].T - (at["outer"].T * by["outer"])
    changes = (
        [units[j, j] for j in range(case.network.hidden)],
        by["output"].T * at["output"] + at["output"].T * by["output"] - by["value"] * at["value"].T - at["value"] * by["value"].T,
        by["query"] * at["query"].T + at["query"] * by["query"].T - by["key"] * at["key"].T - at["key"] * by["key"].T,
    )
    return [max(map(abs, change)) for change in changes]


def _values(place: Place) -> list:
    by_name = dict(zip(place.network.shapes, place.coordinates))
    return [by_name[name] for name in ("outer", "output", "key")]


def _first_entries(place: Place) -> list:
    """The first diagonal entry of each of the three matrices; that of ααᵀ is 1."""
    at = _matrices(place.network, place.theta)
    differences = (
        at["inner"] * at["inner"].T - at["outer"].T * at["outer"],
        at["output"].T * at["output"] - at["value"] * at["value"].T,
        at["query"] * at["query"].T - at["key"] * at["key"].T,
    )
    return [difference[0, 0] for difference in differences]
