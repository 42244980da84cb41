"""From scores to predictions and to the accuracy matrix, on numbers made by hand."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import torch

from palimpsest.core.artifact import Job, read_plain_table
from palimpsest.core.tables import TABLES
from palimpsest.plan.matrix import matrix_of_run
from palimpsest.plan.schedule import seen_tasks
from palimpsest.training.learner import network_of
from palimpsest.training.outputs import visible_outputs
from palimpsest.training.predicting import choose
from tiny import checkpoint, evaluate, fresh_model, new_study, spec_of, train

SCORES = torch.tensor([[1.0, 3.0, 2.0, 9.0, 0.0, 4.0]] * 6)
LABELS = torch.arange(6)


def mask_of(kind: str, stage: int, **about) -> torch.Tensor | None:
    spec = spec_of(order=("t2", "t3", "t1"), **about)
    return visible_outputs(spec, next(s for s in spec["stages"] if s["stage"] == stage), kind)


@pytest.mark.parametrize(
    ("kind", "stage", "predicted"),
    [
        ("all", 1, [3, 3, 3, 3, 3, 3]),
        ("seen", 1, [3, 3, 3, 3, 3, 3]),  # t2 has the outputs 2 and 3
        ("current", 1, [1, 1, 3, 3, 5, 5]),
        ("current", 3, [1, 1, 3, 3, 5, 5]),
    ],
)
def test_the_choice_is_among_the_outputs_of_the_mask(kind, stage, predicted):
    """The most probable of all outputs, of those of tasks seen so far, or of those of the sample's own task."""
    assert choose(SCORES, LABELS, LABELS // 2, mask_of(kind, stage)).predicted.tolist() == predicted


def test_outputs_of_later_tasks_are_hidden_under_seen():
    """With the best score among outputs not seen yet, the best of those seen is chosen."""
    scores = torch.tensor([[1.0, 3.0, 2.0, 4.0, 9.0, 8.0]] * 6)
    assert choose(scores, LABELS, LABELS // 2, mask_of("seen", 1)).predicted.tolist() == [3] * 6
    assert choose(scores, LABELS, LABELS // 2, mask_of("seen", 2)).predicted.tolist() == [4] * 6


def test_log_probabilities_are_those_of_the_visible_outputs():
    """Two visible outputs with scores 1 and 3: the label's log-probability is that of a softmax over the two."""
    in_task = choose(SCORES, LABELS, LABELS // 2, mask_of("current", 1)).log_probability
    assert in_task[:2] == pytest.approx([1 - math.log(math.e + math.e**3), 3 - math.log(math.e + math.e**3)], abs=1e-6)
    over_all = choose(SCORES, LABELS, LABELS // 2, None).log_probability
    total = sum(math.exp(score) for score in SCORES[0].tolist())
    assert over_all == pytest.approx([score - math.log(total) for score in SCORES[0].tolist()], abs=1e-5)


def test_a_label_that_is_hidden_has_no_probability():
    """The log-probability of a label outside of the mask is −∞, which becomes a null."""
    assert np.isneginf(choose(SCORES, LABELS, LABELS // 2, mask_of("seen", 1)).log_probability).tolist() == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]


def test_scores_that_are_no_numbers_choose_nothing():
    """A sample with a NaN among its scores has no prediction, and is not right by chance."""
    scores = torch.tensor([[float("nan"), 0.0], [0.0, 1.0]])
    assert choose(scores, torch.tensor([0, 1]), torch.tensor([0, 0]), None).predicted.tolist() == [-1, 1]
    rows = [(1, "t1", 1, 0, None, None, None, None), (1, "t1", 2, 1, 1, 1, -0.5, -0.5)]
    assert cells(rows)["class_incremental", 1, "t1"] == (1, 2, None)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("sequential", [["t2"], ["t2", "t3"], ["t2", "t3", "t1"]]),
        ("isolated", [["t2"], ["t3"], ["t1"]]),
        ("joint", [["t2"], ["t2", "t3"], ["t2", "t3", "t1"]]),
        ("untrained", [[]]),
    ],
)
def test_seen_is_what_a_model_was_trained_on(schedule, expected):
    """Seen tasks are those of a stage and of the stages that its weights descend from."""
    spec = spec_of(order=("t2", "t3", "t1"), stage_schedule=schedule)
    assert [seen_tasks(spec["stages"], stage) for stage in spec["stages"]] == expected


def predictions(rows) -> pa.Table:
    names = TABLES["predictions"].schema.names
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return pa.table({k: pa.array(v, TABLES["predictions"].schema.field(k).type) for k, v in columns.items()})


ROWS = [
    # stage, task, sample, label, predicted, predicted in its task, log p, log p in its task
    (1, "t1", 1, 0, 0, 0, -0.5, -0.25),
    (1, "t1", 2, 1, 3, 1, -2.0, -0.5),
    (1, "t1", 3, 1, 4, 0, -3.0, -1.0),
    (1, "t2", 4, 2, 0, 3, -4.0, -0.125),
    (2, "t1", 1, 0, 1, 0, -0.5, -0.25),
    (2, "t1", 2, 1, 1, 1, -0.5, -0.25),
    (2, "t1", 3, 1, 1, 1, -0.5, -0.25),
    (2, "t2", 4, 2, 2, 2, -0.5, -0.25),
]


def cells(rows, **about):
    columns = matrix_of_run(predictions(rows).to_batches(), spec_of(**about))
    found = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return {(c["protocol"], c["stage"], c["task"]): (c["n_correct"], c["n_total"], c["loss_sum"]) for c in found}


def test_the_matrix_by_hand():
    """Integers of correct and of all samples, and the sum of −log p, for each stage, task and protocol."""
    assert cells(ROWS) == {
        ("class_incremental", 1, "t1"): (1, 3, 5.5),
        ("class_incremental", 1, "t2"): (0, 1, 4.0),
        ("class_incremental", 2, "t1"): (2, 3, 1.5),
        ("class_incremental", 2, "t2"): (1, 1, 0.5),
        ("task_incremental", 1, "t1"): (2, 3, 1.75),
        ("task_incremental", 1, "t2"): (0, 1, 0.125),
        ("task_incremental", 2, "t1"): (3, 3, 0.75),
        ("task_incremental", 2, "t2"): (1, 1, 0.25),
    }


def test_rows_in_another_sequence_give_the_same_matrix():
    """The matrix does not depend on the sequence of the predictions, not even in the last bit of a sum."""
    rows = [(1, "t1", n, 0, 0, 0, -0.1 * n, -0.1) for n in range(50)] + [(1, "t1", 99, 0, 0, 0, -1e8, -1e8)]
    assert cells(rows) == cells(rows[::-1])


def test_a_task_incremental_study_has_one_protocol():
    """Where the task is given, there is no class-incremental reading."""
    assert {key[0] for key in cells(ROWS, protocol="task_incremental")} == {"task_incremental"}


def test_a_domain_incremental_study_is_read_in_one_way():
    """Where the tasks share their outputs, the choice is among all of them, under the study's own protocol."""
    found = cells(ROWS, protocol="domain_incremental")
    assert {key[0] for key in found} == {"domain_incremental"}
    assert found["domain_incremental", 1, "t1"] == (1, 3, 5.5)


def test_a_cell_with_a_hidden_label_has_no_loss():
    """The loss of a cell in which one label has no probability is null; its counts are there."""
    rows = [(1, "t1", 1, 0, 1, 0, None, -0.25), (1, "t1", 2, 1, 1, 1, -0.5, -0.25)]
    assert cells(rows)["class_incremental", 1, "t1"] == (1, 2, None)
    assert cells(rows)["task_incremental", 1, "t1"] == (2, 2, 0.5)


def test_the_stage_names_what_was_trained():
    """`trained_task` is the task of the stage, not that of the cell."""
    columns = matrix_of_run(predictions(ROWS).to_batches(), spec_of(order=("t3", "t1", "t2")))
    pairs = set(zip(columns["stage"], columns["trained_task"], strict=True))
    assert pairs == {(1, "t3"), (2, "t1")}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return new_study(tmp_path_factory.mktemp("tiny"))


def read(study, name, run):
    return read_plain_table(study / f"evaluation/{run}/{name}.parquet", name).to_pylist()


def test_every_test_sample_is_predicted_once_a_stage(study):
    """Thirty test samples in batches of eight, the last of six: each once for each of three stages."""
    train(study, spec_of(), "whole/s0-o0")
    evaluate(study, spec_of(), "whole/s0-o0")
    rows = read(study, "predictions", "whole/s0-o0")
    samples = Job(study, "t", "", "").read_table("data/samples.parquet", "samples").to_pylist()
    wanted = sorted((stage, s["task"], s["sample"]) for stage in (1, 2, 3) for s in samples if s["split"] == "test")
    assert [(row["stage"], row["task"], row["sample"]) for row in rows] == wanted
    assert len(rows) == 3 * 30
    assert sum(row["n_total"] for row in read(study, "matrix", "whole/s0-o0")) == 2 * 3 * 30


def test_predictions_are_those_of_the_checkpoint(study):
    """Each prediction is the argmax of the checkpoint's model, computed here one sample at a time."""
    train(study, spec_of(), "one/s0-o0")
    evaluate(study, spec_of(), "one/s0-o0")
    model = fresh_model(spec_of())
    model.load_state_dict(checkpoint(study, 2, "one/s0-o0")["model"])
    inputs = np.load(study / "data/inputs.npy")
    for row in (row for row in read(study, "predictions", "one/s0-o0") if row["stage"] == 2):
        outputs = model(torch.from_numpy(inputs[row["sample"]][None]).float() / 255).detach()
        log_probabilities = torch.log_softmax(outputs, 1)[0]
        assert row["predicted"] == int(log_probabilities.argmax())
        assert row["label_log_probability"] == pytest.approx(float(log_probabilities[row["label"]]), abs=1e-5)


def test_the_evaluation_batch_does_not_change_what_is_counted(study):
    """Batches of one and of a hundred predict the same."""
    found = []
    for size in (1, 100):
        spec = spec_of()
        spec["numerics"] |= {"evaluation_batch_size": size}
        train(study, spec, f"batch-{size}/s0-o0")
        evaluate(study, spec, f"batch-{size}/s0-o0")
        found.append([row["predicted"] for row in read(study, "predictions", f"batch-{size}/s0-o0")])
    assert found[0] == found[1]


def test_nothing_is_right_where_nothing_was_seen(study):
    """Under the mask `seen` the untrained model may choose nothing: no prediction, and no cell that would be 0."""
    spec = spec_of(stage_schedule="untrained", mask="seen")
    train(study, spec, "unseen/s0")
    evaluate(study, spec, "unseen/s0")
    assert {row["predicted"] for row in read(study, "predictions", "unseen/s0")} == {None}
    assert {row["protocol"] for row in read(study, "matrix", "unseen/s0")} == {"task_incremental"}


def test_a_task_that_was_not_trained_yet_is_not_measured_under_seen(study):
    """Its accuracy would be 0 by construction: the matrix is the lower triangle."""
    spec = spec_of(mask="seen")
    train(study, spec, "triangle/s0-o0")
    evaluate(study, spec, "triangle/s0-o0")
    rows = [row for row in read(study, "matrix", "triangle/s0-o0") if row["protocol"] == "class_incremental"]
    assert [(row["stage"], row["task"]) for row in rows] == [(k, f"t{j}") for k in (1, 2, 3) for j in range(1, k + 1)]


def test_the_untrained_model_is_evaluated_under_all(study):
    """Under the mask `all` the untrained model is stage 0 with a prediction for every sample."""
    spec = spec_of(stage_schedule="untrained")
    train(study, spec, "untrained/s0")
    evaluate(study, spec, "untrained/s0")
    rows = read(study, "matrix", "untrained/s0")
    assert {(row["stage"], row["trained_task"]) for row in rows} == {(0, None)}
    assert all(row["loss_sum"] > 0 for row in rows)


def test_the_mask_of_evaluation_decides(study):
    """A run trained under `all` and evaluated under `seen` chooses among seen outputs: only 0 and 1 after stage 1."""
    spec = spec_of(learning_rate=1e-9) | {"evaluation_mask": "seen"}
    train(study, spec, "masks/s0-o0")
    evaluate(study, spec, "masks/s0-o0")
    first = {row["predicted"] for row in read(study, "predictions", "masks/s0-o0") if row["stage"] == 1}
    assert first <= {0, 1}
    train(study, spec_of(learning_rate=1e-9), "no-masks/s0-o0")
    evaluate(study, spec_of(learning_rate=1e-9), "no-masks/s0-o0")
    assert not {row["predicted"] for row in read(study, "predictions", "no-masks/s0-o0") if row["stage"] == 1} <= {0, 1}


def test_the_model_is_evaluated_and_not_trained(study, monkeypatch):
    """Layers that behave otherwise in training (dropout) are in the mode of evaluation; no gradients."""
    met = []

    def watched(spec, stage, method):
        model = network_of(spec, stage, method)
        model.register_forward_hook(
            lambda module, inputs, outputs: met.append((module.training, outputs.requires_grad))
        )
        return model

    train(study, spec_of(), "mode/s0-o0")
    monkeypatch.setattr("palimpsest.evaluation.evaluate.network_of", watched)
    evaluate(study, spec_of(), "mode/s0-o0")
    assert set(met) == {(False, False)}
