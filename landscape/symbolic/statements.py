"""Statements and what is known of them for each model: the form of the bridge chapter, and its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from landscape.symbolic.render import anchor, dump, heading, plain, settled, settled_in_tex, slug
from landscape.symbolic.steps import Chapter

PROVED, DISPROVED = "proved", "proved false"
MEASURED, REFUTED = "measured true", "measured false"
OPEN = "open"


@dataclass(frozen=True)
class Derived:
    """A step of a chapter as evidence."""

    chapter: str
    step: str

    def link(self, chapters: Mapping[str, Chapter]) -> tuple[str, str]:
        """Text and address. Raises KeyError if there is no such step."""
        number, address = anchor(chapters[self.chapter], self.step)
        return f"{chapters[self.chapter].title}, step {number}", address


@dataclass(frozen=True)
class Verified:
    """A test of the project as evidence."""

    file: str
    test: str

    def link(self, chapters) -> tuple[str, str]:
        return f"`{self.test}`", f"../{self.file}"


@dataclass(frozen=True)
class Ended:
    """Runs of an experiment that bear a statement out, of all that could.

    Attributes
    ----------
    experiment : str
    arms : str
        What the names of the arms contain.
    what : str
        ``"right: PREDICTOR"`` counts the decided runs that ended where the predictor said; ``"ended: WORD"`` all runs that ended so.
    count, of : int
    """

    experiment: str
    arms: str
    what: str
    count: int
    of: int

    def link(self, chapters) -> tuple[str, str]:
        return f"`{self.experiment}`, {self.arms}: {self.count} of {self.of}", results(self.experiment)


@dataclass(frozen=True)
class Judged:
    """A finding of an experiment: the words that it begins with, and what was seen."""

    experiment: str
    finding: str
    seen: str

    def link(self, chapters) -> tuple[str, str]:
        return f"`{self.experiment}`, {self.seen}", results(self.experiment)


def results(experiment: str) -> str:
    """Where the outcome of an experiment is committed, from derivations/."""
    return f"../validation/results/{experiment}.json"


Evidence = Derived | Verified | Ended | Judged


@dataclass(frozen=True)
class Cell:
    """What is known of a statement for one model."""

    verdict: str
    evidence: tuple[Evidence, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Statement:
    """A statement, and a cell for each model to which it applies."""

    name: str
    text: str
    cells: Mapping[str, Cell]


def cell(verdict: str, *evidence: Evidence, note: str = "") -> Cell:
    """A cell with its evidence, the strongest first."""
    return Cell(verdict, evidence, note)


@dataclass(frozen=True)
class Text:
    """All that the chapter says: `models` gives the meaning of each model, the columns of the table."""

    name: str
    title: str
    settles: str
    introduction: str
    models: Mapping[str, str]
    statements: tuple[Statement, ...]

    def numbered(self) -> list[tuple[str, Statement]]:
        """Every statement with its heading in Markdown, number included."""
        return [(f"{number}. {statement.name}", statement) for number, statement in enumerate(self.statements, 1)]


def markdown(text: Text, chapters: Mapping[str, Chapter]) -> str:
    """The chapter: the table, then each statement with its evidence."""
    lines = [f"# {text.title}", "", "Written by `python -m landscape.derive`; do not edit.", "", settled(text.settles), text.introduction, ""]
    lines += [f"- **{model}**: {words}" for model, words in text.models.items()] + [""]
    lines += ["| | " + " | ".join(text.models) + " |", "| --- |" + " --- |" * len(text.models)]
    for number, (title, statement) in enumerate(text.numbered(), 1):
        shown = [_short(statement.cells.get(model), chapters) for model in text.models]
        lines.append(f"| [{title}](#{slug(number, statement.name)}) | " + " | ".join(shown) + " |")
    for title, statement in text.numbered():
        lines += ["", f"## {title}", "", statement.text, ""]
        for model in text.models:
            if model in statement.cells:
                lines.append(f"- {model}: {_long(statement.cells[model], chapters)}")
    return "\n".join(lines) + "\n"


def _short(found: Cell | None, chapters) -> str:
    if found is None:
        return ""
    if not found.evidence:
        return found.verdict
    return f"[{found.verdict}]({found.evidence[0].link(chapters)[1]})"


def _long(found: Cell, chapters) -> str:
    links = [f"[{text}]({address})" for text, address in (evidence.link(chapters) for evidence in found.evidence)]
    parts = [f"**{found.verdict}**", *([found.note] if found.note else []), *(["(" + "; ".join(links) + ")"] if links else [])]
    return " ".join([parts[0] + ("." if found.note else ""), *parts[1:]])


def latex(text: Text, chapters: Mapping[str, Chapter]) -> str:
    """The chapter as a LaTeX section with the same table, to be read by book.tex."""
    lines = ["% Written by `python -m landscape.derive`; do not edit.", *heading("section", text.title, text.name), settled_in_tex(text.settles)]
    lines += [plain(text.introduction, text.name), *_items(text.models), *_table(text, chapters)]
    for number, statement in enumerate(text.statements, 1):
        lines += heading("subsection", statement.name, f"{text.name}:{slug(number, statement.name)}")
        lines.append(plain(statement.text, text.name))
        lines += _items({model: _long(statement.cells[model], chapters) for model in text.models if model in statement.cells})
    return "\n".join(lines) + "\n"


def _items(words: Mapping[str, str]) -> list[str]:
    """What is said of each model, as lines of a LaTeX list."""
    return [r"\begin{description}", *(rf"\item[{plain(model)}:] {plain(said)}" for model, said in words.items()), r"\end{description}"]


def _table(text: Text, chapters) -> list[str]:
    """Verdicts by statement and model, as lines of a LaTeX table as wide as the page."""
    count = len(text.models)
    ragged = r">{\raggedright\arraybackslash}"
    verdicts = rf"\dimexpr(.73\linewidth-{2 * count}\tabcolsep)/{count}"
    columns = rf"{ragged}p{{.27\linewidth}}*{{{count}}}{{{ragged}p{{{verdicts}}}}}"
    lines = [r"{\footnotesize\setlength{\tabcolsep}{3pt}\noindent", rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule"]
    lines += [" & ".join(["", *map(plain, text.models)]) + r" \\", r"\midrule"]
    for number, (title, statement) in enumerate(text.numbered(), 1):
        first = plain(f"[{title}](#{slug(number, statement.name)})", text.name)
        lines.append(" & ".join([first, *(plain(_short(statement.cells.get(model), chapters)) for model in text.models)]) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}\par}"]


def json_text(text: Text, chapters: Mapping[str, Chapter]) -> str:
    """The chapter as data: verdicts, notes and addresses by statement and model."""
    return dump({
        "title": text.title,
        "settles": text.settles,
        "models": dict(text.models),
        "statements": [
            {
                "name": statement.name,
                "text": statement.text,
                "cells": {
                    model: {
                        "verdict": found.verdict, "note": found.note,
                        "evidence": [dict(zip(("text", "address"), evidence.link(chapters))) for evidence in found.evidence],
                    }
                    for model, found in statement.cells.items()
                },
            }
            for statement in text.statements
        ],
    }) + "\n"
