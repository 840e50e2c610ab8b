"""The figures: one short module each, with NAMES, a CAPTION and a `draw`."""

from __future__ import annotations

import importlib
from pathlib import Path

from landscape import plots

# Name of a figure: the module that draws it.
FIGURES = {
    "phase_portrait_symmetric": "phase_portraits",
    "phase_portrait": "phase_portraits",
    "five_states": "five_states",
}

FORMATS = ("png", "pdf")


def caption(name: str) -> str:
    """What a figure shows, in a paragraph."""
    return importlib.import_module(f"landscape.gallery.{FIGURES[name]}").CAPTIONS[name]


def draw_map(chain, labels, nodes, path) -> None:
    """Draw one basin map that has been computed, with the sets and the separatrix of its chain."""
    from landscape.gallery.portrait import dress

    words = ", ".join(f"${name}={value:g}$" for name, value in vars(chain).items())
    found = dress(chain, f"Basins of attraction, {words}", labels, nodes)
    figure, axes = plots.new_figure(1, 1, 4.8, 5.0)
    plots.basins(axes[0, 0], found)
    plots.label_outer(axes)
    plots.legend(figure, [found], columns=2)
    plots.save(figure, path)


def draw(name: str, folder: str | Path) -> list[Path]:
    """Draw a figure and write it as PNG and PDF into a folder."""
    figure = importlib.import_module(f"landscape.gallery.{FIGURES[name]}").draw(name)
    paths = [Path(folder) / f"{name}.{suffix}" for suffix in FORMATS]
    for path in paths:
        plots.save(figure, path)
    return paths
