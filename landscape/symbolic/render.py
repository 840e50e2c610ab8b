"""Chapters as Markdown, LaTeX and JSON, and tables as Python data. The text depends only on the chapters."""

from __future__ import annotations

import json
import re

import sympy

from landscape.symbolic import symbols
from landscape.symbolic.steps import Chapter, Step, entries_of

SYMBOL_NAMES = {
    symbols.slope: r"\varphi_1",
    symbols.bend: r"\varphi_2",
    symbols.curvature_across: r"c_\times",
    symbols.log_ratio: "s",
}

# What the texts of checks are written with, for engines that do not read Unicode.
UNICODE = {
    "κ": r"$\kappa$", "α": r"$\alpha$", "φ": r"$\varphi$", "−": "$-$", "ė": r"$\dot e$", "²": "$^2$", "±": r"$\pm$",
    "′": "$'$", "∇": r"$\nabla$",
}

INTRODUCTION = """# The derivations

Everything here is written by `python -m landscape.derive`; do not edit it. Typed in are the layers, the chains and the
ansätze. Each statement's right side was computed by SymPy from an earlier one, a symbolic residual was reduced to zero, and
the statement was compared with a method that shares nothing with the derivation, in arithmetic of 50 digits unless the
check says otherwise. The same expressions become the Numba kernels in `landscape/kernels/`.

The one idea: a chain gives a convex function $\\varphi$ of the logit gap $\\kappa$, an architecture gives $\\kappa(\\theta)$, and the
loss is $L(\\theta)=\\varphi(\\kappa(\\theta))$. Critical points are $\\kappa=\\kappa^*$ or $\\nabla\\kappa=0$; gradient flow moves along the
field lines of $\\nabla\\kappa$, and the chain decides only how fast and where it stops.

In order: the chains; the canonical picture in $(e,w)$ from the layers to the speeds; linear attention; then the way back to the
whole transformer, from the exact reduction to one dimension over the landscape on the manifold of rank one to the stability
across it; and many states: the simplex ansatz, the stability across it, and its linear attention. **[What holds for which model](bridge.md)** is the table to read first: fifteen statements from (e, w) to AdamW, each
proved, refuted or measured, with a link to where.

| chapter | steps | also as |
| --- | --- | --- |
"""


def tex(expression) -> str:
    """TeX of an expression, matrix or condition."""
    return sympy.latex(expression, symbol_names=SYMBOL_NAMES, mat_delim="(", mat_str="matrix", ln_notation=False)


def equation(step: Step) -> str:
    """TeX of a whole statement."""
    relation = r"\quad " if step.is_condition else " = "
    return step.left + relation + tex(step.result)


def verdict(step: Step) -> str:
    """In words, what vouches for a step."""
    count = len(step.check.cases)
    if step.is_condition:
        agreement = f"agrees at all {count} starts"
    else:
        agreement = f"{count} points, error below {step.check.tolerance:.0e}"
    residual = "" if step.residual is None else "the symbolic residual is zero; "
    state = "Checked" if step.holds else "FAILED"
    return f"{state}: {residual}{step.check.method} ({agreement})."


def spoken(name: str) -> str:
    """The name of a step as headings spell it."""
    return name.replace("_", " ")


def slug(number: int, name: str) -> str:
    """The anchor that code hosts give to a numbered heading."""
    kept = "".join(character for character in name.lower() if character.isalnum() or character in " -")
    return f"{number}-{kept.replace(' ', '-')}"


def anchor(chapter: Chapter, name: str) -> tuple[int, str]:
    """Number of a step in its chapter, and its address in derivations/; KeyError if there is no such step."""
    for number, step in enumerate(chapter.steps, 1):
        if step.name == name:
            return number, f"{chapter.name}.md#{slug(number, spoken(name))}"
    raise KeyError(f"{chapter.name} has no step {name}")


def markdown(chapter: Chapter) -> str:
    """A chapter for a code host that renders Markdown with TeX."""
    parts = [f"# {chapter.title}\n", "Written by `python -m landscape.derive`; do not edit.\n", chapter.introduction + "\n"]
    for number, step in enumerate(chapter.steps, 1):
        parts.append(f"## {number}. {spoken(step.name)}\n\n{step.text}\n\n```math\n{equation(step)}\n```\n\n*{verdict(step)}*\n")
    return "\n".join(parts)


def latex(chapter: Chapter) -> str:
    """A chapter as a LaTeX section, to be read into a document that loads amsmath."""
    lines = ["% Written by `python -m landscape.derive`; do not edit.", rf"\section{{{plain(chapter.title)}}}", plain(chapter.introduction)]
    for step in chapter.steps:
        lines += [
            rf"\subsection{{{spoken(step.name)}}}", plain(step.text), r"\begin{equation*}", equation(step),
            r"\end{equation*}", rf"\emph{{{plain(verdict(step))}}}", "",
        ]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Markdown with $TeX$ as LaTeX for engines that do not read Unicode."""
    kept: list[str] = []

    def keep(match) -> str:
        part = match.group()
        kept.append(rf"\texttt{{{_escaped(part[1:-1])}}}" if part.startswith("`") else part)
        return f"\0{len(kept) - 1}\0"

    words = _escaped(re.sub(r"\$[^$]*\$|`[^`]*`", keep, text))
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)  # a link has its words left
    words = re.sub(r"\*([^*]+)\*", r"\\emph{\1}", re.sub(r"\*\*([^*]+)\*\*", r"\\textbf{\1}", words))
    return re.sub("\0(\\d+)\0", lambda match: kept[int(match.group(1))], words)


def _escaped(text: str) -> str:
    for character in "%_&#":
        text = text.replace(character, "\\" + character)
    for character, replacement in UNICODE.items():
        text = text.replace(character, replacement)
    return text


def as_data(chapter: Chapter) -> dict:
    """A chapter as plain data."""
    return {
        "name": chapter.name,
        "title": chapter.title,
        "steps": [
            {
                "name": step.name,
                "left": step.left,
                "right": [str(entry) for entry in entries_of(step.result)],
                "tex": tex(step.result),
                "residual": None if step.residual is None else [str(entry) for entry in entries_of(step.residual)],
                "check": {"method": step.check.method, "points": len(step.check.cases), "tolerance": step.check.tolerance},
                "holds": step.holds,
            }
            for step in chapter.steps
        ],
    }


def dump(data) -> str:
    """Strict JSON, readable and with its keys in the order given."""
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)


def json_text(chapter: Chapter) -> str:
    """A chapter as a JSON file."""
    return dump(as_data(chapter)) + "\n"


def index(chapters: list[Chapter]) -> str:
    """The page that leads to every chapter."""
    rows = [
        f"| [{chapter.title}]({chapter.name}.md) | {', '.join(spoken(step.name) for step in chapter.steps)} "
        f"| [LaTeX]({chapter.name}.tex), [JSON]({chapter.name}.json) |"
        for chapter in chapters
    ]
    return INTRODUCTION + "\n".join(rows) + "\n"


def critical_sets_module(chapter: Chapter) -> str:
    """The table of critical sets as a Python module that needs no SymPy."""
    rows = "".join(f"    {row!r},\n" for row in chapter["sets"])
    return (
        '"""Critical sets of the canonical loss. `side` is the sign of κ*·B on the set, B = 1 + c w|w|.\n\n'
        f"Generated by `python -m landscape.derive` from derivations/{chapter.name}.md; do not edit.\n"
        f'"""\n\nSETS = (\n{rows})\n'
    )


def plateau_module(chapter: Chapter) -> str:
    """The table of the pieces of the plateau of the reduced landscape as a Python module that needs no SymPy."""
    rows = "".join(f"    {row!r},\n" for row in chapter["sets"])
    return (
        '"""Pieces of the plateau e = u = 0 of the reduced landscape, off its kinks.\n\n'
        "`index` counts the negative eigenvalues of the Hessian along and across the manifold, below and above p + q = 1.\n\n"
        f"Generated by `python -m landscape.derive` from derivations/{chapter.name}.md; do not edit.\n"
        f'"""\n\nPIECES = (\n{rows})\n'
    )
