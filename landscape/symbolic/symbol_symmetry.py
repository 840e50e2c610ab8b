"""The symmetry of the transformer on the symmetric chain, and what the permutations of its symbols fix."""

from __future__ import annotations

import random
from itertools import permutations

import mpmath
from mpmath import mpf
from sympy import Matrix, Symbol, expand, factorial, ff, subfactorial

from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbol_networks import SymbolNetwork, corners
from landscape.symbolic.symbols import states
from landscape.symbolic.words import letter, shortened, transposed

FIXED = Symbol("F", integer=True)  # how many symbols a permutation leaves where they are


def symmetry(chapter: Chapter) -> None:
    turn, symbols_, units = (letter(name) for name in ("R", "P", "T"))
    embedding, inner, outer, here, before, active, final, ones, offset = (
        letter(name) for name in ("E", "W_1", "W_2", "x_n", "y_n", "h", "z_n", "o", "p_n")
    )
    all_turned = (turn, symbols_, units)
    moved = symbols_ * embedding * transposed(turn)
    one, same = Symbol("alpha_K"), Symbol("beta_K")  # the chain's matrix is α 1 + β o o'
    law = one + same * ones * transposed(ones)
    turned = one * symbols_ * transposed(symbols_) + same * (symbols_ * ones) * transposed(symbols_ * ones)
    pairs = (
        (transposed(moved) * symbols_ * here + turn * offset, turn * (transposed(embedding) * here + offset)),
        (units * inner * transposed(turn) * turn * before, units * inner * before),
        (turn * outer * transposed(units) * units * active, turn * outer * active),
        (moved * turn * final, symbols_ * embedding * final),
    )
    changes = [shortened(a - b, all_turned) for a, b in pairs]
    # a permutation keeps o, and PP' = 1
    kept = expand(turned).subs(symbols_ * transposed(symbols_), 1).subs(symbols_ * ones, ones)
    changes.append(expand(kept.subs(transposed(ones) * transposed(symbols_), transposed(ones)) - law))
    chapter.add(
        "symmetry",
        "For a permutation $P$ of the symbols, an orthogonal $R$ and a permutation $T$ of the hidden units let $g$ map $\\mathbf E$ to "
        "$P\\mathbf ER^\\top$, $\\mathbf p_n$ to $R\\mathbf p_n$, $W_1$ to $TW_1R^\\top$, $W_2$ to $RW_2T^\\top$, $\\mathbf b$ to "
        "$P\\mathbf b$, and attention matrices as in [the exact reduction](exact-reduction.md#1-symmetry). Then streams turn by $R$, hidden units "
        "by $T$, logits after $Px$ are those after $x$ permuted, and the chain does not change. So $L(g\\theta)=L(\\theta)$, and "
        "gradient flow keeps what a group of such $g$ fixes. Shown are the five changes: stream, hidden units, MLP, logits, chain.",
        r"\mathrm{layers}(g\theta)-g\,\mathrm{layers}(\theta)", Matrix(changes), Matrix(changes),
        Check("generic networks with S = 3, d = 3, r = 2, with softmax attention and without, moved by generic maps: largest "
              "change of stream, hidden, MLP, logits and of the gradient of the loss", cases=(None, "softmax"), values=lambda _: {}, reference=_changes),
    )


def _generic(attention) -> tuple[SymbolNetwork, list]:
    network = SymbolNetwork(3, 3, 2, 2 if attention else 1, attention)
    draw = random.Random(5)
    return network, [mpf(draw.randint(-64, 64)) / 64 for _ in range(network.size)]


def _changes(attention) -> list:
    network, theta = _generic(attention)
    normal = mpmath.matrix([3, -1, 2])
    turn = mpmath.eye(3) - 2 * normal * normal.T / 14
    turn = turn * (mpmath.eye(3) - mpmath.matrix([1, 1, -4]) * mpmath.matrix([1, 1, -4]).T / 9)
    cycle, swap = mpmath.matrix([[0, 0, 1], [1, 0, 0], [0, 1, 0]]), mpmath.matrix([[0, 1], [1, 0]])
    left = {"embedding": cycle, "inner": swap, "outer": turn, "output": turn}
    right = {"embedding": turn, "position": turn, "inner": turn, "outer": swap, "bias": cycle, "query": turn, "key": turn, "value": turn}

    def moved(point):
        found = {}
        for name, rows in network.arrays(point).items():
            matrix = mpmath.matrix(rows)
            matrix = left.get(name, mpmath.eye(matrix.rows)) * matrix * right.get(name, mpmath.eye(matrix.cols)).T
            found[name] = matrix.tolist()
        return network.flat(found)

    def layers(point, x):
        of = network.arrays(point)
        y = mpmath.matrix(of["embedding"][x]) + mpmath.matrix(of["position"][0])
        if attention:
            y += mpmath.matrix(network.attended(of, [list(y)]))
        h = mpmath.matrix(of["inner"]) * y
        z = y + mpmath.matrix(of["outer"]) * h.apply(lambda v: max(v, mpf(0)))
        return y, h, z, mpmath.matrix(network.logits(of, [x]))

    there = moved(theta)
    worst = [
        max(abs(v) for x in range(3) for v in layers(there, (x + 1) % 3)[k] - map_ * layers(theta, x)[k])
        for k, map_ in enumerate((turn, swap, turn, cycle))
    ]
    along = [mpf((7 * i) % 11 - 5) for i in range(network.size)]
    return [*worst, network.slope(there, mpf("0.9"), moved(along)) - network.slope(theta, mpf("0.9"), along)]


def _mean_over_permutations(polynomial):
    """Mean of a polynomial in the number of fixed symbols, over all permutations of S >= its degree symbols."""
    degree = polynomial.as_poly(FIXED).degree()
    values = [polynomial.subs(FIXED, k) for k in range(degree + 1)]
    total = 0
    for k in range(degree + 1):
        # S!/(S-k)! tuples of k symbols, each left in place by (S-k)! of S! permutations: the mean of F(F-1)...(F-k+1)
        total += values[0] / factorial(k)
        values = [b - a for a, b in zip(values, values[1:])]
    return total


def fixed(chapter: Chapter) -> None:
    simplex = FIXED - 1
    kinds = [FIXED * simplex, FIXED * simplex, simplex**2, simplex, FIXED + 0]
    means = Matrix([_mean_over_permutations(expand(kind)) for kind in kinds])
    by_hand = [
        sum(ff(5, k) / factorial(k) * subfactorial(5 - k) * kind.subs(FIXED, k) for k in range(6)) / factorial(5) for kind in kinds
    ]
    chapter.add(
        "fixed_dimensions",
        "Each permutation $\\sigma$ of the symbols turns the simplex by an orthogonal map $R_\\sigma$. Take the $g$ with $P=T=\\sigma$ and "
        "$R=R_\\sigma$ on the span of the simplex and any orthogonal map across it: what they fix has a dimension that is the mean of "
        "a product of traces, $F$ (symbols left in place) for $P$ and $T$ and $F-1$ for $R_\\sigma$, and nothing is fixed across. "
        "One number for each of $\\mathbf E$, $W_1$ or $W_2$ and each of $W_Q,W_K,W_V,W_O$ (multiples of the projection on the span); "
        "**none for positions; for the bias a constant, which does nothing. So the ansatz is all that is fixed, it is kept for every chain $p$ and "
        "every $S$, with softmax or linear attention too, and positions and bias stay zero.** For two symbols and positions $-\\mathbf e/2$ the canonical "
        "slice is [not kept](reduced.md#8-slice-left); this one is.",
        r"\dim\operatorname{Fix}\left(\mathbf E,\ W_1\text{ or }W_2,\ W_{QKVO},\ \mathbf p_n,\ \mathbf b\right)", means,
        Matrix([a - b for a, b in zip(means, by_hand)]),
        Check("mean over all permutations of 3, 4 and 5 symbols of products of traces of actual matrices, that turn the corners of a simplex",
              cases=(3, 4, 5), values=lambda n: {states: mpf(n)}, reference=_traces, tolerance=1e-30),
    )


def _traces(n: int) -> list:
    u = mpmath.matrix(corners(n, n - 1))
    back = u.T * (mpf(n - 1) / n)
    totals = [mpf(0)] * 5
    for chosen in permutations(range(n)):
        matrix = mpmath.matrix(n, n)
        for i, j in enumerate(chosen):
            matrix[j, i] = 1
        of_simplex = back * matrix * u
        p_trace, r_trace = (sum(m[i, i] for i in range(m.rows)) for m in (matrix, of_simplex))
        for k, value in enumerate((p_trace * r_trace, p_trace * r_trace, r_trace**2, r_trace, p_trace)):
            totals[k] += value
    return [total / mpmath.factorial(n) for total in totals]
