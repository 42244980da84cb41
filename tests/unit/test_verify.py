"""Verification of a finished study: all of it follows from its parents, or what does not is named."""

from __future__ import annotations

from pathlib import Path

import pytest

import finished_study
from palimpsest.audit.verify import verify_study


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The results of a small study that was really trained."""
    return finished_study.finish(tmp_path_factory.mktemp("finished"))


def test_a_finished_study_follows_from_its_plan(finished: Path) -> None:
    """Nothing is found, and nothing is remarked."""
    assert verify_study(finished) == []
