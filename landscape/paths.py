"""The path of a training run: where it is on the basin map as it goes.

The weights are projected (`landscape.projection`), so that a point of the map is known at every record: e is that of the embedding, and
w = sign(w2) sqrt(|w1 w2|) / 2 has the same product of the two MLP weights, w1 w2 = 4 w |w|, as the model. On the canonical
slice these are its e and w; off it the model has more coordinates than the map, and they are recorded too.
"""

from __future__ import annotations

import os

import numpy as np

from landscape import parameters
from landscape.chains import BinaryChain
from landscape.files import replacing
from landscape.parameters import ParameterError
from landscape.projection import Projection, numbers, project
from landscape.weight_names import WeightNames
from landscape.weights import weights_of

UNITS = {"loss": "nats"}
MEANINGS = {
    "loss": "loss as it was passed", "e": "embedding along alpha", "w": "MLP weight of the canonical slice with the same product w1 w2 = 4 w |w|",
    "c": "position along alpha, mean over positions", "w1": "W_1 along the manifold", "w2": "W_2 along the manifold",
    "a": "strength of attention, were it linear", "b": "bias of the logit of 1 against 0", "u": "length of the embedding across alpha",
    "head": "what reads the logit, along alpha", "residual": "share of the norm of all weights that is off the manifold", "alpha": "signs of the direction",
}


def predicted_way(chain: BinaryChain, record, member: int = 0) -> np.ndarray:
    """Where gradient flow goes from the first record of a path: the flow of `transverse`, in which a position moves 1/N as fast.

    Parameters
    ----------
    chain : BinaryChain
    record : xarray.Dataset
        Of a model in which one vector embeds the symbols.
    member : int

    Returns
    -------
    ndarray, shape (k, 2)
        (e, w) along the way, from the start to the limit, with w as recorded.

    Raises
    ------
    ParameterError
        If the record lacks coordinates of `transverse`, or has an embedding of rows, which move in another metric.
    """
    from landscape.architectures import architecture
    from landscape.flows import trajectory

    model = architecture("transverse")
    if record.attrs.get("rows") != 1 or any(name not in record for name in model.parameters):
        raise ParameterError("record", "predicted_way", "of a model in which one vector embeds the symbols", sorted(map(str, record.variables)))
    start = [float(record[name].values[0, member]) for name in model.parameters]
    along = trajectory(model.on(chain, {"c": 1.0 / record.attrs["positions"]}), start).sample()[1]
    first, second = (along[:, model.parameters.index(name)] for name in ("w1", "w2"))
    return np.stack([along[:, 0], np.sign(second) * np.sqrt(np.abs(first * second)) / 2.0], axis=1)


class PathRecorder:
    """Records the coordinates of a model along its training.

    Call it once for each step, after the loss is known and before the weights move:

        watch = PathRecorder(model, every=10)
        for batch in batches:
            loss = ...
            watch(loss)
            loss.backward()
            ...
        watch.write("path.nc")

    Parameters
    ----------
    model : torch.nn.Module
    every : int
        Records the first call and each `every`-th after it.
    names : WeightNames, optional
        By default those of the transformer in `validation.transformer`, whose M models are recorded side by side.
    alpha : array of +1 and -1, shape (M, d) or (d,), optional
        Without it each record finds its own, so that coordinates jump where a training turns to another direction.

    Raises
    ------
    ParameterError
        If names and weights do not fit.
    """

    def __init__(self, model, every: int = 10, names: WeightNames | None = None, *, alpha=None):
        self._model, self._names, self._alpha = model, names, alpha
        self._every = parameters.count("PathRecorder", "every", every, 1)
        self._calls = 0
        self._rows: list[dict[str, np.ndarray]] = []
        weights = weights_of("PathRecorder", model, names)
        self._members = weights.members
        self._sizes = {
            "width": weights.width, "hidden": weights.hidden, "positions": weights.arrays["positions"].shape[1] if "positions" in weights.arrays else 0,
            "rows": weights.symbols or 1,
        }
        project(model, names, alpha=alpha)

    def __call__(self, loss=None, step: int | None = None) -> bool:
        """Record, if it is time to.

        Parameters
        ----------
        loss : number or tensor, of shape () or (M,), optional
            In nats per symbol.
        step : int, optional
            Steps done so far; by default the number of earlier calls.

        Returns
        -------
        bool
            Whether it was recorded.
        """
        step = self._calls if step is None else parameters.count("PathRecorder", "step", step, 0)
        self._calls += 1
        if step % self._every:
            return False
        values = np.full(self._members, np.nan) if loss is None else numbers(loss)
        if values.shape not in ((), (self._members,)):
            raise ParameterError("loss", "PathRecorder", f"one number, or one for each of {self._members} models", f"an array of shape {values.shape}")
        found = project(self._model, self._names, alpha=self._alpha)
        row = {"step": np.int64(step), "loss": np.broadcast_to(values, self._members), "e": found.canonical[:, 0], "w": found.canonical[:, 1]}
        side = np.where(found.w1 < 0.0, -1.0, 1.0)
        row |= {"w1": np.abs(found.w1), "w2": side * found.w2, "head": side * found.head}
        if isinstance(found, Projection):
            row |= {"c": side * found.c, "a": found.a, "b": found.b, "u": found.u}
            row["alpha"] = (side[:, None] * found.alpha).astype(np.int8)
        self._rows.append(row | {"residual": found.residual})
        return True

    def dataset(self):
        """What was recorded, as an xarray Dataset over (step, model); ``alpha`` has the width of the stream besides.

        Coordinates are taken with the direction for which w1 is not negative.

        Raises
        ------
        ParameterError
            If nothing was recorded.
        """
        import xarray

        from landscape import __version__

        if not self._rows:
            raise ParameterError("model", "PathRecorder.dataset", "recorded at least once", len(self._rows))
        steps = np.array([row["step"] for row in self._rows])
        made = xarray.Dataset(
            {name: (("step", "model", "entry")[: values.ndim], values, {"long_name": MEANINGS[name], **({"units": UNITS[name]} if name in UNITS else {})})
             for name in self._rows[0] if name != "step" for values in [np.stack([row[name] for row in self._rows])]},
            coords={"step": ("step", steps, {"long_name": "training steps done"}), "model": np.arange(self._members)},
            attrs={"title": "Path of a training run", "Conventions": "CF-1.11", **self._sizes, "source": f"markov-landscape {__version__}"},
        )
        return made

    def write(self, path: str | os.PathLike) -> None:
        """Write what was recorded to a NetCDF-4 file, whole or not at all."""
        made = self.dataset()
        with replacing(path) as temporary:
            made.to_netcdf(temporary, engine="h5netcdf")
