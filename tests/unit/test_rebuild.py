"""A lost stage made again, and a run given up."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from palimpsest.core.artifact import Job
from palimpsest.core.errors import ArtifactError
from palimpsest.core.hashing import hash_json
from palimpsest.plan.probing import NOTHING
from palimpsest.training.rebuild import rebuild_stage
from palimpsest.training.stages import abandon_stages
from tiny import CODE, HERE, collect, evaluate, files_of, new_study, record, spec_of, train

RUN = "m/s0-o0"
SPEC = spec_of("replay", {"buffer_bytes": 17 * 20, "replayed": 4})


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A study whose run is trained."""
    study = new_study(tmp_path_factory.mktemp("trained"))
    train(study, SPEC)
    return study


@pytest.fixture
def study(trained: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(trained, tmp_path / "study"))


def job(study: Path, code: str = CODE) -> Job:
    return Job(study, "train", code, "e" * 64, spec_hash=hash_json(SPEC), parameters={"run": RUN})


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_lost_checkpoint_is_made_again_with_the_recorded_hash(trained, study, stage: int) -> None:
    """Checkpoint and record of its hash are removed, the stage is rebuilt, and every file is as before."""
    (study / f"runs/{RUN}/stage-{stage}.safetensors").unlink()
    (study / f"audit/records/runs/{RUN}/stage-{stage}.safetensors.json").unlink()
    made = rebuild_stage(job(study), RUN, SPEC, stage, HERE, lambda line: None)
    assert f"runs/{RUN}/stage-{stage}.safetensors" in made
    assert files_of(study) == files_of(trained)
    evaluate(study, SPEC)
    assert not list(study.glob(".rebuild-*"))


def test_a_stage_that_comes_out_otherwise_replaces_nothing(study) -> None:
    """Another learning rate gives other bytes: the damaged file is left as it is, and the error says so."""
    place = study / f"runs/{RUN}/stage-2.safetensors"
    place.write_bytes(b"damaged")
    other = SPEC | {"training": SPEC["training"] | {"learning_rate": 0.2}}
    with pytest.raises(ArtifactError, match="cannot be made again"):
        rebuild_stage(job(study), RUN, other, 2, HERE, lambda line: None)
    assert place.read_bytes() == b"damaged"


def test_a_stage_without_a_record_is_refused(study) -> None:
    """There is nothing to prove it against."""
    with pytest.raises(ArtifactError, match="cannot be made again"):
        rebuild_stage(job(study), RUN, SPEC, 9, HERE, lambda line: None)


def test_an_abandoned_run_is_a_recorded_outcome(study) -> None:
    """Stages 2 and 3 will not come: outcome and matrix say so, and a later job accepts it and trains nothing."""
    for stage in (2, 3):
        (study / f"runs/{RUN}/stage-{stage}.json").unlink()
        (study / f"runs/{RUN}/.accepted/stage-{stage}.json").unlink()
    assert abandon_stages(job(study), RUN, SPEC, NOTHING, HERE, "the node is gone", lambda line: None) == [2, 3]
    assert record(study, 3)["reason"] == "infrastructure: the node is gone"
    assert record(study, 3)["ended_in"] == 2
    collect(study, SPEC)
    evaluate(study, SPEC)
    assert train(study, SPEC) == []


def test_a_complete_run_is_not_abandoned(study, trained) -> None:
    """Nothing is missing, nothing is changed."""
    assert abandon_stages(job(study), RUN, SPEC, NOTHING, HERE, "no reason", lambda line: None) == []
    assert files_of(study) == files_of(trained)
