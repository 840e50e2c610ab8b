"""How likely a Gaussian start is to reach each kind of limit: by quadrature for `canonical`, by labels of a sample for others.

Along e, at a given w, the limits of the canonical landscape are intervals (derivations/canonical-limits.md), so that their
probability is one integral over w. It is done for the logarithm of the integrand: every probability is computed itself, never
as what others leave, and keeps its digits where it is 1e-190.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from landscape import parameters
from landscape.architectures import Architecture
from landscape.canonical import Canonical
from landscape.chains import BinaryChain, Chain, SymmetricChain
from landscape.landscapes import Landscape, landscape_of
from landscape.outcomes import Label
from landscape.parameters import ParameterError

DROP = 45.0  # what is e^-45 of the largest integrand is left out
PANELS = 40
GAUSS_X, GAUSS_W = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class StartProbabilities:
    """How likely starts N(mean, std²) are to have each limit.

    Attributes
    ----------
    std : ndarray
        Standard deviations of every coordinate.
    values : dict of str to ndarray, shape of `std`
        Probability of each label that can occur, by its word.
    errors : dict of str to ndarray, shape of `std`
        One standard error of each value; where no start of the sample (or every one) has the label, 3 over their number: the
        bound of 95 %. Zero for quadrature, whose relative error is about 1e-12.
    method : {"quadrature", "sample"}
    """

    std: np.ndarray
    values: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]
    method: str


def start_probabilities(
    chain: Chain | Landscape, std, architecture: str | Architecture = "canonical", *, mean: Sequence[float] | None = None,
    samples: int = 100_000, seed: int = 0,
) -> StartProbabilities:
    """How likely a start with independent Gaussian coordinates is to have each limit.

    Parameters
    ----------
    chain : Chain or Landscape
    std : float or array_like
        Standard deviation of every coordinate, positive.
    architecture : str or Architecture
        The coordinates that are drawn are its parameters, such as (e, w) for `canonical`.
    mean : sequence of float, optional
        Where the starts are centred; 0 by default. For `reduced` and `transverse` two numbers (e, w) will do.
    samples, seed : int
        For other architectures than `canonical`: how many starts are labelled, by the exact rule where there is one and by
        following the flow elsewhere, and the seed that they are drawn with.

    Returns
    -------
    StartProbabilities

    Raises
    ------
    ParameterError
    """
    landscape = landscape_of(chain, architecture)
    spread = _spread("start_probabilities", std)
    samples = parameters.count("start_probabilities", "samples", samples, 1)
    centre = np.zeros(len(landscape.parameters)) if mean is None else landscape.points("start_probabilities", [mean])[0]
    if not np.isfinite(centre).all():
        raise ParameterError("mean", "start_probabilities", "finite numbers", mean)
    model = getattr(landscape, "architecture", None)
    known = isinstance(getattr(landscape, "chain", None), (BinaryChain, SymmetricChain))
    if isinstance(model, Canonical) and known and not landscape.speeds:
        rows = [_by_quadrature(model, landscape.chain, centre, float(one)) for one in spread.flat]
        values = {word: np.array([row[word] for row in rows]).reshape(spread.shape) for word in rows[0]} if rows else {}
        return StartProbabilities(spread, values, {word: np.zeros(spread.shape) for word in values}, "quadrature")
    return _by_sample(landscape, centre, spread, samples, seed)


def p_global(chain: Chain | Landscape, std, architecture: str | Architecture = "canonical", **options):
    """Probability that a start N(0, std²) reaches the global minimum.

    Parameters
    ----------
    chain, std, architecture, **options
        As for `start_probabilities`, which also tells the error of what is sampled.

    Returns
    -------
    float, or ndarray of the shape of `std`
        Below the threshold it is near 1 and `p_local` is the small side; each is computed itself. 0 where it is below the
        smallest float.

    Examples
    --------
    >>> from landscape import BinaryChain, p_global
    >>> f"{p_global(BinaryChain(0.5, 0.8), 0.02):.3e}"
    '1.842e-190'
    """
    return _one("global", chain, std, architecture, options)


def p_local(chain: Chain | Landscape, std, architecture: str | Architecture = "canonical", **options):
    """Probability that a start N(0, std²) ends in a bad local minimum; as `p_global`.

    Examples
    --------
    >>> from landscape import BinaryChain, p_local
    >>> f"{p_local(BinaryChain(0.2, 0.3), 1.0):.6f}"
    '0.113005'
    """
    return _one("local", chain, std, architecture, options)


def probability_map(std, p, q=None, architecture: str | Architecture = "canonical", *, states: int | None = None, **options):
    """Which spread is risky on which chain: probabilities of the limits of N(0, std²) over a grid of chains and spreads.

    Parameters
    ----------
    std : (low, high, n) or 1-D array
    p, q : (low, high, n) or 1-D array
        Inside (0, 1). Without `q` they are symmetric chains on `states` symbols.
    architecture : str or Architecture
    **options
        As for `start_probabilities`.

    Returns
    -------
    xarray.Dataset
        ``p_global``, ``p_local`` and ``p_saddle`` over p, q (if given) and std, and ``error_global``, ``error_local``: their
        standard errors, where they are sampled.
    """
    import xarray

    from landscape import __version__

    if (q is None) == (states is None):
        raise ParameterError("q", "probability_map", "given, or `states` instead of it", q)
    axes = {"p": parameters.axis("probability_map", "p", p)} | ({} if q is None else {"q": parameters.axis("probability_map", "q", q)})
    spread = parameters.axis("probability_map", "std", std)
    shape = (*(len(values) for values in axes.values()), len(spread))
    found = {name: np.zeros(shape) for name in ("p_global", "p_local", "p_saddle", "error_global", "error_local")}
    seen: dict[int, StartProbabilities] = {}
    for index in np.ndindex(shape[:-1]):
        at = [float(values[i]) for values, i in zip(axes.values(), index)]
        landscape = landscape_of(BinaryChain(*at) if states is None else SymmetricChain(states, *at), architecture)
        exact, sign = landscape.architecture.is_exact, landscape.chain.target_sign
        told = seen.get(sign) if exact else None  # exact limits know of the chain the sign of κ* alone
        if told is None:
            told = seen[sign] = start_probabilities(landscape, spread, **options)
        for word in ("global", "local", "saddle"):
            found[f"p_{word}"][index] = told.values.get(word, 0.0)
            if f"error_{word}" in found:
                found[f"error_{word}"][index] = told.errors.get(word, 0.0)
    if told.method == "quadrature":
        found = {name: values for name, values in found.items() if not name.startswith("error")}
    made = {
        "title": "Probabilities of limits of Gaussian starts", "architecture": landscape.architecture.name, "method": told.method,
        **({} if states is None else {"states": states}), **{name: value for name, value in options.items() if np.isscalar(value)},
        "source": f"markov-landscape {__version__}",
    }
    coordinates = axes | {"std": spread}
    return xarray.Dataset({name: (tuple(coordinates), values) for name, values in found.items()}, coords=coordinates, attrs=made)


def _one(word: str, chain, std, architecture, options: Mapping):
    values = start_probabilities(chain, std, architecture, **options).values
    found = values.get(word, np.zeros(np.shape(std)))
    return float(found) if np.ndim(std) == 0 else found


def _spread(owner: str, std) -> np.ndarray:
    try:
        found = np.asarray(std, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("std", owner, "positive finite numbers", std) from None
    if not (np.isfinite(found).all() and (found > 0.0).all()):
        raise ParameterError("std", owner, "positive finite numbers", std)
    return found


def _by_sample(landscape: Landscape, centre: np.ndarray, spread: np.ndarray, samples: int, seed: int) -> StartProbabilities:
    """Shares of the labels of one sample of N(0, 1), stretched to each spread."""
    from landscape.critical import labels_of

    drawn = np.random.default_rng(seed).standard_normal((samples, len(centre)))
    counts = np.zeros((spread.size, len(Label)), dtype=np.int64)
    for row, std in enumerate(spread.flat):
        labels = labels_of(landscape, centre + std * drawn)
        counts[row] = [np.count_nonzero(labels == label) for label in Label]
    values, errors = {}, {}
    for column, label in enumerate(Label):
        share = (counts[:, column] / samples).reshape(spread.shape)
        if counts[:, column].any() or label in (Label.GLOBAL, Label.LOCAL):
            values[label.word] = share
            errors[label.word] = np.where((share == 0.0) | (share == 1.0), 3.0 / samples, np.sqrt(share * (1.0 - share) / samples))
    return StartProbabilities(spread, values, errors, "sample")


# --- quadrature ------------------------------------------------------------------------------------------


def _by_quadrature(model: Canonical, chain: Chain, centre: np.ndarray, std: float) -> dict[str, float]:
    """Probabilities of global, local and saddle, both sides of e = 0 together."""
    if chain.target_sign == 0:
        return {"global": 1.0, "local": 0.0, "saddle": 0.0}
    logs = [_side(model, chain, side, side * centre[0], centre[1], std) for side in (1, -1)]
    return {word: float(np.exp(np.logaddexp(logs[0][word], logs[1][word]))) for word in logs[0]}


def _side(model: Canonical, chain: Chain, side: int, mean_e: float, mean_w: float, std: float) -> dict[str, float]:
    """Logarithms of the probabilities of the limits of starts on one side of e = 0, which `mean_e` is counted towards."""
    from scipy.special import log_ndtr

    from landscape.kernels.canonical import half_stable_depth

    target = chain.target_sign
    c, across = (model.constants(chain, each)[1] for each in (side, -side))
    depth, saddle = half_stable_depth(c, across, target), -1.0 / math.sqrt(c)
    this_side = _log_between(0.0, math.inf, mean_e, std)
    found = {
        "global": this_side + (log_ndtr((mean_w - saddle) / std) if target > 0 else log_ndtr((saddle - mean_w) / std)),
        "local": this_side + log_ndtr(mean_w / std) if target < 0 else -math.inf,
        "saddle": -math.inf,
    }
    edges = {
        "global": lambda height: (height, np.inf),
        "saddle": lambda height: (height - depth, height),
        "local": lambda height: (0.0, height - depth),
    }
    turns = [-0.5 * math.log(c)] + [-0.5 * math.log(across)] * (depth > 0.0)  # log|w| at the saddle, and where the height is the depth
    for word, between in edges.items():
        if word != "saddle" or depth > 0.0:
            found[word] = float(np.logaddexp(found[word], _strip(between, turns, c, target, mean_e, mean_w, std)))
    return found


def _strip(between: Callable, turns: list[float], c: float, target: int, mean_e: float, mean_w: float, std: float) -> float:
    """log of the probability that w lies where the saddle has to be passed, and e² between two functions of the threshold there.

    x = log|w| runs away from the saddle. Beyond the last of the turns it is t² more, as roots begin there.
    """
    from landscape.kernels.canonical import threshold

    furthest = math.log(max(math.exp(turns[-1]), -mean_w, abs(mean_e) + 2.0 / math.sqrt(c)) + 40.0 * std)
    reach = furthest - turns[-1] if target > 0 else 800.0

    def log_integrand(x):
        x = np.asarray(x, dtype=np.float64)
        w = -np.exp(x)
        height = np.array([threshold(each, c) for each in w.flat]).reshape(w.shape)
        inner, outer = (np.sqrt(np.maximum(edge, 0.0)) for edge in between(height))
        law = -0.5 * ((w - mean_w) / std) ** 2 - math.log(std * math.sqrt(2.0 * math.pi))
        return x + law + _log_between(inner, outer, mean_e, std)

    def beyond(t):
        t = np.asarray(t, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return log_integrand(turns[-1] + target * t**2) + np.log(2.0 * t)

    outer = _log_integral(beyond, 0.0, math.sqrt(reach))
    return outer if len(turns) == 1 else float(np.logaddexp(outer, _log_integral(log_integrand, *sorted(turns))))


def _log_between(low, high, mean: float, std: float):
    """log P(low < X < high) for X ~ N(mean, std²), of numbers or arrays; -inf for empty intervals."""
    from scipy.special import log_ndtr

    below, above = (low - mean) / std, (high - mean) / std
    flip = np.asarray(below) + above > 0.0  # the tail that is far from 1
    below, above = np.where(flip, -above, below), np.where(flip, -below, above)
    with np.errstate(divide="ignore", invalid="ignore"):
        outer, inner = log_ndtr(above), log_ndtr(below)
        found = outer + np.log(-np.expm1(np.minimum(inner - outer, 0.0)))
    return np.where(above > below, found, -np.inf)


def _log_integral(log_integrand: Callable, low: float, high: float) -> float:
    """log of the integral of a function with one peak, given by its logarithm: Gauss-Legendre where it is not negligible."""
    from scipy.optimize import minimize_scalar

    nodes = np.linspace(low, high, 2001)
    values = log_integrand(nodes)
    top = int(np.argmax(values))
    if not np.isfinite(values[top]):
        return -math.inf
    left, right = nodes[max(top - 1, 0)], nodes[min(top + 1, len(nodes) - 1)]
    lowest = values[top] - 1e6
    peak = minimize_scalar(
        lambda x: -max(float(log_integrand(x)), lowest), bounds=(left, right), method="bounded", options={"xatol": 1e-9 * (right - left)}
    )
    where, highest = (peak.x, -peak.fun) if -peak.fun > values[top] else (nodes[top], values[top])
    ends = [_edge(log_integrand, where, end, highest - DROP) for end in (low, high)]
    cuts = np.linspace(*ends, PANELS + 1)
    half = 0.5 * (ends[1] - ends[0]) / PANELS
    at = (0.5 * (cuts[1:] + cuts[:-1]))[:, None] + half * GAUSS_X
    return highest + math.log(half * float(np.sum(np.exp(log_integrand(at) - highest) @ GAUSS_W)))


def _edge(log_integrand: Callable, inside: float, outside: float, floor: float) -> float:
    """Where the function falls below a floor between its peak and the end of the interval; the end if it does not."""
    if float(log_integrand(outside)) >= floor:
        return outside
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        if middle in (inside, outside):
            break
        inside, outside = (middle, outside) if float(log_integrand(middle)) >= floor else (inside, middle)
    return outside
