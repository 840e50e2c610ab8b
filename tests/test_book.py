"""The book: parts, references, plain ASCII, balanced braces, and, where there is LaTeX, pages without overfull lines."""

import re
import shutil
import subprocess

import numpy as np
import pytest
import sympy
from conftest import ROOT

import landscape
from landscape import BinaryChain, Label, derive
from landscape.symbolic import book, bridge, render
from landscape.symbolic.lines import LIMIT, broken, width

FOLDER = ROOT / "derivations"
SOURCES = sorted(FOLDER.glob("*.tex"))
NAMED = [name for part in derive.PARTS for name in part.chapters]


def text_of(path):
    return path.read_text(encoding="utf-8")


def found_in_book(pattern):
    return [found for path in SOURCES for found in re.findall(pattern, text_of(path))]


# --- what the chapters settle, and the parts -------------------------------------------------------------


def pages(chapters):
    return [book.page(chapter) for chapter in chapters.values()] + [bridge.page()]


def test_every_chapter_says_what_it_settles(chapters):
    """Whose claim, or that there is none, and what is added; at its head in each form, and in the leading page."""
    for page in pages(chapters):
        assert re.match(r"\*Claims?\*: (none|.*\((.*)?(authors?|reviewer|summary)(.*)?\))", page.settles), page.name
        assert "*Beyond*: " in page.settles, page.name
        assert page.settles in text_of(FOLDER / f"{page.name}.md") and page.settles in text_of(FOLDER / "README.md")
        assert render.settled_in_tex(page.settles) in text_of(FOLDER / f"{page.name}.tex")


def test_every_chapter_is_in_one_part(chapters):
    assert sorted(NAMED) == sorted([*derive.CHAPTERS, bridge.NAME])
    assert all(part.title and part.introduction and part.chapters for part in derive.PARTS)


def test_parts_keep_the_order_in_which_chapters_build_on_each_other():
    for name, (_, needs) in derive.CHAPTERS.items():
        assert all(NAMED.index(need) < NAMED.index(name) for need in needs), name


def test_the_document_reads_every_chapter_once_and_in_order():
    assert re.findall(r"\\input{(.*)}", text_of(FOLDER / "book.tex")) == NAMED
    assert re.findall(r"^### \[.*\]\((.*)\.md\)$", text_of(FOLDER / "README.md"), flags=re.MULTILINE) == NAMED
    assert {path.stem for path in SOURCES} == {*NAMED, "book"}


def test_equations_of_the_paper_are_cited_only_where_the_replies_do(chapters):
    for page in pages(chapters):
        assert set(re.findall(r"(?:Eq\.|Theorem|line|Figure|Section|Appendix) [\dA-Z.]*\w", page.settles)) <= {
            "Eq. 45", "line 203", "Theorem 9", "Appendix G", "Figure 2", "Figure 4", "Section 4.1",
        }, page.name


def test_starts_near_the_points_that_the_authors_name_end_as_they_say():
    """In words in the chapter on limits: all starts within 0.1 of them, at (0.5, 0.8)."""
    radius, angle = np.meshgrid(np.linspace(0.005, 0.1, 20), np.linspace(0.01, 2 * np.pi, 40))
    ring = np.column_stack([(radius * np.cos(angle)).ravel(), (radius * np.sin(angle)).ravel()])
    expected = {(-1, -1): Label.GLOBAL, (0, -0.5): Label.LOCAL, (0, 0.5): Label.LOCAL, (0, 0): Label.LOCAL}
    for point, label in expected.items():
        assert set(landscape.limit(BinaryChain(0.5, 0.8), point + ring)) == {label}, point


# --- references ------------------------------------------------------------------------------------------


def test_labels_are_unique_and_every_reference_has_one():
    labels, references = found_in_book(r"\\label{(.*?)}"), found_in_book(r"\\hyperref\[(.*?)\]")
    assert len(labels) == len(set(labels)) > 140
    assert set(references) <= set(labels)
    assert len(references) > 100


def test_links_of_chapters_are_references_in_the_book():
    """As many as the Markdown has links to other chapters."""
    for name in NAMED:
        inside = re.findall(r"\]\((?:[\w-]+\.md)?(?:#[\w-]+)?\)", text_of(FOLDER / f"{name}.md"))
        assert text_of(FOLDER / f"{name}.tex").count(r"\hyperref[") == len(inside), name


@pytest.mark.parametrize(
    ("address", "page", "label"),
    [
        ("reduced.md", "", "reduced"),
        ("reduced.md#5-scaling", "bridge", "reduced:5-scaling"),
        ("#2-a-b", "bridge", "bridge:2-a-b"),
        ("README.md", "", None),
        ("../validation/results/report.md", "", None),
        ("https://arxiv.org", "", None),
    ],
)
def test_labels_of_addresses(address, page, label):
    assert render.label(address, page) == label


# --- what engines read -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_latex_is_ascii_with_balanced_braces_and_environments(path):
    text = text_of(path)
    assert text.isascii()
    depth = 0
    for token in re.findall(r"\\.|[{}]|(?<!\\)%.*", text):
        depth += {"{": 1, "}": -1}.get(token, 0)
        assert depth >= 0
    assert depth == 0
    body = text.split(r"\begin{document}")[-1] if path.stem == "book" else text
    opened = []
    for kind, name in re.findall(r"\\(begin|end){(\w+\*?)}", body):
        if kind == "begin":
            opened.append(name)
        elif opened or path.stem != "book":
            assert opened.pop() == name
    assert opened == []
    assert len(re.findall(r"\\left(?![a-z])", text)) == len(re.findall(r"\\right(?![a-z])", text))


@pytest.mark.parametrize(
    ("markdown", "latex"),
    [
        ("5 % of **a_b** & *c*", r"5 \% of \textbf{a\_b} \& \emph{c}"),
        ("`x_y.z` at $a_b$", r"\texttt{x\_\allowbreak{}y.\allowbreak{}z} at $a_b$"),
        ("κ ≥ λ², Schrödinger", r"$\kappa$ $\ge$ $\lambda$$^2$, Schr\"{o}dinger"),
        ("$κ^2$ − 1", r"$\kappa^2$ $-$ 1"),
        ("below 1e-20, 8.3e-16, at (1, -1)", r"below $10^{-20}$, $8.3\cdot 10^{-16}$, at (1, $-$1)"),
        ("[**a** $b$](reduced.md#1-gap)", r"\hyperref[reduced:1-gap]{\textbf{a} $b$}"),
        ("[`a`](../tests/x.py) {}", r"\texttt{a} \{\}"),
        ('a "b" c\\d', r"a ``b'' c\textbackslash{}d"),
    ],
)
def test_markdown_in_latex(markdown, latex):
    assert render.plain(markdown) == latex


def test_a_character_without_latex_is_refused():
    for character in ("世", "ο", "Α"):  # the last two are Greek, but TeX has no name for them
        with pytest.raises(ValueError, match="UNICODE"):
            render.plain(character)


# --- wide formulas ---------------------------------------------------------------------------------------

A, B = sympy.symbols("a b")
SUM = sympy.Add(*(sympy.Symbol(f"x_{i}") * A**i for i in range(30)))


def unbroken(text):
    """The TeX of an expression without what breaks it."""
    return re.sub(r"\s+", " ", re.sub(r"\\begin{aligned}&|\\end{aligned}|\\\\ & \\quad", "", text)).strip()


@pytest.mark.parametrize("expression", [SUM, -SUM, SUM + sympy.exp(-B)])
def test_wide_sums_are_broken_and_lose_nothing(expression):
    text = broken(expression, render.tex)
    assert width(expression) > 2 * LIMIT and text.count(r"\\") >= 2
    assert unbroken(text) == render.tex(expression)


def test_wide_products_conditions_and_vectors_are_broken():
    for wide in (B * SUM, sympy.And(SUM > 0, B < 1), sympy.Matrix([A, SUM])):
        assert r"\\ & \quad" in broken(wide, render.tex)
    assert unbroken(broken(sympy.And(SUM > 0, B < 1), render.tex)) == render.tex(sympy.And(SUM > 0, B < 1))


def test_a_wide_term_of_a_sum_is_broken_within():
    text = broken(A + B * SUM, render.tex)
    assert text.count(r"\begin{aligned}") == 2
    assert max(map(len, re.sub(r"\\[a-z]+|[{}^_ ]", "", text).split(r"\\"))) < 2 * LIMIT


def test_what_fits_stays_in_one_line(chapters):
    for narrow in (A + B, sympy.Matrix([A, B]), sympy.And(A > 0, B < 1), (A, B)):
        assert broken(narrow, render.tex) == render.tex(narrow)


# --- the PDF ---------------------------------------------------------------------------------------------

MAKE = shutil.which("make")


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
def test_without_an_engine_one_line_names_the_packages(tmp_path):
    done = subprocess.run([MAKE, "book", "PDFLATEX=no-such-engine", f"BOOK_OUT={tmp_path / 'out'}"], cwd=ROOT, capture_output=True, text=True)
    first, *rest = done.stderr.splitlines()
    assert done.returncode != 0 and "texlive-latex-recommended" in first and "lmodern" in first
    assert all(line.startswith("make") for line in rest) and not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """What LaTeX said of the book in its last pass."""
    if MAKE is None or shutil.which("pdflatex") is None:
        pytest.skip("make or pdflatex is not installed")
    folder = tmp_path_factory.mktemp("book") / "sp ace"
    done = subprocess.run([MAKE, "book", f"BOOK_OUT={folder}"], cwd=ROOT, capture_output=True, text=True)
    if "make book needs LaTeX" in done.stderr:
        pytest.skip("some of the LaTeX packages are not installed")
    assert done.returncode == 0, done.stderr
    assert (folder / "book.pdf").read_bytes().startswith(b"%PDF")
    return (folder / "book.log").read_text(encoding="latin-1")


def test_the_book_compiles_without_errors_and_undefined_references(log):
    assert not re.search(r"^!|multiply[- ]defined|undefined|Rerun to get|Missing character", log, flags=re.MULTILINE)
    assert int(re.search(r"Output written on .*\((\d+) pages", log).group(1)) >= 30


def test_no_line_of_the_book_is_overfull(log):
    assert [found for found in re.findall(r"Overfull \\[hv]box \(([\d.]+)pt", log) if float(found) > 20] == []
