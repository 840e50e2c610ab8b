"""Where a model is with respect to the manifold of rank one, and to the canonical slice.

With a sign vector alpha, a model is on the manifold if its embedding and every position are multiples of alpha, W_1 one of
1 alpha^T, W_2 one of alpha 1^T, and the attention matrices ones of alpha alpha^T. Gradient descent does not leave it, and is
there the training of a transformer with d = r = 1 (derivations/exact-reduction.md). With S >= 3 symbols its part is played by
the slice of rank S - 1: embedding and hidden units along the corners of a simplex (derivations/canonical-gap.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from landscape.parameters import ParameterError
from landscape.weight_names import ATTENTION, WeightNames
from landscape.weights import Weights, weights_of


@dataclass(frozen=True)
class Projection:
    """Where models are, in orthonormal coordinates of the manifold.

    Attributes
    ----------
    alpha : ndarray of +1 and -1, shape (M, d)
    e, c, w1, w2, b : ndarray of float64, shape (M,)
        Coordinates as in `landscape.architecture("reduced")`; c is the mean over positions.
    a : ndarray of float64, shape (M,)
        What attention does if it is linear, as in `landscape.architecture("attention")`; 0 without it (derivations/attention-gap.md).
    head : ndarray of float64, shape (M,)
        The coordinate of the vector that reads the logit: e if tied.
    across : ndarray of float64, shape (M, d)
        The part of the embedding orthogonal to alpha.
    residual : ndarray of float64, shape (M,)
        Norm of what is off the manifold in all weights, relative to the norm of all weights.
    """

    alpha: np.ndarray
    e: np.ndarray
    c: np.ndarray
    w1: np.ndarray
    w2: np.ndarray
    a: np.ndarray
    b: np.ndarray
    head: np.ndarray
    across: np.ndarray
    residual: np.ndarray

    @property
    def u(self) -> np.ndarray:
        """Length of the part of the embedding orthogonal to alpha, shape (M,)."""
        return np.linalg.norm(self.across, axis=1)

    def points(self, architecture: str = "transverse") -> np.ndarray:
        """As points of `reduced`, shape (M, 5), or `transverse`, shape (M, 6)."""
        names = ("e", "c", "w1", "w2", "b", "u")[: 5 if architecture == "reduced" else 6]
        return np.stack([getattr(self, name) for name in names], axis=1)

    @property
    def canonical(self) -> np.ndarray:
        """As points (e, w) of the canonical slice, shape (M, 2): those with the same e and the same product w1 w2 = 4 w |w|.

        w is sign(w2) sqrt(|w1 w2|) / 2, and e and w2 are taken with the sign of alpha for which w1 is not negative. The
        slice has c = -e/2 and w1 = |w2| besides; what a model has of its own there is left out.
        """
        side = np.where(self.w1 < 0.0, -1.0, 1.0)
        return np.stack([side * self.e, side * np.sign(self.w2) * np.sqrt(np.abs(self.w1 * self.w2)) / 2], axis=1)


@dataclass(frozen=True)
class SimplexProjection:
    """Where models of S symbols are with respect to the canonical slice of rank S - 1.

    Attributes
    ----------
    corners : ndarray, shape (M, S, d)
        The regular simplex of unit vectors that is nearest to the directions of the embedding.
    e, w1, w2 : ndarray of float64, shape (M,)
        Embedding e times the corners; W_1 and W_2 of the norms w1 >= 0 and |w2| in the direction of their hidden units' corners.
    head : ndarray of float64, shape (M,)
        What reads the logits, in multiples of the corners: e if tied.
    residual : ndarray of float64, shape (M,)
        Norm of what is off the slice in all weights, relative to the norm of all weights.
    """

    corners: np.ndarray
    e: np.ndarray
    w1: np.ndarray
    w2: np.ndarray
    head: np.ndarray
    residual: np.ndarray

    @property
    def canonical(self) -> np.ndarray:
        """As points (e, w) of the canonical slice, shape (M, 2): w is sign(w2) sqrt(w1 |w2|) / 2."""
        return np.stack([self.e, np.sign(self.w2) * np.sqrt(self.w1 * np.abs(self.w2)) / 2], axis=1)


def project(model, names: WeightNames | None = None, *, alpha=None) -> Projection | SimplexProjection:
    """Split every model of an ensemble into its part on the manifold and the rest.

    Two rows of an embedding stand for the vector between them; what is half-way belongs to the positions. Two rows of a head do too.

    Parameters
    ----------
    model : torch.nn.Module or mapping of str to array
        A mapping is taken for a state dict.
    names : WeightNames, optional
        By default those of the transformer in `validation.transformer`.
    alpha : array of +1 and -1, shape (M, d) or (d,), optional
        By default found from W_1, which decides for w1 >= 0: the other sign turns e, c, w1 and w2 round, and means the same.

    Returns
    -------
    Projection, or SimplexProjection for an embedding of three or more rows
        Arrays of their own: further training does not change them.
    """
    weights = weights_of("project", model, names)
    if weights.symbols is not None and weights.symbols > 2:
        if alpha is not None:
            raise ParameterError("alpha", "project", "left out, as more than two symbols have no one direction", alpha)
        return _on_simplex(weights)
    arrays = binary_arrays(weights)
    alpha = _directions(arrays) if alpha is None else signs("project", alpha, arrays["embedding"].shape)
    found = coordinates(arrays, alpha)
    on = lift(found, alpha, weights.hidden)
    names, heads = weights.names, weights.names.heads
    scale = math.sqrt(heads / weights.width) if names.scale is None else names.scale
    with np.errstate(invalid="ignore", over="ignore"):
        off = [arrays[name] - on[name] for name in on] + [numbers(each, weights) for each in weights.biases]
        whole = [arrays[name] for name in on] + off[len(on) :]
        product = np.prod([found[name] for name in ATTENTION], axis=0) if set(ATTENTION) <= found.keys() else 0.0 * found["embedding"]
        return Projection(
            alpha=alpha, e=found["embedding"], c=found["positions"].mean(1), w1=found["inner"], w2=found["outer"],
            a=scale * product / (4.0 * heads), b=found["bias"], head=found.get("head", found["embedding"]).copy(),
            across=arrays["embedding"] - on["embedding"], residual=_share(off, whole),
        )


def signs(owner: str, value, shape: tuple[int, int]) -> np.ndarray:
    """A direction of +1 and -1 for each model, shape (M, d), or raise `ParameterError`."""
    try:
        found = np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
    except (TypeError, ValueError):
        found = None
    if found is None or not (np.abs(found) == 1.0).all():
        raise ParameterError("alpha", owner, f"an array of +1 and -1 of shape {shape}", value)
    return found


def directions(model, names: WeightNames | None = None) -> np.ndarray:
    """The sign vector of each model of two symbols: the signs of the leading right singular vector of W_1, so that w1 > 0.

    Where W_1 is zero, those of the embedding, so that e >= 0.

    Returns
    -------
    ndarray of +1 and -1, shape (M, d)
    """
    return _directions(binary_arrays(weights_of("directions", model, names)))


def _directions(arrays: dict[str, np.ndarray]) -> np.ndarray:
    inner, embedding = (  # a training that ran away has no direction
        np.nan_to_num(arrays[name], nan=0.0, posinf=0.0, neginf=0.0) for name in ("inner", "embedding")
    )
    inner = np.where((inner == 0.0).all(axis=(1, 2), keepdims=True), embedding[:, None, :], inner)
    leading = np.linalg.svd(inner)[2][:, 0, :]
    found = np.where(leading < 0.0, -1.0, 1.0)
    return np.where(np.einsum("mrd,md->m", inner, found) < 0.0, -1.0, 1.0)[:, None] * found


def numbers(array, weights: Weights | None = None) -> np.ndarray:
    """The values now: a copy, in double precision too, that further training does not change.

    With `weights`, an array of its model, as it is stored: it gets an axis of models if it has none.
    """
    if hasattr(array, "detach"):
        array = array.detach().double().cpu().numpy()
    found = np.array(array, dtype=np.float64)
    return found if weights is None or weights.names.members else found[None]


def binary_arrays(weights: Weights) -> dict[str, np.ndarray]:
    """The arrays of models of two symbols as if one vector embedded them and one read them; float64, by role.

    Rows E_0 and E_1 of an embedding are the vector E_1 - E_0 and add E_0 to every position: the streams are the same. Rows of a
    head and a bias of two numbers are their difference: the logit of 1 against 0. There is always a bias, and one position.
    """
    found = {role: numbers(array) for role, array in weights.arrays.items()}
    embedding = found["embedding"]
    if embedding.ndim == 3:
        places = found.get("positions", np.zeros((len(embedding), 1, weights.width)))
        found |= {"embedding": embedding[:, 1] - embedding[:, 0], "positions": places + embedding[:, :1]}
    if "head" in found and found["head"].ndim == 3:
        found["head"] = found["head"][:, 1] - found["head"][:, 0]
    bias = found.get("bias", np.zeros(len(embedding)))
    return found | {"bias": bias if bias.ndim == 1 else bias[:, 1] - bias[:, 0]}


def coordinates(arrays: dict[str, np.ndarray], alpha: np.ndarray) -> dict[str, np.ndarray]:
    """Orthonormal coordinates of each array of `binary_arrays`, by role; one for each position."""
    along = alpha / math.sqrt(alpha.shape[1])
    forms = {"embedding": "md,md->m", "head": "md,md->m", "positions": "mnd,md->mn", "inner": "mrd,md->m", "outer": "mdr,md->m"}
    found = {}
    for role, value in arrays.items():
        if role == "bias":
            found[role] = value
        elif role in ATTENTION:
            found[role] = np.einsum("md,mdk,mk->m", along, value, along)
        else:
            found[role] = np.einsum(forms[role], value, along) / (math.sqrt(arrays["inner"].shape[1]) if role in ("inner", "outer") else 1.0)
    return found


def lift(found: dict[str, np.ndarray], alpha: np.ndarray, hidden: int) -> dict[str, np.ndarray]:
    """Weights on the manifold with given coordinates; not the bias, which has nothing off it."""
    along = alpha / math.sqrt(alpha.shape[1])
    ones = np.ones(hidden) / math.sqrt(hidden)
    forms = {"embedding": "m,md->md", "head": "m,md->md", "positions": "mn,md->mnd"}
    lifted = {}
    for role, value in found.items():
        if role == "inner":
            lifted[role] = np.einsum("m,r,md->mrd", value, ones, along)
        elif role == "outer":
            lifted[role] = np.einsum("m,md,r->mdr", value, along, ones)
        elif role in ATTENTION:
            lifted[role] = np.einsum("m,md,mk->mdk", value, along, along)
        elif role != "bias":
            lifted[role] = np.einsum(forms[role], value, along)
    return lifted


def _share(off: list[np.ndarray], whole: list[np.ndarray]) -> np.ndarray:
    """Norm of the first arrays over that of the second, shape (M,); of a model that is not finite NaN, not "on the manifold"."""
    with np.errstate(invalid="ignore", over="ignore"):
        part, size = (sum((array**2).reshape(len(array), -1).sum(1) for array in arrays) for arrays in (off, whole))
        return np.where(size == 0.0, 0.0, np.sqrt(part / np.where(size == 0.0, 1.0, size)))


# --- many symbols --------------------------------------------------------------------------------------------


def _on_simplex(weights: Weights) -> SimplexProjection:
    """The nearest simplex by the singular value decomposition of the centred embedding; the sign of e is that which W_1 prefers."""
    arrays = {role: numbers(array) for role, array in weights.arrays.items() if role != "bias"}
    embedding, inner, outer = (np.nan_to_num(arrays[role], nan=0.0, posinf=0.0, neginf=0.0) for role in ("embedding", "inner", "outer"))
    count = embedding.shape[1]
    left, values, right = np.linalg.svd(embedding - embedding.mean(axis=1, keepdims=True), full_matrices=False)
    rank = min(count - 1, weights.width)
    corners = math.sqrt(count / (count - 1)) * left[..., :rank] @ right[:, :rank]
    size = values[:, :rank].sum(axis=1) * math.sqrt(count / (count - 1)) / count
    plus, minus = (_units(inner, side * corners) for side in (1.0, -1.0))
    turned = np.einsum("mrd,mrd->m", inner, minus) > np.einsum("mrd,mrd->m", inner, plus) * (1 + 1e-12)
    side = np.where(turned, -1.0, 1.0)
    units = np.where(turned[:, None, None], minus, plus)
    e, corners = side * size, side[:, None, None] * corners
    w1, w2 = np.einsum("mrd,mrd->m", inner, units), np.einsum("mdr,mrd->m", outer, units)
    on = {"embedding": e[:, None, None] * corners, "inner": w1[:, None, None] * units, "outer": w2[:, None, None] * units.mT}
    head = e.copy()
    if "head" in arrays:
        head = np.einsum("msd,msd->m", np.nan_to_num(arrays["head"], posinf=0.0, neginf=0.0), corners) / count
        on["head"] = head[:, None, None] * corners
    with np.errstate(invalid="ignore"):
        off = [arrays[role] - on.get(role, 0.0) for role in arrays] + [numbers(each, weights) for each in weights.biases]
    return SimplexProjection(corners, e, w1, w2, head, _share(off, [*arrays.values(), *off[len(arrays) :]]))


def _units(inner: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """For each hidden unit whose row of W_1 is above a tenth of the longest the corner nearest to it, all together of norm 1; shape (M, r, d)."""
    lengths = np.linalg.norm(inner, axis=2, keepdims=True)
    nearest = np.einsum("mrd,msd->mrs", inner, corners).argmax(axis=2)
    units = np.take_along_axis(corners, nearest[:, :, None], axis=1) * (lengths > 0.1 * lengths.max(axis=1, keepdims=True))
    size = np.linalg.norm(units, axis=(1, 2), keepdims=True)
    return units / np.where(size > 0.0, size, 1.0)
