"""Stages of a run: accepted in place, trained again to the same bytes, ended as a recorded outcome."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tiny
from palimpsest.core.artifact import read_plain_table
from palimpsest.core.errors import ArtifactError
from tiny import (
    HERE,
    checkpoint,
    collect,
    evaluate,
    files_of,
    fresh_model,
    new_study,
    override,
    record,
    same_tensors,
    spec_of,
    step_rows,
    train,
)

RUN = "m/s0-o0"
REPLAY = ("replay", {"buffer_bytes": 17 * 20, "replayed": 4})
COMPOSED = ("replay+ewc", {"replay": REPLAY[1], "ewc": {"strength": 5.0, "fisher_samples": 8}})
DIVERGES = {"learning_rate": 1e30, "batch_size": 50, "epochs": 1}  # one step a stage: the second one finds the damage


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A study whose one run is trained; to be copied by a test that changes it."""
    study = new_study(tmp_path_factory.mktemp("trained"))
    assert train(study, spec_of(*REPLAY)) == [1, 2, 3]
    return study


@pytest.fixture
def study(trained, tmp_path) -> Path:
    """A copy of the trained study."""
    return Path(shutil.copytree(trained, tmp_path / "study"))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "about",
    [
        {"method": "finetune"},
        {"method": "finetune", "optimizer": "adam", "reset_optimizer": False},
        {"method": COMPOSED[0], "hyperparameters": COMPOSED[1], "momentum": 0.9, "reset_optimizer": False},
    ],
    ids=["finetune", "adam", "composed"],
)
def test_stages_per_job_change_no_byte(tmp_path, about):
    """All stages in one job, or each in a job of its own: every file of the run, and every record, is the same."""
    studies = [new_study(tmp_path / name) for name in ("all", "one")]
    train(studies[0], spec_of(**about))
    for number in (1, 2, 3):
        train(studies[1], spec_of(**about), numbers=[number])
    first, second = (files_of(study) for study in studies)
    assert len(first) == 3 * 4
    assert first == second
    records = [{p.relative_to(s): p.read_bytes() for p in s.rglob("audit/records/**/*.json")} for s in studies]
    assert records[0] == records[1]


def test_the_same_run_again_has_the_same_bytes(trained, tmp_path):
    """Another folder, the same specification: the same bytes."""
    other = new_study(tmp_path / "other")
    train(other, spec_of(*REPLAY))
    assert files_of(other) == files_of(trained)


def test_a_finished_run_is_accepted(study):
    """A second job trains nothing and leaves every byte as it was."""
    before = files_of(study)
    assert train(study, spec_of(*REPLAY)) == []
    assert files_of(study) == before


def test_a_deleted_record_is_restored(study):
    """Snakemake deletes a job's declared outputs; the records come back without any training."""
    before = files_of(study)
    for number in (1, 2, 3):
        (study / "runs" / RUN / f"stage-{number}.json").unlink()
    assert train(study, spec_of(*REPLAY)) == []
    assert files_of(study) == before


def test_a_damaged_checkpoint_is_trained_again(study):
    """A flipped bit makes its stage train again to the same hash; the stages after it are accepted."""
    before = files_of(study)
    flip(study / "runs" / RUN / "stage-2.safetensors")
    assert train(study, spec_of(*REPLAY)) == [2]
    assert files_of(study) == before


def test_a_missing_table_is_made_again(study):
    """A stage without its steps is not accepted."""
    before = files_of(study)
    (study / "runs" / RUN / "stage-3.steps.parquet").unlink()
    assert train(study, spec_of(*REPLAY)) == [3]
    assert files_of(study) == before


def test_a_damaged_parent_is_refused(study):
    """A job that begins after a damaged checkpoint does not start from it."""
    flip(study / "runs" / RUN / "stage-1.safetensors")
    with pytest.raises(ArtifactError, match="not the one that was written") as error:
        train(study, spec_of(*REPLAY), numbers=[2])
    assert error.value.where.endswith("stage-1.safetensors")


def test_another_program_does_not_accept(study):
    """What another program trained is trained again, and the record names the new program."""
    assert train(study, spec_of(*REPLAY), code="d" * 64) == [1, 2, 3]
    assert record(study, 1)["lineage"]["code"] == "d" * 64


def test_another_specification_does_not_accept(study):
    """Other hyperparameters under the same name of a run are trained anew."""
    assert train(study, spec_of("replay", REPLAY[1] | {"replayed": 3})) == [1, 2, 3]


def test_other_data_is_not_accepted(study):
    """Samples that were made anew, and are others, are trained on."""
    new_study(study, per_class={"t1": 10})
    assert train(study, spec_of(*REPLAY)) == [1, 2, 3]


OTHER = HERE | {"vendor": "other"}


@pytest.mark.parametrize("numbers", [[1, 2, 3], [3]])
def test_stages_of_another_machine_are_refused(study, numbers):
    """Neither is a stage of another kind of machine accepted, nor gone on from; nothing is changed."""
    (study / "runs" / RUN / ".accepted" / "stage-3.json").unlink()
    before = files_of(study)
    with pytest.raises(ArtifactError, match="trained on another kind of machine") as error:
        train(study, spec_of(*REPLAY), numbers=numbers, machine=OTHER)
    assert f"'vendor': {HERE['vendor']!r}" in error.value.got
    assert "'vendor': 'other'" in error.value.expected
    assert files_of(study) == before


def test_a_plan_may_allow_another_machine(tmp_path):
    """Finished stages are accepted and the run goes on; the records tell of both kinds."""
    spec = spec_of(*REPLAY)
    spec["numerics"] |= {"other_machines": "mark"}
    study = new_study(tmp_path)
    lines: list[str] = []
    assert train(study, spec, numbers=[1]) == [1]
    assert train(study, spec, machine=OTHER, say=lines.append) == [2, 3]
    assert [record(study, stage)["machine"] for stage in (1, 2, 3)] == [HERE, OTHER, OTHER]
    assert "stage 1 was trained on another kind of machine, which the plan allows" in lines


def test_a_stage_that_comes_to_other_bytes_leaves_what_was_there(study, monkeypatch):
    """A method that has become irreproducible: the earlier checkpoint stays, and can still be read."""
    place = study / "runs" / RUN
    (place / "stage-2.steps.parquet").unlink()
    before = (place / "stage-2.safetensors").read_bytes()

    def loss(before, context, state, batch):
        found = before(context, state, batch)
        return type(found)(found.value * 1.000001, found.replayed)

    override(monkeypatch, "replay", loss=loss)
    for _ in range(2):
        with pytest.raises(ArtifactError, match="did not come to the bytes"):
            train(study, spec_of(*REPLAY), numbers=[2])
    assert (place / "stage-2.safetensors").read_bytes() == before
    assert checkpoint(study, 2)
    monkeypatch.undo()
    assert train(study, spec_of(*REPLAY), numbers=[2]) == [2]
    assert {path.name for path in (place / ".accepted").iterdir()} == {f"stage-{stage}.json" for stage in (1, 2, 3)}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}"])
def test_a_torn_copy_of_a_record_is_not_accepted(study, text):
    """A copy that is no record makes its stage train again."""
    (study / "runs" / RUN / ".accepted" / "stage-1.json").write_text(text)
    assert train(study, spec_of(*REPLAY)) == [1]


def test_a_changed_sample_is_refused(study):
    """Training does not start on inputs that are not those that were written."""
    flip(study / "data" / "inputs.npy")
    with pytest.raises(ArtifactError, match="not the one that was written"):
        train(study, spec_of(*REPLAY))


def test_a_record_names_all_that_a_stage_comes_from(trained):
    """Parents of a stage: the samples, and the checkpoint of the stage before it."""
    data = {"data/samples.parquet", "data/inputs.npy", "data/moves.parquet"}
    assert record(trained, 2)["lineage"]["parents"].keys() == {*data, f"runs/{RUN}/stage-1.safetensors"}
    assert record(trained, 1)["lineage"]["parents"].keys() == data
    assert set(record(trained, 1)["files"]) == {"stage-1.safetensors", "stage-1.steps.parquet"}


def test_no_file_of_a_run_names_the_machine(trained):
    """Hashed artifacts hold no absolute path, host name or date."""
    import socket

    texts = b"".join(files_of(trained).values())
    assert str(trained).encode() not in texts
    assert socket.gethostname().encode() not in texts


@pytest.fixture(scope="module")
def diverged(tmp_path_factory) -> Path:
    """A study whose run diverges: its second stage ends, its third was never reached."""
    study = new_study(tmp_path_factory.mktemp("diverged"))
    assert train(study, spec_of(**DIVERGES), numbers=[1, 2]) == [1, 2]
    return study


def test_divergence_is_an_outcome(diverged):
    """A loss or gradient that is not finite ends the run: the record says stage, step and reason; no checkpoint."""
    ended = record(diverged, 2)
    assert record(diverged, 1)["status"] == "complete"
    assert (ended["status"], ended["ended_in"], ended["step"]) == ("ended", 2, 1)
    assert ended["reason"].startswith("numerical: the ")
    assert ended["reason"].endswith(" at step 2")
    assert set(ended["files"]) == {"stage-2.steps.parquet"}
    assert step_rows(diverged, 2) == []


def test_later_stages_end_without_torch(diverged, tmp_path):
    """A stage after the end is recorded as ended, in a process that cannot import torch, and is not observed."""
    study = Path(shutil.copytree(diverged, tmp_path / "study"))
    program = f"""
import sys
sys.modules["torch"] = None
sys.path.insert(0, {str(Path(tiny.__file__).parent)!r})
from pathlib import Path
from tiny import spec_of, train
print(train(Path({str(study)!r}), spec_of(**{DIVERGES!r}), numbers=[3]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    expected = {key: record(diverged, 2)[key] for key in ("status", "ended_in", "step", "reason")}
    assert {key: record(study, 3)[key] for key in expected} == expected
    assert record(study, 3)["files"] == {}
    assert record(study, 3)["stage"] == 3


def test_a_stage_that_ended_is_accepted(diverged, tmp_path):
    """An outcome is a result: it is not tried again."""
    study = Path(shutil.copytree(diverged, tmp_path / "study"))
    before = files_of(study)
    assert train(study, spec_of(**DIVERGES), numbers=[1, 2]) == []
    assert files_of(study) == before


def test_evaluation_has_no_rows_after_the_end(diverged, tmp_path):
    """The stages from the end on have no predictions and no cells of the matrix; the stage before has all."""
    study = Path(shutil.copytree(diverged, tmp_path / "study"))
    train(study, spec_of(**DIVERGES), numbers=[3])
    evaluate(study, spec_of(**DIVERGES))
    for name in ("predictions", "matrix"):
        assert set(read_plain_table(study / f"evaluation/{RUN}/{name}.parquet", name)["stage"].to_pylist()) == {1}


def test_the_outcome_of_an_ended_run(diverged, tmp_path):
    """The table `outcome` says where and why the run ended; the steps are those before."""
    study = Path(shutil.copytree(diverged, tmp_path / "study"))
    train(study, spec_of(**DIVERGES), numbers=[3])
    collect(study, spec_of(**DIVERGES))
    (row,) = read_plain_table(study / f"runs/{RUN}/outcome.parquet", "outcome").to_pylist()
    assert (row["status"], row["stage"], row["step"]) == ("ended", 2, 1)
    assert row["reason"].startswith("numerical")
    assert len(read_plain_table(study / f"runs/{RUN}/steps.parquet", "steps")) == 1


def test_a_reference_whose_first_stage_ended_is_not_complete(tmp_path):
    """Stages of `isolated` are independent: one that ended makes the outcome `ended`, though the last is complete."""
    study = new_study(tmp_path, per_class={"t1": 11, "t2": 11, "t3": 1})
    spec = spec_of(stage_schedule="isolated", **DIVERGES | {"batch_size": 20})
    train(study, spec)
    assert [record(study, number)["status"] for number in (1, 2, 3)] == ["ended", "ended", "complete"]
    collect(study, spec)
    (row,) = read_plain_table(study / f"runs/{RUN}/outcome.parquet", "outcome").to_pylist()
    assert (row["status"], row["stage"]) == ("ended", 1)


def test_weights_that_are_not_finite_end_the_run(tmp_path, monkeypatch):
    """A stage whose weights overflowed in its last step ends, though every loss was finite."""
    study = new_study(tmp_path)
    tiny.override(monkeypatch, "finetune", after_task=overflow)
    train(study, spec_of())
    assert record(study, 1)["reason"] == "numerical: a weight is not finite after step 8"
    assert [record(study, number)["status"] for number in (1, 2, 3)] == ["ended"] * 3


def overflow(before, context, state):
    context.model.head.weight.data[0, 0] = float("inf")
    return before(context, state)


def test_steps_of_a_run_are_those_of_its_stages(study):
    """`steps.parquet` holds the rows of all stages in their order, and the outcome is complete."""
    collect(study, spec_of(*REPLAY))
    rows = read_plain_table(study / f"runs/{RUN}/steps.parquet", "steps").to_pylist()
    assert rows == [row for number in (1, 2, 3) for row in step_rows(study, number)]
    (row,) = read_plain_table(study / f"runs/{RUN}/outcome.parquet", "outcome").to_pylist()
    assert row == {"status": "complete", "stage": 3, "step": 24, "reason": None}


def test_attempts_are_counted(study):
    """The telemetry has one row for each attempt; one that never ended was killed."""
    log = study / f"telemetry/{RUN}.attempts.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    start = {"event": "started", "stage": 1, "time": "2026-01-01T00:00:00+00:00", "host": "h", "process": 1}
    end = {"event": "ended", "stage": 1, "time": "2026-01-01T00:00:09+00:00", "outcome": "finished"}
    lines = [{**start, "attempt": "a"}, {**start, "attempt": "b"}]
    lines += [{**end, "attempt": "b", "wall_clock_s": 9.0, "peak_memory_bytes": 5}]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    collect(study, spec_of(*REPLAY))
    rows = read_plain_table(study / f"telemetry/{RUN}.parquet", "telemetry").to_pylist()
    assert [(row["attempt"], row["outcome"], row["wall_clock_s"]) for row in rows] == [
        (1, "killed", None),
        (2, "finished", 9.0),
    ]


def test_joint_training_starts_afresh_at_each_stage(tmp_path):
    """Stage k of joint training per stage is what training on the union alone comes to."""
    study = new_study(tmp_path)
    train(study, spec_of(stage_schedule="joint"), "joint/s0-o0")
    train(study, spec_of(stage_schedule="joint"), "third/s0-o0", [3])
    ends = [checkpoint(study, 3, run)["model"] for run in ("joint/s0-o0", "third/s0-o0")]
    assert same_tensors(*ends)
    assert {row["task"] for row in step_rows(study, 3, "joint/s0-o0")} == {"t1+t2+t3"}
    assert len(step_rows(study, 3, "joint/s0-o0")) == 2 * 10  # epochs, batches of 7 among 66


def test_isolated_training_knows_one_task(tmp_path):
    """The first stage of isolated training is finetune's first stage; the second starts from fresh weights."""
    study = new_study(tmp_path)
    train(study, spec_of(stage_schedule="isolated"), "isolated/s0")
    train(study, spec_of(), "finetune/s0-o0", [1])
    train(study, spec_of(order=("t2", "t1", "t3")), "finetune/s0-o1", [1])
    first, second = (checkpoint(study, number, "isolated/s0")["model"] for number in (1, 2))
    assert same_tensors(first, checkpoint(study, 1, "finetune/s0-o0")["model"])
    assert same_tensors(second, checkpoint(study, 1, "finetune/s0-o1")["model"])


def test_the_untrained_model_takes_no_step(tmp_path):
    """`random_init` has a checkpoint of the initial weights as stage 0, no steps and no FLOPs."""

    study = new_study(tmp_path)
    spec = spec_of(stage_schedule="untrained")
    train(study, spec)
    assert same_tensors(checkpoint(study, 0)["model"], fresh_model(spec).state_dict())
    assert step_rows(study, 0) == []
    counted = record(study, 0)["counted"]
    assert (counted["steps"], counted["flops_steps"], record(study, 0)["status"]) == (0, 0, "complete")


def test_a_stage_of_another_specification_is_refused(study):
    """A record that lies where the plan now describes another run is neither evaluated nor collected."""
    other = spec_of(*REPLAY) | {"seed": 99}
    for work in (collect, evaluate):
        with pytest.raises(ArtifactError, match="not of the run that the plan describes"):
            work(study, other)
