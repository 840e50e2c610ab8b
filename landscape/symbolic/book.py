"""The book of all chapters: its parts, the page that leads through them, and the LaTeX document that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from landscape import __version__
from landscape.symbolic.render import heading, plain, spoken
from landscape.symbolic.steps import Chapter

TITLE = "The loss landscape of a one-layer transformer on Markov chains"
SUBTITLE = "from the layers to the basins of attraction"


@dataclass(frozen=True)
class Part:
    """Chapters that belong together, by name and in reading order."""

    title: str
    introduction: str
    chapters: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """What the book says of a chapter before it is read.

    Attributes
    ----------
    name, title : str
    settles : str
        As in `Chapter`.
    contents : tuple of str
        What it states, by name.
    """

    name: str
    title: str
    settles: str
    contents: tuple[str, ...]


def page(chapter: Chapter) -> Page:
    """The page of a chapter of steps."""
    return Page(chapter.name, chapter.title, chapter.settles, tuple(spoken(step.name) for step in chapter.steps))


INTRODUCTION = """Everything here is written by `python -m landscape.derive`; do not edit it. Typed in are the layers, the chains and the
ansätze. Each statement's right side was computed by SymPy from an earlier one, a symbolic residual was reduced to zero, and
the statement was compared with a method that shares nothing with the derivation, in arithmetic of 50 digits unless the
check says otherwise. The same expressions become the Numba kernels in `landscape/kernels/`.

The one idea: a chain gives a convex function $\\varphi$ of the logit gap $\\kappa$, an architecture gives $\\kappa(\\theta)$, and the
loss is $L(\\theta)=\\varphi(\\kappa(\\theta))$. Critical points are $\\kappa=\\kappa^*$ or $\\nabla\\kappa=0$; gradient flow moves along the
field lines of $\\nabla\\kappa$, and the chain decides only how fast and where it stops.

In order: the chains; the canonical picture in $(e,w)$ from the layers to the basins; attention and a head of its own; then the
way back to the whole transformer. **[What holds for which model](bridge.md)** is the table to read first: statements from
$(e,w)$ to AdamW, each proved, refuted or measured, with a link to where.

Each chapter says which claim it settles. Claims are those of the paper *Local to Global: Learning Dynamics and Effect of
Initialization for Transformers* as its summary and the replies of its authors give them, and of its reviewers. The text of the
paper itself was not at hand: equations are cited by number only where the replies do so, and *beyond* means beyond what summary
and replies claim.
"""


def index(parts: Sequence[Part], pages: Mapping[str, Page]) -> str:
    """The page that leads to every chapter, in Markdown."""
    lines = ["# The derivations", "", INTRODUCTION, "`make book` sets all of it as one PDF, `results/book.pdf` ([its main file](book.tex)).", ""]
    for part in parts:
        lines += [f"## {part.title}", "", part.introduction, ""]
        for found in (pages[name] for name in part.chapters):
            lines += [f"### [{found.title}]({found.name}.md)", "", found.settles, ""]
            lines += [f"Contents: {', '.join(found.contents)}. Also as [LaTeX]({found.name}.tex) and [JSON]({found.name}.json).", ""]
    return "\n".join(lines[:-1]) + "\n"


# \fitted scales a formula that is wider than the line and leaves all others as they are.
PREAMBLE = r"""% Written by `python -m landscape.derive`; do not edit. `make book` compiles it.
\documentclass[11pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage{lmodern}
\usepackage[margin=25mm]{geometry}
\usepackage{amsmath,amssymb,array,booktabs,graphicx,microtype}
\usepackage[hidelinks,bookmarksdepth=2]{hyperref}
\newsavebox{\formula}
\newcommand{\fitted}[1]{\renewcommand{\arraystretch}{1.4}\sbox{\formula}{$\displaystyle #1$}%
  \ifdim\wd\formula>\linewidth\resizebox{\linewidth}{!}{\usebox{\formula}}\else\usebox{\formula}\fi}
\newcommand{\checked}[1]{{\small\itshape #1\par}}
\newcommand{\settles}[1]{\begin{quote}\small\textbf{What it settles.} #1\end{quote}}
\setlength{\emergencystretch}{3em}
\postdisplaypenalty=10000
\setlength{\parindent}{0pt}
\setlength{\parskip}{.5\baselineskip plus 2pt}
\setcounter{tocdepth}{1}
\makeatletter\renewcommand{\l@section}{\@dottedtocline{1}{0em}{2em}}\makeatother
\renewcommand{\arraystretch}{1.15}
"""


def document(parts: Sequence[Part]) -> str:
    """The main LaTeX document, which reads every chapter in order."""
    lines = [
        PREAMBLE + rf"\title{{{plain(TITLE)}\\[1ex]\large {plain(SUBTITLE)}}}",
        rf"\author{{Derived, checked and written by \texttt{{landscape}}}}", rf"\date{{Version {__version__}}}", r"\begin{document}",
        r"\begin{titlepage}", r"\maketitle", r"\thispagestyle{empty}", plain(INTRODUCTION), r"\end{titlepage}", r"\tableofcontents",
    ]
    for part in parts:
        lines += [r"\clearpage", *heading("part", part.title, f"part:{part.chapters[0]}"), plain(part.introduction)]
        lines += [rf"\input{{{name}}}" for name in part.chapters]
    return "\n".join(lines + [r"\end{document}"]) + "\n"


def book_files(parts: Sequence[Part], pages: Mapping[str, Page]) -> dict[str, str]:
    """The leading page and the main document: text by path relative to the checkout. KeyError if a part names no chapter."""
    return {"derivations/README.md": index(parts, pages), "derivations/book.tex": document(parts)}
