"""Critical sets, and what is known of single starts."""

from __future__ import annotations

import math

import numpy as np

from landscape.architectures import Architecture, find
from landscape.chains import Chain
from landscape.outcomes import Classification, CriticalSet, Label


def critical_sets(chain: Chain, architecture: str | Architecture = "canonical") -> list[CriticalSet]:
    """The critical sets of the loss, the bias minimised out."""
    return find(architecture).critical_sets(chain)


def classify(chain: Chain, points, architecture: str | Architecture = "canonical") -> list[Classification]:
    """Label, gap, loss, invariants, margin and distance of every start.

    Parameters
    ----------
    chain : BinaryChain or SymmetricChain
    points : array_like of shape (n, 2) or (2,)

    Returns
    -------
    list of Classification
        What does not exist or is not finite at a start is None.
    """
    model = find(architecture)
    points = model.points("classify", points)
    labels = model.limit(chain, points)
    finite = np.isfinite(points).all(axis=1)
    safe = np.where(finite[:, None], points, 1.0)
    columns = {
        "kappa": model.kappa(chain, safe),
        "loss": model.loss(chain, safe),
        "margin": model.margin(chain, safe),
        "distance": model.distance(chain, safe),
    }
    invariants = model.invariant_values(chain, safe)

    def number(values, i):
        return float(values[i]) if finite[i] and math.isfinite(values[i]) else None

    return [
        Classification(
            at=tuple(points[i].tolist()),
            label=Label(int(labels[i])).word,
            invariants={name: number(values, i) for name, values in invariants.items()},
            **{name: number(values, i) for name, values in columns.items()},
        )
        for i in range(len(points))
    ]
