"""Chapter: the full model on the symmetric chain in all directions, on the plateau and where some of the symbols are told apart."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import mpmath
from mpmath import fdot, mpf
from sympy import Matrix, expand, factor, solve, sqrt, symbols

from landscape.symbolic.algebra import cancelled
from landscape.symbolic.references import simplex_logits
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.symbol_networks import LAWS, SymbolNetwork, ansatz, corners, excess, path_law, transition
from landscape.symbolic.symbols import lag, mean_memory, memory, mixed, open_units, own, p, slope, states
from landscape.symbolic.symmetric_classes import classes, optimum, tangent
from landscape.symbolic.symmetric_closure import tidy
from landscape.symbolic.transverse import CARRIED, MIXED


def symmetric_stability(chain: Chapter, closure: Chapter, gap: Chapter) -> Chapter:
    """The plateau, off kinks and on them; the bound below the unigram loss; classes of symbols; the optimum."""
    chapter = Chapter(
        "symmetric-stability",
        "Many states: stability across the ansatz",
        "The full model on the symmetric chain as in [the chapter before](symmetric-closure.md), in all its directions. On the *plateau* all "
        "embeddings are equal (zero on the ansatz), so that every law is uniform and the loss $\\log S$, whatever the other weights are. Let "
        "$\\tilde{\\mathbf e}_x=\\mathbf e_x-\\bar{\\mathbf e}$ be what the embeddings differ by. $\\varphi_1=\\varphi'(0)=p-p_c$ with $p_c=(S-1)/S$, and "
        "$\\lambda_2=1-pS/(S-1)=-\\varphi_1S/(S-1)$ is the second eigenvalue of the chain, $S-1$ times. **In short: for $S\\ge3$ "
        "the plateau of the ansatz is unstable for every $w$ below $p_c$; above, it is stable for $w>-\\sqrt{S-1}/2$ and unstable for lower $w$, where the "
        "canonical map says $-\\sqrt S/2$; and the loss has further plateaus, one for each way of taking symbols together, that are unigram plateaus in small.**",
        settles="*Claim*: whether a start of low rank helps with many states is asked (reviewer) and answered by trainings (authors). "
        "*Settled*: below the threshold every unigram plateau of the ansatz is unstable in the full model, so that no start is "
        "needed; above it the plateau is stable where the canonical map says so, but for a band of $w$. *Beyond*: the plateaus "
        "between the unigram and the bigram loss.",
    )
    _errors(chapter, chain)
    _off_kinks(chapter)
    _on_the_kink(chapter)
    _offset(chapter, gap)
    tangent(chapter)
    classes(chapter)
    optimum(chapter)
    return chapter


# --- what the logits are off by ----------------------------------------------------------------------------


def _errors(chapter: Chapter, chain: Chapter) -> None:
    def after(steps):  # P^k, on and off the diagonal
        return (1 + (states - 1) * memory**steps) / states, (1 - memory**steps) / states

    told = {memory: 1 - p * states / (states - 1), slope: chain["slope_at_zero"]}
    steps = [  # P^{k+1} = P^k P
        (after(2)[0] - after(1)[0] * (1 - p) - after(1)[1] * p),
        (after(2)[1] - after(1)[1] * (1 - p) - (after(1)[0] + (states - 2) * after(1)[1]) * p / (states - 1)),
    ]
    found = [(1 / states - entry) / states for entry in after(lag + 1)]
    to_slope = cancelled(told[slope] / told[memory])
    whole = Matrix([slope * memory**lag / states, -slope * memory**lag / (states * (states - 1))])
    residual = [cancelled(expand((a - b).subs(slope, to_slope * memory).subs(lag, 2))) for a, b in zip(found, whole)]
    chapter.add(
        "errors",
        "By how much the probability of $y$ is too large on the plateau, times whether the symbol $k$ steps back was $z$, for $y=z$ and $y\\ne z$. "
        "With $k=0$ this is the gradient in the logits, and a multiple of a projection: $\\delta=\\frac{\\varphi_1}{S-1}(1-\\mathbf1\\mathbf1^\\top/S)$.",
        r"\mathbb E\left[\left(\tfrac1S-P(y\mid x_n)\right)\mathbf 1_{x_{n-k}=z}\right]", whole,
        Matrix([*residual, *(cancelled(expand(step.subs(told))) for step in steps)]),
        Check("the sum over all paths of k + 1 symbols", cases=[(n, p_, k) for n, p_ in LAWS for k in (0, 1, 3)],
              values=lambda c: {states: mpf(c[0]), lag: mpf(c[2]), memory: 1 - c[1] * c[0] / (c[0] - 1), slope: excess(c[0], c[1])},
              reference=lambda c: [
                  sum(path_law(path, c[0], c[1]) * (mpf(1) / c[0] - transition(path[-1], y, c[0], c[1]))
                      for path in product(range(c[0]), repeat=c[2] + 1) if path[0] == 0) for y in (0, 1)]),
    )


# --- the plateau off kinks ---------------------------------------------------------------------------------


def _off_kinks(chapter: Chapter) -> None:
    on, off = (entry.subs(lag, 0) for entry in chapter["errors"])
    moved = (Matrix.eye(2) + MIXED) * (Matrix.eye(2) + mean_memory * CARRIED)
    pair = moved + moved.T
    entries = ((0, 0), (0, 1), (1, 1))
    blocks = [[expand(size * pair[i, j]) for i, j in entries] for size in (on, off)]
    lags = [expand(chapter["errors"][0].subs(lag, k) / on) for k in range(2)]  # weights of the lags relative to k = 0
    share = (lags[0] + (lags[0] + lags[1]) / 2) / 2
    residual = [cancelled(blocks[0][k] + (states - 1) * blocks[1][k]) for k in range(3)]
    residual.append(expand(share - sum(sum(memory**j for j in range(n)) / n for n in (1, 2)) / 2))
    chapter.add(
        "off_kinks",
        "In the embeddings, the bias at its minimiser, for weights of any kind, equal positions (or a mean $\\bar{\\mathbf e}$) that keep hidden units off "
        "their kinks, and softmax attention: $\\frac{\\varphi_1}{S-1}(1-\\mathbf1\\mathbf1^\\top/S)\\otimes(R+R^\\top)$ with $R=(I+W_2DW_1)(I+\\rho_N\\,W_OW_V)$ as "
        "[for two symbols](transverse-stability.md#2-embedding), $\\rho_N=\\frac1N\\sum_n\\frac1n\\sum_{j<n}\\lambda_2^j$; here for one symbol and for two, in two "
        "orthonormal directions. Each eigenvalue comes $S-1$ times, a common shift of all embeddings is flat. **Without attention: for $p<p_c$ a "
        "plateau with fewer than $d$ open units is a strict saddle ($W_2DW_1v=0$ for some $v$). For $p>p_c$ it is a local minimum if "
        "$2+W_2DW_1+(W_2DW_1)^\\top>0$, so next to small weights always, and none if that has a negative eigenvalue.** A direction that no hidden unit reads or writes, as the $d-S+1$ across the "
        "simplex, has $2\\varphi_1/(S-1)$.",
        r"\left(L_{x1,x1},L_{x1,x2},L_{x2,x2},\ L_{x1,y1},L_{x1,y2},L_{x2,y2}\right)\big|_{\tilde{\mathbf e}=0,\,b=b^*}", Matrix(blocks[0] + blocks[1]),
        Matrix(residual),
        Check("second numerical derivatives of the full loss of networks with S = 3, d = r = 2, N = 2, softmax attention, all weights generic, "
              "summed over all sequences; the bias eliminated", cases=(0, 1), values=_generic_numbers, reference=_generic_blocks, tolerance=1e-12),
    )


GENERIC = SymbolNetwork(3, 2, 2, 2, "softmax")


@cache
def _generic(case: int) -> dict:
    draw = random.Random(31 + case)
    rows = {name: [[mpf(draw.randint(-48, 48)) / 64 for _ in range(columns)] for _ in range(count)] for name, (count, columns) in GENERIC.shapes.items()}
    place = [mpf(3) / 4, mpf(1 - 2 * case) / 2]
    return rows | {"embedding": [[mpf(0)] * 2] * 3, "position": [place] * 2, "bias": [[mpf(0)] * 3]}


def _generic_numbers(case: int) -> dict:
    of, (n, p_) = _generic(case), LAWS[case]
    inner, outer, value, output = (mpmath.matrix(of[name]) for name in ("inner", "outer", "value", "output"))
    place = mpmath.matrix(of["position"][0])
    open_ = mpmath.diag([mpf(h > 0) for h in inner * (place + output * (value * place))])
    numbers = dict(zip(MIXED, outer * open_ * inner)) | dict(zip(CARRIED, output * value))
    eigenvalue = 1 - p_ * n / (n - 1)
    return numbers | {states: mpf(n), slope: excess(n, p_), mean_memory: (1 + (1 + eigenvalue) / 2) / 2}


def _generic_blocks(case: int) -> list:
    unit = [[mpf(i == j) for i in range(GENERIC.size)] for j in range(4)]
    with mpmath.workdps(30):
        return GENERIC.second_without_bias(
            GENERIC.flat(_generic(case)), LAWS[case][1], [(unit[i], unit[j]) for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 3))]
        )


# --- the plateau of the ansatz, where every unit is at its kink ----------------------------------------------


def _on_the_kink(chapter: Chapter) -> None:
    """Second derivatives next to the plateau, on either side of e = 0, by kinds of embeddings."""
    square = symbols("g_2", positive=True)  # Σ g_x², with Σ g_x = 0
    diagonal, total = {}, {}
    diagonal["trivial"] = states * (1 - 1 / states) ** 2  # ⟨u_j, e_x⟩ as a matrix: 1 - 11ᵀ/S
    total["trivial"] = diagonal["trivial"] + states * (states - 1) / states**2
    diagonal["standard"] = (1 - 2 / states) ** 2 * square  # g_x δ_xj - (g_x + g_j)/S
    total["standard"] = diagonal["standard"] + (2 * (states - 1) * square - 2 * square) / states**2
    diagonal["rest"], total["rest"] = 0 * square, square
    reading = states / (states - 1)  # Σ_j ⟨u_j, v⟩² for a unit vector v of the span
    shares = {kind: cancelled(diagonal[kind] / total[kind]) for kind in diagonal}
    through = {kind: mixed / states * reading * ((1 - own) / 2 + own * share) for kind, share in shares.items()}
    unit_curvature = 2 * slope / (states - 1)
    own_part = (1 - 2 / states) * square  # Σ_x g_x (the diagonal), with v̄_j = ⟨u_j, ē⟩ along g
    norms = sqrt(total["standard"] / reading * square / reading * states)
    coupling = own * mixed / states * own_part / norms / 2
    result = Matrix([
        unit_curvature, *(unit_curvature * (1 + tidy(part)) for part in through.values()),
        unit_curvature * own * mixed * _root(coupling / (own * mixed)),
    ])
    check_of_coupling = cancelled(result[4] ** 2 - (unit_curvature * coupling) ** 2)
    ends = [cancelled(through["trivial"].subs(own, side) - mixed * c) for side, c in ((1, 1 / states), (-1, 1 / (states * (states - 1))))]
    chapter.add(
        "next_to_ansatz",
        "On the plateau of the ansatz $\\mathbf e=0$, and every hidden unit is at its kink: the loss is a quadratic form in each cone of embeddings with the same units "
        "open. With $v_{xj}=\\langle u_j,\\mathbf e_x\\rangle$, $\\tilde v$ less its mean over $x$ and $m=w_1w_2=4w|w|$ it is "
        "$\\frac{\\varphi_1}{S-1}\\left[\\|\\tilde{\\mathbf E}\\|^2+\\frac mS\\sum_{xj}\\tilde v_{xj}\\max(v_{xj},0)\\right]$. Next to the ansatz, in its cones "
        "$\\sigma_x=\\operatorname{sgn}e=\\pm1$, permutations split the embeddings into five kinds: across the simplex ($(S-1)(d-S+1)$ dimensions); "
        "along the ansatz (1); $v=g_x\\delta_{xj}-(g_x+g_j)/S$ ($S-1$); the rest, antisymmetric or symmetric with zero diagonal ($(S-1)(S-2)/2$ and $S(S-3)/2$); "
        "a common shift, which is flat but coupled to the third kind. Where $m\\ne0$ these two always make an eigenvalue of either sign, on both sides of $p_c$: a mixture of them grows, and leads "
        "off the cone.",
        r"\left(L_{\perp\perp},\ L_{\text{ansatz}},\ L_{gg},\ L_{\text{rest}},\ L_{g,\text{shift}}\right)", result,
        Matrix([check_of_coupling, *ends]),
        Check("second numerical derivatives of the full loss of networks with 3 and 5 symbols, d = S, at e = ±1e-12 on the ansatz", cases=CONES,
              values=Cone.point, reference=_cone_curvatures, tolerance=1e-15),
    )


def _root(expression):
    """A positive expression in S whose square is rational, as √(S - 2) times a rational one."""
    more = symbols("n", positive=True)  # S - 1
    rational = factor(cancelled(expression**2 / (states - 2)).subs(states, more + 1))
    return sqrt(states - 2) * sqrt(rational).subs(more, states - 1)


@dataclass(frozen=True)
class Cone:
    """A place next to the plateau of the ansatz, or at embeddings shifted off it by a common offset."""

    states: int
    p: mpf
    side: int
    w: mpf
    open: int = 0

    @cached_property
    def network(self) -> SymbolNetwork:
        return SymbolNetwork(self.states, self.states, self.states)

    @property
    def theta(self) -> list:
        """At e = side · 1e-12; or, with a number of open units, all embeddings at 1/8 of the sum of their corners."""
        arrays = ansatz(self.states, self.states, self.side * mpf(10) ** -12, 2 * abs(self.w), 2 * self.w)
        if self.open:
            arrays["embedding"] = [[sum(row) / 8 for row in zip(*self.corners[: self.open])]] * self.states
        return self.network.flat(arrays)

    @cached_property
    def corners(self) -> list:
        return corners(self.states, self.states)

    def direction(self, weights) -> list:
        """Embeddings with given inner products with the corners, up to their mean; as a unit direction."""
        rows = [[fdot(row, column) for column in zip(*self.corners)] for row in weights]
        return self.unit(rows)

    def unit(self, rows) -> list:
        norm = mpmath.sqrt(sum(v * v for row in rows for v in row))
        return self.network.flat({"embedding": [[v / norm for v in row] for row in rows]})

    def point(self) -> dict:
        return {
            states: mpf(self.states), slope: excess(self.states, self.p), own: self.side, mixed: 4 * self.w * abs(self.w),
            open_units: mpf(self.open),
        }


CONES = tuple(
    Cone(n, p_, side, mpf(w_)) for (n, p_), side, w_ in zip(LAWS * 2, (1, -1, -1, 1, -1, 1, 1, -1), ("-0.75", "0.5", "-1.25", "-1.5", "-0.875", "-1.25", "0.75", "-1"))
)


def _cone_curvatures(at: Cone) -> list:
    n, network, theta = at.states, at.network, at.theta
    g = [mpf(k) for k in (3, -2, -1, 0, 0)][:n]
    across = network.flat({"embedding": [[mpf(0)] * (n - 1) + [v / mpmath.sqrt(fdot(g, g))] for v in g]})
    trivial = at.direction([[mpf(x == j) for j in range(n)] for x in range(n)])
    standard = at.direction([[g[x] * (x == j) - (g[x] + g[j]) / n for j in range(n)] for x in range(n)])
    cycle = {(0, 1): 1, (1, 2): 1, (2, 0): 1, (1, 0): -1, (2, 1): -1, (0, 2): -1}
    rest = at.direction([[mpf(cycle.get((x, j), 0)) for j in range(n)] for x in range(n)])
    shift = at.direction([g] * n)
    with mpmath.workdps(45):
        return [network.second(theta, at.p, u, v) for u, v in (
            (across, across), (trivial, trivial), (standard, standard), (rest, rest), (standard, shift))]


def _offset(chapter: Chapter, gap: Chapter) -> None:
    """Embeddings shifted by a common vector that opens k units: the extremes of the form."""
    other = -1 / (states - 1)  # inner product of two corners
    of_differences, of_sum = 1 - other, 1 + (open_units - 1) * other  # eigenvalues of the Gram matrix of k corners
    unit_curvature = 2 * slope / (states - 1)
    result = Matrix([unit_curvature * (1 + tidy(mixed / states * value)) for value in (of_differences, of_sum, 0)])
    chapter.add(
        "offset",
        "With all embeddings shifted by a vector that opens the units of $k$ corners, the plateau is [off its kinks](symmetric-stability.md#2-off-kinks) and $W_2DW_1=\\frac mS\\sum_{\\text{open}}u_ju_j^\\top$: "
        "curvatures along differences of the $k$ corners, along their sum, and across them. **Nothing is outside their range:** "
        "$0\\le\\sum_{xj}\\tilde v_{xj}\\max(v_{xj},0)\\le\\sum\\tilde v_{xj}^2=\\frac S{S-1}\\|\\tilde{\\mathbf E}_\\parallel\\|^2$, since $\\max(\\cdot,0)$ rises with slopes from 0 to 1, "
        "so the form of the kink is $\\frac{\\varphi_1}{S-1}\\|\\tilde{\\mathbf E}\\|^2$ times a number between 1 and $1+\\frac m{S-1}$; for $S\\ge3$ both ends are taken, as shifts cost nothing. "
        "**Hence, for $d\\ge S-1$, $S\\ge3$: for $p<p_c$ every plateau of the ansatz has a direction down (of second order), whatever $w$. For $p>p_c$ it is a local minimum of the full "
        "model if $m>-(S-1)$, and has a direction down if $m<-(S-1)$.** (With an offset, $d=S-1$ and $S-1$ units open there are local minima below $p_c$ too, where $m<-S(S-1)$.)",
        r"\left(L_{u_i-u_j},\ L_{\sum u_j},\ L_{\perp}\right)\big|_{k\text{ units open}}", result,
        Matrix([cancelled((open_units - 1) * of_differences + of_sum - open_units)]),
        Check("second numerical derivatives of the full loss of networks with S = 3 and 5, embeddings all equal; the bias eliminated", cases=OFFSETS,
              values=Cone.point, reference=_offset_curvatures, tolerance=1e-12),
    )
    size = symbols("omega", positive=True)
    edges = [solve((entry * (states - 1) / (2 * slope)).subs({mixed: -4 * size**2, **told}), size)[0] for entry, told in (
        (chapter["offset"][0], {}), (chapter["next_to_ansatz"][1], {own: 1}), (chapter["next_to_ansatz"][1], {own: -1}))]
    edges = Matrix([-edge for edge in edges])
    c = gap["constants_simplex"][1]
    signs = [symbol for symbol in c.free_symbols if symbol != states]
    canonical = [cancelled(edge**2 * c.subs({symbol: side for symbol in signs}) - 1) for edge, side in zip(edges[1:], (1, -1))]
    chapter.add(
        "edges",
        "The plateau of the full model loses its stability above $p_c$ at the first of these $w$, before the canonical saddles, which are the second for $e>0$ and the third for $e<0$. "
        "**So the canonical local minima with $-\\sqrt S/2<w<-\\sqrt{S-1}/2$ are none in the full model, nor is any of the half-stable part of $e=0$ "
        "(between the second and the third), where it attracts from $e<0$: a common shift opens two units, and the embeddings of their symbols part.** "
        "At $S=2$ a shift opens one unit, $1+m/2$ is the only factor, and the canonical picture stands.",
        r"\left(w_{\text{full}},\ w_{e>0},\ w_{e<0}\right)", edges, Matrix([*canonical, cancelled(edges[0] ** 2 - (states - 1) / 4)]),
        Check("bisection in w: on the sign of the second numerical derivative of the full loss along a difference of two corners whose units are open, and of the gap of the ansatz at e = ±1",
              cases=(3, 5), values=lambda n: {states: mpf(n)}, reference=_measured_edges, tolerance=1e-8),
    )


OFFSETS = tuple(
    Cone(n, p_, 1, mpf(w_), k) for n, p_, w_, k in (
        (5, mpf("0.95"), "-1.05", 2), (5, mpf("0.6"), "0.75", 3), (4, mpf("0.9"), "-1.25", 2), (5, mpf("0.3"), "-1.5", 3))
)


def _offset_curvatures(at: Cone) -> list:
    """Along the difference of the first two corners, the sum of the open ones, and the difference of the last two, all closed."""
    u, n = at.corners, at.states
    vectors = (
        [a - b for a, b in zip(u[0], u[1])], [sum(row) for row in zip(*u[: at.open])], [a - b for a, b in zip(u[n - 2], u[n - 1])],
    )
    found = [at.unit([vector, [-v for v in vector], *[[mpf(0)] * n] * (n - 2)]) for vector in vectors]
    with mpmath.workdps(30):
        return at.network.second_without_bias(at.theta, at.p, [(u, u) for u in found])


def _measured_edges(n: int) -> list:
    p_ = LAWS[0][1] if n == 3 else LAWS[2][1]

    def curvature_of(w_):
        at = Cone(n, p_, 1, w_, 2)
        vector = [a - b for a, b in zip(at.corners[0], at.corners[1])]
        along = at.unit([vector, [-v for v in vector], *[[mpf(0)] * n] * (n - 2)])
        return at.network.second(at.theta, at.p, along, along)

    def gap_of(side):
        def found(w_):
            logits = simplex_logits(mpf(side), w_, n)
            return logits[0] - logits[1]
        return found

    with mpmath.workdps(24):
        return [mpmath.findroot(function, (mpf(-4), mpf("-0.3")), solver="bisect", tol=1e-18, maxsteps=40) for function in (curvature_of, gap_of(1), gap_of(-1))]
