"""What the workflow removes before it looks at the files: what another plan or program made, and what is not whole."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from palimpsest.core.artifact import Job
from palimpsest.core.errors import LockError, StudyError
from palimpsest.plan.lock import refuse_second_plan
from palimpsest.plan.open import forget_what_is_stale, study_file
from palimpsest.plan.probing import NOTHING

RUN = "m/s0"


class OneRun:
    """A grid of one run with one stage."""

    def __init__(self) -> None:
        self.runs = {RUN: SimpleNamespace(run=RUN, method="m", stage_numbers=[1], spec_hash="spec")}

    def recording(self, method: str) -> dict:
        return NOTHING


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study with a lock, a program, a stage and a report, all of them up to date."""
    job = Job(tmp_path / "study", "test", "c", "e", spec_hash="spec")
    (tmp_path / "x.lock.json").write_bytes(b'{"plan": 1}')
    job.write_bytes("plan/lock.json", b'{"plan": 1}', kind="lock")
    job.write_bytes("plan/code/m.json", b"program", kind="program")
    job.write_bytes(f"runs/{RUN}/stage-1.safetensors", b"weights", kind="checkpoint")
    record = {"lineage": job.lineage(), "recording": NOTHING, "files": {"stage-1.safetensors": "x"}}
    job.write_json(f"runs/{RUN}/stage-1.json", record, "stage")
    job.write_bytes("report/figures/a.svg", b"figure", kind="report")
    job.write_bytes("report/index.html", b"page", kind="report")
    return tmp_path / "study"


def _forgotten(study: Path) -> set[str]:
    def files() -> set[str]:
        return {str(p.relative_to(study)) for p in study.rglob("*") if p.is_file() and "audit" not in p.parts}

    before = files()
    forget_what_is_stale(study, study.parent / "x.lock.json", OneRun(), {"m": "program"})
    return before - files()


def test_nothing_is_forgotten_of_what_is_up_to_date(study) -> None:
    """The usual start of a workflow changes nothing."""
    assert _forgotten(study) == set()


def test_another_program(study) -> None:
    """Its record goes, so that what it made is made again."""
    (study / "plan/code/m.json").write_text("another")
    assert _forgotten(study) == {"plan/code/m.json"}


def test_another_lock_whatever_its_time_of_change(study) -> None:
    """A copy of an older lock is newer in content and older in time: content decides."""
    (study.parent / "x.lock.json").write_bytes(b'{"plan": 2}')
    assert _forgotten(study) == {"plan/lock.json"}


@pytest.mark.parametrize("change", ["other specification", "other probes", "lost checkpoint", "lost record", "torn"])
def test_a_stage_that_is_not_whole_or_of_another_run(study, change: str) -> None:
    """Its record goes; what is left is accepted or trained again."""
    record = study / f"runs/{RUN}/stage-1.json"
    if change == "other specification":
        content = json.loads(record.read_text())
        record.write_text(json.dumps(content | {"lineage": content["lineage"] | {"spec": "other"}}))
    elif change == "other probes":
        record.write_text(json.dumps(json.loads(record.read_text()) | {"recording": NOTHING | {"prequential": True}}))
    elif change == "lost checkpoint":
        (study / f"runs/{RUN}/stage-1.safetensors").unlink()
    elif change == "lost record":
        (study / f"audit/records/runs/{RUN}/stage-1.safetensors.json").unlink()
    else:
        record.write_bytes(b"")
    assert _forgotten(study) == {f"runs/{RUN}/stage-1.json"}


def test_a_figure_that_was_removed(study) -> None:
    """The page goes, so that the report is made again with its figures."""
    (study / "report/figures/a.svg").unlink()
    assert _forgotten(study) == {"report/index.html"}


def test_a_second_plan_over_results_is_refused(tmp_path) -> None:
    """A lock that was removed and made anew does not take over results of the first one."""
    from palimpsest.core.hashing import hash_json

    first = {"format": 1, "study": {}}
    place = tmp_path / "results/plan/lock.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({**first, "hash": hash_json(first)}))
    journal = tmp_path / "no.journal.jsonl"
    refuse_second_plan(tmp_path / "results", journal, {"hash": hash_json(first)})
    refuse_second_plan(tmp_path / "nothing", journal, {"hash": "other"})
    with pytest.raises(LockError, match="results of another plan already"):
        refuse_second_plan(tmp_path / "results", journal, {"hash": "other"})


def test_the_default_study_is_relative_below_the_folder(monkeypatch, tmp_path) -> None:
    """Paths that Snakemake compares stay the same when the folder is moved."""
    monkeypatch.chdir(tmp_path)
    assert study_file([], {}, tmp_path / "config/demo.yaml") == Path("config/demo.yaml")
    assert study_file(["/elsewhere/x.yaml"], {}, tmp_path) == Path("/elsewhere/x.yaml")
    with pytest.raises(StudyError, match="overridden"):
        study_file([], {"a": 1}, tmp_path)
