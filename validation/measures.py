"""What is measured of models besides their losses: energy in few singular directions, alignment, and what attention adds.

Each takes the models and their held-out sequences and gives arrays with a row for each model.
"""

from __future__ import annotations

import numpy as np
import torch

from validation.transformer import Transformer

SEQUENCES = 64  # of the held-out set, for what depends on data


def energies(matrices: np.ndarray) -> np.ndarray:
    """Share of the squared singular values in the largest one, two, ..., shape (M, k); 1 for a matrix of zeros."""
    squares = np.linalg.svd(np.nan_to_num(matrices), compute_uv=False) ** 2
    total = squares.sum(axis=-1, keepdims=True)
    return np.where(total > 0.0, np.cumsum(squares, axis=-1) / np.where(total > 0.0, total, 1.0), 1.0)


def _matrices(model: Transformer) -> dict[str, np.ndarray]:
    """The matrices whose rank is asked for, shape (M, rows, columns); the embedding with the positions where it is one vector."""
    found = {name: tensor.detach().double().cpu().numpy() for name, tensor in model.named_parameters()}
    matrices = {"W1": found["inner"], "W2": found["outer"]}
    if "value" in found:
        matrices |= {"W_V": found["value"], "W_QK": np.einsum("mki,mkj->mij", found["query"], found["key"])}
    embedding = found["embedding"]
    if embedding.ndim == 2:  # the states' vectors: positions, and positions plus the embedding
        matrices["embeddings"] = np.concatenate([embedding[:, None, :], found["positions"]], axis=1)
    else:
        matrices["embeddings"] = embedding - embedding.mean(axis=1, keepdims=True)
    return matrices


def low_rank(model: Transformer, symbols: torch.Tensor) -> dict[str, np.ndarray]:
    """Energy in the top singular directions of each matrix, and how far the arrays share one direction of signs.

    Returns
    -------
    dict
        ``energy NAME``, shape (M, 4): shares in the top 1, ..., 4. ``cosines``, shape (M, 10): absolute cosines between each
        two of the leading directions of embedding, W_1, W_Q, W_K, W_V on the side of the stream. ``spread``, shape (M, 5):
        standard deviation of the entries' absolute values over their mean, 0 for a vector of signs; for the same five.
    """
    found = {f"energy {name}": _padded(energies(matrix)) for name, matrix in _matrices(model).items()}
    return found | alignment(model)


def _padded(shares: np.ndarray, count: int = 4) -> np.ndarray:
    missing = max(0, count - shares.shape[-1])
    return np.pad(shares, ((0, 0), (0, missing)), constant_values=1.0)[:, :count]


def alignment(model: Transformer) -> dict[str, np.ndarray]:
    """`cosines` and `spread` of `low_rank`."""
    directions = []
    for name in ("embedding", "inner", "query", "key", "value"):
        array = np.nan_to_num(getattr(model, name).detach().double().cpu().numpy())
        if name == "embedding" and array.ndim == 2:
            array = array[:, None, :]
        elif name == "embedding":
            array = array - array.mean(axis=1, keepdims=True)
        directions.append(np.linalg.svd(array)[2][:, 0, :])
    vectors = np.stack(directions, axis=1)
    products = np.abs(np.einsum("mid,mjd->mij", vectors, vectors))
    first, second = np.triu_indices(len(directions), 1)
    sizes = np.abs(vectors)
    return {"cosines": products[:, first, second], "spread": sizes.std(axis=2) / sizes.mean(axis=2)}


@torch.no_grad()
def attention_share(model: Transformer, symbols: torch.Tensor) -> dict[str, np.ndarray]:
    """``share``: length of what attention adds over that of the residual stream it is added to, root mean square, shape (M,)."""
    inputs = symbols[:, :SEQUENCES, :-1].to(model.bias.device)
    stream = model.embed(inputs)
    added = model.attend(model.normed(stream, "attention_*"))
    ratio = (added.square().sum((1, 2, 3)) / stream.square().sum((1, 2, 3))).sqrt()
    return {"share": ratio.double().cpu().numpy()}


def alpha(model, symbols: torch.Tensor) -> dict[str, np.ndarray]:
    """``alpha``: the trainable direction of `validation.alpha`, shape (M, d)."""
    return {"alpha": model.alpha.detach().double().cpu().numpy().copy()}
