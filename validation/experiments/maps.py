"""Maps of where trainings ended, over the basins that were predicted."""

from __future__ import annotations

import numpy as np

import landscape
from landscape import architecture, plots
from landscape.outcomes import Label
from validation.experiments.base import Outcome
from validation.training import SGD

MARKS = {
    "global": {"marker": "o", "color": "#0072b2", "markersize": 5.5},
    "local": {"marker": "s", "color": "#d55e00", "markersize": 5.5},
    "between": {"marker": "D", "color": "white", "markeredgecolor": "black", "markersize": 5},
    "diverged": {"marker": "x", "color": "black", "markersize": 6},
}
NAMES = {"global": "ended at the bigram loss", "local": "ended at the unigram loss", "between": "undecided at the horizon", "diverged": "diverged"}
REDUCED = {"colors": "#117733", "linewidths": 1.2, "linestyles": "dotted"}
REACH = {"e": (-2.0, 2.0), "w": (-2.0, 1.5)}
FINE = 80  # even: no start of the predicted map lies on e = 0


def draw_maps(outcome: Outcome, escapes: dict):
    """A panel for each arm, in rows of one optimiser and chain, and one of escape times if there are any."""
    rows: dict[tuple, list] = {}
    for arm in outcome.arms:
        rows.setdefault((arm.optimiser.words, arm.chain.p, arm.chain.q), []).append(arm)
    columns = max(len(row) for row in rows.values()) + bool(escapes)
    figure, axes = plots.new_figure(len(rows), columns, 3.0 * columns, 2.75 * len(rows) + 0.6, share_horizontal=False, share_vertical=False)
    predicted = {}
    verdicts = {verdict.arm: verdict for verdict in outcome.verdicts}
    for line, row in zip(axes, rows.values()):
        for axis, arm in zip(line, row):
            off = float(np.median([result["start"][5] for result in outcome.results[arm.name]]))
            for size in (off, 0.0):
                if (arm.chain, size > 1e-6) not in predicted:
                    predicted[arm.chain, size > 1e-6] = _basins(arm, size)
            _panel(axis, arm, outcome.results[arm.name], predicted[arm.chain, off > 1e-6], predicted[arm.chain, False])
        line[0].set_ylabel("$e$ (embedding)")
        found = {arm.name: escapes[arm.name] for arm in row if arm.name in escapes}
        for axis in line[len(row) :]:
            _times(axis, row[0], found) if found else _shares(axis, [verdicts[arm.name] for arm in row])
    for axis in axes[-1, : len(row)]:
        axis.set_xlabel("$w$ (MLP weight)")
    _legend(figure, outcome)
    return figure


def _basins(arm, off: float) -> np.ndarray:
    """Labels of `transverse` over the slice at b = 0, with a part across of the size that the arm's starts have."""
    model = architecture("transverse").on(arm.chain, {"c": 1.0 / arm.config.length})
    e, w = (np.linspace(*REACH[name], FINE) for name in ("e", "w"))
    mesh = np.meshgrid(e, w, indexing="ij")
    starts = model.place({"e": mesh[0].ravel(), "w": mesh[1].ravel(), "u": off if off > 1e-6 else 0.0, "b": 0.0})
    labels = landscape.flow(model, starts).labels
    return np.where(labels == Label.SADDLE, np.int8(Label.LOCAL), labels).reshape(mesh[0].shape)


def _panel(axis, arm, results, labels, on_manifold) -> None:
    extent = (*REACH["w"], *REACH["e"])
    plots.shade(axis, labels, extent)
    axis.contour(on_manifold == Label.GLOBAL, levels=[0.5], extent=extent, **REDUCED)
    curve = landscape.separatrix(arm.chain, reach=2.0, n=300)
    axis.plot(curve[:, 1], curve[:, 0], **plots.SEPARATRIX)
    for word, style in MARKS.items():
        points = np.array([result["point"] for result in results if result["observed"] == word]).reshape(-1, 2)
        axis.plot(points[:, 1], points[:, 0], linestyle="none", **style)
    axis.set_xlim(*REACH["w"])
    axis.set_ylim(*REACH["e"])
    relation = "<" if arm.chain.regime == "below" else ">"
    noise = "on the manifold" if arm.start.noise == 0 else f"noise {arm.start.noise:g}"
    axis.set_title(f"{arm.optimiser.words}, $p+q{relation}1$, {noise}", fontsize=8.5)


def _times(axis, arm, found: dict) -> None:
    """Observed against simulated escape times, with the formula's."""
    last = arm.schedule.steps if isinstance(arm.optimiser, SGD) else 1
    for (name, rows), colour in zip(found.items(), ("#009e73", "#cc79a7", "#000000")):
        done = [row for row in rows if row["observed"] is not None and row["simulated"] is not None]
        noise = name.rsplit(" ", 1)[-1]
        axis.plot([row["simulated"] for row in done], [row["observed"] for row in done], "o", color=colour, markersize=4, label=f"noise {noise}")
    top = 1.1 * max((row[key] or 0 for rows in found.values() for row in rows for key in ("observed", "simulated")), default=last)
    axis.plot([0, top], [0, top], color="#777777", linewidth=1)
    axis.set(xlim=(0, top), ylim=(0, top), xlabel="simulated escape (steps)", ylabel="observed escape (steps)")
    axis.set_title("Leaving the canonical local basin", fontsize=8.5)
    axis.legend(fontsize=7.5, frameon=False)


def _shares(axis, verdicts) -> None:
    """On what share of the decided runs each predictor was right, with its interval, by noise."""
    names = list(verdicts[0].predictors)
    for k, (verdict, colour) in enumerate(zip(verdicts, ("#000000", "#009e73", "#cc79a7"))):
        found = list(verdict.predictors.values())
        shares = [each.right / max(each.decided, 1) for each in found]
        heights = [row + 0.2 * (k - 1) for row in range(len(names))]
        axis.hlines(heights, *zip(*(each.interval for each in found)), color=colour, linewidth=1)
        axis.plot(shares, heights, "o", color=colour, markersize=4, label=verdict.arm.rsplit(", ", 1)[-1])
    axis.set(xlim=(0, 1.03), ylim=(len(names) + 0.4, -0.5), yticks=range(len(names)), yticklabels=names, xlabel="right, of decided runs")
    axis.set_title("Predictors, with 95 % intervals", fontsize=8.5)
    axis.legend(fontsize=7.5, frameon=False, loc="lower left", ncols=3, columnspacing=0.8, handletextpad=0.1)


def _legend(figure, outcome: Outcome) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    seen = {result["observed"] for results in outcome.results.values() for result in results}
    handles = [Line2D([], [], linestyle="none", label=NAMES[word], **style) for word, style in MARKS.items() if word in seen]
    handles += [
        Patch(facecolor=plots.REGIONS[label], edgecolor="#777777", label=f"predicted (transverse flow): {text}")
        for label, text in ((Label.GLOBAL, "global"), (Label.LOCAL, "not global"))
    ]
    handles.append(Line2D([], [], label="boundary of reduced flow", color=REDUCED["colors"], linewidth=REDUCED["linewidths"], linestyle=REDUCED["linestyles"]))
    handles.append(Line2D([], [], label="canonical separatrix", **plots.SEPARATRIX))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
