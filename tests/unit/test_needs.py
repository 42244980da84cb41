"""Comparisons that need probes, the stream or boundaries: accepted if the study has them, else refused."""

from __future__ import annotations

import pytest

import small_study
from palimpsest.core.errors import PalimpsestError
from palimpsest.plan.grid import Grid

# Tasks of 20 samples: in batches of 10 for 3 epochs, 6 mini-batches each.
PROBES = {"probes": {"first_batches": 4}}
STREAM = {"prequential": True}
ACCEPTED = {
    "Z_4": (PROBES, {"metric": "b_shot", "index": 4}),
    "Z_6 by a schedule": ({"probes": {"first_batches": 0, "every": 3}}, {"metric": "b_shot", "index": 6}),
    "LCA_4": (PROBES, {"metric": "learning_curve_area", "index": 4}),
    "LCA_6 where each mini-batch is probed": (
        {"probes": {"first_batches": None, "every": 1}},
        {"metric": "learning_curve_area", "index": 6},
    ),
    "gain within the task": (
        PROBES,
        {"metric": "learning_curve_gain", "index": 0, "protocol": "task_incremental"},
    ),
    "a trapezoid over gaps": (
        {"probes": {"first_batches": 1, "log": True}},
        {"metric": "learning_curve_area_trapezoid", "index": 4},
    ),
    "peaks": (PROBES, {"metric": "forgetting_at_peak"}),
    "peaks on some samples of all tasks": (
        {"probes": {"tasks": "all", "samples": 3}},
        {"metric": "forgetting_at_peak"},
    ),
    "the stream": (STREAM, {"metric": "prequential_accuracy"}),
}
REFUSED = {
    "no probes": ({}, {"metric": "b_shot", "index": 0}, "needs probes: write a section `probes`"),
    "no stream": (PROBES, {"metric": "prequential_accuracy"}, "needs the stream: write `prequential: true`"),
    "the stream within the task": (
        STREAM,
        {"metric": "prequential_accuracy", "protocol": "task_incremental"},
        "under the study's own protocol, class_incremental, alone",
    ),
    "β beyond the probes": (
        PROBES,
        {"metric": "learning_curve_area", "index": 5},
        "no probe after 5 mini-batches: probes.first_batches is 4",
    ),
    "b between the probes": (
        {"probes": {"first_batches": 0, "log": True}},
        {"metric": "b_shot", "index": 3},
        "no probe after 3 mini-batches",
    ),
    "β over a gap": (
        {"probes": {"first_batches": 0, "log": True}},
        {"metric": "learning_curve_area", "index": 4},
        "no probe after 3 mini-batches",
    ),
    "β beyond the task": (
        {"probes": {"first_batches": 10}},
        {"metric": "learning_curve_area", "index": 7},
        "task t1 has only 6 mini-batches",
    ),
    "a trapezoid over another grid in each stage": (
        {"probes": {"first_batches": 1, "log": True, "held_out_every": 7}},
        {"metric": "learning_curve_area_trapezoid", "index": 4},
        "the curve would have gaps",
    ),
    "peaks without an end": (
        {"probes": {"samples": 3}},
        {"metric": "forgetting_at_peak"},
        "write `probes.tasks: all`",
    ),
    "peaks on validation samples of the current task": (
        {"probes": {"split": "validation"}},
        {"metric": "forgetting_at_peak"},
        "write `probes.tasks: all`",
    ),
}


def change(fields: dict, comparison: dict):
    def edit(content: dict) -> None:
        content["training"]["epochs"] = 3
        content.update(fields)
        content["analysis"]["primary"].update(comparison)

    return edit


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_metric_is_accepted_where_the_study_records_what_it_needs(tmp_path, case) -> None:
    """The lock is made."""
    small_study.plan_of(tmp_path, change(*ACCEPTED[case]))


@pytest.mark.parametrize("case", REFUSED)
def test_a_metric_that_would_be_null_in_every_run_is_refused(tmp_path, case) -> None:
    """The error names the metric, its place in the file and what to write."""
    fields, comparison, reason = REFUSED[case]
    with pytest.raises(PalimpsestError, match="leaves undefined") as error:
        small_study.plan_of(tmp_path, change(fields, comparison))
    assert reason in error.value.got
    assert error.value.got.startswith(comparison["metric"])
    assert "analysis.primary.metric" in error.value.where


def test_what_is_recorded_changes_no_specification(tmp_path) -> None:
    """Runs keep their hashes: what is recorded is told to jobs beside the specification, and to methods alone."""
    plain = small_study.plan_of(tmp_path)
    probed = small_study.plan_of(tmp_path, lambda content: content.update(**PROBES, **STREAM))
    assert plain["runs"] == probed["runs"]
    assert plain["hash"] != probed["hash"]
    grid = Grid(probed)
    assert grid.recording("replay")["probes"]["first_batches"] == 4
    assert grid.recorded_tables("replay") == ["runs/{run}/probes.parquet", "runs/{run}/prequential.parquet"]
    assert grid.recorded_tables("joint") == []
    assert "runs/finetune/s0-o0/probes.parquet" in grid.run_files()
    assert "runs/finetune/s0-o0/probes.parquet" not in Grid(plain).run_files()


def test_probes_on_validation_samples_need_some(tmp_path) -> None:
    """A task without validation samples cannot be probed on them."""

    def without(content: dict) -> None:
        content["benchmark"]["options"]["samples_per_class"]["validation"] = 0
        content["probes"] = {"split": "validation"}

    with pytest.raises(PalimpsestError, match="validation samples of a task that has none"):
        small_study.plan_of(tmp_path, without)


@pytest.mark.parametrize(
    "section",
    [{"first_batches": None}, {"every": 0}, {"first_batches": -1}, {"samples": 0}, {"split": "train"}, {"beta": 3}],
)
def test_a_section_that_says_nothing_sensible_is_refused(tmp_path, section) -> None:
    """No schedule at all, a number out of range, training samples, an unknown key."""
    with pytest.raises(PalimpsestError):
        small_study.plan_of(tmp_path, lambda content: content.update(probes=section))


STREAMED = {"epochs": 1, "reset_optimizer": False}


def hide(content: dict, **training) -> None:
    content["boundaries"] = "hidden"
    content["training"].update({**STREAMED, **training})


def test_hidden_boundaries_are_part_of_the_specification(tmp_path) -> None:
    """They change what a method does, and nothing for the references."""
    plain, streamed = (
        small_study.plan_of(tmp_path, edit)["runs"]
        for edit in (lambda content: content["training"].update(STREAMED), hide)
    )
    changed = {
        first["method"]
        for first, second in zip(plain, streamed, strict=True)
        if first["spec_hash"] != second["spec_hash"]
    }
    assert changed == {"finetune", "replay"}


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (lambda content: hide(content, epochs=2), "training.epochs: 1"),
        (lambda content: hide(content, reset_optimizer=True), "training.reset_optimizer: false"),
        (lambda content: hide(content, schedule="cosine"), "training.schedule: constant"),
        (lambda content: [hide(content), content.update(training_mask="seen")], "training_mask: all"),
    ],
)
def test_what_would_tell_a_boundary_is_refused(tmp_path, edit, what) -> None:
    """A second epoch, a fresh optimizer, a schedule that starts anew, a mask that grows: all mark the ends of tasks."""
    with pytest.raises(PalimpsestError) as error:
        small_study.plan_of(tmp_path, edit)
    assert what in str(error.value)


def test_a_method_that_needs_boundaries_is_refused_where_they_are_hidden(tmp_path) -> None:
    """EWC must be told when a task ends."""

    def edit(content: dict) -> None:
        hide(content)
        content["methods"]["ewc"] = {"hyperparameters": {"strength": 1.0, "fisher_samples": 5}}

    with pytest.raises(PalimpsestError, match="needs task boundaries") as error:
        small_study.plan_of(tmp_path, edit)
    assert error.value.where.endswith("methods.ewc")


def test_a_metric_that_needs_boundaries_is_refused_where_they_are_hidden(tmp_path) -> None:
    """Forgetting is defined by the ends of tasks."""

    def edit(content: dict) -> None:
        hide(content)
        content["analysis"]["primary"]["metric"] = "forgetting"

    with pytest.raises(PalimpsestError) as error:
        small_study.plan_of(tmp_path, edit)
    assert error.value.got == "forgetting: the stream has no boundaries between tasks"
