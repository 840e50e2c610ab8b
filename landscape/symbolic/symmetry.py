"""The symmetry of the one-layer transformer, and the manifold that its reflections fix."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property

import mpmath
from mpmath import fdot, mpf
from sympy import Matrix, Rational, Symbol, expand, eye
from sympy import symbols as numbered

from landscape.symbolic import symbols as s
from landscape.symbolic.layers import ALPHA, Direction, Ray
from landscape.symbolic.networks import Network
from landscape.symbolic.steps import Chapter, Check
from landscape.symbolic.words import letter, shortened, transposed

ALPHA_ENTRIES = (1, -1, -1)
ACROSS = Direction("across", Symbol("across_square", positive=True), products=((ALPHA.name, Rational(0)),))
BATCH = ((0, 1, 1, 0), (1, 0, 1, 1))


def symmetry(chapter: Chapter) -> None:
    """The logits do not change under orthogonal maps of the three spaces and permutations of hidden units."""
    stream, space, values, units = (letter(name) for name in ("R", "S", "T", "P"))
    query, key, value, output, inner, outer, head, here, there, active, slope, change = (
        letter(name) for name in ("W_Q", "W_K", "W_V", "W_O", "W_1", "W_2", "c", "y_n", "y_i", "h", "G", "D")
    )
    back, turned = transposed(stream), (stream, space, values, units)
    scores = (
        transposed(space * query * back * stream * here) * (space * key * back * stream * there),
        transposed(query * here) * key * there,
    )
    pairs = (
        scores,
        (stream * output * transposed(values) * values * value * back * stream * there, stream * output * value * there),
        (units * inner * back * stream * here, units * inner * here),
        (stream * outer * transposed(units) * units * active, stream * outer * active),
        (transposed(stream * head) * stream * here, transposed(head) * here),
        (transposed(stream * slope) * stream * change, transposed(slope) * change),
    )
    changes = [shortened(one - other, turned) for one, other in pairs]
    chapter.add(
        "symmetry",
        "For orthogonal $R$ (of the stream), $S$ (queries and keys) and $T$ (values) and a permutation $P$ of the "
        "hidden units let $g$ map $\\mathbf e,\\mathbf p_n,\\mathbf c$ to $R\\mathbf e,R\\mathbf p_n,R\\mathbf c$, "
        "$W_Q,W_K$ to $SW_QR^\\top,SW_KR^\\top$, $W_V$ to $TW_VR^\\top$, $W_O$ to $RW_OT^\\top$, $W_1$ to "
        "$PW_1R^\\top$, $W_2$ to $RW_2P^\\top$. By $R^\\top R=1$ and so on, for matrices of any size: scores are "
        "unchanged, hence the attention weights under any rule; streams turn by $R$; ReLU acts entry by entry, so "
        "hidden units are permuted; the logit is unchanged. As $g$ is orthogonal, the derivative of the loss of any "
        "batch along $g\\delta$ at $g\\theta$ is that along $\\delta$ at $\\theta$: $\\nabla L(g\\theta)=g\\nabla "
        "L(\\theta)$, so gradient descent, with momentum and weight decay, keeps the points that a group of such $g$ "
        "fixes (at a kink, with any one value of ReLU's derivative). Shown are the six changes: score, attention, "
        "hidden units, MLP, logit, gradient.",
        r"\mathrm{layers}(g\theta)-g\,\mathrm{layers}(\theta)",
        Matrix(changes), Matrix(changes),
        Check("generic networks with d = 3, r = 2, softmax and linear attention, turned by generic maps", cases=GENERIC,
              values=lambda case: {}, reference=_changes),
    )


@dataclass(frozen=True)
class Generic:
    """A network with every parameter drawn at random, and maps of its three spaces."""

    network: Network
    seed: int

    def numbers(self, count: int, offset: int = 0) -> list:
        draw = random.Random(self.seed + offset)
        return [mpf(draw.randint(-64, 64)) / 64 for _ in range(count)]

    @cached_property
    def theta(self) -> list:
        return self.numbers(self.network.spans["bias"].stop)

    def orthogonal(self, offset: int) -> mpmath.matrix:
        """A product of two reflections and a third."""
        size, product = self.network.width, mpmath.eye(self.network.width)
        for k in range(3):
            normal = mpmath.matrix(self.numbers(size, 10 * offset + k + 1))
            product *= mpmath.eye(size) - 2 * normal * normal.T / fdot(normal, normal)
        return product

    @cached_property
    def maps(self) -> tuple:
        """R, S, T and P."""
        return (*(self.orthogonal(k) for k in (1, 2, 3)), mpmath.matrix([[0, 1], [1, 0]]))

    def moved(self, theta: list) -> list:
        """g applied to a point, or to a gradient."""
        stream, space, values, units = self.maps
        left = {"query": space, "key": space, "value": values, "inner": units}
        right = {"output": values, "outer": units}
        found = {"bias": [theta[-1]]}
        for name, entries in self.network.arrays(theta).items():
            if name != "bias":
                matrix = left.get(name, stream) * mpmath.matrix(entries)
                found[name] = list(matrix * right.get(name, stream).T if matrix.cols > 1 else matrix)
        return self.network.flat(found)


GENERIC = (
    Generic(Network(3, 2, 3), 1), Generic(Network(3, 2, 3, "softmax", False), 2), Generic(Network(3, 2, 3, "linear"), 3),
)


def _changes(case: Generic) -> list:
    """Largest change in each quantity over a sequence, and in the gradient of the loss of two."""
    network, moved = case.network, case.moved(case.theta)
    stream, _, _, units = case.maps
    one, other = (network.trace(point, BATCH[0][:-1]) for point in (moved, case.theta))
    found = [_largest(u - v for a, b in zip(one["scores"], other["scores"]) for u, v in zip(a, b))]
    for name, turn in (("attended", stream), ("hidden", units), ("final", stream)):
        pairs = zip(one[name], other[name])
        found.append(_largest(x for a, b in pairs for x in mpmath.matrix(a) - turn * mpmath.matrix(b)))
    found.append(_largest(u - v for u, v in zip(one["logits"], other["logits"])))
    slopes, turned = network.gradient(moved, BATCH), case.moved(network.gradient(case.theta, BATCH))
    return [*found, _largest(u - v for u, v in zip(slopes, turned))]


def _largest(numbers) -> mpf:
    return max(numbers, key=abs)


# --- the set that the reflections fix -----------------------------------------------------------------------


def fixed_set(chapter: Chapter) -> None:
    """Reflections through α in each space, and permutations, fix exactly the manifold."""
    along, across = Symbol("x", real=True), Symbol("y", real=True)
    vector = (Ray(ALPHA, along), Ray(ACROSS, across))
    image = [Ray(ALPHA, 2 * ray.inner(Ray(ALPHA, 1)) / s.width) for ray in vector]
    parts = Matrix([image[0].size + image[1].size - along, -across])
    chapter.add(
        "reflection",
        "The reflection $R=2\\alpha\\alpha^\\top/d-1$ takes $x\\alpha+y\\beta$ with $\\beta\\perp\\alpha$ to the vector "
        "with the coordinates below, for every $d$: it fixes exactly the multiples of $\\alpha$. With $R$, $S$, $T$ "
        "independently the reflection or 1, and all permutations $P$, a fixed matrix has its columns in the span of "
        "$\\alpha$ (from $S$, $T$ or $R$ on the left) and its rows too (from the right); $W_1$ and $W_2$ treat all "
        "hidden units alike. That is the manifold, and $b$ is free.",
        r"R\,(x,y)^\top",
        parts, expand(parts - Matrix([along, -across])),
        Check("reflections of actual vectors with d = 3",
              cases=tuple({along: mpf(u), across: mpf(v)} for u, v in ((2, 3), (-1, 5), (4, -7))),
              reference=lambda at: _reflected_parts(at[along], at[across])),
    )
    g, g_1, g_2 = numbered("g g_1 g_2", real=True)
    alpha, swap = Matrix(ALPHA_ENTRIES), Matrix([[0, 1], [1, 0]])
    mirror = 2 * alpha * alpha.T / 3 - eye(3)
    averaged = (
        ("fixed_vectors", "The fixed vectors for $d=3$, $\\alpha=(1,-1,-1)$", r"\mathbf e,\ \mathbf p_n,\ \mathbf c",
         ((3, 1, (mirror,), ()),), (g,)),
        ("fixed_matrices", "The fixed attention matrices", "W_Q,\\ W_K,\\ W_V,\\ W_O", ((3, 3, (mirror,), (mirror,)),), (g,)),
        ("fixed_mlp", "The fixed matrices of an MLP with two hidden units", r"\left(W_1^\top,\ W_2\right)",
         ((3, 2, (mirror,), (swap,)), (3, 2, (mirror,), (swap,))), (g_1, g_2)),
    )
    for name, words, left, blocks, sizes in averaged:
        fixed, freedom = zip(*(_fixed(*block, size) for block, size in zip(blocks, sizes)))
        result = Matrix.hstack(*fixed)
        chapter.add(
            name, words + ", from the linear equations: one number each.", left, result,
            Matrix([count - 1 for count in freedom] + list(result - Matrix.hstack(*(
                size * alpha * (alpha.T if columns == 3 else Matrix([[1] * columns]))
                for size, (_, columns, _, _) in zip(sizes, blocks)
            )))),
            Check("random arrays, averaged over the group of actual matrices", cases=(1, 2, 3),
                  values=lambda seed, b=blocks, z=sizes: {size: m[0, 0] for size, m in zip(z, _averages(b, seed))},
                  reference=lambda seed, b=blocks: _entries(_averages(b, seed))),
        )


def _fixed(rows: int, columns: int, left: tuple, right: tuple, size) -> tuple[Matrix, int]:
    """The arrays X with A X = X and X B = X, scaled so that the first entry is `size`; their number of dimensions."""
    entries = numbered(f"z_:{rows * columns}", real=True)
    array = Matrix(rows, columns, entries)
    equations = [entry for a in left for entry in a * array - array] + [entry for b in right for entry in array * b - array]
    solutions = Matrix(equations).jacobian(entries).nullspace()
    return Matrix(rows, columns, list(size * solutions[0] / solutions[0][0])), len(solutions)


def _averages(blocks, seed: int) -> list:
    """A random array of each shape, averaged over the products of the maps on its left and right."""
    draw, found = random.Random(seed), []
    for rows, columns, left, right in blocks:
        array = mpmath.matrix(rows, columns)
        for i in range(rows):
            for j in range(columns):
                array[i, j] = mpf(draw.randint(-64, 64)) / 64
        for one in left:
            array = (array + _numeric(one) * array) / 2
        for one in right:
            array = (array + array * _numeric(one)) / 2
        found.append(array)
    return found


def _numeric(matrix: Matrix) -> mpmath.matrix:
    return mpmath.matrix([[mpf(entry.p) / entry.q for entry in matrix.row(i)] for i in range(matrix.rows)])


def _entries(arrays: list) -> list:
    """Row by row, of arrays side by side."""
    return [array[i, j] for i in range(arrays[0].rows) for array in arrays for j in range(array.cols)]


def _reflected_parts(x, y) -> list:
    across = mpmath.matrix([1, 1, 0])  # orthogonal to α
    alpha = mpmath.matrix(ALPHA_ENTRIES)
    image = (2 * alpha * alpha.T / 3 - mpmath.eye(3)) * (x * alpha + y * across)
    return [fdot(image, alpha) / 3, fdot(image, across) / 2]
