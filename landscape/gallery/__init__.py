"""The figures: one short module each, with NAMES, a CAPTION and a `draw`."""

from __future__ import annotations

import importlib
from pathlib import Path

from landscape import plots

# Name of a figure: the module that draws it.
FIGURES = {
    "phase_portrait_symmetric": "phase_portraits",
    "phase_portrait": "phase_portraits",
    "phase_portrait_states": "many_states",
    "five_states": "five_states",
    "convergence_times": "times",
    "arrival_times": "arrival",
    "reduced_basins": "reduced_basins",
    "attention_flow": "attention_flow",
    "attention_origin": "attention_origin",
    "attention_landscape": "attention_landscape",
    "attention_separatrix": "attention_separatrix",
    "risk_of_starts": "risk",
}

FORMATS = ("png", "pdf")


def caption(name: str) -> str:
    """What a figure shows, in a paragraph."""
    return importlib.import_module(f"landscape.gallery.{FIGURES[name]}").CAPTIONS[name]


def draw_map(landscape, labels, nodes, path, made=None) -> None:
    """Draw one basin map that has been computed.

    The canonical one is drawn with the sets and the separatrix of its chain, any other with the critical sets that
    are found. `made` is the Dataset of a map by flow, whose convergence times are drawn beside it.
    """
    from landscape.canonical import Canonical
    from landscape.gallery.general import draw_label_map, label_map
    from landscape.gallery.portrait import dress

    known = isinstance(getattr(landscape, "architecture", None), Canonical) and not landscape.speeds
    found = label_map(landscape, labels, nodes, made, search=not known)
    draw_label_map(found, path, dress(landscape.chain, found.title, labels, nodes) if known else None)


def draw_trajectories(ways, path) -> None:
    """Draw trajectories that have been computed, and the loss along them."""
    from landscape.gallery import general

    general.draw_trajectories(ways, path)


def draw(name: str, folder: str | Path) -> list[Path]:
    """Draw a figure and write it as PNG and PDF into a folder."""
    figure = importlib.import_module(f"landscape.gallery.{FIGURES[name]}").draw(name)
    paths = [Path(folder) / f"{name}.{suffix}" for suffix in FORMATS]
    for path in paths:
        plots.save(figure, path)
    return paths
