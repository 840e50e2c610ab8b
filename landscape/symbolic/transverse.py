"""Chapter: the Hessian of the full model, in all directions, where the manifold of rank one is critical."""

from __future__ import annotations

from functools import cache
from itertools import product

import mpmath
from mpmath import mpf
from sympy import Matrix, Symbol, diff, eye, exp, expand, factor, symbols

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.networks import Network, lifted
from landscape.symbolic.references import CHAINS, plateau_slope
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbols import (
    count, first_weight, gate, hidden, lag, mean_memory, memory, p, q, second_weight, slope, stretch, width,
)

POSITIONS = 3  # of the sequences over which the expectation is taken
MIXED = Matrix(2, 2, symbols("m_11 m_12 m_21 m_22", real=True))  # W_2 D W_1 with the gates D, in any two directions
CARRIED = Matrix(2, 2, symbols("t_11 t_12 t_21 t_22", real=True))  # W_O W_V
EMBEDDING = Matrix(symbols("E_1 E_2", real=True))
SHARE = (1 + (1 + memory) / 2 + (1 + memory + memory**2) / 3) / 3  # the mean over n of (1/n) Σ_{j<n} λ^j, for three positions


def transverse(chain: Chapter) -> Chapter:
    """Stability of the unigram plateau and of the global minima in the full model."""
    chapter = Chapter(
        "transverse-stability",
        "Stability across the manifold",
        "The full model in all its directions. On a *plateau* the embedding $\\mathbf e$ is zero, so every logit is the bias, "
        "$b=\\log(p/q)$, whatever the other weights are, and the loss is the unigram loss. Positions are equal, "
        "$\\mathbf p_n=\\mathbf p$, and no hidden unit is at its kink; $D$ is the diagonal matrix of the open gates, the same "
        "after both symbols since $\\mathbf y$ is. $\\varphi_1=\\varphi'(0)$ has the sign of $p+q-1$, and $\\lambda_2=1-p-q$ is the "
        "second eigenvalue of the chain.",
        settles="*Claim*: insights from the canonical slice carry over to the full model (authors); the low rank is a limitation, "
        "since weights need not align in training (a reviewer). *Settled*: each is right on one side. For $p+q>1$ "
        "plateaus next to small weights are local minima of the full model in any width, with softmax attention too. For "
        "$p+q<1$ and $d\\ge2$ every plateau of the manifold is a strict saddle of the full model: the local minima of the "
        "slice are not minima. *Beyond*: the Hessian on every plateau and its nullity, and all critical points without "
        "attention, for equal positions.",
    )
    _correlation(chapter, chain)
    _embedding(chapter)
    _manifold(chapter)
    _counts(chapter)
    _scaling(chapter)
    return chapter


# --- expectations over the chain -----------------------------------------------------------------------


def _path_law(path, a, b):
    """Probability of a path in the stationary chain with switching probabilities a and b."""
    follow = ((1 - a, a), (b, 1 - b))
    law = (b / (a + b), a / (a + b))[path[0]]
    for x, y in zip(path, path[1:]):
        law = law * follow[x][y]
    return law


def _residual(x, a, b):
    """Derivative of the expected loss in the logit after the symbol x, on the plateau."""
    return a / (a + b) - (a, 1 - b)[x]


def _correlation(chapter: Chapter, chain: Chapter) -> None:
    law, excess = chain["stationary"], chain["slope_at_zero"]
    after = {x: law[1] + memory**lag * (int(x == 1) - law[1]) for x in (0, 1)}  # P(x_n = 1 | x_{n-k} = x)
    step = {x: after[x].subs(lag, lag + 1) - (after[x] * (1 - q) + (1 - after[x]) * p) for x in (0, 1)}
    found = law[1] * sum((after[1] if x else 1 - after[1]) * _residual(x, p, q) for x in (0, 1))
    result = slope * memory**lag
    told = {memory: 1 - p - q, slope: excess}
    chapter.add(
        "correlation",
        "On the plateau the prediction after $x_n$ is off by $r_n=\\pi_1-P(1\\mid x_n)$. What it has in common with an earlier "
        "symbol fades with the chain's memory.",
        r"\mathbb E[r_n\,x_{n-k}]", result,
        Matrix([cancelled(expand((found - result).subs(told)))] + [cancelled(expand(step[x].subs(told).subs(lag, 2))) for x in (0, 1)]),
        Check("the sum over all paths of k + 1 symbols",
              cases=[{p: a, q: b, lag: mpf(k)} for (a, b) in CHAINS for k in (0, 1, 3)],
              values=lambda s: {memory: 1 - s[p] - s[q], lag: s[lag], slope: plateau_slope(s[p], s[q])},
              reference=lambda s: sum(
                  _path_law(path, s[p], s[q]) * _residual(path[-1], s[p], s[q]) * path[0]
                  for path in product((0, 1), repeat=int(s[lag]) + 1))),
    )


# --- the embedding's block -------------------------------------------------------------------------------


def _embedding(chapter: Chapter) -> None:
    """Second derivatives in the embedding, for weights of any kind."""
    place, bilinear = Matrix(symbols("P_1 P_2", real=True)), Matrix(2, 2, symbols("k_11 k_12 k_21 k_22", real=True))
    reach, rest = eye(2) + MIXED, dict.fromkeys(EMBEDDING, 0)
    expected, leftover = Matrix.zeros(2, 2), []
    for n in range(1, POSITIONS + 1):
        for path in product((0, 1), repeat=n):
            streams = [x * EMBEDDING + place for x in path]
            weights = [exp((streams[-1].T * bilinear * y)[0]) for y in streams]
            attended = sum((weight * y for weight, y in zip(weights, streams)), Matrix([0, 0])) / sum(weights)
            after = attended.jacobian(EMBEDDING).subs(rest).applyfunc(cancelled)
            # the logit is eᵀF(e), so that its second derivatives at 0 are those of F, and their transpose
            moved = reach * (path[-1] * eye(2) + CARRIED * after)
            expected += _path_law(path, p, q) * _residual(path[-1], p, q) / POSITIONS * (moved + moved.T)
            leftover += list((attended.subs(rest) - place).applyfunc(cancelled))  # F(0) is the same after every path
    entries = ((0, 0), (0, 1), (1, 1))
    excess = p * q * (p + q - 1) / (p + q) ** 2
    found = [slope * cancelled(cancelled(expand(expected[i, j]) / excess).subs(q, 1 - p - memory)) for i, j in entries]
    half = slope * reach * (eye(2) + mean_memory * CARRIED)
    whole = Matrix([factor(expand((half + half.T)[i, j])) for i, j in entries])
    chapter.add(
        "embedding",
        "In the embedding, the bias at its minimiser: $\\varphi_1(S+S^\\top)$ with $S=(I+W_2DW_1)(I+\\rho_N\\,W_OW_V)$ and "
        "$\\rho_N=\\frac1N\\sum_{n\\le N}\\frac1n\\sum_{j<n}\\lambda_2^j$, here written out in any two orthonormal directions, "
        "$m=W_2DW_1$, $t=W_OW_V$; SymPy takes the expectation over all paths of $N=3$. It is exact for softmax attention with any "
        "weights: with equal positions it averages on the plateau, and the scores' own derivatives cancel. **All weights may be off "
        "the manifold.** Two consequences without attention: for $p+q<1$ a plateau with fewer than $d$ open units is a strict saddle, "
        "since some $v$ has $W_2DW_1v=0$ and $v^\\top(S+S^\\top)v=2|v|^2$ (with $d$ of them there are minima, as $S=-I$). For $p+q>1$ "
        "small weights have $S\\approx I$: **the plateau next to a start of small Gaussian weights is a local minimum of the full "
        "model, in any width.**",
        r"(L_{11},\ L_{12},\ L_{22})\big|_{\mathbf e=0,\,b=b^*}", whole,
        Matrix([expand(a - b.subs(mean_memory, SHARE)) for a, b in zip(found, whole)] + leftover),
        Check("second numerical derivatives of the cross-entropy of a network with d = r = 2, softmax attention and all weights "
              "off the manifold, summed over all sequences, and the bias eliminated",
              cases=(0, 1), values=_generic_numbers, reference=_generic_block, tolerance=1e-12),
    )


GENERIC = Network(2, 2, POSITIONS)


@cache
def _generic_arrays(case: int) -> dict:
    """Weights of a network on the plateau: every matrix generic, equal positions; one unit open, or both."""
    shift = mpf(case) / 8
    position = [mpf(3) / 4, mpf(1) / 2 - shift]
    return {
        **{f"position {n}": position for n in range(POSITIONS)},
        "query": [mpf(v) / 8 for v in (3, -5, 2, 7)], "key": [mpf(v) / 8 for v in (-4, 1, 6, 3)],
        "value": [mpf(v) / 8 + shift for v in (5, -2, 3, -6)], "output": [mpf(v) / 8 for v in (-3, 4, 7, 2)],
        "inner": [mpf(v) / 8 for v in ((6, -3, -5, -2) if case else (6, -3, 5, -2))],
        "outer": [mpf(v) / 8 - shift for v in (-7, 3, 2, -5)], "bias": [mpmath.log(CHAINS[case][0] / CHAINS[case][1])],
    }


def _generic_numbers(case: int) -> dict:
    arrays, (a, b) = _generic_arrays(case), CHAINS[case]
    of = GENERIC.arrays(GENERIC.flat(arrays))
    hidden_before = GENERIC.trace(GENERIC.flat(arrays), [0])["hidden"][0]
    open_ = [int(value > 0) for value in hidden_before]
    mixed = [[sum(of["outer"][i][k] * open_[k] * of["inner"][k][j] for k in range(2)) for j in range(2)] for i in range(2)]
    carried = [[sum(of["output"][i][k] * of["value"][k][j] for k in range(2)) for j in range(2)] for i in range(2)]
    numbers = {MIXED[i, j]: mixed[i][j] for i in range(2) for j in range(2)}
    numbers |= {CARRIED[i, j]: carried[i][j] for i in range(2) for j in range(2)}
    return {**numbers, mean_memory: _share(1 - a - b), slope: plateau_slope(a, b)}


def _share(eigenvalue):
    """The mean over positions of the mean of the powers of the chain's second eigenvalue."""
    return sum(sum(eigenvalue**j for j in range(n)) / n for n in range(1, POSITIONS + 1)) / POSITIONS


def population_loss(network: Network, theta, law):
    """Mean cross-entropy of all positions, summed over all sequences with their probabilities."""
    total = mpf(0)
    for path in product((0, 1), repeat=network.length):
        weight = _path_law(path, *law)
        for x, logit in zip(path, network.logits(theta, path)):
            total += weight * sum(
                chance * mpmath.log(1 + mpmath.exp((1 - 2 * y) * logit))
                for y, chance in zip((0, 1), ((1 - law[0], law[0]), (law[1], 1 - law[1]))[x])
            )
    return total / network.length


def _second(network: Network, theta, law, first, second):
    """Second derivative of the loss along two directions, given as {place in the flat list: component}."""
    step = mpf(10) ** -12

    def at(a, b):
        moved = list(theta)
        for factor_, direction in ((a, first), (b, second)):
            for place, part in direction.items():
                moved[place] += factor_ * step * part
        return population_loss(network, moved, law)

    if first == second:
        return (at(1, 0) - 2 * at(0, 0) + at(-1, 0)) / step**2
    return (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * step**2)


def _without_bias(network: Network, theta, law, pairs):
    """Second derivatives along pairs of directions, the bias eliminated."""
    bias = {len(theta) - 1: mpf(1)}
    spread = _second(network, theta, law, bias, bias)
    return [
        _second(network, theta, law, u, v)
        - _second(network, theta, law, u, bias) * _second(network, theta, law, v, bias) / spread
        for u, v in pairs
    ]


def _generic_block(case: int):
    units = [{i: mpf(1)} for i in range(2)]
    theta = GENERIC.flat(_generic_arrays(case))
    return _without_bias(GENERIC, theta, CHAINS[case], [(units[i], units[j]) for i, j in ((0, 0), (0, 1), (1, 1))])


# --- on the manifold -------------------------------------------------------------------------------------


def _manifold(chapter: Chapter) -> None:
    """The same on the manifold, for symbolic d."""
    on_it = dict.fromkeys([*MIXED, *CARRIED], 0) | {MIXED[0, 0]: gate * first_weight * second_weight, CARRIED[0, 0]: stretch}
    found = Matrix([factor(entry) for entry in chapter["embedding"].subs(on_it)])
    chapter.add(
        "on_manifold",
        "On the manifold $W_2DW_1=A_y\\,w_1w_2\\,\\hat\\alpha\\hat\\alpha^\\top$ and $W_OW_V=t\\,\\hat\\alpha\\hat\\alpha^\\top$: one "
        "eigenvalue along $\\hat\\alpha$, and $2\\varphi_1$ across it, $d-1$ times, whatever the attention, the MLP and the "
        "positions are. **For $d\\ge2$ and $p+q<1$ every plateau of the manifold is a strict saddle of the full model. For "
        "$p+q>1$ it is a local minimum iff the eigenvalue along is positive too**; its kernel is then its tangent space, so that "
        "the second derivative decides.",
        r"(L_{\hat\alpha\hat\alpha},\ L_{\hat\alpha\perp},\ L_{\perp\perp})", found,
        Matrix([found[2] - 2 * slope, found[1]]),
        Check("second numerical derivatives of the cross-entropy of a network with d = 3, r = 2 on the manifold, softmax attention, "
              "and the bias eliminated",
              cases=(0, 1), values=_manifold_numbers, reference=_manifold_block, tolerance=1e-12),
    )


ALPHA = (1, -1, -1)
RANK_ONE = Network(3, 2, POSITIONS)
# Coordinates by array: embedding, three positions, query, key, value, output, inner, outer, bias.
ON_MANIFOLD = (("0", *("0.75",) * 3, "0.5", "-0.75", "1.25", "-0.5", "1.5", "-1.25"), ("0", *("-0.5",) * 3, "1.25", "0.5", "0.75", "0.625", "-1.25", "-0.5"))


def _manifold_point(case: int) -> list:
    a, b = CHAINS[case]
    return lifted(RANK_ONE, ALPHA, [mpf(value) for value in ON_MANIFOLD[case]] + [mpmath.log(a / b)])


def _manifold_numbers(case: int) -> dict:
    numbers = [mpf(value) for value in ON_MANIFOLD[case]]
    a, b = CHAINS[case]
    open_ = int(numbers[8] * numbers[1] * (1 + numbers[6] * numbers[7]) > 0)
    return {
        gate: open_, first_weight: numbers[8], second_weight: numbers[9], stretch: numbers[6] * numbers[7],
        mean_memory: _share(1 - a - b), slope: plateau_slope(a, b),
    }


def _manifold_block(case: int):
    along = {i: mpf(entry) / mpmath.sqrt(3) for i, entry in enumerate(ALPHA)}
    over = {0: 1 / mpmath.sqrt(2), 1: 1 / mpmath.sqrt(2)}
    return _without_bias(RANK_ONE, _manifold_point(case), CHAINS[case], [(along, along), (along, over), (over, over)])


# --- how many directions ------------------------------------------------------------------------------------


def _counts(chapter: Chapter) -> None:
    """Nullities of the full Hessian without attention, by eigenvalues of all of it."""
    parameters = width * (1 + count) + 2 * hidden * width + 1
    for name, left, rank, where, text in (
        ("nullity_of_plateau", r"\operatorname{nullity}(\mathbf e=0)", width + 1, "plateau",
         "Without attention, of $D=d(1+N)+2rd+1$ parameters only the embedding's $d$ and the bias have second derivatives on the "
         "plateau: the rest vanish because the residuals after 0 and 1 cancel. So the nullity is the dimension of the plateau "
         "(Morse-Bott), positions and both MLP matrices being free; with attention $4d^2$ more. The index is $d-1$ for $p+q<1$, one "
         "more if $1+A_yw_1w_2>0$; for $p+q>1$ it is 1 if $1+A_yw_1w_2<0$, else 0."),
        ("nullity_of_optimum", r"\operatorname{nullity}(\kappa=\kappa^*)", count + 1, "optimum",
         "On the global minima the Hessian is the sum over positions and symbols of $\\sigma'\\,\\nabla\\ell\\nabla\\ell^\\top\\ge0$: its "
         "rank is that of the logits' gradients, two for the first position and one for each further one that has a place of "
         "its own. All other directions, those across among them, are flat."),
    ):
        result = expand(parameters - rank)
        chapter.add(
            name, text, left, result, expand(result + rank - parameters),
            Check("eigenvalues of the whole numerical Hessian of networks with d = 2 and 3, r = 1 and 2, N = 1 and 2",
                  cases=[(where, *sizes) for sizes in ((2, 1, 1), (2, 2, 1), (3, 1, 2), (2, 1, 2))],
                  values=lambda s: {width: s[1], hidden: s[2], count: s[3]}, reference=_numeric_nullity),
        )


@cache
def _numeric_nullity(case):
    """Eigenvalues of the Hessian of a network without attention that are zero to rounding."""
    where, d, r, n = case
    network = Network(d, r, n)
    alpha, (a, b) = [1, -1, -1][:d], CHAINS[0]
    with mpmath.workdps(40):
        if where == "plateau":
            values = [mpf(0), *[mpf(3) / 4] * n, *[mpf(0)] * 4, mpf(3) / 2, mpf(-5) / 4, mpmath.log(a / b)]
        else:
            values = [mpf(1), *[mpf(-1) / 2] * n, *[mpf(0)] * 4, mpf(2), *_optimum(a, b)]
        theta = lifted(network, alpha, values)
        free = [i for name, span in network.spans.items() if name not in ("query", "key", "value", "output")
                for i in range(span.start, span.stop)]
        hessian = mpmath.matrix(len(free))
        for i, u in enumerate(free):
            for j, v in enumerate(free[: i + 1]):
                hessian[i, j] = hessian[j, i] = _second(network, theta, (a, b), {u: mpf(1)}, {v: mpf(1)})
        values = mpmath.eigsy(hessian, eigvals_only=True)
        return sum(abs(value) < mpf(10) ** -10 for value in values)


def _optimum(a, b):
    """w_2 and b at which e = 1, c = -1/2, w_1 = 2 has the best logits: one gate is open, after a 1."""
    star = mpmath.log((1 - a) * (1 - b) / (a * b))
    second = (star - 1) / (2 * mpf(1) / 2)  # κ = e(e + w_2 w_1 (e + c))
    return second, mpmath.log(a / (1 - a)) + mpf(1) / 2  # the logit after a 0 is e c + b


# --- the identity off the manifold -----------------------------------------------------------------------


def _scaling(chapter: Chapter) -> None:
    """Scale embedding and positions up and the MLP down: what that does to the logits of the full model."""
    place, factor_ = Matrix(symbols("P_1 P_2", real=True)), Symbol("Lambda", positive=True)
    gates = Matrix(2, 2, symbols("h_11 h_12 h_21 h_22", real=True))  # W_2 D_x W_1, of degree -2 in Λ
    rates = []
    for x in (0, 1):
        stream = factor_ * (x * EMBEDDING + place)
        logit = factor_ * (EMBEDDING.T * (stream + gates / factor_**2 * stream))[0]
        rates.append(expand(diff(logit, factor_).subs(factor_, 1)))
    length = expand(rates[1] - rates[0])
    chapter.add(
        "scaling",
        "Without attention, anywhere, on the manifold or off it: scale embedding and positions by $\\Lambda$ and both MLP matrices by "
        "$1/\\Lambda$. What enters ReLU stays, the MLP's part of the logits stays, the skip connection's grows. So at a critical "
        "point, where the residuals after 0 and 1 cancel as the bias is critical, $2\\varphi'(\\kappa)|\\mathbf e|^2=0$. "
        "**For any $d$ and $r$ and one position vector, a critical point of the full model without attention is a global minimum or "
        "has $\\mathbf e=0$, on kinks too.**",
        r"\frac{d}{d\Lambda}(\ell_1-\ell_0)\Big|_{\Lambda=1}", length,
        expand(length - 2 * (EMBEDDING.T * EMBEDDING)[0]),
        Check("numerical derivative of the logits of a network with d = r = 2 without attention, all weights off the manifold",
              cases=((mpf(3) / 4, mpf(-1) / 2), (mpf(-5) / 4, mpf(3) / 8)), values=lambda s: dict(zip(EMBEDDING, s)), reference=_scaled),
    )


def _scaled(embedding):
    network = Network(2, 2, 1)

    def gap(factor_):
        arrays = {**_generic_arrays(0), "embedding": list(embedding)}
        for name in ("query", "key", "value", "output"):
            arrays.pop(name)
        powers = {"embedding": 1, "position 0": 1, "inner": -1, "outer": -1, "bias": 0}
        theta = network.flat({name: [factor_**powers[name] * v for v in arrays[name]] for name in powers})
        return network.logits(theta, [1])[0] - network.logits(theta, [0])[0]

    return mpmath.diff(gap, mpf(1))
