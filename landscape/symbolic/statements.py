"""Statements and what is known of them for each model: the form of the bridge chapter, and its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from landscape.symbolic.render import anchor, dump, plain, slug
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


def markdown(title: str, introduction: str, models: Mapping[str, str], statements: tuple[Statement, ...], chapters) -> str:
    """The chapter: the table, then each statement with its evidence."""
    lines = [f"# {title}", "", "Written by `python -m landscape.derive`; do not edit.", "", introduction, ""]
    lines += [f"- **{model}**: {words}" for model, words in models.items()] + [""]
    lines += ["| | " + " | ".join(models) + " |", "| --- |" + " --- |" * len(models)]
    for number, statement in enumerate(statements, 1):
        shown = [_short(statement.cells.get(model), chapters) for model in models]
        lines.append(f"| [{number}. {statement.name}](#{slug(number, statement.name)}) | " + " | ".join(shown) + " |")
    for number, statement in enumerate(statements, 1):
        lines += ["", f"## {number}. {statement.name}", "", statement.text, ""]
        for model in models:
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


def latex(title: str, introduction: str, models: Mapping[str, str], statements: tuple[Statement, ...], chapters) -> str:
    """The chapter as a LaTeX section."""
    lines = ["% Written by `python -m landscape.derive`; do not edit.", rf"\section{{{plain(title)}}}", plain(introduction)]
    lines += [r"\begin{description}", *(rf"\item[{plain(model)}] {plain(words)}" for model, words in models.items()), r"\end{description}"]
    for statement in statements:
        lines += [rf"\subsection{{{plain(statement.name)}}}", plain(statement.text), r"\begin{description}"]
        for model in models:
            if model in statement.cells:
                found = statement.cells[model]
                sources = "; ".join(evidence.link(chapters)[0] for evidence in found.evidence)
                words = f"{found.verdict}. {found.note}" + (f" ({sources})" if sources else "")
                lines.append(rf"\item[{plain(model)}] {plain(words)}")
        lines.append(r"\end{description}")
    return "\n".join(lines) + "\n"


def json_text(title: str, models: Mapping[str, str], statements: tuple[Statement, ...], chapters) -> str:
    """The chapter as data: verdicts, notes and addresses by statement and model."""
    return dump({
        "title": title,
        "models": dict(models),
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
            for statement in statements
        ],
    }) + "\n"
