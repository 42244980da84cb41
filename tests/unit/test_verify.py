"""Verification of a finished study: all of it follows from its parents, or what does not is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import tampering
from palimpsest.audit import verify
from palimpsest.audit.checks import derived
from palimpsest.audit.verify import verify_study
from palimpsest.cli.deep import Deep
from palimpsest.training.machine import kind_of_machine
from tampering import TAMPERINGS, Tampering

RAW = Path("data/raw")
"""Nothing is looked up there: the small study's data come with a package."""


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "small"))


def test_a_finished_study_follows_from_its_plan(finished: Path) -> None:
    """Nothing is found, and nothing is remarked, with the root that it states itself."""
    assert verify_study(finished, published_root=json.loads((finished / "audit/root.json").read_bytes())["root"]) == []


def test_every_stage_can_be_trained_and_evaluated_again(finished: Path, without_report: None) -> None:
    """To the last bit, and the data can be made again from its source."""
    (remark,) = verify_study(finished, further=[Deep(100, 0, RAW, kind_of_machine(1))])
    assert remark.is_remark
    assert remark.reason.startswith("22 of 22 stages")


@pytest.fixture
def without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the report again takes two seconds; only tests of the report do it."""
    monkeypatch.setattr(derived, "_report", lambda chain, track: iter(()))


@pytest.fixture
def without_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody hid is found before anything is made again."""
    monkeypatch.setattr(verify, "CHECKS", tuple(check for check in verify.CHECKS if check is not derived.check))


@pytest.mark.parametrize("forged", TAMPERINGS, ids=lambda t: f"{t.what}, {t.by} {t.hidden[:20]}")
def test_a_forgery_is_named(study: Path, finished: Path, forged: Tampering, request: pytest.FixtureRequest) -> None:
    """The first artifact that does not follow, and why; where an option is needed to find it, nothing without it."""
    if forged.hidden == "nothing":
        request.getfixturevalue("without_analysis")
    elif not forged.artifact.startswith("report/"):
        request.getfixturevalue("without_report")
    forged.forge(study)
    root = json.loads((finished / "audit/root.json").read_bytes())["root"]
    if forged.by:
        assert verify_study(study) == []
    options = {"--root": {"published_root": root}, "--deep": {"further": [Deep(100, 0, RAW, kind_of_machine(1))]}}.get(
        forged.by, {}
    )
    found = [finding for finding in verify_study(study, **options) if not finding.is_remark]
    assert found
    assert (found[0].artifact, found[0].reason[: len(forged.reason)]) == (forged.artifact, forged.reason)


def test_the_table_of_forgeries_is_the_documented_one() -> None:
    """`python tests/tampering.py` writes it."""
    assert tampering.DOCUMENT.read_text() == tampering.document_with_the_table()
