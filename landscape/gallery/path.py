"""The path of a training run over a basin map, with its loss beside it."""

from __future__ import annotations

import os

import numpy as np

from landscape import plots
from landscape.architectures import architecture as find
from landscape.basins import basin_map, label_grid
from landscape.chains import BinaryChain, Chain
from landscape.gallery.general import label_map
from landscape.gallery.portrait import dress
from landscape.parameters import ParameterError
from landscape.paths import predicted_way

NODES = {"canonical": 401, "flow": 81}
COARSE, STEPS = 4, 5000  # flows that take more steps are undecided


def draw_path(chain: Chain, path, file: str | os.PathLike, *, architecture: str = "canonical", way: bool = True) -> None:
    """Draw where a training run went on the basin map, and its loss.

    Of a model in which one vector embeds two symbols, the way is dotted that gradient flow takes from the first record
    (`landscape.paths.predicted_way`): the prediction. It does not keep to the slice of the map, as positions hardly move.

    Parameters
    ----------
    chain : BinaryChain or SymmetricChain
    path : xarray.Dataset, str or Path
        What `landscape.paths.PathRecorder` recorded, or a NetCDF file of it.
    file : str or Path
        Ends in .png, .svg or .pdf.
    architecture : {"canonical", "reduced", "transverse"}
        Whose basins are shaded. Those of the last two are mapped by flow over the canonical slice, in which a position moves
        1/N times as fast as the embedding, and u is that of the first record: what plain training obeys when p + q > 1. They are
        for models in which one vector embeds the symbols; the map takes some ten seconds.
    way : bool
        Whether to draw the prediction; its integrator takes a minute to compile the first time.

    Raises
    ------
    ParameterError
        If the path is not one, or the file ends in something else.
    """
    if str(file).rsplit(".", 1)[-1].lower() not in ("png", "svg", "pdf"):
        raise ParameterError("file", "draw_path", "a name that ends in .png, .svg or .pdf", str(file))
    if architecture not in ("canonical", "reduced", "transverse"):
        raise ParameterError("architecture", "draw_path", "'canonical', 'reduced' or 'transverse'", architecture)
    chain.require_interior("draw_path")
    record = _loaded(path)
    if architecture != "canonical" and record.attrs.get("rows") != 1:
        wanted = "'canonical', as the embedding of this model is of rows, which move in another metric"
        raise ParameterError("architecture", "draw_path", wanted, architecture)
    predicted = way and isinstance(chain, BinaryChain) and record.attrs.get("rows") == 1
    routes = [
        plots.Route(
            record["step"].values, *(record[name].values[:, k] for name in ("e", "w", "loss")),
            predicted_way(chain, record, k) if predicted and np.isfinite(record["e"].values[0, k]) else None,
        )
        for k in range(record.sizes["model"])
    ]
    spans = {name: _span(np.concatenate([getattr(route, name) for route in routes])) for name in ("e", "w")}
    figure, axes = plots.new_figure(1, 2, 9.6, 4.9, share_horizontal=False, share_vertical=False)
    if architecture == "canonical":
        nodes = {name: np.linspace(*span, NODES["canonical"]) for name, span in spans.items()}
        labels, nodes = label_grid(chain, nodes)
        shown = dress(chain, f"Path over the basins of {find('canonical').on(chain).title}", labels, nodes)
        plots.basins(axes[0, 0], shown)
        plots.label_outer(axes[:, :1])
        plots.legend(figure, [shown])
    else:
        shown = _by_flow(chain, architecture, spans, record)
        plots.regions(axes[0, 0], shown)
        plots.label_outer(axes[:, :1])
        plots.region_legend(figure, shown)
    plots.routes(axes[0, 0], routes)
    plots.route_losses(axes[0, 1], routes, chain.unigram_loss, chain.bigram_loss)
    plots.save(figure, file)


def _loaded(path):
    import xarray

    made = path if hasattr(path, "data_vars") else xarray.load_dataset(path, engine="h5netcdf")
    missing = [name for name in ("step", "e", "w", "loss") if name not in made]
    if missing or made["e"].dims != ("step", "model"):
        raise ParameterError("path", "draw_path", "what PathRecorder records", sorted(map(str, made.variables)))
    return made


def _span(values: np.ndarray) -> tuple[float, float]:
    """A range with some room around what is finite, of at least [-2, 2]."""
    finite = values[np.isfinite(values)]
    reach = 1.1 * float(np.abs(finite).max(initial=0.0))
    return min(-2.0, -reach), max(2.0, reach)


def _by_flow(chain: Chain, architecture: str, spans: dict, record) -> plots.LabelMap:
    landscape = find(architecture).on(chain, {"c": 1.0 / record.attrs["positions"]})
    w = np.linspace(*spans["w"], NODES["flow"])
    e = np.linspace(*spans["e"], NODES["flow"] + 1)  # none on e = 0, where every start is critical
    fixed = {"u": float(np.median(record["u"].values[0]))} if architecture == "transverse" else {}
    made = basin_map(landscape, method="flow", coarse=COARSE, fixed=fixed, options={"max_steps": STEPS}, e=e, w=w)
    return label_map(landscape, made["label"].values, {"e": e, "w": w})
