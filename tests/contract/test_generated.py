"""Files in git that the program generates are as it generates them now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palimpsest.cli.commands.schema import page
from palimpsest.cli.describe import Catalogs
from palimpsest.metrics._definitions import definitions_page
from palimpsest.plan.document import json_schema
from palimpsest.plan.lock import lock_path, make_lock
from palimpsest.plan.study import read_study

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted((ROOT / "config").glob("*.yaml"))


def test_the_explanation_of_the_study_file_is_up_to_date() -> None:
    """`envs/run palimpsest schema` would change nothing."""
    assert (ROOT / "config/README.md").read_text() == page()
    assert (ROOT / "config/study.schema.json").read_text() == json_schema()


def test_the_page_of_definitions_elsewhere_is_up_to_date() -> None:
    """`envs/run palimpsest schema` would change nothing."""
    assert (ROOT / "docs/definitions.md").read_text() == definitions_page()


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_agrees_with_its_committed_lock(path: Path) -> None:
    """Resolving the study again gives the plan that was locked."""
    study, file = read_study(path)
    assert json.loads(lock_path(path).read_text())["hash"] == make_lock(study, file, Catalogs())["hash"]
