"""One page of all committed outcomes: what was claimed, predicted and seen, as Markdown and as HTML with its figures inside."""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from landscape.files import write_text
from validation import records
from validation.claims import CLAIMS, Arms, Claim, Findings, Predicted, Step

RESULTS = Path("validation") / "results"
OUTCOME = {"name", "prediction", "horizon", "success", "tolerance", "verdicts", "findings"}  # what a file of an outcome has
VERDICT = {"arm", "predicted", "observed", "runs", "agree", "interval", "passed", "below_bigram"}
SHOWN = 6  # findings named in a row of the table of claims
TITLE = "What real trainings say"
INTRODUCTION = (
    "Each experiment stated its prediction, horizon, criterion of success and tolerance before it trained. What failed is called refuted. "
    "Written by `python -m validation report` from the outcomes beside it; `python -m validation run NAME --publish` repeats one."
)


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Image:
    path: Path
    text: str


Block = Heading | Paragraph | Table | Image


def outcome_files(folder: Path) -> dict[str, Path]:
    """Files of the outcomes of a folder by the name of their experiment: NAME.json in it, NAME/outcome.json, or its own outcome.json.

    Raises
    ------
    ValueError
        If there is none, a file is not an outcome, or two are of one experiment.
    """
    found = {}
    tables = [path for path in folder.glob("*.json") if not path.name.startswith(records.PREFIX)]
    for path in sorted([*tables, *folder.glob("*/outcome.json")]):
        name = _read(path)["name"]
        if name in found:
            raise ValueError(f"{found[name]} and {path} are both the outcome of {name}")
        found[name] = path
    if not found:
        raise ValueError(f"no outcomes in {folder}")
    return dict(sorted(found.items()))


def outcomes(folder: Path) -> dict[str, dict]:
    """Outcomes of a folder by the name of their experiment (see `outcome_files`)."""
    return {name: _read(path) for name, path in outcome_files(folder).items()}


def _read(path: Path) -> dict:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if OUTCOME <= data.keys() and all(VERDICT <= row.keys() for row in data["verdicts"]):
            return data
    except (ValueError, AttributeError, TypeError):
        pass
    raise ValueError(f"{path} is not the outcome of an experiment")


# --- claims --------------------------------------------------------------------------------------------------


def decided(claim: Claim, found: dict[str, dict]) -> tuple[str, str]:
    """The verdict on a claim, and what it rests on; "not run" where an experiment is missing."""
    steps = [each for each in claim.decided_by if isinstance(each, Step)]
    if steps:
        links = ", ".join(f"[{step.address.split('#')[1].partition('-')[2].replace('-', ' ')}](../../derivations/{step.address})" for step in steps)
        return "disproved" if any(step.disproves for step in steps) else "derived", links
    borne, of, seen = 0, 0, []
    for each in claim.decided_by:
        if each.experiment not in found:
            return "not run", _link(each.experiment)
        count, total, words = _counted(each, found[each.experiment])
        if total == 0:
            return "not run", f"{_link(each.experiment)}, in full"
        borne, of = borne + count, of + total
        seen.append(words)
    word = "confirmed" if borne == of else "refuted" if borne == 0 else f"in part: {borne} of {of}"
    unit = "findings" if isinstance(claim.decided_by[0], Findings) else "runs"
    return word, "; ".join(dict.fromkeys(seen)) + f". {borne} of {of} {unit}"


def _link(experiment: str) -> str:
    return f"[`{experiment}`](#{experiment})"


def _counted(each: Findings | Arms | Predicted, outcome: dict) -> tuple[int, int, str]:
    name = _link(each.experiment)
    if isinstance(each, Findings):
        rows = [row for row in outcome["findings"] if each.contains in row["statement"]]
        seen = ", ".join(row["observed"] for row in rows[:SHOWN]) + (", …" if len(rows) > SHOWN else "")
        return sum(row["passed"] != each.refuted for row in rows), len(rows), f"{name}: {seen}"
    lacks = getattr(each, "lacks", ())
    rows = [row for row in outcome["verdicts"] if all(text in row["arm"] for text in each.contains) and not any(text in row["arm"] for text in lacks)]
    if isinstance(each, Predicted):
        counts = [row["predictors"][each.predictor] for row in rows]
        return sum(row["right"] for row in counts), sum(row["decided"] for row in counts), name
    count = sum(row["agree"] if each.ended is None else row["observed"].get(each.ended, 0) for row in rows)
    return count, sum(row["runs"] for row in rows), name


def claims_table(found: dict[str, dict]) -> Table:
    """Every claim with its verdict."""
    rows = []
    for claim in CLAIMS:
        word, seen = decided(claim, found)
        rows.append((claim.who, claim.text, word, seen + (f" ({claim.note})" if claim.note else "")))
    return Table(("who", "claim or doubt", "verdict", "seen"), tuple(rows))


# --- experiments ------------------------------------------------------------------------------------------------


def section(outcome: dict, figure: Path | None) -> list[Block]:
    """One experiment: prediction, arms, findings, figure, command."""
    def words(counts):
        return ", ".join(f"{count} {word}" for word, count in counts.items()) or "nothing"

    arms = tuple(
        (
            row["arm"], words(row["predicted"]), words(row["observed"]), str(row["runs"]),
            f"{row['agree']} of {row['runs']} [{row['interval'][0]:.2f}, {row['interval'][1]:.2f}]" if row["predicted"] else "", verdict(row),
        )
        for row in outcome["verdicts"]
    )
    command = outcome.get("command", f"python -m validation run {outcome['name']}")
    partial = " Only the quick variant was run: fewer arms and runs." if "--quick" in command.split() else ""
    blocks: list[Block] = [
        Heading(2, outcome["name"]), Paragraph(f"**Predicted.** {outcome['prediction']}{partial}"),
        Paragraph(f"**Horizon.** {outcome['horizon']} **Success.** {outcome['success']} **Tolerance.** {outcome['tolerance']}"),
    ]
    if arms:
        blocks.append(Table(("arm", "predicted", "seen", "runs", "as predicted [95 %]", "verdict"), arms))
    if outcome["findings"]:
        rows = tuple((row["statement"], row["tolerance"], row["observed"], verdict(row)) for row in outcome["findings"])
        blocks.append(Table(("finding", "wanted", "seen", "verdict"), rows))
    below = sum(row["below_bigram"] for row in outcome["verdicts"])
    blocks.append(Paragraph(
        f"{below} runs with a held-out loss more than 4 standard errors below the floor. Again: `{command}`"
    ))
    if figure:
        blocks.append(Image(figure, outcome["name"]))
    return blocks


def verdict(row: dict) -> str:
    """Of an arm or a finding."""
    if row["passed"]:
        return "explored" if row.get("predicted") == {} else "confirmed"
    return "**refuted**"


def page(folder: Path, figures: Path | None = None) -> list[Block]:
    """The whole report, with the figures beside the outcomes, or else those of the folder `figures`."""
    files = outcome_files(folder)
    found = {name: _read(path) for name, path in files.items()}
    claims = claims_table(found)
    words = [row[2].split(":")[0] for row in claims.rows]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("confirmed", "derived", "in part", "refuted", "disproved", "not run") if word in words)
    blocks: list[Block] = [
        Heading(1, TITLE), Paragraph(INTRODUCTION), Heading(2, "Claims and doubts"), Paragraph(f"Of {len(words)} claims of the authors and doubts of the reviewers: {counts}."), claims,
    ]
    for name, outcome in found.items():
        homes = [files[name].parent, *([figures] if figures else [])]
        blocks += section(outcome, next((home / f"{name}.png" for home in homes if (home / f"{name}.png").exists()), None))
    return blocks


# --- text -------------------------------------------------------------------------------------------------------


def markdown(blocks: Iterable[Block], folder: Path) -> str:
    """The page as Markdown, with figures linked from `folder`."""
    parts = []
    for block in blocks:
        if isinstance(block, Heading):
            parts.append("#" * block.level + " " + block.text)
        elif isinstance(block, Paragraph):
            parts.append(block.text)
        elif isinstance(block, Image):
            parts.append(f"![{block.text}]({Path(os.path.relpath(block.path, folder)).as_posix()})")
        else:
            lines = [block.head, tuple("---" for _ in block.head), *block.rows]
            parts.append("\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines))
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    """Text that stays in its cell of a Markdown table."""
    return re.sub("<(?=[A-Za-z/!])", "&lt;", " ".join(text.split()).replace("|", "\\|"))


STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0;font-size:13px}td,th{border-bottom:1px solid #ccc;padding:.25em .6em;text-align:left;vertical-align:top}"
    "img{max-width:100%}code{background:#f2f2f2;padding:0 .2em}"
)


def page_html(blocks: Iterable[Block]) -> str:
    """The page as HTML that needs no other file."""
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>{TITLE}</title><style>{STYLE}</style><body>"]
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(f'<h{block.level} id="{html.escape(block.text)}">{_inline(block.text)}</h{block.level}>')
        elif isinstance(block, Paragraph):
            parts.append(f"<p>{_inline(block.text)}</p>")
        elif isinstance(block, Image):
            content = base64.b64encode(block.path.read_bytes()).decode("ascii")
            parts.append(f'<img alt="{html.escape(block.text)}" src="data:image/png;base64,{content}">')
        else:
            rows = ["".join(f"<th>{_inline(cell)}</th>" for cell in block.head)]
            rows += ["".join(f"<td>{_inline(cell)}</td>" for cell in row) for row in block.rows]
            parts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>")
    return "\n".join(parts) + "</body></html>\n"


def _inline(text: str) -> str:
    """Code, bold type and links, in HTML."""
    text = html.escape(text, quote=False)
    for pattern, form in ((r"`([^`]*)`", r"<code>\1</code>"), (r"\*\*([^*]+)\*\*", r"<b>\1</b>"), (r"\[([^\]]*)\]\(([^)]*)\)", r'<a href="\2">\1</a>')):
        text = re.sub(pattern, form, text)
    return text


def write(folder: Path) -> list[Path]:
    """Write report.md and report.html beside the outcomes of a folder; the figures of the committed ones are in figures/."""
    figures = Path("figures") if folder == RESULTS else None
    blocks = page(folder, figures)
    paths = [folder / "report.md", folder / "report.html"]
    write_text(paths[0], markdown(blocks, folder))
    write_text(paths[1], page_html(blocks))
    return paths
