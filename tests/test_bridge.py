"""What the bridge chapter says is what the derivations and the committed outcomes say, and its links lead somewhere."""

import json
import re

import numpy as np
import pytest
from conftest import ROOT

import landscape
from landscape import BinaryChain
from landscape.symbolic import bridge, statements
from landscape.symbolic.statements import DISPROVED, MEASURED, OPEN, PROVED, REFUTED, Derived, Ended, Judged, Verified

CELLS = [(statement, model, found) for statement in bridge.STATEMENTS for model, found in statement.cells.items()]
EVIDENCE = [(statement, model, found, evidence) for statement, model, found in CELLS for evidence in found.evidence]


def outcome(experiment):
    return json.loads((ROOT / "validation" / "results" / f"{experiment}.json").read_text(encoding="utf-8"))


def counted(evidence):
    """Runs that bear the statement out, and all that could, from the committed outcome."""
    verdicts = [verdict for verdict in outcome(evidence.experiment)["verdicts"] if evidence.arms in verdict["arm"]]
    kind, what = evidence.what.split(": ")
    if kind == "right":
        found = [verdict["predictors"][what] for verdict in verdicts]
        return sum(each["right"] for each in found), sum(each["decided"] for each in found)
    assert kind == "ended"
    return sum(verdict["observed"].get(what, 0) for verdict in verdicts), sum(verdict["runs"] for verdict in verdicts)


def finding(evidence):
    found = [each for each in outcome(evidence.experiment)["findings"] if each["statement"].startswith(evidence.finding)]
    assert len(found) == 1, evidence
    return found[0]


def test_every_statement_has_evidence_and_every_model_a_column():
    assert set(bridge.MEANING) == set(bridge.MODELS)
    for statement in bridge.STATEMENTS:
        assert set(statement.cells) <= set(bridge.MODELS)
        assert any(found.evidence for found in statement.cells.values()), statement.name
    for statement, model, found in CELLS:
        assert found.verdict in (PROVED, DISPROVED, MEASURED, REFUTED, OPEN)
        if found.verdict in (PROVED, DISPROVED):
            assert isinstance(found.evidence[0], Derived), (statement.name, model)
        elif found.verdict != OPEN:
            assert isinstance(found.evidence[0], (Ended, Judged, Verified)), (statement.name, model)


@pytest.mark.parametrize("evidence", [e for *_, e in EVIDENCE if isinstance(e, Ended)], ids=lambda e: f"{e.experiment}: {e.arms}, {e.what}")
def test_counts_are_those_of_the_committed_outcome(evidence):
    assert counted(evidence) == (evidence.count, evidence.of)


@pytest.mark.parametrize("evidence", [e for *_, e in EVIDENCE if isinstance(e, Judged)], ids=lambda e: f"{e.experiment}: {e.finding}")
def test_findings_are_those_of_the_committed_outcome(evidence):
    assert finding(evidence)["observed"] == evidence.seen


def test_what_was_measured_decides_the_verdict():
    """98 % of the runs, or the finding itself; and no proof has a finding against it."""
    for statement, model, found in CELLS:
        first = found.evidence[0] if found.evidence else None
        if found.verdict in (MEASURED, REFUTED) and not isinstance(first, Verified):
            holds = finding(first)["passed"] if isinstance(first, Judged) else first.count >= 0.98 * first.of
            assert holds == (found.verdict == MEASURED), (statement.name, model)
        if found.verdict == PROVED:
            assert all(finding(each)["passed"] for each in found.evidence if isinstance(each, Judged)), (statement.name, model)


def test_tests_that_are_named_exist():
    for *_, evidence in EVIDENCE:
        if isinstance(evidence, Verified):
            assert f"\ndef {evidence.test}(" in (ROOT / evidence.file).read_text(encoding="utf-8")


def test_a_step_that_does_not_exist_is_refused(chapters):
    with pytest.raises(KeyError, match="no_such"):
        Derived("reduced", "no_such").link(chapters)


def headings(text):
    """Anchors as code hosts make them of headings."""
    found = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {"".join(c for c in each.lower() if c.isalnum() or c in " -_").replace(" ", "-") for each in found}


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "derivations").glob("*.md"), *(ROOT / "figures").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for address in re.findall(r"\]\(([^)\s]+)\)", text):
        if address.startswith(("https:", "http:")):
            continue
        name, _, fragment = address.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), address
        if fragment:
            assert fragment in headings(target.read_text(encoding="utf-8")), address


def test_every_cell_with_evidence_is_a_link_in_the_table():
    table = [line for line in (ROOT / "derivations" / "bridge.md").read_text(encoding="utf-8").splitlines() if line.startswith("| [")]
    assert len(table) == len(bridge.STATEMENTS)
    for line, statement in zip(table, bridge.STATEMENTS):
        linked = line.split(" | ")[1:]
        assert sum("](" in each for each in linked) == sum(bool(found.evidence) for found in statement.cells.values())


def test_the_slug_of_a_heading():
    assert statements.slug(15, "The start (1, -1) is safe") == "15-the-start-1--1-is-safe"


def test_small_starts_are_in_the_local_basin_above_the_threshold():
    """What the chapter says of them in words: all of |e| < 1, |w| < 0.1, whatever the chain."""
    e, w = np.meshgrid(np.linspace(-0.999, 0.999, 41), np.linspace(-0.0999, 0.0999, 41))
    points = np.column_stack([e.ravel(), w.ravel()])
    for p, q in ((0.5, 0.8), (0.5, 0.6), (0.95, 0.9)):
        assert set(landscape.limit(BinaryChain(p, q), points)) == {landscape.Label.LOCAL}
