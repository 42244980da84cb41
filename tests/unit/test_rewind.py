"""Looking closer at a stage after the fact, with a proof that it is the same one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from palimpsest.core.artifact import Job, read_lineage, read_plain_table, record_path
from palimpsest.core.errors import ArtifactError
from palimpsest.core.hashing import canonical_json, hash_file, hash_json
from palimpsest.training.checkpoint import decode, encode
from palimpsest.training.rewind import rewind_stage
from tiny import CODE, HERE, files_of, new_study, record, recording_of, spec_of, train

RUN = "m/s0-o0"
SPEC = spec_of("replay", {"buffer_bytes": 17 * 20, "replayed": 4})
FINE = recording_of(first_batches=None, every=2, tasks="all")["probes"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A study whose run is trained, and probed a little."""
    study = new_study(tmp_path_factory.mktemp("trained"))
    train(study, SPEC, recording=recording_of(first_batches=1))
    return study


@pytest.fixture
def study(trained: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(trained, tmp_path / "study"))


def rewind(study: Path, stage: int, spec: dict = SPEC) -> str:
    about = {"run": RUN, "stage": stage, "probes": FINE}
    job = Job(study, "train", CODE, "e" * 64, hash_json(spec), {"run": RUN})
    writer = Job(study, "rewind", "d" * 64, "e" * 64, hash_json(spec), about)
    return rewind_stage(job, writer, RUN, spec, stage, FINE, HERE, lambda line: None)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_stage_is_looked_at_more_closely(trained, study, stage) -> None:
    """The probes are those asked for, the run is untouched, and the lineage holds the proof and what it comes from."""
    path = rewind(study, stage)
    assert path == f"rewinds/{RUN}/stage-{stage}.every-2.all.test.probes.parquet"
    rows = read_plain_table(study / path, "probes").to_pylist()
    assert {(row["stage"], row["batch"]) for row in rows} == {(stage, batch) for batch in (0, 2, 4, 6, 8)}
    assert {row["task"] for row in rows} == {"t1", "t2", "t3"}
    assert files_of(study) == files_of(trained)
    lineage = read_lineage(study / path)
    for name in (f"stage-{stage}.safetensors", f"stage-{stage}.steps.parquet"):
        digest = hash_file(study / "runs" / RUN / name)
        assert lineage["proof"][name] == {"recorded": digest, "arrived_at": digest}
    assert f"runs/{RUN}/stage-{stage}.json" in lineage["parents"]
    assert (f"runs/{RUN}/stage-{stage - 1}.safetensors" in lineage["parents"]) == (stage > 1)
    assert lineage["parameters"]["probes"] == FINE
    assert not list(study.glob(".rebuild-*"))


def test_what_was_probed_before_is_measured_again(study) -> None:
    """At the mini-batches of both the rewound probes are those of the run."""
    rows = read_plain_table(study / rewind(study, 2), "probes").to_pylist()
    recorded = read_plain_table(study / f"runs/{RUN}/stage-2.probes.parquet", "probes").to_pylist()
    assert [row for row in recorded if row["batch"] == 0] == [
        row for row in rows if (row["batch"], row["task"]) == (0, "t2")
    ]


def tamper(study: Path, stage: int) -> None:
    """Change a weight of a checkpoint, and every hash that would tell."""
    name = f"stage-{stage}.safetensors"
    place = study / "runs" / RUN / name
    content = decode(place)
    content["model"]["head.weight"][0, 0] += 1
    place.write_bytes(encode(content, {}))
    audit = record_path(study, f"runs/{RUN}/{name}")
    audit.write_bytes(canonical_json(json.loads(audit.read_bytes()) | {"sha256": hash_file(place)}))


def test_a_parent_that_was_changed_is_refused(study) -> None:
    """A checkpoint that is not the recorded one is not entered."""
    (study / f"runs/{RUN}/stage-1.safetensors").write_bytes(b"changed")
    with pytest.raises(ArtifactError, match="not the one that was written"):
        rewind(study, 2)
    assert not (study / "rewinds").exists()


def test_a_forged_parent_does_not_arrive(study) -> None:
    """A checkpoint that was changed together with the record of its hash leads to other bytes: nothing is kept."""
    tamper(study, 1)
    with pytest.raises(ArtifactError, match="did not come to the bytes") as error:
        rewind(study, 2)
    assert "stage-2.safetensors" in error.value.expected
    assert not (study / "rewinds").exists()
    assert not list(study.glob(".rebuild-*"))


def test_another_program_does_not_arrive(study, monkeypatch) -> None:
    """A step that is computed otherwise ends in other bytes: nothing is kept."""
    import tiny

    def loss(before, context, state, batch):
        found = before(context, state, batch)
        return type(found)(found.value * 1.000001, found.replayed)

    tiny.override(monkeypatch, "replay", loss=loss)
    with pytest.raises(ArtifactError, match="did not come to the bytes"):
        rewind(study, 2)
    assert not (study / "rewinds").exists()


def test_a_stage_that_ended_is_refused(tmp_path) -> None:
    """There is no checkpoint to arrive at."""
    study, diverges = new_study(tmp_path), spec_of(learning_rate=1e30, batch_size=50, epochs=1)
    train(study, diverges)
    assert record(study, 2)["status"] == "ended"
    with pytest.raises(ArtifactError, match="no checkpoint to arrive at"):
        rewind(study, 2, diverges)
