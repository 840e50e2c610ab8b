"""Says of a model whether it is at the unigram plateau, on its way or at a global minimum, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from landscape import parameters
from landscape.chains import BinaryChain, Chain
from landscape.forward import Measured, Model, expected_loss, gap, measure, models_of
from landscape.outcomes import Label
from landscape.parameters import ParameterError
from landscape.projection import Projection, numbers, project
from landscape.weight_names import WeightNames
from landscape.weights import Weights, weights_of

TOLERANCE = 0.1  # of the unigram-bigram difference, as for the limits of trainings
LENGTH = 64  # symbols in a sequence for a model without positions
FAR = 0.5  # of the norm of the weights: with more off the manifold its point says little
STAGES = {
    "global": "at a global minimum", "plateau": "at the unigram plateau", "on its way": "on its way", "unknown": "not to be told from the weights",
    "not finite": "not a model: it has weights that are not finite",
}


@dataclass(frozen=True)
class Diagnosis:
    """What is known of one model.

    Attributes
    ----------
    stage : str
        "global" or "plateau": the loss is within 10 % of the unigram-bigram difference of the bigram, or of the unigram loss;
        "on its way": neither; "unknown": the weights do not say what the model computes; "not finite".
    words : str
        The answer and what it rests on.
    loss, loss_error : float or None
        Loss in nats per symbol, and its standard error: 0 where it is exact, for a model without attention.
    share : float or None
        (loss - bigram) / (unigram - bigram); None at the threshold, where both are one.
    unigram_loss, bigram_loss : float
    kappa, kappa_star : float or None
        Logit gap, the mean over positions, and the optimal one.
    e, w : float
        The projected point of the canonical slice; see `landscape.projection.Projection.canonical`.
    residual : float
        What is off the manifold in all weights, relative to all weights.
    across : float or None
        Length u of the part of the embedding across alpha; None for three or more symbols.
    canonical, untied : str or None
        The exact limit of (e, w) under canonical flow; for an untied model of (e, head, w) under that of `untied`.
    margin, distance : float or None
        Of that limit; see `landscape.classify`.
    transverse : str or None
        The limit of the whole projected point under the flow of `transverse` in which a position moves 1/N as fast; for a tied
        model in which one vector embeds the symbols, for two rows move in another metric.
    rank : int
        Singular values of W_1 above a tenth of the largest.
    attention : float
        Spectral norm of W_O W_V: what is added is at most so many times as long as the longest vector attended to.
    notes : tuple of str
    """

    stage: str
    words: str
    loss: float | None
    loss_error: float | None
    share: float | None
    unigram_loss: float
    bigram_loss: float
    kappa: float | None
    kappa_star: float
    e: float | None
    w: float | None
    residual: float | None
    across: float | None
    canonical: str | None
    untied: str | None
    margin: float | None
    distance: float | None
    transverse: str | None
    rank: int
    attention: float
    notes: tuple[str, ...]


def diagnose(
    model, chain: Chain, *, names: WeightNames | None = None, logits=None, flow: bool = True, sequences: int = 64, seed=0
) -> list[Diagnosis]:
    """Diagnose every model of an ensemble.

    Parameters
    ----------
    model : torch.nn.Module or mapping of str to array
        A mapping is taken for a state dict.
    chain : BinaryChain or SymmetricChain
        What it is trained on; a `SymmetricChain` of two states is taken as a `BinaryChain`, with its units of the gap.
    names : WeightNames, optional
        By default those of the transformer in `validation.transformer`.
    logits : callable, optional
        Takes integers, an ndarray of shape (B, n), and gives logits (B, n, S), or (B, n) of 1 against 0, as an array or tensor:
        how loss and gap of a model are measured that the weights of one layer do not say.
    flow : bool
        Whether to follow the flow of `transverse`; the integrator compiles once, for about a minute.
    sequences : int
        Drawn to measure loss and gap where there is attention or `logits`, at least 2.
    seed : int, numpy.random.SeedSequence or numpy.random.Generator

    Raises
    ------
    ParameterError
        If names, weights and chain do not fit together.
    """
    weights = weights_of("diagnose", model, names)
    if not isinstance(chain, Chain) or chain.kind not in ("binary", "symmetric") or chain.source is not None:
        raise ParameterError("chain", "diagnose", "a BinaryChain or a SymmetricChain", chain)
    if chain.states != (weights.symbols or 2):
        raise ParameterError("states", "diagnose", f"{weights.symbols or 2}, as the model has so many symbols", chain.states)
    chain.require_interior("diagnose")
    sequences = parameters.count("diagnose", "sequences", sequences, 2)
    if logits is not None and weights.members > 1:
        raise ParameterError("logits", "diagnose", "left out for models side by side", logits)
    if chain.kind == "symmetric" and chain.states == 2:
        chain = BinaryChain(chain.p, chain.p)
    placed, untied = project(model, names), "head" in weights.arrays
    forecasts = _forecast(chain, np.insert(placed.canonical, 1, placed.head, axis=1) if untied else placed.canonical)
    ahead = _followed(chain, placed, weights) if flow and not untied and weights.symbols is None else [None] * weights.members
    found = []
    for k, each in enumerate(models_of(weights)):
        finite = bool(np.isfinite(placed.residual[k]))
        measured = _measured(each, weights, chain, logits, sequences, seed) if finite else None
        found.append(_told(Diagnosis(
            **_losses(measured, chain, finite), words="", kappa_star=chain.kappa_star, unigram_loss=chain.unigram_loss, bigram_loss=chain.bigram_loss,
            **{name: _number(value) for name, value in zip("ew", placed.canonical[k])}, residual=_number(placed.residual[k]),
            across=_number(placed.u[k]) if isinstance(placed, Projection) else None, **forecasts[k], transverse=ahead[k],
            rank=_rank(each.inner), attention=_strength(each), notes=_notes(weights, logits, measured),
        ), chain))
    return found


def _number(value) -> float | None:
    return float(value) if np.isfinite(value) else None


def _measured(model: Model, weights: Weights, chain: Chain, logits, sequences: int, seed) -> Measured | None:
    """Loss and gap, exact without attention; None if the weights do not say what the model computes."""
    length = len(model.positions) if "positions" in weights.arrays else LENGTH
    if logits is not None:
        return measure(lambda symbols: _shaped(logits(symbols), symbols, chain.states), chain, length, sequences, seed)
    if not _whole(weights):
        return None
    if model.attends:
        return measure(model.logits, chain, length, sequences, seed)
    return Measured(expected_loss(model, chain), 0.0, gap(model.state_logits()))


def _whole(weights: Weights) -> bool:
    return weights.plain and not any(numbers(bias).any() for bias in weights.biases)


def _shaped(found, symbols: np.ndarray, states: int) -> np.ndarray:
    found = numbers(found)
    if found.shape == symbols.shape and states == 2:
        return np.stack([0.0 * found, found], axis=-1)
    if found.shape != (*symbols.shape, states):
        raise ParameterError("logits", "diagnose", f"a function that gives shape {(*symbols.shape, states)}", found.shape)
    return found


def _losses(measured: Measured | None, chain: Chain, finite: bool) -> dict:
    """Stage, loss and gap."""
    none = dict.fromkeys(("loss", "loss_error", "share", "kappa"))
    if measured is None:
        return {"stage": "unknown" if finite else "not finite", **none}
    if not np.isfinite(measured.loss):
        return {"stage": "unknown" if finite else "not finite", **none}
    numbers_found = {"loss": measured.loss, "loss_error": measured.error, "kappa": _number(measured.kappa)}
    if chain.target_sign == 0:
        close = measured.loss - chain.bigram_loss <= TOLERANCE * chain.bigram_loss
        return {"stage": "global" if close else "on its way", "share": None, **numbers_found}
    share = (measured.loss - chain.bigram_loss) / (chain.unigram_loss - chain.bigram_loss)
    stage = "global" if share <= TOLERANCE else "plateau" if abs(share - 1.0) <= TOLERANCE else "on its way"
    return {"stage": stage, "share": share, **numbers_found}


def _forecast(chain: Chain, points: np.ndarray) -> list[dict]:
    """The exact limit of each point, of `canonical` or of `untied`."""
    from landscape.critical import classify

    rule, other = ("untied", "canonical") if points.shape[1] == 3 else ("canonical", "untied")
    return [
        {rule: each.label, other: None, "margin": each.margin, "distance": each.distance} for each in classify(chain, points, rule)
    ]


def _followed(chain: Chain, placed: Projection, weights: Weights) -> list[str]:
    """The limits of the projected points under the flow of `transverse`."""
    from landscape.architectures import architecture
    from landscape.flows import flow

    landscape = architecture("transverse").on(chain, {"c": 1.0 / weights.arrays["positions"].shape[1]})
    return [Label(int(code)).word for code in flow(landscape, placed.points("transverse")).labels]


def _rank(matrix: np.ndarray) -> int:
    values = np.linalg.svd(np.nan_to_num(matrix, posinf=0.0, neginf=0.0), compute_uv=False)
    return int((values > 0.1 * values[0]).sum())


def _strength(model: Model) -> float:
    if not model.attention:
        return 0.0
    product = model.attention["output"] @ model.attention["value"]
    return float(np.linalg.norm(product, 2)) if np.isfinite(product).all() else float("nan")


# --- in words ------------------------------------------------------------------------------------------------


def _notes(weights: Weights, logits, measured: Measured | None) -> tuple[str, ...]:
    found = []
    if weights.names.norms:
        found.append("layer norm is not in the theory: gap, labels and margin are those of the model without it")
    if weights.names.activation != "relu":
        found.append(f"{weights.names.activation} is not in the theory: labels and margin are those of ReLU")
    if weights.unnamed:
        found.append(f"{len(weights.unnamed)} weights have no role and are not looked at: {', '.join(weights.unnamed[:4])}" + (", ..." if len(weights.unnamed) > 4 else ""))
    if any(numbers(bias).any() for bias in weights.biases):
        found.append("biases within the layer are not zero, as they are in the theory")
    if measured is not None and not np.isfinite(measured.loss):
        found.append("no finite loss was measured: logits are not finite, or a symbol did not occur on the drawn sequences")
    if measured is None and logits is None:
        found.append("loss and gap need the model itself: diagnose(model, chain, logits=...) in Python")
    return tuple(found)


def _told(found: Diagnosis, chain: Chain) -> Diagnosis:
    """The same with its words."""
    if found.stage == "not finite":
        return replace(found, words=f"It is {STAGES[found.stage]}.")
    said = [f"It is {STAGES[found.stage]}" + (", still above the unigram loss." if (found.share or 0.0) > 1.0 + TOLERANCE else ".")]
    if found.loss is not None:
        exact = "exact" if found.loss_error == 0.0 else f"± {found.loss_error:.1g}"
        said.append(f"Loss {found.loss:.4f} nats ({exact}); bigram loss {found.bigram_loss:.4f}, unigram loss {found.unigram_loss:.4f}.")
    if found.kappa is not None:
        said.append(f"Its logit gap is {found.kappa:.4f}, the optimal one {found.kappa_star:.4f}.")
    rank = "one" if chain.states == 2 else str(chain.states - 1)
    little = ", and its point there says little" if found.residual > FAR else ""
    said.append(
        f"Its point on the manifold of rank {rank} is e = {found.e:.4g}, w = {found.w:.4g}; {found.residual:.1%} of the norm of its weights "
        f"is off that{little}. W_1 has rank {found.rank}" + (f", W_O W_V the norm {found.attention:.2g}." if found.attention else ".")
    )
    return replace(found, words=" ".join(said + ([] if found.stage == "global" else [_ahead(found)])))


def _ahead(found: Diagnosis) -> str:
    """Where flows go from the projected point."""
    margin = "" if found.margin is None else f" (margin {found.margin:.3g})"
    if found.untied is not None:
        return f"From that point the flow of `untied` goes to {_limit(found.untied)}{margin}."
    said = f"From that point canonical flow goes to {_limit(found.canonical)}{margin}"
    if found.transverse is None:
        return f"{said}."
    if found.transverse == found.canonical:
        return f"{said}, and so does the flow of `transverse`."
    return f"{said}, but the flow of `transverse` to {_limit(found.transverse)}."


def _limit(label: str) -> str:
    known = {"global": "a global minimum", "local": "a local minimum at the unigram loss", "saddle": "a saddle", "maximum": "a maximum"}
    return known.get(label, f"a limit that is {label}")
