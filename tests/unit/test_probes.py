"""Probes and the stream: what they count is right, and they leave no trace in the run."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from palimpsest.core.artifact import Job, read_lineage, read_plain_table
from palimpsest.core.errors import ArtifactError, StoppedError
from palimpsest.metrics._recorded import probe_inputs, stream_inputs
from palimpsest.metrics.b_shot import b_shot
from palimpsest.metrics.learning_curve_area import learning_curve_area
from palimpsest.metrics.prequential_accuracy import prequential_accuracy
from palimpsest.plan.probing import NOTHING
from palimpsest.training.predicting import undisturbed
from palimpsest.training.stages import abandon_stages
from tiny import (
    CODE,
    HERE,
    Script,
    collect,
    files_of,
    fresh_model,
    new_study,
    override,
    record,
    recording_of,
    spec_of,
    train,
)

RUN = "m/s0-o0"
CLASS, TASK = "class_incremental", "task_incremental"
REPLAY = ("replay", {"buffer_bytes": 17 * 20, "replayed": 4})
COMPOSED = ("replay+ewc", {"replay": REPLAY[1], "ewc": {"strength": 5.0, "fisher_samples": 8}})
EVERYTHING = recording_of(prequential=True, first_batches=3, log=True, every=5, held_out_every=20, tasks="all")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples; every test uses run names of its own."""
    return new_study(tmp_path_factory.mktemp("tiny"), n_validation=3)


def rows_of(study: Path, name: str, run: str, stage: int | None = None, **where: Any) -> list[dict[str, Any]]:
    """Rows with some values of what a stage recorded, or a whole run."""
    path = study / f"runs/{run}/{'' if stage is None else f'stage-{stage}.'}{name}.parquet"
    rows = read_plain_table(path, name).to_pylist()
    return [row for row in rows if all(row[column] == value for column, value in where.items())]


def run_itself(study: Path, run: str) -> dict[str, bytes]:
    """Checkpoints and steps: what must not depend on what is recorded."""
    endings = (".safetensors", ".steps.parquet")
    return {name: content for name, content in files_of(study, run).items() if name.endswith(endings)}


def samples_of(study: Path, split: str, task: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and labels, read without the program."""
    table = read_plain_table(study / "data/samples.parquet", "samples").to_pylist()
    rows = [at for at, row in enumerate(table) if (row["split"], row["task"]) == (split, task)]
    inputs = torch.from_numpy(np.load(study / "data/inputs.npy")[rows])
    return inputs.float() / 255, torch.tensor([table[at]["label"] for at in rows])


def counted_by_hand(model: nn.Module, study: Path, task: str, split: str = "test") -> tuple[int, float]:
    """Right answers and the sum of cross-entropies of a model on a task's samples."""
    inputs, labels = samples_of(study, split, task)
    with torch.no_grad():
        outputs = model(inputs)
    return int((outputs.argmax(1) == labels).sum()), nn.functional.cross_entropy(
        outputs, labels, reduction="sum"
    ).item()


@pytest.mark.parametrize("split", ["test", "validation"])
def test_before_the_first_update_the_model_is_the_initial_one(study, split):
    """Z_0 of the first stage is the accuracy and the loss of the initial weights on the samples of the split."""
    run = f"zero-{split}/s0-o0"
    train(study, spec_of(), run, [1], recording=recording_of(first_batches=0, tasks="all", split=split))
    for task in ("t1", "t2", "t3"):
        n_correct, loss = counted_by_hand(fresh_model(spec_of()), study, task, split)
        (row,) = rows_of(study, "probes", run, 1, task=task, group="all", protocol=CLASS)
        assert (row["batch"], row["samples_seen"], row["split"]) == (0, 0, split)
        assert (row["n_correct"], row["n_total"]) == (n_correct, {"test": 10, "validation": 6}[split])
        assert row["loss_sum"] == pytest.approx(loss, rel=1e-5)


def test_the_learning_curve_of_a_run_is_the_one_worked_by_hand(monkeypatch, study):
    """Z_b and LCA_β of a real run: the model is evaluated here, before and after each of the first mini-batches."""
    seen: dict[tuple[int, int], float] = {}

    def note(context, batch: int) -> None:
        n_correct, _ = counted_by_hand(context.model, study, context.task)
        seen[context.stage, batch] = n_correct / 10

    def begin_task(before, context, state):
        note(context, 0)
        return before(context, state)

    def after_step(before, context, state, batch, loss):
        if context.stage_step <= 3:
            note(context, context.stage_step)
        return before(context, state, batch, loss)

    override(monkeypatch, "finetune", begin_task=begin_task, after_step=after_step)
    train(study, spec_of(), "curve/s0-o0", recording=recording_of(first_batches=3))
    collect(study, spec_of(), "curve/s0-o0", recording_of(first_batches=3))
    inputs = probe_inputs(rows_of(study, "probes", "curve/s0-o0"), ("t1", "t2", "t3"), CLASS, {})
    shots = [sum(seen[stage, batch] for stage in (1, 2, 3)) / 3 for batch in range(4)]
    assert b_shot(inputs["after_batches"]).tolist() == pytest.approx(shots)
    areas = [sum(shots[: beta + 1]) / (beta + 1) for beta in range(4)]
    assert learning_curve_area(inputs["after_batches"], inputs["batches"]).tolist() == pytest.approx(areas)
    assert len(set(shots)) > 2, "a curve that does not move shows nothing"


def test_each_schedule_has_its_probes(study):
    """The first β, powers of two, multiples, and crossings of a number of samples; of stages of 8 steps, 44 samples."""
    train(study, spec_of(), "schedule/s0-o0", recording=EVERYTHING)
    batches = [
        [
            row["batch"]
            for row in rows_of(study, "probes", "schedule/s0-o0", stage, task="t1", group="all", protocol=CLASS)
        ]
        for stage in (1, 2)
    ]
    # After each step of a stage: 7, 14, 21, 22, 29, 36, 43, 44 samples; in the second stage 44 more.
    assert batches == [[0, 1, 2, 3, 4, 5, 7, 8], [0, 1, 2, 3, 4, 5, 6, 8]]
    every = recording_of(first_batches=None, held_out_every=20, tasks="all")
    train(study, spec_of(), "interval/s0-o0", recording=every)
    seen = [{row["samples_seen"] for row in rows_of(study, "probes", "interval/s0-o0", k)} for k in (1, 2, 3)]
    assert seen == [{0, 21, 43}, {65, 80}, {102, 124}]


@pytest.mark.parametrize(
    "about",
    [
        {"method": "finetune", "optimizer": "adam", "reset_optimizer": False},
        {"method": COMPOSED[0], "hyperparameters": COMPOSED[1], "momentum": 0.9, "schedule": "cosine"},
        {"method": "finetune", "mask": "current", "protocol": TASK, "head": "multi"},
        {"method": "finetune", "stage_schedule": "cumulative"},
    ],
    ids=["adam", "composed", "multi", "cumulative"],
)
def test_a_run_has_the_same_bytes_with_and_without_probes(study, tmp_path, about):
    """Every checkpoint and every table of steps, lineage included, whatever is recorded."""
    other = Path(shutil.copytree(study, tmp_path / "other", ignore=shutil.ignore_patterns("runs")))
    train(other, spec_of(**about), "same/s0-o0")
    for number, recording in enumerate([EVERYTHING, recording_of(prequential=True), recording_of(samples=2)]):
        probed = Path(shutil.copytree(other, tmp_path / str(number), ignore=shutil.ignore_patterns("runs")))
        train(probed, spec_of(**about), "same/s0-o0", recording=recording)
        assert run_itself(probed, "same/s0-o0") == run_itself(other, "same/s0-o0")


def test_what_is_looked_at_is_left_as_it_was():
    """Predicting changes no buffer of a normalisation layer, and every layer is in its own mode again."""
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.BatchNorm1d(4))
    model[3].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with undisturbed(model):
        first, second = model(torch.ones(3, 4)), model(torch.ones(3, 4))
    assert torch.equal(first, second), "dropout was off"
    assert not first.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [layer.training for layer in model] == [True, True, True, False]


def test_a_stage_is_accepted_only_with_the_probes_that_are_asked_for(study):
    """The same recording is accepted; another one trains again from the parent's checkpoint, to the same bytes."""
    run = "accepted/s0-o0"
    assert train(study, spec_of(*REPLAY), run) == [1, 2, 3]
    plain = run_itself(study, run)
    assert train(study, spec_of(*REPLAY), run, recording=EVERYTHING) == [1, 2, 3]
    assert run_itself(study, run) == plain
    assert record(study, 2, run)["recording"] == EVERYTHING
    assert train(study, spec_of(*REPLAY), run, recording=EVERYTHING) == []
    assert train(study, spec_of(*REPLAY), run, recording=recording_of(first_batches=1)) == [1, 2, 3]
    assert {row["batch"] for row in rows_of(study, "probes", run, 3)} == {0, 1}


def test_a_probe_that_disturbs_is_found(monkeypatch, study):
    """A prediction that changes a weight makes another checkpoint; asking for probes afterwards fails loudly."""

    def predict(before, context, state, inputs, tasks):
        context.model.head.bias.data[0] += 1e-6
        return before(context, state, inputs, tasks)

    override(monkeypatch, "finetune", predict=predict)
    train(study, spec_of(), "disturbed/s0-o0", [1])
    with pytest.raises(ArtifactError, match="did not come to the bytes") as error:
        train(study, spec_of(), "disturbed/s0-o0", [1], recording=recording_of(first_batches=3))
    assert "stage-1.safetensors" in error.value.expected


@pytest.mark.parametrize("step", [1, 4, 7])
def test_probes_survive_a_stop_and_a_kill(study, tmp_path, step):
    """What was recorded before the resume file is in it, what came after is recorded again: every file is the same."""
    whole, broken = (
        Path(shutil.copytree(study, tmp_path / name, ignore=shutil.ignore_patterns("runs"))) for name in ("a", "b")
    )
    train(whole, spec_of(*REPLAY), recording=EVERYTHING)
    with pytest.raises(StoppedError):
        train(broken, spec_of(*REPLAY), ask=Script(stop=step), recording=EVERYTHING)
    with pytest.raises(KeyboardInterrupt):
        train(broken, spec_of(*REPLAY), ask=Script(save=8, die=12), recording=EVERYTHING)
    train(broken, spec_of(*REPLAY), recording=EVERYTHING)
    assert files_of(broken) == files_of(whole)


def test_a_resume_file_with_other_probes_is_set_aside(study):
    """Probes that were not taken cannot be taken any more: the stage begins anew."""
    with pytest.raises(StoppedError):
        train(study, spec_of(), "stale/s0-o0", ask=Script(stop=3))
    lines: list[str] = []
    train(study, spec_of(), "stale/s0-o0", say=lines.append, recording=EVERYTHING)
    assert any("set aside" in line and "other probes" in line for line in lines)
    assert rows_of(study, "probes", "stale/s0-o0", 1)[0]["batch"] == 0


def stream_by_hand(monkeypatch, study, run: str, **about) -> list[tuple[int, int, int, int]]:
    """Stage, mini-batch, right answers and samples of each mini-batch, predicted here before the step is made."""
    found = []

    def loss(before, context, state, batch):
        inputs, labels = batch.inputs[batch.first_presentation].float() / 255, batch.labels[batch.first_presentation]
        with torch.no_grad():
            right = int((context.model(inputs, None).argmax(1) == labels).sum()) if len(labels) else 0
        if torch.is_grad_enabled() and context.step not in steps:  # the counter of FLOPs calls the hook too
            steps.add(context.step)
            found.append((context.stage, context.stage_step, right, len(labels)))
        return before(context, state, batch)

    steps: set[int] = set()
    with monkeypatch.context() as patch:
        override(patch, "finetune", loss=loss)
        train(study, spec_of(**about), run, recording=recording_of(prequential=True))
    collect(study, spec_of(**about), run, recording_of(prequential=True))
    return [row for row in found if row[3]]


@pytest.mark.parametrize(
    ("about", "sizes"),
    [
        ({}, {1: [7, 7, 7, 1], 2: [7, 7, 7, 1], 3: [7, 7, 7, 1]}),
        ({"order": ("t1", "t2", "t1")}, {1: [7, 7, 7, 1], 2: [7, 7, 7, 1]}),
    ],
    ids=["two-epochs", "repeated"],
)
def test_each_mini_batch_is_predicted_before_it_is_trained_on(monkeypatch, study, about, sizes):
    """Counts of every mini-batch are those worked by hand; second epochs and second visits are not counted."""
    run = f"stream-{len(sizes)}/s0-o0"
    found = stream_by_hand(monkeypatch, study, run, **about)
    rows = rows_of(study, "prequential", run)
    assert [tuple(row[name] for name in ("stage", "batch", "n_correct", "n_total")) for row in rows] == found
    assert {k: [row["n_total"] for row in rows if row["stage"] == k] for k in sizes} == sizes
    assert [row["samples_seen"] for row in rows][:4] == [7, 14, 21, 22]
    inputs = stream_inputs(rows, 3)
    if len(sizes) == 3:
        right = sum(n for _, _, n, _ in found)
        assert prequential_accuracy(**inputs) == pytest.approx(right / 66)


def test_of_a_union_only_the_newest_task_is_new(monkeypatch, study):
    """Cumulative training meets the samples of earlier tasks again: each sample is predicted once in the whole run."""
    found = stream_by_hand(monkeypatch, study, "union/s0-o0", stage_schedule="cumulative")
    rows = rows_of(study, "prequential", "union/s0-o0")
    assert [tuple(row[name] for name in ("stage", "batch", "n_correct", "n_total")) for row in rows] == found
    assert [sum(row["n_total"] for row in rows if row["stage"] == k) for k in (1, 2, 3)] == [22, 22, 22]
    assert max(row["n_total"] for row in rows if row["stage"] == 3) < 7


def test_losses_stand_beside_the_counts(study):
    """The loss of a mini-batch that finetune meets first is the loss of its step, a mean over the batch."""
    train(study, spec_of(), "loss/s0-o0", [1], recording=recording_of(prequential=True))
    steps = read_plain_table(study / "runs/loss/s0-o0/stage-1.steps.parquet", "steps").to_pylist()
    rows = rows_of(study, "prequential", "loss/s0-o0", 1)
    assert [row["loss_sum"] / row["n_total"] for row in rows] == pytest.approx([s["loss"] for s in steps[:4]], rel=1e-5)


def test_old_and_new_classes_stand_apart(study):
    """In the second stage classes of the first are old, its own new, and those to come neither; groups add up."""
    train(study, spec_of(), "groups/s0-o0", [1, 2], recording=recording_of(first_batches=1, tasks="all"))
    for stage, groups in ((1, {"t1": "new"}), (2, {"t1": "old", "t2": "new"})):
        rows = rows_of(study, "probes", "groups/s0-o0", stage, protocol=CLASS, batch=1)
        assert {(row["task"], row["group"]) for row in rows if row["group"] != "all"} == set(groups.items())
        for task in groups:
            whole, part = (row for row in rows if row["task"] == task)
            assert [whole[name] for name in ("n_correct", "n_total", "loss_sum")] == [
                part[name] for name in ("n_correct", "n_total", "loss_sum")
            ]


def test_a_task_that_comes_back_has_old_classes(study):
    """At its second visit nothing of a task is new."""
    train(study, spec_of(order=("t1", "t2", "t1")), "back/s0-o0", recording=recording_of(first_batches=0))
    assert {row["group"] for row in rows_of(study, "probes", "back/s0-o0", 3)} == {"all", "old"}


def test_a_task_whose_outputs_cannot_be_chosen_is_not_probed(study):
    """Under `seen` a task to come would score 0 by construction; the choice within it is measured all the same."""
    train(study, spec_of(mask="seen"), "seen/s0-o0", [1], recording=recording_of(first_batches=0, tasks="all"))
    rows = rows_of(study, "probes", "seen/s0-o0", 1, group="all")
    assert {row["task"] for row in rows if row["protocol"] == CLASS} == {"t1"}
    assert {row["task"] for row in rows if row["protocol"] == TASK} == {"t1", "t2", "t3"}


def test_the_samples_of_probes_are_drawn_once_for_all_methods_and_orders(study):
    """Methods and orders of a seed are probed on the same samples: before any training their counts are equal."""
    few = recording_of(first_batches=0, tasks="all", samples=4)
    runs = {"few-a": spec_of(*REPLAY), "few-b": spec_of(order=("t3", "t2", "t1")), "few-c": spec_of(seed=1)}
    for run, spec in runs.items():
        train(study, spec, f"{run}/s0-o0", [1], recording=few)
    losses = {
        run: [(row["n_total"], row["loss_sum"]) for row in rows_of(study, "probes", f"{run}/s0-o0", 1, group="all")]
        for run in runs
    }
    assert {n for n, _ in losses["few-a"]} == {4}
    assert losses["few-a"] == losses["few-b"]
    assert losses["few-a"] != losses["few-c"]


def test_more_samples_than_there_are_is_all_of_them(study):
    """Tasks may differ in size: a probe takes at most what a task has."""
    train(study, spec_of(), "many/s0-o0", [1], recording=recording_of(first_batches=0, samples=500))
    assert {row["n_total"] for row in rows_of(study, "probes", "many/s0-o0", 1)} == {10}


def test_what_looking_costs_is_counted_apart(study):
    """FLOPs of a forward pass over what was predicted, in chunks of 8 and 2: nothing of it is in those of training."""
    train(study, spec_of(), "cost-plain/s0-o0", [1])
    train(study, spec_of(), "cost/s0-o0", [1], recording=recording_of(prequential=True, first_batches=3))
    plain, probed = (record(study, 1, f"{run}/s0-o0")["counted"] for run in ("cost-plain", "cost"))
    n_predicted = 4 * 10 + 22  # Z_0 to Z_3 on ten samples, and each new sample once
    assert probed["flops_probing"] == 2 * n_predicted * (16 * 8 + 8 * 6)
    assert plain == probed | {"flops_probing": 0}


def test_the_tables_of_a_run_are_those_of_its_stages(study):
    """Probes and stream are collected, with what was asked for in the footer; what is asked for no more is removed."""
    run = "collected/s0-o0"
    train(study, spec_of(), run, recording=EVERYTHING)
    collect(study, spec_of(), run, EVERYTHING)
    for name in ("probes", "prequential"):
        stages = [row for stage in (1, 2, 3) for row in rows_of(study, name, run, stage)]
        assert sorted(map(str, rows_of(study, name, run))) == sorted(map(str, stages))
        assert read_lineage(study / f"runs/{run}/stage-1.{name}.parquet")["recorded"] == EVERYTHING[name]
    collect(study, spec_of(), run, NOTHING)
    assert not list(study.glob(f"runs/{run}/prob*.parquet"))
    assert not list(study.glob(f"audit/records/runs/{run}/preq*.json"))


def test_a_run_that_ended_keeps_what_it_recorded(study):
    """Probes up to the end are there, later stages have none, and a run that was given up has empty tables."""
    run, diverges = "ended/s0-o0", spec_of(learning_rate=1e30, batch_size=50, epochs=1)
    train(study, diverges, run, recording=EVERYTHING)
    assert [record(study, stage, run)["status"] for stage in (1, 2, 3)] == ["complete", "ended", "ended"]
    collect(study, diverges, run, EVERYTHING)
    assert {row["stage"] for row in rows_of(study, "probes", run)} == {1, 2}
    given_up, spec_hash = "given-up/s0-o0", record(study, 1, run)["lineage"]["spec"]
    job = Job(study, "train", CODE, "e" * 64, spec_hash, {"run": given_up})
    assert abandon_stages(job, given_up, diverges, EVERYTHING, HERE, "no reason", lambda line: None) == [1, 2, 3]
    collect(study, diverges, given_up, EVERYTHING)
    assert rows_of(study, "prequential", given_up) == []
    assert train(study, diverges, given_up, recording=EVERYTHING) == []


def test_a_label_that_is_no_number_has_no_loss(monkeypatch, study):
    """A score that is NaN is a wrong answer without a loss, in a probe as after a stage."""

    def predict(before, context, state, inputs, tasks):
        return before(context, state, inputs, tasks) * float("nan")

    override(monkeypatch, "finetune", predict=predict)
    train(study, spec_of(), "nan/s0-o0", [1], recording=recording_of(prequential=True, first_batches=0))
    for name in ("probes", "prequential"):
        row = rows_of(study, name, "nan/s0-o0", 1)[0]
        assert (row["n_correct"], row["loss_sum"]) == (0, None)


def test_the_probe_at_the_end_of_a_stage_is_its_evaluation(study):
    """After the last mini-batch the counts are those of the accuracy matrix."""
    from tiny import evaluate

    train(study, spec_of(), "end/s0-o0", recording=recording_of(first_batches=None, every=8, tasks="all"))
    evaluate(study, spec_of(), "end/s0-o0")
    matrix = read_plain_table(study / "evaluation/end/s0-o0/matrix.parquet", "matrix").to_pylist()
    cells = {(row["protocol"], row["stage"], row["task"]): (row["n_correct"], row["loss_sum"]) for row in matrix}
    for stage, task, protocol in itertools.product((1, 2, 3), ("t1", "t2", "t3"), (CLASS, TASK)):
        (row,) = rows_of(study, "probes", "end/s0-o0", stage, batch=8, task=task, protocol=protocol, group="all")
        n_correct, loss = cells[protocol, stage, task]
        assert (row["n_correct"], row["loss_sum"]) == (n_correct, pytest.approx(loss, rel=1e-5))
