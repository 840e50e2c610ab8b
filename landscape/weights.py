"""The arrays of a transformer in the orientation of the theory, by their names.

Works on the arrays of any library: it only takes views. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from landscape.parameters import ParameterError
from landscape.weight_names import ATTENTION, ROLES, SUITE, WeightNames


@dataclass(frozen=True)
class Weights:
    """The arrays of M models, as views: writing into them writes into the model.

    Attributes
    ----------
    arrays : dict of str to array
        By role: embedding (M, d) or (M, S, d), positions (M, N, d), query, key, value, output (M, d, d), inner (M, r, d), outer
        (M, d, r), head like the embedding, bias (M,) or (M, S). A role that the model does not have is absent; so is `head` if tied.
    biases : list of array
        What else is added in the layer.
    names : WeightNames
    unnamed : tuple of str
        Names of the model's weights that have no role.
    """

    arrays: dict
    biases: list
    names: WeightNames
    unnamed: tuple[str, ...]

    @property
    def members(self) -> int:
        """Number M of models."""
        return self.arrays["embedding"].shape[0]

    @property
    def width(self) -> int:
        """Width d of the residual stream."""
        return self.arrays["embedding"].shape[-1]

    @property
    def hidden(self) -> int:
        """Hidden units r."""
        return self.arrays["inner"].shape[-2]

    @property
    def symbols(self) -> int | None:
        """Symbols S with a row each in the embedding; None where one vector is scaled by 0 and 1."""
        return self.arrays["embedding"].shape[1] if len(self.arrays["embedding"].shape) == 3 else None

    @property
    def attention(self) -> tuple[str, ...]:
        """Which attention matrices there are."""
        return tuple(role for role in ATTENTION if role in self.arrays)

    @property
    def plain(self) -> bool:
        """Whether the named weights are a whole model of the theory: one ReLU layer, no layer norm, nothing else."""
        return not self.unnamed and not self.names.norms and self.names.activation == "relu"


def weights_of(owner: str, model, names: WeightNames | None = None) -> Weights:
    """The arrays of a model by role.

    Parameters
    ----------
    owner : str
        What errors name.
    model : torch.nn.Module or mapping of str to array
        A mapping is taken for a state dict.
    names : WeightNames, optional
        By default those of the transformer in `validation.transformer`; of a module its configuration says the heads, how it
        attends and its activation, a state dict is taken for one of the default configuration.

    Raises
    ------
    ParameterError
        If a name is not a weight of the model, or arrays do not fit together.
    """
    if isinstance(model, Mapping):
        tensors = {name: value for name, value in model.items() if hasattr(value, "shape")}
    elif hasattr(model, "named_parameters"):
        tensors = dict(model.named_parameters(remove_duplicate=False))
    else:
        raise ParameterError("model", owner, "a torch.nn.Module or a state dict", type(model).__name__)
    if names is None:
        if not {"embedding", "inner", "outer"} <= tensors.keys():
            raise ParameterError("names", owner, "given, as the weights are not called as in validation.transformer", names)
        names = replace(SUITE, **{role: None for role in ROLES if role not in tensors}, **_configured(model))
    elif not isinstance(names, WeightNames):
        raise ParameterError("names", owner, "WeightNames(...)", names)
    for role, name in names.named().items():
        if name not in tensors:
            said = f"{role!r} of it" if role != name else "each of its biases and norms"
            raise ParameterError("names", owner, f"a mapping to weights of the model; {said} is not one", name)
        if "float" not in str(tensors[name].dtype):
            raise ParameterError("names", owner, f"a mapping to floating-point weights; {name!r} is of {tensors[name].dtype}", name)
    found = Weights(_oriented(owner, tensors, names), [tensors[name] for name in names.biases], names, _unnamed(tensors, names))
    _check(owner, found)
    return found


def _configured(model) -> dict:
    """What the configuration of the suite's transformer says besides the shapes."""
    config = getattr(model, "config", None)
    known = {"heads": "heads", "scale": "score_scale", "activation": "activation"}
    found = {name: getattr(config, theirs) for name, theirs in known.items() if hasattr(config, theirs)}
    return found | ({"scores": "linear"} if getattr(config, "attention", None) == "linear" else {})


def _oriented(owner: str, tensors: Mapping, names: WeightNames) -> dict:
    """Views by role, with an axis of models, matrices as (out, in)."""
    found = {}
    for role, name in names.named().items():
        if role not in (*ROLES, "fused"):
            continue
        array = tensors[name] if names.members else tensors[name][None]
        array = array.mT if role in names.transposed and len(array.shape) == 3 else array
        if role == "fused":
            if len(array.shape) != 3 or array.shape[-2] != 3 * array.shape[-1]:
                raise ParameterError("names", owner, "a mapping whose 'fused' has the shape (3 d, d)", f"{name} of shape {tuple(tensors[name].shape)}")
            width = array.shape[-1]
            found |= {part: array[:, k * width : (k + 1) * width] for k, part in enumerate(ATTENTION[:3])}
        else:
            found[role] = array
    if "head" in found and len(found["head"].shape) == 3 and found["head"].shape[1] == 1:
        found["head"] = found["head"][:, 0]
    if "head" in found and _same(found["head"], found["embedding"]):
        del found["head"]  # tied in the model itself
    scalar = len(found.get("head", found["embedding"]).shape) == 2
    if "bias" in found and scalar and len(found["bias"].shape) == 2 and found["bias"].shape[1] == 1:
        found["bias"] = found["bias"][:, 0]
    return found


def _same(first, second) -> bool:
    """Whether two arrays are the same memory seen in the same way."""
    if not hasattr(first, "data_ptr"):
        return first is second or (first.shape == second.shape and first.__array_interface__["data"] == second.__array_interface__["data"])
    return (first.data_ptr(), first.shape, first.stride()) == (second.data_ptr(), second.shape, second.stride())


def _unnamed(tensors: Mapping, names: WeightNames) -> tuple[str, ...]:
    """Weights without a role that are not another name of one that has."""
    named = {*names.named().values()}
    return tuple(name for name in tensors if name not in named and not any(_same(tensors[name], tensors[other]) for other in named))


def _check(owner: str, weights: Weights) -> None:
    """Refuse arrays that do not fit together, naming the first."""
    arrays, names = weights.arrays, weights.names
    def refuse(role, wanted):
        name = getattr(names, role) or names.fused
        shape = tuple(arrays[role].shape[0 if names.members else 1 :])
        raise ParameterError("names", owner, f"a mapping whose {role!r} has the shape {wanted}", f"{name} of shape {shape}")

    lead = "M, " if names.members else ""
    if len(arrays["embedding"].shape) not in (2, 3) or weights.symbols == 1:
        refuse("embedding", f"({lead}d) or ({lead}S, d) with at least 2 symbols")
    if len(arrays["inner"].shape) != 3:
        refuse("inner", f"({lead}r, d)")
    m, d, r, s = weights.members, weights.width, weights.hidden, weights.symbols
    scalar = len(arrays.get("head", arrays["embedding"]).shape) == 2
    expected = {"inner": (m, r, d), "outer": (m, d, r), **dict.fromkeys(ATTENTION, (m, d, d)), "bias": (m,) if scalar else (m, s or 2)}
    for role, shape in expected.items():
        if role in arrays and tuple(arrays[role].shape) != shape:
            refuse(role, f"({lead}r, {d})" if role == "inner" else shape if names.members else shape[1:])
    if "positions" in arrays and (len(arrays["positions"].shape) != 3 or (arrays["positions"].shape[0], arrays["positions"].shape[-1]) != (m, d)):
        refuse("positions", f"({lead}N, {d})")
    if s is None and "positions" not in arrays:
        raise ParameterError("names", owner, "a mapping with 'positions', as one vector embeds the symbols", names.embedding)
    if "head" in arrays and tuple(arrays["head"].shape) not in ({(m, d), (m, 2, d)} if s in (None, 2) else {(m, s, d)}):
        refuse("head", f"({lead}{d}) for one logit, or ({lead}{s or 2}, {d})" if s in (None, 2) else f"({lead}{s}, {d})")
    if weights.attention not in ((), ATTENTION):
        missing = next(role for role in ATTENTION if role not in arrays)
        raise ParameterError("names", owner, "a mapping with all four attention matrices or none", f"none for {missing!r}")
    if d % names.heads:
        raise ParameterError("names", owner, f"a mapping whose 'heads' divide the width {d}", names.heads)
