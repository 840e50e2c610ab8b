"""What the weights of a transformer are called and how they lie: of the suite's, of GPT-2, from a file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields

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
    scores : {"softmax", "linear"}
        What becomes of the scores: their softmax, or the scores over the number of positions attended to.
    scale : float, optional
        Factor of the scores in place of 1 / sqrt(d / heads).
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
    scores: str = "softmax"
    scale: float | None = None
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
        if self.scores not in ("softmax", "linear"):
            raise ParameterError("scores", "WeightNames", "'softmax' or 'linear'", self.scores)
        if self.scale is not None:
            parameters.real("WeightNames", "scale", self.scale)
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
