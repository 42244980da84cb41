"""The stages `ledger` and `audit`: what lies there is hashed again and summed up in one root."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from made_up_study import MadeUpStudy
from palimpsest.audit import hashed
from palimpsest.audit.merkle import merkle_root
from palimpsest.core.artifact import read_record, record_path
from palimpsest.core.errors import ArtifactError

ORDER = ("a", "b")
METHODS = ("finetune", "replay")


@pytest.fixture
def study(tmp_path: Path) -> MadeUpStudy:
    study = MadeUpStudy(tmp_path)
    study.plan({"s0-o0": ORDER})
    for method in METHODS:
        study.run(f"{method}/s0-o0", ORDER, [[90, 10], [70, 80]])
        study.metrics(f"{method}/s0-o0")
    return study


def ledger(study: MadeUpStudy, method: str = "replay") -> dict:
    study.stage("ledger", method=method)
    rows = study.rows(f"audit/ledger/{method}.parquet", "ledger")
    return {row["path"]: row for row in rows}


def audit(study: MadeUpStudy) -> dict:
    for method in METHODS:
        ledger(study, method)
    study.stage("audit", methods=METHODS)
    return study.job("look").read_json("audit/root.json")


def flip_a_byte(place: Path) -> None:
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)


def test_a_shard_lists_the_artifacts_of_its_method_alone(study: MadeUpStudy) -> None:
    assert set(ledger(study)) == {
        "plan/code/replay.json",
        "plan/code/evaluate/replay.json",
        "runs/replay/s0-o0/outcome.parquet",
        "runs/replay/s0-o0/stage-1.json",
        "runs/replay/s0-o0/stage-2.json",
        "evaluation/replay/s0-o0/matrix.parquet",
        "metrics/replay/s0-o0.parquet",
    }


def test_a_row_repeats_the_record_of_the_artifact(study: MadeUpStudy) -> None:
    path = "metrics/replay/s0-o0.parquet"
    record = read_record(study.folder, path)
    row = ledger(study)[path]
    assert json.loads(row.pop("parents")) == record.pop("parents")
    assert row == record


def test_a_run_that_is_not_of_the_plan_is_not_listed(study: MadeUpStudy) -> None:
    study.run("replay/s9-o9", ORDER, [[1, 2], [3, 4]])
    assert not [path for path in ledger(study) if "s9-o9" in path]


@pytest.mark.parametrize(
    "path", ["runs/replay/s0-o0/outcome.parquet", "plan/code/replay.json", "metrics/replay/s0-o0.parquet"]
)
def test_a_flipped_byte_is_found_and_the_file_named(study: MadeUpStudy, path: str) -> None:
    flip_a_byte(study.folder / path)
    with pytest.raises(ArtifactError, match="not the one that was written") as error:
        ledger(study)
    assert error.value.where.endswith(path)


def test_a_missing_file_is_found_and_named(study: MadeUpStudy) -> None:
    (study.folder / "evaluation/replay/s0-o0/matrix.parquet").unlink()
    with pytest.raises(ArtifactError, match="missing") as error:
        ledger(study)
    assert error.value.where.endswith("evaluation/replay/s0-o0/matrix.parquet")


def test_a_run_removed_with_its_records_is_found(study: MadeUpStudy) -> None:
    path = "metrics/replay/s0-o0.parquet"
    (study.folder / path).unlink()
    record_path(study.folder, path).unlink()
    with pytest.raises(ArtifactError, match="missing"):
        ledger(study)


def read_by_the_ledger(study: MadeUpStudy, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The artifacts that one more `ledger` of replay hashes."""
    read: list[str] = []
    check = hashed.check_artifact
    monkeypatch.setattr(hashed, "check_artifact", lambda folder, path: (read.append(path), check(folder, path))[1])
    ledger(study)
    return read


def grow_old(study: MadeUpStudy) -> None:
    """Set the note of the ledger into the future, as if it had been written long after all that it names."""
    for place in (study.folder / "telemetry/hashed").iterdir():
        os.utime(place, ns=(0, place.stat().st_mtime_ns + 10**10))


def test_what_was_hashed_before_and_not_touched_is_not_read_again(study: MadeUpStudy, monkeypatch) -> None:
    """One new run makes the ledger read its artifacts and no others; the shard is the same as read in full."""
    before = ledger(study)
    grow_old(study)
    study.metrics("replay/s0-o0")
    assert read_by_the_ledger(study, monkeypatch) == ["metrics/replay/s0-o0.parquet"]
    assert ledger(study) == before


def test_what_changed_since_it_was_hashed_is_read_and_found(study: MadeUpStudy) -> None:
    """A byte that was flipped, with the old time of change set back, is found by the next ledger."""
    ledger(study)
    grow_old(study)
    place = study.folder / "runs/replay/s0-o0/outcome.parquet"
    times = place.stat()
    flip_a_byte(place)
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(ArtifactError, match="not the one that was written"):
        ledger(study)


def test_a_damaged_note_of_what_was_hashed_is_no_evidence(study: MadeUpStudy, monkeypatch) -> None:
    """Everything is read again."""
    n = len(ledger(study))
    (study.folder / "telemetry/hashed/replay.parquet").write_bytes(b"PAR1")
    assert len(read_by_the_ledger(study, monkeypatch)) == n


def test_the_root_is_the_merkle_root_over_the_content_of_all_shards(study: MadeUpStudy) -> None:
    root = audit(study)
    paths = [f"audit/ledger/{name}.parquet" for name in ("_study", *METHODS)]
    assert root["shards"] == {path: read_record(study.folder, path)["content_sha256"] for path in paths}
    assert root["root"] == merkle_root(root["shards"])


def test_the_study_shard_lists_what_belongs_to_no_method(study: MadeUpStudy) -> None:
    audit(study)
    paths = {row["path"] for row in study.rows("audit/ledger/_study.parquet", "ledger")}
    rules = {f"plan/code/rules/{stage}.json" for stage in ("metrics", "ledger", "aggregate", "statistics", "audit")}
    assert paths == {"plan/units.parquet", "plan/runs.parquet", *rules}


def test_the_root_is_the_same_when_the_study_is_made_again(study: MadeUpStudy, tmp_path: Path) -> None:
    first = audit(study)["root"]
    study.metrics("replay/s0-o0")
    assert audit(study)["root"] == first


def test_the_root_changes_with_one_prediction(study: MadeUpStudy) -> None:
    first = audit(study)["root"]
    study.run("replay/s0-o0", ORDER, [[90, 10], [71, 80]])
    study.metrics("replay/s0-o0")
    assert audit(study)["root"] != first


def test_an_artifact_made_from_another_version_of_its_parent_is_found(study: MadeUpStudy) -> None:
    study.run("replay/s0-o0", ORDER, [[90, 10], [71, 80]])
    with pytest.raises(ArtifactError, match="another version of its parent") as error:
        audit(study)
    assert error.value.where == "metrics/replay/s0-o0.parquet"


def test_an_aggregate_made_from_another_version_of_a_shard_is_found(study: MadeUpStudy) -> None:
    audit(study)
    study.stage("aggregate", methods=METHODS)
    study.run("replay/s0-o0", ORDER, [[90, 10], [71, 80]])
    study.metrics("replay/s0-o0")
    with pytest.raises(ArtifactError, match="another version of its parent") as error:
        audit(study)
    assert error.value.where.startswith("aggregate/")


def test_a_run_that_is_not_the_one_of_the_plan_is_refused(study: MadeUpStudy) -> None:
    """A matrix of another specification, left from before the plan changed, does not enter the ledger."""
    runs = study.job("look").read_table("plan/runs.parquet", "runs")
    other = runs.set_column(runs.column_names.index("spec_hash"), "spec_hash", [["other"] * len(runs)])
    study.job("plan").write_table("plan/runs.parquet", "runs", other)
    with pytest.raises(ArtifactError, match="not the one that the plan describes"):
        ledger(study)
