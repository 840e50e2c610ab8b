"""Reference solutions of the canonical gradient flow, good to 30 digits, from Taylor series.

The flow of L(e, w) = φ(e² (1 + 2w|w|)) is e' = -2 φ'(κ) e (1 + 2w|w|), w' = -4 φ'(κ) e² |w|. On the two-state
chain φ'(κ) = π₁ [σ(κ + b*) - (1 - q)] with π₁ = p / (p + q), and the best bias b* solves a quadratic in e^b.
Put in, with R = √((p - q)² + 4pq e^κ),

    σ(κ + b*) = (p - q + R) / (p + q + R),    φ'(κ) = pq / (p + q) · (1 - 2 / (p + q + R)),

where nothing cancels but at κ = κ* itself. Nothing here is taken from the package.

``python tests/references.py`` solves 200 starts, confirms them and rewrites data/canonical_flow.csv.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import mpmath
import numpy as np
from mpmath import fdot, mp, mpf

TABLE = Path(__file__).resolve().parent / "data" / "canonical_flow.csv"
CHAINS = (("0.5", "0.8"), ("0.2", "0.3"), ("0.9", "0.6"), ("0.1", "0.25"))
STARTS = 50  # of each chain
TIMES = (1, 20, 200)
EARLY = mpf(1) / 16  # no start is at rest by then
SEED = 20
LIMITS = (1e-31, 1e-29, 1e-28)  # of the three errors of a solution
GUARD = 8  # each step's error is below 10^-(digits + GUARD), relative; numbers carry as many digits again


def product(a, b, k):
    """Coefficient k of the product of two series."""
    return fdot(zip(a[: k + 1], b[k::-1]))


def flow_series(p, q, e, w, order):
    """Taylor coefficients of e, w and φ' / φ'(∞) along the flow from (e, w), up to t^order.

    The coefficients of each series follow from the lower ones of the others: products by Cauchy's rule, Y = 4pq e^κ
    from Y' = κ' Y, R from R² = (p - q)² + Y, and f = 1 - 2 / (p + q + R) from f (p + q + R) = R + p + q - 2.
    """
    sign = mpmath.sign(w)
    speed = p * q / (p + q)
    e, w = [e], [w]
    squared, bracket, kappa, slope, y, root, total, f, along_e, along_w = ([] for _ in range(10))
    for k in range(order):
        squared.append(product(e, e, k))
        bracket.append((k == 0) + 2 * sign * product(w, w, k))
        kappa.append(product(squared, bracket, k))
        slope.append(k * kappa[k])
        if k == 0:
            y.append(4 * p * q * mpmath.exp(kappa[0]))
            root.append(mpmath.sqrt((p - q) ** 2 + y[0]))
            total.append(root[0] + p + q)
            f.append((total[0] - 2) / total[0])
        else:
            y.append(fdot(zip(slope[1:], y[::-1])) / k)
            root.append((y[k] - fdot(zip(root[1:], root[:0:-1]))) / (2 * root[0]))
            total.append(root[k])
            f.append((root[k] - fdot(zip(f, total[:0:-1]))) / total[0])
        along_e.append(product(f, bracket, k))
        along_w.append(product(f, squared, k))
        e.append(-2 * speed * product(along_e, e, k) / (k + 1))
        w.append(-4 * speed * sign * product(along_w, w, k) / (k + 1))
    return e, w, f


def step_length(series, tolerance):
    """The longest step for which the last three terms of every series stay below `tolerance` times its first."""
    lengths = [
        (tolerance * abs(x[0] / x[k])) ** (mpf(1) / k) for x in series for k in range(len(x) - 3, len(x)) if x[k] != 0
    ]
    return min(lengths, default=mp.inf)


def at_rest(e, w, f, tolerance):
    """Whether less than `tolerance`, relative, is left to go, because φ' decays to 0 exponentially: κ is at κ*."""
    if e[1] == 0 and w[1] == 0:
        return True
    left = max(abs(x[1] / x[0]) for x in (e, w) if x[0] != 0)
    return f[0] * f[1] < 0 and left * abs(f[0] / f[1]) < tolerance


def evaluate(series, t):
    """The values of e and w at time t from the centre of their series."""
    return tuple(mpmath.polyval(x[::-1], t) for x in series)


def flow_reference(p, q, e0, w0, times, digits=30):
    """Solve the canonical gradient flow on the two-state chain.

    Parameters
    ----------
    p, q : str, mpf or float
        Flip probabilities in (0, 1). A text is read as the decimal it says, a float as the binary number it is.
    e0, w0 : str, mpf or float
        The start.
    times : sequence of numbers >= 0, increasing
        When the solution is wanted (dθ/dt = -∇L).
    digits : int
        Correct digits wanted. It sets the precision, the tolerance and the order of the series.

    Returns
    -------
    list of (e, w) : pairs of mpf, one for each time
    """
    order = int(1.2 * (digits + GUARD)) + 2
    tolerance = mpf(10) ** -(digits + GUARD)
    with mp.workdps(digits + 2 * GUARD):
        p, q, e, w = (mpf(value) for value in (p, q, e0, w0))
        now, wanted, found = mpf(0), [mpf(value) for value in times], []
        while True:
            *series, f = flow_series(p, q, e, w, order)
            if at_rest(*series, f, tolerance):
                return found + [(e, w)] * len(wanted)
            length = step_length(series, tolerance)
            while wanted and wanted[0] - now <= length:
                found.append(evaluate(series, wanted.pop(0) - now))
            if not wanted:
                return found
            e, w = evaluate(series, length)
            now += length


def invariant(e, w):
    """E = e² - w² - sgn(w) log|w|, which the flow conserves."""
    return e**2 - w**2 - mpmath.sign(w) * mpmath.log(abs(w))


def phi_prime(kappa, p, q):
    """φ'(κ) from the best bias, as the definition has it, with the cancellation of p - q + R avoided if p < q."""
    y = 4 * p * q * mpmath.exp(kappa)
    root = mpmath.sqrt((p - q) ** 2 + y)
    numerator = p - q + root if p >= q else y / (q - p + root)
    bias = mpmath.log(numerator / (2 * q * mpmath.exp(kappa)))
    return p / (p + q) * (1 / (1 + mpmath.exp(-kappa - bias)) - (1 - q))


def time_taken(p, q, start, end):
    """Flow time between two points of one orbit: the integral of dw / w', with e² = E + w² + sgn(w) log|w|."""
    conserved, sign = invariant(*start), mpmath.sign(start[1])

    def pace(w):
        squared = conserved + w**2 + sign * mpmath.log(abs(w))
        return -1 / (4 * phi_prime(squared * (1 + 2 * w * abs(w)), p, q) * squared * abs(w))

    return mpmath.quad(pace, [start[1], end[1]], maxdegree=9)


def starts():
    """The starts of the table as texts (p, q, e0, w0), with six decimals, uniform on |e|, |w| <= 2."""
    draws = np.random.default_rng(SEED).uniform(-2, 2, (len(CHAINS), STARTS, 2))
    return [(*chain, *(f"{v:.6f}" for v in draw)) for chain, block in zip(CHAINS, draws) for draw in block]


def errors(start, solution):
    """Three measures of what is wrong with the solution from a start at TIMES.

    Returns
    -------
    list of float
        The largest relative difference of e or w from a second solution of other order, tolerance and precision; the
        largest change of E, relative to its terms; how wrong the time EARLY is that the integral along the orbit
        finds between the start and the solution there.
    """
    again = flow_reference(*start, TIMES, digits=40)
    early = flow_reference(*start, [EARLY])[0]
    with mp.workdps(50):
        p, q, *begin = (mpf(text) for text in start)
        change = max(abs(x / y - 1) for a, b in zip(solution, again) for x, y in zip(a, b))
        drift = max(
            abs(invariant(*point) - invariant(*begin)) / (1 + point[0] ** 2 + point[1] ** 2) for point in solution
        )
        return [float(x) for x in (change, drift, abs(time_taken(p, q, begin, early) / EARLY - 1))]


def rewrite(path=TABLE):
    """Solve and confirm every start; the file appears whole, after the last one."""
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".partial")
    begun, worst = time.perf_counter(), [0.0] * len(LIMITS)
    with partial.open("w", encoding="ascii", newline="\n") as file:
        file.write("p,q,e0,w0,T,e,w\n")
        for number, start in enumerate(starts(), 1):
            solution = flow_reference(*start, TIMES)
            found = errors(start, solution)
            if not all(error <= limit for error, limit in zip(found, LIMITS)):
                raise ArithmeticError(f"the solution from {start} has errors {found}, more than {LIMITS}")
            worst = [max(pair) for pair in zip(worst, found)]
            for t, point in zip(TIMES, solution):
                file.write(",".join([*start, str(t), *(mpmath.nstr(x, 32, strip_zeros=False) for x in point)]) + "\n")
            file.flush()
            seconds = time.perf_counter() - begun
            print(f"{number} starts, errors up to {worst}, {seconds:.0f} s", file=sys.stderr, flush=True)
    os.replace(partial, path)


if __name__ == "__main__":
    rewrite()
