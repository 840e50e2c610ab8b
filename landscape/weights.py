"""What the weights of a transformer are called and how they lie, and its arrays in the orientation of the theory.

Works on the arrays of any library: it only takes views. Nothing here imports torch.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from landscape import parameters
from landscape.parameters import ParameterError

ATTENTION = ("query", "key", "value", "output")
ROLES = ("embedding", "positions", *ATTENTION, "inner", "outer", "head", "bias")
MATRICES = ("fused", *ATTENTION, "inner", "outer")


@dataclass(frozen=True)
class WeightNames:
    """Names of the weights of one layer in a module or a state dict. A matrix W acts as W y, of shape (out, in), unless `transposed`.

    Parameters
    ----------
    embedding : str
        One vector that the symbols 0 and 1 scale, shape (d,), or a row for each of S >= 2 symbols, shape (S, d).
    inner, outer : str
        W_1 and W_2 of the MLP, shapes (r, d) and (d, r).
    positions : str, optional
        A row for each position, shape (N, d). A model with rows for its symbols may do without.
    query, key, value, output : str, optional
        Attention matrices, shape (d, d); all heads together.
    fused : str, optional
        Query, key and value one below the other, shape (3 d, d), in place of three names.
    head : str, optional
        What reads the logits: a vector for one logit, shape (d,) or (1, d), or S rows. Without it the embedding does ("tied").
    bias : str, optional
        Of the logits: one number, or S.
    biases : tuple of str
        Other biases, which are 0 in the theory; initialisation zeroes them.
    norms : tuple of str
        Gains and shifts of layer norms, which the theory does not have; initialisation leaves them.
    transposed : tuple of str
        Which of the matrices ("fused", "query", ..., "inner", "outer") are stored as (in, out), like those of a `Conv1D`.
    heads : int
        Heads of the attention.
    activation : str
        Of the MLP; the theory has "relu".
    members : bool
        Whether every array has a leading axis of independent models.

    Raises
    ------
    ParameterError
        If a value is not of its kind.
    """

    embedding: str
    inner: str
    outer: str
    positions: str | None = None
    query: str | None = None
    key: str | None = None
    value: str | None = None
    output: str | None = None
    fused: str | None = None
    head: str | None = None
    bias: str | None = None
    biases: tuple[str, ...] = ()
    norms: tuple[str, ...] = ()
    transposed: tuple[str, ...] = ()
    heads: int = 1
    activation: str = "relu"
    members: bool = False

    def __post_init__(self):
        for name in ("biases", "norms", "transposed"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(each, str) for each in value):
                raise ParameterError(name, "WeightNames", "a sequence of names", value)
            object.__setattr__(self, name, tuple(value))
        for name in (*ROLES, "fused", "activation"):
            value = getattr(self, name)
            if not isinstance(value, str) and (value is not None or name in ("embedding", "inner", "outer", "activation")):
                raise ParameterError(name, "WeightNames", "the name of a weight", value)
        for name in self.transposed:
            if name not in MATRICES:
                raise ParameterError("transposed", "WeightNames", f"some of {', '.join(MATRICES)}", name)
        if self.fused is not None and (self.query or self.key or self.value):
            raise ParameterError("fused", "WeightNames", "given in place of 'query', 'key' and 'value', not beside them", self.fused)
        if not isinstance(self.members, bool):
            raise ParameterError("members", "WeightNames", "True or False", self.members)
        parameters.count("WeightNames", "heads", self.heads, 1)

    def named(self) -> dict[str, str]:
        """The weights that have a role, by role; those of `biases` and `norms` by their own names."""
        found = {role: getattr(self, role) for role in (*ROLES, "fused")}
        return {role: name for role, name in found.items() if name is not None} | {name: name for name in (*self.biases, *self.norms)}


SUITE = WeightNames(**{role: role for role in ROLES}, members=True)


def gpt2_names(layer: int = 0, *, heads: int = 1, tied: bool = True, prefix: str = "transformer.") -> WeightNames:
    """The names in `GPT2LMHeadModel` of the transformers library, of one of its layers.

    Parameters
    ----------
    tied : bool
        Whether the embedding reads the logits, as by default; else `lm_head` does.
    prefix : str
        What stands before the names: "" for the state of a `GPT2Model`.

    Examples
    --------
    >>> gpt2_names(layer=2).inner
    'transformer.h.2.mlp.c_fc.weight'
    """
    at = f"{prefix}h.{parameters.count('gpt2_names', 'layer', layer, 0)}."
    normed = (f"{at}ln_1", f"{at}ln_2", f"{prefix}ln_f")
    return WeightNames(
        embedding=f"{prefix}wte.weight", positions=f"{prefix}wpe.weight", inner=f"{at}mlp.c_fc.weight", outer=f"{at}mlp.c_proj.weight",
        fused=f"{at}attn.c_attn.weight", output=f"{at}attn.c_proj.weight", head=None if tied else "lm_head.weight",
        biases=tuple(f"{at}{part}.bias" for part in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")),
        norms=tuple(f"{norm}.{kind}" for norm in normed for kind in ("weight", "bias")),
        transposed=("fused", "output", "inner", "outer"), heads=heads, activation="gelu",
    )


def read_names(path: str) -> WeightNames:
    """Names from a TOML file whose keys are those of `WeightNames`.

    Raises
    ------
    ParameterError
        Naming what in the file cannot be used.
    OSError
        If it cannot be read.
    """
    known = [field.name for field in fields(WeightNames)]
    with open(path, "rb") as file:
        try:
            data = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ParameterError("names", path, f"a TOML file ({error})", path) from None
    for key in data:
        if key not in known:
            raise ParameterError("names", path, f"a file with some of the keys {', '.join(known)}", key)
    for key in ("embedding", "inner", "outer"):
        if key not in data:
            raise ParameterError("names", path, f"a file that names {key!r}", sorted(data))
    try:
        return WeightNames(**data)
    except (ParameterError, TypeError) as error:
        wanted = f"a file that can be used; {error.parameter!r} has to be {error.requirement}" if isinstance(error, ParameterError) else "a file that can be used"
        raise ParameterError("names", path, wanted, getattr(error, "value", str(error))) from None


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
        By default those of the transformer in `validation.transformer`.

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
            raise ParameterError("names", owner, "given for a model that is not the suite's Transformer, as WeightNames(...)", names)
        names = replace(SUITE, **{role: None for role in ROLES if role not in tensors})
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
