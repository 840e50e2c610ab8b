"""The report: every claim is decided by what exists, verdicts are counted right, and the committed page is that of the committed outcomes."""

import json
import re

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from tests.conftest import ROOT, strict  # noqa: E402
from validation import experiments, report  # noqa: E402
from validation.__main__ import cli  # noqa: E402
from validation.claims import CLAIMS, Arms, Claim, Findings, Step  # noqa: E402

COMMITTED = ROOT / "validation" / "results"
RUN = {"agree": 3, "runs": 4, "interval": [0.3, 0.95], "below_bigram": 0, "predictors": {}}


def outcome(name="one", **changes):
    arms = [
        {"arm": "a, SGD", "predicted": {"local": 4}, "observed": {"local": 3, "global": 1}, "passed": False, **RUN},
        {"arm": "b, SGD", "predicted": {}, "observed": {"global": 4}, "passed": True, **RUN, "agree": 0},
    ]
    found = [{"statement": "it falls", "tolerance": "below 1", "observed": "0.5 | 0.7", "passed": True}, {"statement": "it fades", "tolerance": "to 0", "observed": "2", "passed": False}]
    said = {label: f"{label} of {name}" for label in ("prediction", "horizon", "success", "tolerance")}
    return {"name": name, "verdicts": arms, "findings": found, "passed": False, "command": f"python -m validation run {name} --publish", **said, **changes}


@pytest.mark.parametrize(("decided_by", "word"), [
    ((Findings("one", "it falls"),), "confirmed"), ((Findings("one", "it fades"),), "refuted"), ((Findings("one", "it f"),), "in part: 1 of 2"),
    ((Findings("one", "it fades", True),), "confirmed"), ((Arms("one", ("b",), "global"),), "confirmed"), ((Arms("one", ("SGD",), "global"),), "in part: 5 of 8"),
    ((Arms("one", ("a", "SGD")),), "in part: 3 of 4"), ((Arms("one", ("b",), "local"),), "refuted"),
    ((Findings("two", "x"),), "not run"), ((Findings("one", "not there"),), "not run"), ((Step("reduced.md#5-scaling"),), "derived"),
])
def test_claims_are_counted(decided_by, word):
    assert report.decided(Claim("authors", "text", decided_by), {"one": outcome()})[0] == word


def test_every_claim_is_decided_by_what_exists():
    for claim in CLAIMS:
        for each in claim.decided_by:
            if isinstance(each, Step):
                name, anchor = each.address.split("#")
                headings = re.findall(r"^## (.*)$", (ROOT / "derivations" / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
                assert anchor in {"-".join(heading.replace(".", "").split()) for heading in headings}, each
            elif isinstance(each, Arms):
                names = [arm.name for arm in experiments.find(each.experiment).arms(False)]
                assert any(all(text in name for text in each.contains) for name in names), each
            else:
                assert each.experiment in experiments.names()


def test_a_page_of_outcomes(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps(outcome(name)))
    (tmp_path / "three").mkdir()
    (tmp_path / "three" / "outcome.json").write_text(json.dumps(outcome("three")))
    (tmp_path / "three" / "three.png").write_bytes(b"\x89PNG picture")
    done = CliRunner().invoke(cli, ["report", str(tmp_path), "--json"], catch_exceptions=False)
    assert strict(done.stdout)["files"] == [str(tmp_path / "report.md"), str(tmp_path / "report.html")]
    text, page = ((tmp_path / f"report.{suffix}").read_text(encoding="utf-8") for suffix in ("md", "html"))
    for name in ("one", "two", "three"):
        assert f"prediction of {name}" in text and f"tolerance of {name}" in page and f"run {name} --publish" in text
    assert "![three](three/three.png)" in text and "data:image/png;base64,iVBORyBwaWN0dXJl" in page
    assert "0.5 \\| 0.7" in text and "**refuted**" in text and "explored" in text and "<b>refuted</b>" in page
    assert "src=\"http" not in page and "<script" not in page


@pytest.mark.parametrize("content", [None, "{}", "[]", "{", json.dumps({"name": "x"})])
def test_what_is_no_outcome_is_refused(content, tmp_path):
    if content is not None:
        (tmp_path / "x.json").write_text(content)
    refused = CliRunner().invoke(cli, ["report", str(tmp_path)])
    assert refused.exit_code == 2 and "'DIR'" in refused.output and not (tmp_path / "report.md").exists()


def test_the_folder_of_one_experiment_a_quick_run_and_text_that_is_no_table(tmp_path):
    words = outcome("one") | {"command": "python -m validation run one --quick", "verdicts": []}
    words["findings"][0]["statement"] = "first\nsecond <b> | third"
    (tmp_path / "outcome.json").write_text(json.dumps(words))
    (tmp_path / "run-0123456789abcdef.json").write_text("{}")  # a record of a run
    (tmp_path / "one.png").write_bytes(b"\x89PNG picture")
    report.write(tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Only the quick variant" in text and "![one](one.png)" in text and "| arm |" not in text
    assert "| first second &lt;b> \\| third |" in text
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "outcome.json").write_text(json.dumps(words))
    with pytest.raises(ValueError, match="both the outcome of one"):
        report.outcomes(tmp_path)


def test_the_committed_page_is_that_of_the_committed_outcomes():
    written = report.markdown(report.page(COMMITTED, ROOT / "figures"), COMMITTED)
    assert (COMMITTED / "report.md").read_text(encoding="utf-8") == written


def test_no_committed_run_is_better_than_its_chain_allows():
    for found in report.outcomes(COMMITTED).values():
        assert not any(row["below_bigram"] for row in found["verdicts"]), found["name"]


def test_every_experiment_has_a_committed_outcome_and_every_claim_a_verdict():
    found = report.outcomes(COMMITTED)
    assert set(found) == set(experiments.names())
    assert not [claim.text for claim in CLAIMS if report.decided(claim, found)[0] == "not run"]
