"""Solutions of the Riccati equation dρ/dz = z - ρ² by Airy's functions, in forms that neither overflow nor cancel.

On an orbit J = (ρ Bi - Bi') / (ρ Ai - Ai') is constant; see derivations/attention-invariant.md. Far out Bi/Ai is as large as
exp(4/3 z^(3/2)), so that J is handled as asinh(J/2), which is near ±log|J| where |J| is large.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy.special import ai_zeros, airy, airye

from landscape.kernels.attention import tail

FIRST_ZERO = float(ai_zeros(1)[0][0])
FAR = 30.0  # from where on the expansions are used
FURTHEST = 1e5  # beyond, eBi/eAi is 2 as far as the logarithm of Bi/Ai can tell
LARGE = 40.0  # of log|J|: from where on asinh(J/2) is ±log|J| to double precision
TABLE = 12.0  # ends of orbits are tabulated for |ρ| up to here
NODES = 4097


@dataclass(frozen=True)
class Riccati:
    """What places (z, ρ) with ρ² >= z say of their orbits; arrays of one shape.

    Attributes
    ----------
    above : ndarray
        ρ - Ai'/Ai for z >= 0, ρ Ai - Ai' for z < 0: the denominator of J up to a positive factor, at z above the first zero of Ai.
    position : ndarray
        asinh(J/2). It grows along the parabola ρ² = z.
    sign, log : ndarray
        Sign and logarithm of |J|.
    """

    above: np.ndarray
    position: np.ndarray
    sign: np.ndarray
    log: np.ndarray

    @property
    def angle(self) -> np.ndarray:
        """arctan J, in [-π/2, π/2], whose ends are one place: the pole of J."""
        small = np.arctan(np.exp(-np.abs(self.log)))
        return self.sign * np.where(self.log > 0.0, np.pi / 2 - small, small)


@dataclass(frozen=True)
class _Outer:
    """At z >= 0: √z, √z - Bi'/Bi, -√z - Ai'/Ai and log(Bi/Ai)."""

    root: np.ndarray
    less: np.ndarray
    more: np.ndarray
    log_ratio: np.ndarray


def _outer(z: np.ndarray) -> _Outer:
    root = np.sqrt(z)
    with np.errstate(invalid="ignore", over="ignore"):
        ai, ai_prime, bi, bi_prime = airye(np.minimum(z, FURTHEST))
        x = np.maximum(z, FAR) ** -1.5
        less = np.where(z < FAR, root - bi_prime / bi, -root * tail(-x))
        more = np.where(z < FAR, -root - ai_prime / ai, root * tail(x))
        return _Outer(root, less, more, np.log(bi / ai) + 4.0 / 3.0 * z * root)


def solve(z: np.ndarray, rho: np.ndarray, between: np.ndarray) -> Riccati:
    """J at places (z, ρ).

    Parameters
    ----------
    z, rho : ndarray
    between : ndarray
        ρ² - z >= 0, with digits of its own.
    """
    z, rho, between = np.broadcast_arrays(z, rho, between)
    top, bottom, log = np.empty(z.shape), np.empty(z.shape), np.zeros(z.shape)
    inner = z < 0.0
    ai, ai_prime, bi, bi_prime = airy(z[inner])
    top[inner], bottom[inner] = rho[inner] * bi - bi_prime, rho[inner] * ai - ai_prime
    out, beside, gap = _outer(z[~inner]), rho[~inner], between[~inner]
    top[~inner], bottom[~inner] = _parts(out, beside, gap)
    log[~inner] = out.log_ratio
    sign = np.where(bottom == 0.0, 1.0, np.sign(top) * np.sign(bottom))
    with np.errstate(divide="ignore"):
        log = log + np.log(np.abs(top)) - np.log(np.abs(bottom))
    return Riccati(bottom, sign * _asinh_half(log), sign, log)


def _asinh_half(log):
    """asinh(|J|/2) from log|J|."""
    return np.where(log > LARGE, log, np.arcsinh(0.5 * np.exp(np.minimum(log, LARGE))))


def _parts(out: _Outer, rho, between):
    """ρ - Bi'/Bi and ρ - Ai'/Ai: next to ρ = ±√z, (ρ² - z) over a sum without cancellation."""
    total = np.abs(rho) + out.root
    apart = np.divide(between, total, out=np.zeros_like(total), where=total > 0.0)
    positive = rho > 0.0
    return np.where(positive, apart, rho - out.root) + out.less, np.where(positive, rho + out.root, -apart) + out.more


def along(rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position asinh(J/2) at the places (ρ², ρ) of the parabola, and its derivative by ρ."""
    out = _outer(rho**2)
    top, bottom = _parts(out, rho, np.zeros_like(rho))
    with np.errstate(divide="ignore"):
        log = out.log_ratio + np.log(np.abs(top)) - np.log(bottom)
    wronskian = 2.0 * out.root - out.less + out.more  # Bi'/Bi - Ai'/Ai = 1/(π Ai Bi)
    rise = wronskian / (bottom**2 * np.sqrt((top / bottom) ** 2 + 4.0 * np.exp(-2.0 * out.log_ratio)))
    return np.sign(top) * _asinh_half(log), rise


@functools.cache
def _table():
    """ρ as a function of the position on the parabola: cubic Hermite pieces."""
    from scipy.interpolate import CubicHermiteSpline

    nodes = np.linspace(-TABLE, TABLE, NODES)
    positions, rises = along(nodes)
    return CubicHermiteSpline(positions, nodes, 1.0 / rises, extrapolate=False)


def near_end(position: np.ndarray) -> np.ndarray:
    """ρ where orbits of a position meet the parabola, to about 1e-8 for |ρ| up to 12, roughly beyond."""
    with np.errstate(invalid="ignore"):
        inside = _table()(position)
    return np.where(np.isfinite(inside), inside, np.sign(position) * np.cbrt(0.75 * np.abs(position)))


def end(position: np.ndarray) -> np.ndarray:
    """ρ where orbits of a position meet the parabola ρ² = z, to rounding, by Newton's method."""
    rho = near_end(position)
    for _ in range(6):
        reached, rise = along(rho)
        step = (position - reached) / rise
        rho = rho + step
        if not np.any(np.abs(step) > 1e-15 * (1.0 + np.abs(rho))):
            break
    return rho
