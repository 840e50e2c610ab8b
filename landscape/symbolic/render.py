"""Chapters as Markdown, LaTeX and JSON, and tables as Python data. The text depends only on the chapters."""

from __future__ import annotations

import json
import re
import unicodedata

import sympy

from landscape.symbolic import symbols
from landscape.symbolic.lines import broken
from landscape.symbolic.steps import Chapter, Step, entries_of

SYMBOL_NAMES = {
    symbols.slope: r"\varphi_1",
    symbols.bend: r"\varphi_2",
    symbols.curvature_across: r"c_\times",
    symbols.log_ratio: "s",
    symbols.together: "s",
}

# Characters of texts for engines that do not read Unicode; Greek, accents, raised and lowered digits follow from their names.
UNICODE = {
    "φ": r"$\varphi$", "−": "$-$", "ė": r"$\dot e$", "±": r"$\pm$", "∓": r"$\mp$", "×": r"$\times$", "·": r"$\cdot$", "′": "$'$", "″": "$''$", "∇": r"$\nabla$",
    "∂": r"$\partial$", "∫": r"$\int$", "√": r"$\surd$", "∞": r"$\infty$", "≤": r"$\le$", "≥": r"$\ge$", "≠": r"$\ne$",
    "≈": r"$\approx$", "∼": r"$\sim$", "∝": r"$\propto$", "→": r"$\to$", "←": r"$\leftarrow$", "⇔": r"$\Leftrightarrow$",
    "⇒": r"$\Rightarrow$", "∈": r"$\in$", "⊥": r"$\perp$", "‖": r"$\|$", "⟨": r"$\langle$", "⟩": r"$\rangle$", "½": r"$\tfrac12$",
    "¼": r"$\tfrac14$", "–": "--", "—": "---", "…": r"\dots{}", "“": "``", "”": "''", "‘": "`", "’": "'", "\u00a0": "~", "ß": r"\ss{}",
}
ACCENTS = {"0308": '"', "0301": "'", "0300": "`", "0302": "^", "0303": "~", "0307": "."}
GREEK = set(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {c: "\\" + c for c in "%_&#{}$"}


def tex(expression) -> str:
    """TeX of an expression, matrix or condition."""
    return sympy.latex(expression, symbol_names=SYMBOL_NAMES, mat_delim="(", mat_str="matrix", ln_notation=False)


def equation(step: Step, right: str | None = None) -> str:
    """TeX of a whole statement, its right side as given or in one line."""
    relation = r"\quad " if step.is_condition else " = "
    return step.left + relation + (tex(step.result) if right is None else right)


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
    parts = [f"# {chapter.title}\n", "Written by `python -m landscape.derive`; do not edit.\n"]
    parts += [settled(chapter.settles), chapter.introduction + "\n"]
    for number, step in enumerate(chapter.steps, 1):
        parts.append(f"## {number}. {spoken(step.name)}\n\n{step.text}\n\n```math\n{equation(step)}\n```\n\n*{verdict(step)}*\n")
    return "\n".join(parts)


def latex(chapter: Chapter) -> str:
    """A chapter as a LaTeX section, to be read by book.tex, which defines its macros."""
    lines = ["% Written by `python -m landscape.derive`; do not edit.", *heading("section", chapter.title, chapter.name)]
    lines += [settled_in_tex(chapter.settles), plain(chapter.introduction)]
    for number, step in enumerate(chapter.steps, 1):
        name = spoken(step.name)
        lines += [
            *heading("subsection", name, f"{chapter.name}:{slug(number, name)}"), plain(step.text), r"\begin{equation*}",
            rf"\fitted{{{in_math(equation(step, broken(step.result, tex)))}}}", r"\end{equation*}", rf"\checked{{{plain(verdict(step))}}}", "",
        ]
    return "\n".join(lines) + "\n"


def heading(level: str, title: str, label: str) -> list[str]:
    """Lines that open a section, with the label that links lead to."""
    return [rf"\{level}{{{plain(title)}}}", rf"\label{{{label}}}"]


def settled_in_tex(settles: str) -> str:
    """What a chapter settles, in LaTeX."""
    return rf"\settles{{{plain(settles)}}}"


def settled(settles: str) -> str:
    """What a chapter settles, in Markdown."""
    return f"> **What it settles.** {settles}\n"


def label(address: str, page: str = "") -> str | None:
    """The label in the book of an address in derivations/, seen from a page of it; None if it leads out of the book."""
    found = re.fullmatch(r"([\w-]*)(?:\.md)?(?:#(.+))?", address)
    if found is None or found.group(1) == "README":
        return None
    name, fragment = found.group(1) or page, found.group(2)
    return f"{name}:{fragment}" if fragment else name


def plain(text: str, page: str = "") -> str:
    """Markdown with $TeX$ as LaTeX for engines that do not read Unicode; links from `page` become references."""
    kept: list[str] = []

    def keep(part: str) -> str:
        kept.append(part)
        return f"\0{len(kept) - 1}\0"

    def verbatim(match) -> str:
        part = match.group()
        return keep(_typewriter(part[1:-1]) if part.startswith("`") else in_math(part))

    def link(match) -> str:
        words, target = match.group(1), label(match.group(2), page)
        return words if target is None else keep(rf"\hyperref[{target}]{{") + words + keep("}")

    words = re.sub(r"\$[^$]*\$|`[^`]*`", verbatim, text)
    words = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)\b", lambda match: keep(_power(*match.groups())), words)
    words = _escaped(re.sub(r"\[([^\]]*)\]\(([^)]*)\)", link, words))
    words = re.sub(r'"([^"]*)"', r"``\1''", re.sub(r"(?<![\w.)\0])-(?=\d)", "$-$", words))
    words = re.sub(r"\*([^*]+)\*", r"\\emph{\1}", re.sub(r"\*\*([^*]+)\*\*", r"\\textbf{\1}", words))
    return re.sub("\0(\\d+)\0", lambda match: kept[int(match.group(1))], words)


def in_math(text: str) -> str:
    """TeX of a formula without Unicode."""
    return "".join(character if character.isascii() else ascii_tex(character).strip("$") for character in text)


def ascii_tex(character: str) -> str:
    """LaTeX of a character that is not ASCII. Raises ValueError if none is known."""
    if character in UNICODE:
        return UNICODE[character]
    greek = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(character, ""))
    if greek:
        small = greek.group(2).lower().replace("lamda", "lambda")
        name = small if greek.group(1) == "SMALL" else small.capitalize()
        if name in GREEK:
            return rf"$\{name}$"
    parts = unicodedata.decomposition(character).split()
    if parts and parts[0] in ("<super>", "<sub>"):
        return f"${'^' if parts[0] == '<super>' else '_'}{chr(int(parts[1], 16))}$"
    if len(parts) == 2 and parts[1] in ACCENTS:
        return rf"\{ACCENTS[parts[1]]}{{{chr(int(parts[0], 16))}}}"
    raise ValueError(f"No LaTeX for {character!r} (U+{ord(character):04X}): add it to UNICODE in landscape/symbolic/render.py.")


def _typewriter(text: str) -> str:
    """Code, with places at which a long name may be broken."""
    words = re.sub(r"(\\_|/|\.)(?=\w)", r"\1\\allowbreak{}", _escaped(text))
    return rf"\texttt{{{words.replace('--', '-{}-')}}}"


def _power(digits: str, exponent: str) -> str:
    """A number such as 1e-20 as a power of ten."""
    factor = "" if digits == "1" else rf"{digits}\cdot "
    return f"${factor}10^{{{int(exponent)}}}$"


def _escaped(text: str) -> str:
    return "".join(SPECIAL.get(c, c) if c.isascii() else ascii_tex(c) for c in text)


def as_data(chapter: Chapter) -> dict:
    """A chapter as plain data."""
    return {
        "name": chapter.name,
        "title": chapter.title,
        "settles": chapter.settles,
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
