"""Independent numerics for the checks of the chains: losses summed from their definition, and minimised."""

from __future__ import annotations

import mpmath
from mpmath import mpf


CHAINS = ((mpf(5) / 10, mpf(8) / 10), (mpf(2) / 10, mpf(3) / 10))  # (p, q) on either side of the threshold


def plateau_slope(p_, q_):
    """φ′(0), from the definition of the loss: π₁ times what P(1) is too large by after a 1."""
    return p_ / (p_ + q_) * (p_ / (p_ + q_) - 1 + q_)


def cross_entropy(logits, p_, q_):
    """Expected loss of the two logits of P(next = 1), summed over current and next symbol."""
    law = (q_ / (p_ + q_), p_ / (p_ + q_))
    follow = ((1 - p_, p_), (q_, 1 - q_))
    return sum(
        law[x] * follow[x][y] * mpmath.log(1 + mpmath.exp(-(2 * y - 1) * logits[x])) for x in (0, 1) for y in (0, 1)
    )


def newton(loss, start):
    """Minimise a convex function of one number by Newton's method with numerical derivatives.

    The first steps run in double precision, the last ones in the precision asked for.
    """
    if mpmath.mp.dps > 20:
        with mpmath.workdps(15):
            start = newton(loss, start)
    x = start
    for _ in range(200):
        step = mpmath.diff(loss, x) / mpmath.diff(loss, x, 2)
        x -= max(-1, min(1, step))
        if abs(step) < mpmath.eps * (1 + abs(x)) * 2**20:
            break
    return x


def best_bias(gap, p_, q_):
    """Minimise the cross-entropy over the bias."""
    return newton(lambda b: cross_entropy((b, gap + b), p_, q_), mpmath.log(p_ / q_) / 2 - gap / 2)


def best_logits(p_, q_):
    """Minimise the cross-entropy over the logit after a 0 and the logit after a 1."""
    zero = newton(lambda logit: cross_entropy((logit, mpf(0)), p_, q_), mpf(0))
    one = newton(lambda logit: cross_entropy((mpf(0), logit), p_, q_), mpf(0))
    return zero, one


def minimised_loss(gap, p_, q_):
    """The loss φ, by numerical minimisation."""
    return cross_entropy((best_bias(gap, p_, q_), gap + best_bias(gap, p_, q_)), p_, q_)


def softmax_loss(gap, states_, p_):
    """Expected loss of a softmax over S logits of which the current symbol's own is larger by `gap`."""
    logits = [gap] + [mpf(0)] * (int(states_) - 1)
    total = sum(mpmath.exp(logit) for logit in logits)
    targets = [1 - p_] + [p_ / (states_ - 1)] * (int(states_) - 1)
    return -sum(target * (logit - mpmath.log(total)) for target, logit in zip(targets, logits))


def long_run_law(matrix):
    """First row of a high power of a transition matrix."""
    power = matrix
    for _ in range(12):
        power = power * power
    return [power[0, j] for j in range(matrix.cols)]


def conditional_entropy(law, matrix):
    """Entropy of three symbols less entropy of two, summed over the paths."""
    n = matrix.rows

    def entropy(length):
        paths = [((x,), law[x]) for x in range(n)]
        for _ in range(length - 1):
            paths = [(path + (y,), weight * matrix[path[-1], y]) for path, weight in paths for y in range(n)]
        return -sum(weight * mpmath.log(weight) for _, weight in paths)

    return entropy(3) - entropy(2)


# --- networks of actual matrices ---------------------------------------------------------------------

ALPHA = (1, -1, -1)
HIDDEN = 2


def network_logits(e, w, head=None):
    """Logits after 0 and 1 of the transformer on the canonical slice, by multiplying its matrices; the head is tied or of its own."""
    d = len(ALPHA)
    embedding = [e / mpmath.sqrt(d) * a for a in ALPHA]
    reading = embedding if head is None else [head / mpmath.sqrt(d) * a for a in ALPHA]
    k = 2 / mpmath.sqrt(d * HIDDEN)
    first = [[k * abs(w) * a for a in ALPHA] for _ in range(HIDDEN)]
    second = [[k * w * a for _ in range(HIDDEN)] for a in ALPHA]
    logits = []
    for x in (0, 1):
        y = [x * v - v / 2 for v in embedding]
        h = [max(mpf(0), sum(u * v for u, v in zip(row, y))) for row in first]
        z = [v + sum(u * a for u, a in zip(row, h)) for v, row in zip(y, second)]
        logits.append(sum(u * v for u, v in zip(reading, z)))
    return logits


def simplex_logits(e, w, states_, head=None):
    """Logits of the S symbols after the symbol 0, for simplex embeddings, S hidden units and a head that is tied or its own."""
    n = int(states_)
    corners = [[mpmath.sqrt(mpf(n) / (n - 1)) * ((i == j) - mpf(1) / n) for j in range(n)] for i in range(n)]
    inward, outward = 2 * abs(w) / mpmath.sqrt(n), 2 * w / mpmath.sqrt(n)
    y = [e * v for v in corners[0]]
    h = [max(mpf(0), inward * sum(u * v for u, v in zip(corner, y))) for corner in corners]
    z = [v + outward * sum(h[j] * corners[j][i] for j in range(n)) for i, v in enumerate(y)]
    return [(e if head is None else head) * sum(u * v for u, v in zip(corner, z)) for corner in corners]


def network_gap(e, w, states_=None, head=None):
    """Logit gap of the network: of the two-symbol one, or of the one with S symbols."""
    logits = network_logits(e, w, head) if states_ is None else simplex_logits(e, w, states_, head)
    return logits[1] - logits[0] if states_ is None else logits[0] - logits[1]


ACROSS = (1, 1, 0)  # orthogonal to ALPHA


def manifold_logits(e, c, w_1, w_2, u):
    """Logits after 0 and 1, without bias, of the transformer whose weights are multiples of unit vectors, by its matrices.

    The embedding has length e along ALPHA and u across it; positions have length c; W_1 and W_2 have norms |w_1|, |w_2|.
    """
    d = len(ALPHA)
    root, norm = mpmath.sqrt(d), mpmath.sqrt(sum(a * a for a in ACROSS))
    embedding = [e * a / root + u * b / norm for a, b in zip(ALPHA, ACROSS)]
    position = [c * a / root for a in ALPHA]
    size = mpmath.sqrt(d * HIDDEN)
    logits = []
    for x in (0, 1):
        y = [x * v + s for v, s in zip(embedding, position)]
        h = [max(mpf(0), sum(w_1 / size * a * v for a, v in zip(ALPHA, y))) for _ in range(HIDDEN)]
        z = [v + w_2 / size * a * sum(h) for v, a in zip(y, ALPHA)]
        logits.append(sum(v * s for v, s in zip(embedding, z)))
    return logits
