"""Run every derivation, check it, and write the derivations and the generated kernels.

    python -m landscape.derive [--out DIR] [--check] [--list] [--only NAME] [--json]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from landscape import codegen, tableau
from landscape.command import run_command, strict_json
from landscape.files import write_text
from landscape.symbolic import bridge, render
from landscape.symbolic.attention import attention_gap
from landscape.symbolic.attention_invariant import attention_invariant
from landscape.symbolic.attention_limits import attention_limits
from landscape.symbolic.attention_sets import attention_kernels, attention_sets
from landscape.symbolic.binary_chain import binary_chain
from landscape.symbolic.book import Part, book_files, page
from landscape.symbolic.canonical import canonical_derivatives, canonical_gap, canonical_kernels
from landscape.symbolic.critical_sets import critical_sets
from landscape.symbolic.invariants import invariant
from landscape.symbolic.limits import exact_limits, speeds
from landscape.symbolic.reduced import kernel_texts, reduced
from landscape.symbolic.reduced_sets import reduced_sets
from landscape.symbolic.reduction import exact_reduction
from landscape.symbolic.steps import Chapter
from landscape.symbolic.symmetric_attention import averaged_kernels, symmetric_attention
from landscape.symbolic.symmetric_chain import symmetric_chain
from landscape.symbolic.symmetric_closure import symmetric_closure
from landscape.symbolic.symmetric_stability import symmetric_stability
from landscape.symbolic.times import canonical_times
from landscape.symbolic.transverse import transverse
from landscape.symbolic.untied import untied, untied_kernels

# Every chapter, in reading order, with the chapters it builds on.
CHAPTERS: dict[str, tuple[Callable[..., Chapter], tuple[str, ...]]] = {
    "binary-chain": (binary_chain, ()),
    "symmetric-chain": (symmetric_chain, ("binary-chain",)),
    "canonical-gap": (canonical_gap, ()),
    "canonical-derivatives": (canonical_derivatives, ("canonical-gap",)),
    "canonical-critical-sets": (critical_sets, ("canonical-gap", "canonical-derivatives")),
    "canonical-invariant": (invariant, ("canonical-gap", "canonical-derivatives", "canonical-critical-sets")),
    "canonical-limits": (exact_limits, ("canonical-derivatives", "canonical-critical-sets", "canonical-invariant")),
    "canonical-speeds": (speeds, ("canonical-derivatives", "canonical-critical-sets", "canonical-invariant")),
    "canonical-times": (
        canonical_times, ("canonical-derivatives", "canonical-invariant", "canonical-speeds", "binary-chain", "symmetric-chain")
    ),
    "attention-gap": (attention_gap, ()),
    "attention-critical-sets": (attention_sets, ("attention-gap", "canonical-gap", "canonical-invariant")),
    "attention-invariant": (attention_invariant, ("attention-gap", "attention-critical-sets", "canonical-gap", "canonical-invariant")),
    "attention-limits": (attention_limits, ("attention-critical-sets", "attention-invariant", "canonical-gap")),
    "untied": (untied, ("attention-gap", "canonical-gap", "canonical-invariant")),
    "exact-reduction": (exact_reduction, ()),
    "reduced": (reduced, ("canonical-gap",)),
    "reduced-critical-sets": (reduced_sets, ("binary-chain", "reduced")),
    "transverse-stability": (transverse, ("binary-chain",)),
    "symmetric-closure": (symmetric_closure, ("canonical-gap", "canonical-invariant", "canonical-critical-sets")),
    "symmetric-stability": (symmetric_stability, ("symmetric-chain", "symmetric-closure", "canonical-gap")),
    "symmetric-attention": (symmetric_attention, ("symmetric-closure", "canonical-gap")),
}

# How the book and derivations/README.md group them: every chapter is in one part. The bridge is a chapter of verdicts, not of steps.
PARTS = (
    Part(
        "The chains",
        "What a chain brings to the landscape: a convex function $\\varphi$ of the logit gap, and the gap $\\kappa^*$ at which it is least.",
        ("binary-chain", "symmetric-chain"),
    ),
    Part(
        "The canonical picture",
        "Two parameters $(e,w)$, no attention: from the layers to the gap, its critical sets, its invariant, and the limit of every start.",
        (
            "canonical-gap", "canonical-derivatives", "canonical-critical-sets", "canonical-invariant", "canonical-limits",
            "canonical-speeds", "canonical-times",
        ),
    ),
    Part(
        "Attention and a head of its own",
        "The same with a third parameter $a$ for linear attention, and with a head that is not tied to the embedding.",
        ("attention-gap", "attention-critical-sets", "attention-invariant", "attention-limits", "untied"),
    ),
    Part(
        "Back to the whole transformer",
        "What of the picture is true of the full model with softmax attention: on the manifold of rank one, next to it, and in training.",
        ("exact-reduction", "reduced", "reduced-critical-sets", "transverse-stability", bridge.NAME),
    ),
    Part(
        "Many states",
        "The symmetric chain on $S$ symbols: the simplex ansatz in the full model, the stability across it, and its linear attention.",
        ("symmetric-closure", "symmetric-stability", "symmetric-attention"),
    ),
)


def derive_all(last: str | None = None) -> dict[str, Chapter]:
    """Every chapter by name (or all up to `last`), derived but not yet checked."""
    chapters: dict[str, Chapter] = {}
    for name, (build, needs) in CHAPTERS.items():
        chapters[name] = build(*(chapters[need] for need in needs))
        if name == last:
            break
    return chapters


def kernel_files(chapters: dict[str, Chapter]) -> dict[str, str]:
    """The generated modules: text by path relative to the checkout."""
    binary, symmetric = chapters["binary-chain"], chapters["symmetric-chain"]
    canonical = canonical_kernels(chapters["canonical-gap"], chapters["canonical-derivatives"])
    shared = canonical["canonical"] + chapters["canonical-invariant"]["kernels"] + chapters["canonical-limits"]["kernels"]
    modules = {
        "binary_chain": codegen.module_source(
            "φ of the two-state chain, its derivatives, and loops over gaps.", "binary-chain", binary["kernels"], many=True
        ),
        "symmetric_chain": codegen.module_source(
            "φ of the symmetric chain on S states, its derivatives, and loops over gaps.", "symmetric-chain",
            symmetric["kernels"], many=True,
        ),
        "canonical": codegen.module_source(
            "The gap κ = A e² (1 + c w|w|), its derivatives, the invariant and the separatrix.", "canonical-invariant", shared
        ),
        "canonical_binary": codegen.pair_source("canonical", "binary", ("p", "q"), canonical["binary"][0]),
        "canonical_symmetric": codegen.pair_source("canonical", "symmetric", ("S", "p"), canonical["symmetric"][0]),
        "canonical_times": codegen.module_source(
            "Orbits of the canonical flow and the time along them; φ′ of both chains around κ*.", "canonical-times",
            chapters["canonical-times"]["kernels"],
        ),
        "dop853": tableau.source(),
        "canonical_sets": render.critical_sets_module(chapters["canonical-critical-sets"]),
        "attention": codegen.module_source(
            "Airy coordinates of the flow with linear attention, and what its limits need.", "attention-invariant",
            chapters["attention-invariant"]["kernels"],
        ),
        "attention_binary": attention_kernels(chapters["attention-gap"]),
        "attention_symmetric": averaged_kernels(chapters["symmetric-attention"]),
        **kernel_texts(),
        "reduced_sets": render.plateau_module(chapters["reduced-critical-sets"]),
        **untied_kernels(chapters["untied"]),
    }
    return {f"landscape/kernels/{name}.py": text for name, text in modules.items()}


def derivation_files(chapters: dict[str, Chapter]) -> dict[str, str]:
    """The derivations as Markdown, LaTeX and JSON: text by path relative to the checkout."""
    found = {}
    for name, chapter in chapters.items():
        found[f"derivations/{name}.md"] = render.markdown(chapter)
        found[f"derivations/{name}.tex"] = render.latex(chapter)
        found[f"derivations/{name}.json"] = render.json_text(chapter)
    return found


def all_files(chapters: dict[str, Chapter]) -> dict[str, str]:
    """Everything that is written: text by path relative to the checkout."""
    pages = {name: page(chapter) for name, chapter in chapters.items()} | {bridge.NAME: bridge.page()}
    return derivation_files(chapters) | bridge.bridge_files(chapters) | book_files(PARTS, pages) | kernel_files(chapters)


def checkout() -> Path | None:
    """The root of the checkout that this module runs from, or None if it runs from an installation."""
    root = Path(__file__).resolve().parent.parent
    return root if (root / "setup.cfg").is_file() and (root / "derivations").is_dir() else None


def failed_steps(chapters: dict[str, Chapter]) -> list[str]:
    """Names of the steps whose residual or independent check fails."""
    return [f"{name}: {step.name}" for name, chapter in chapters.items() for step in chapter.steps if not step.holds]


def differing(root: Path, files: dict[str, str]) -> list[str]:
    """The files whose text on disk is not the given one."""
    found = []
    for name, text in files.items():
        path = root / name
        if not path.is_file() or path.read_bytes() != text.encode():
            found.append(name)
    return found


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder to write into instead of the checkout.")
@click.option("--check", is_flag=True, help="Write nothing; fail if a step fails or a file would change.")
@click.option("--list", "list_only", is_flag=True, help="Print the names of the chapters.")
@click.option("--only", type=click.Choice(list(CHAPTERS)), help="Report on one chapter; write only its files.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(out, check, list_only, only, as_json):
    """Derive everything, check it, write derivations/ and the generated kernels."""
    if list_only:
        click.echo(strict_json({"chapters": list(CHAPTERS)}) if as_json else "\n".join(CHAPTERS))
        return
    root = out or checkout()
    if root is None:
        raise click.UsageError("Outside a checkout '--out DIR' is required.")
    chapters = derive_all(only)
    shown = chapters if only is None else {only: chapters[only]}
    files = all_files(chapters) if only is None else derivation_files(shown)
    failures = failed_steps(shown)
    changes = differing(root, files) if check else []
    if not check and not failures:
        for name, text in files.items():
            write_text(root / name, text)
    if as_json:
        click.echo(strict_json({
            "chapters": [render.as_data(chapter) for chapter in shown.values()], "failed": failures, "changed": changes,
        }))
    else:
        for chapter in shown.values():
            click.echo(f"{chapter.title}: {len(chapter.steps)} steps, {sum(step.holds for step in chapter.steps)} hold")
        for failure in failures:
            click.echo(f"FAILED {failure}", err=True)
        for change in changes:
            click.echo(f"would change {change}", err=True)
        if not check and not failures:
            click.echo(f"{len(files)} files written under {root}")
    if failures or changes:
        sys.exit(1)


if __name__ == "__main__":
    run_command(main)
