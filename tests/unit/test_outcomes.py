"""How a run may end by its plan: a stage that stops early, data that run out, budgets that are used up."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small_study
from palimpsest.core.artifact import Job, read_plain_table
from palimpsest.core.errors import PalimpsestError, StoppedError
from palimpsest.data.samples import INPUTS, read_samples
from palimpsest.plan.budgets import too_small
from palimpsest.plan.grid import Grid
from palimpsest.training.early_stop import waiting
from tiny import checkpoint, collect, evaluate, files_of, new_study, record, same_tensors, spec_of, step_rows, train

RUN = "m/s0-o0"
REPLAY = ("replay", {"buffer_bytes": 17 * 20, "replayed": 4})
BYTES = 17 * 20
STOPPING = {"on": "loss", "patience": 2, "min_delta": 0.0}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Samples with some for validation; runs of different tests have different names."""
    return new_study(tmp_path_factory.mktemp("data"), n_validation=4)


def outcome(study: Path, spec: dict[str, Any], run: str) -> dict[str, Any]:
    collect(study, spec, run)
    (row,) = read_plain_table(study / f"runs/{run}/outcome.parquet", "outcome").to_pylist()
    return row


# Early stop


@pytest.fixture(scope="module")
def stopped(data) -> dict[str, Any]:
    """A run that overfits: its validation loss rises soon, and each stage may have forty epochs."""
    spec = spec_of(learning_rate=1.0, epochs=40, early_stop=STOPPING)
    train(data, spec, "early/s0-o0")
    return spec


def test_a_stage_stops_where_its_rule_says(data, stopped) -> None:
    """Each stage ends two epochs after the lowest validation loss, which the record lists epoch by epoch."""
    for stage in (1, 2, 3):
        found = record(data, stage, "early/s0-o0")
        losses = found["validation"]
        assert waiting(losses, STOPPING)[0] == 2
        assert all(waiting(losses[:n], STOPPING)[0] < 2 for n in range(1, len(losses)))
        assert len(step_rows(data, stage, "early/s0-o0")) == 4 * len(losses) < 4 * 40
        assert found["status"] == "complete"
        assert found["reason"].startswith("early_stop: validation loss has not fallen by more than 0 for 2 epochs")
        assert found["reason"].endswith(f"stopped after epoch {len(losses)}, step {found['step']}")


def test_a_run_that_stopped_early_goes_on_and_is_complete(data, stopped) -> None:
    """All three stages are evaluated, and the outcome of the run is complete and says which of them stopped."""
    evaluate(data, stopped, "early/s0-o0")
    stages = read_plain_table(data / "evaluation/early/s0-o0/matrix.parquet", "matrix")["stage"].to_pylist()
    assert set(stages) == {1, 2, 3}
    row = outcome(data, stopped, "early/s0-o0")
    assert (row["status"], row["stage"], row["reason"]) == ("complete", 3, "early_stop: stage 1, 2, 3 of 3")


def test_looking_at_validation_samples_changes_no_weight(data) -> None:
    """A rule that never stops leaves the run's steps and weights as they are without one."""
    train(data, spec_of(*REPLAY, epochs=6), "plain/s0-o0")
    train(data, spec_of(*REPLAY, epochs=6, early_stop=STOPPING | {"patience": 5}), "looked/s0-o0")
    plain, looked = (checkpoint(data, 3, f"{run}/s0-o0") for run in ("plain", "looked"))
    assert same_tensors(plain["model"], looked["model"])
    assert step_rows(data, 3, "plain/s0-o0") == step_rows(data, 3, "looked/s0-o0")
    assert record(data, 3, "looked/s0-o0")["counted"]["flops_validation"] > 0
    assert record(data, 3, "plain/s0-o0")["counted"]["flops_validation"] == 0


def test_a_stage_that_stops_early_resumes_exactly(data, stopped, tmp_path) -> None:
    """Stopped in every epoch, the run looks at validation samples as often, and ends in the same bytes."""
    study = new_study(tmp_path, n_validation=4)
    for _ in range(60):
        answers = iter(["go", "go", "stop"])
        try:
            train(study, stopped, "early/s0-o0", ask=lambda answers=answers: next(answers))
        except StoppedError:
            continue
        break
    undisturbed = files_of(data, "early/s0-o0")
    assert files_of(study, "early/s0-o0").items() <= undisturbed.items()
    assert {name for name in undisturbed if name.endswith(".json")} <= files_of(study, "early/s0-o0").keys()


def test_test_samples_stop_nothing(stopped, data, tmp_path) -> None:
    """Other test samples, the same training and validation samples: the same weights and stops."""
    study = new_study(tmp_path, n_validation=4)
    job = Job(study, "data", "", "")
    table, _ = read_samples(job)
    inputs = np.load(study / INPUTS)
    changed = np.where(np.array(table["split"].to_pylist())[:, None, None] == "test", 255 - inputs, inputs)
    buffer = io.BytesIO()
    np.save(buffer, changed)
    job.write_bytes(INPUTS, buffer.getvalue(), kind="inputs")
    train(study, stopped, "early/s0-o0")
    assert record(study, 3, "early/s0-o0")["validation"] == record(data, 3, "early/s0-o0")["validation"]
    assert same_tensors(checkpoint(study, 3, "early/s0-o0")["model"], checkpoint(data, 3, "early/s0-o0")["model"])


@pytest.mark.parametrize(
    ("values", "rule", "expected"),
    [
        ([0.5, 0.49, 0.48], {"on": "loss", "min_delta": 0.1}, 2),
        ([0.5, 0.39, 0.38], {"on": "loss", "min_delta": 0.1}, 1),
        ([0.5, 0.6, 0.6], {"on": "accuracy", "min_delta": 0.0}, 1),
        ([float("nan"), float("nan")], {"on": "loss", "min_delta": 0.0}, 2),
    ],
)
def test_what_counts_as_an_improvement(values, rule, expected) -> None:
    """More than min_delta better than the best so far, in the direction of the quantity; NaN never is."""
    assert waiting(values, rule)[0] == expected


# Data


def test_data_that_run_out_end_the_run(tmp_path) -> None:
    """t2 has 8 samples: 2 steps in each of 2 epochs, where 6 are asked for; it ends there, after really using them."""
    study = new_study(tmp_path, per_class={"t2": 4})
    spec = spec_of(steps=6)
    train(study, spec)
    assert [record(study, n)["status"] for n in (1, 2, 3)] == ["complete", "ended", "ended"]
    assert [len(step_rows(study, n)) for n in (1, 2)] == [6, 4]
    row = outcome(study, spec, RUN)
    assert (row["status"], row["stage"], row["step"]) == ("ended", 2, 10)
    assert row["reason"] == (
        "data: 8 samples of t2 give 4 steps in 2 epochs, and 6 were asked for; exhausted after step 10"
    )


def test_a_fixed_number_of_steps_is_made(data) -> None:
    """Six steps of four an epoch: the second epoch is left in its middle, and stages of other sizes do the same."""
    spec = spec_of(*REPLAY, steps=6, schedule="cosine")
    train(data, spec, "fixed/s0-o0")
    rows = [step_rows(data, stage, "fixed/s0-o0") for stage in (1, 2, 3)]
    assert [len(of_stage) for of_stage in rows] == [6, 6, 6]
    assert rows[0][-1]["learning_rate"] == pytest.approx(0.1 * (1 + 3**0.5 / -2) / 2, rel=1e-6), "cosine over 6 steps"


def test_a_fixed_number_of_steps_resumes_exactly(data, tmp_path) -> None:
    """Stopped after the last step of a stage, before its checkpoint: no step too many."""
    study, spec = new_study(tmp_path, n_validation=4), spec_of(*REPLAY, steps=6, schedule="cosine")
    train(data, spec, "fixed-again/s0-o0")
    for step in (6, 2):
        answers = iter(["go"] * (step - 1) + ["stop"])
        with pytest.raises(StoppedError):
            train(study, spec, "fixed-again/s0-o0", ask=lambda answers=answers: next(answers))
    train(study, spec, "fixed-again/s0-o0")
    assert files_of(study, "fixed-again/s0-o0") == files_of(data, "fixed-again/s0-o0")


# Budgets


def flops_of(data: Path, run: str) -> list[int]:
    return [row["flops"] for stage in (1, 2, 3) for row in step_rows(data, stage, run)]


@pytest.fixture(scope="module")
def unlimited(data) -> list[int]:
    """FLOPs of every step of a run without budgets."""
    train(data, spec_of(*REPLAY), "unlimited/s0-o0")
    return flops_of(data, "unlimited/s0-o0")


@pytest.mark.parametrize(
    ("budget", "last_step", "reason"),
    [
        ({"steps": 13}, 13, "13 of 13 steps are used, and step 14 needs 1"),
        ({"samples": 51}, 9, "51 of 51 samples are used, and step 10 needs 7"),
        ({"samples": 50}, 8, "44 of 50 samples are used, and step 9 needs 7"),
        ({"memory_bytes": BYTES - 1}, 1, f"{BYTES} memory_bytes after step 1, where {BYTES - 1} are allowed"),
        ({"method_bytes": 5}, 1, f"{BYTES} method_bytes after step 1, where 5 are allowed"),
        ({"steps": 24, "samples": 200, "memory_bytes": BYTES, "method_bytes": BYTES}, None, None),
    ],
)
def test_a_budget_ends_the_run_where_it_is_used_up(data, unlimited, budget, last_step, reason) -> None:
    """The last step is within the budget, the next one would not be; what just fits completes."""
    name = "-".join(f"{key}{value}" for key, value in budget.items())
    spec = spec_of(*REPLAY) | {"budgets": budget}
    train(data, spec, f"{name}/s0-o0")
    row = outcome(data, spec, f"{name}/s0-o0")
    assert row["reason"] == (reason and f"resource: {reason}")
    assert (row["status"], row["step"]) == (("ended", last_step) if reason else ("complete", 24))


@pytest.mark.parametrize("spare", [0, -1])
def test_flops_are_asked_for_before_the_step(data, unlimited, spare) -> None:
    """A budget of exactly the first ten steps makes ten; one FLOP less makes nine, and none that exceeds it."""
    budget = sum(unlimited[:10]) + spare
    run = f"flops{spare}/s0-o0"
    spec = spec_of(*REPLAY) | {"budgets": {"flops": budget}}
    train(data, spec, run)
    row = outcome(data, spec, run)
    steps = 10 + spare
    assert (row["status"], row["step"]) == ("ended", steps)
    assert row["reason"] == (
        f"resource: {sum(unlimited[:steps])} of {budget} flops are used, and step {steps + 1} needs {unlimited[steps]}"
    )


def test_work_between_tasks_is_paid_from_the_budget(data) -> None:
    """EWC's Fisher after the first task exceeds what its steps left: the run ends there, as a recorded outcome."""
    ewc = ("ewc", {"strength": 1.0, "fisher_samples": 8})
    train(data, spec_of(*ewc), "ewc/s0-o0", [1])
    counted = record(data, 1, "ewc/s0-o0")["counted"]
    budget = counted["flops_steps"] + counted["flops_after_task"] - 1
    spec = spec_of(*ewc) | {"budgets": {"flops": budget}}
    train(data, spec, "ewc-limited/s0-o0")
    row = outcome(data, spec, "ewc-limited/s0-o0")
    assert (row["status"], row["stage"], row["step"]) == ("ended", 1, 8)
    assert row["reason"] == f"resource: {budget + 1} flops after step 8, where {budget} are allowed"


def test_a_budget_is_of_the_run_and_survives_a_resumption(data, unlimited, tmp_path) -> None:
    """FLOPs of earlier stages and of killed attempts count once: stopped twice, the run ends at the same step."""
    spec = spec_of(*REPLAY) | {"budgets": {"flops": sum(unlimited[:18])}}
    train(data, spec, "survives/s0-o0")
    study = new_study(tmp_path, n_validation=4)
    for step in (3, 9):
        answers = iter(["go"] * (step - 1) + ["stop"])
        with pytest.raises(StoppedError):
            train(study, spec, "survives/s0-o0", ask=lambda answers=answers: next(answers))
    train(study, spec, "survives/s0-o0")
    assert files_of(study, "survives/s0-o0") == files_of(data, "survives/s0-o0")
    assert outcome(study, spec, "survives/s0-o0")["step"] == 18


# In the plan


def test_new_sections_change_no_specification_that_they_do_not_concern(tmp_path) -> None:
    """A study that declares none of this has runs of the same hash, and references are under no budget."""
    plain, limited = small_study.plan_of(tmp_path), small_study.plan_of(tmp_path, _limit)
    specs = {name: (Grid(plain).runs[name].spec, Grid(limited).runs[name].spec) for name in Grid(plain).runs}
    assert not {"steps", "early_stop"} & specs["replay/s0-o0"][0]["training"].keys()
    assert "budgets" not in specs["replay/s0-o0"][0]
    assert specs["replay/s0-o0"][1]["budgets"] == {"steps": 5, "memory_bytes": 7850}
    assert specs["finetune/s0-o0"][1]["budgets"] == {"steps": 9, "memory_bytes": 7850}
    assert specs["isolated/s0"][0] == specs["isolated/s0"][1]


def _limit(content: dict[str, Any]) -> None:
    content["budgets"] = {"steps": 9, "memory_bytes": 7850}
    content["methods"]["replay"]["budgets"] = {"steps": 5}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda c: c.update(budgets={"memory_bytes": 7849}),
            ("the method replay would exceed its budget", "at most 7849 bytes", "7850 bytes"),
        ),
        (
            lambda c: c["methods"]["replay"].update(budgets={"method_bytes": 100}),
            ("the method replay would exceed its budget", "budget method_bytes", "at most 100 bytes"),
        ),
        (
            lambda c: c["training"].update(early_stop={"on": "loss", "patience": 1}),
            ("a patience of 1 never stops a stage of 1 epochs",),
        ),
        (
            lambda c: (
                c["training"].update(epochs=3, early_stop={"on": "loss", "patience": 1}),
                c["benchmark"]["options"]["samples_per_class"].update(validation=0),
            ),
            ("training on validation samples of a task that has none", "none of t1"),
        ),
    ],
)
def test_a_plan_that_cannot_be_kept_is_refused(tmp_path, change, expected) -> None:
    """By name, before anything runs."""
    with pytest.raises(PalimpsestError) as error:
        small_study.plan_of(tmp_path, change)
    assert all(text in str(error.value) for text in expected), str(error.value)


def test_a_task_that_is_too_small_for_the_steps_is_told_beforehand(tmp_path) -> None:
    """20 samples of a task give 2 steps: a plan of 3 says which methods will end at which task."""
    plan = small_study.plan_of(tmp_path, lambda c: c["training"].update(steps=3))
    lines = list(too_small(plan))
    assert "finetune: t1 gives 2 steps in 1 epochs, and training.steps is 3: its runs will end there as `data`" in lines
    assert not any(line.startswith("joint") for line in lines), "joint training has three times as many samples"
    assert not list(too_small(small_study.plan_of(tmp_path)))
