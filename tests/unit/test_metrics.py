"""The stage `metrics`: from the matrices of a run and its references to the rows of its metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_up_study import PROTOCOL, MadeUpStudy
from palimpsest.core.artifact import read_lineage
from palimpsest.core.errors import MatrixError, StudyError
from palimpsest.metrics import METRICS

# The names sort in another way than the tasks follow one another.
CANONICAL = ("zebra", "ape", "mole")
OTHER = ("mole", "zebra", "ape")
MATRIX = [[90, 50, 40], [92, 85, 55], [75, 60, 88]]
REFERENCES = {"random_init": "random_init/s0", "isolated": "isolated/s0", "joint": "joint/s0"}


@pytest.fixture
def study(tmp_path: Path) -> MadeUpStudy:
    study = MadeUpStudy(tmp_path)
    study.plan({"s0": CANONICAL, "s0-o1": OTHER})
    study.run("replay/s0-o1", OTHER, MATRIX)
    study.run("random_init/s0", CANONICAL, [[10, 20, 30]], first_stage=0)
    study.run("isolated/s0", CANONICAL, [[91, 0, 0], [0, 92, 0], [0, 0, 93]])
    study.matrix("joint/s0", [(3, "union", "zebra", 81), (3, "union", "ape", 82), (3, "union", "mole", 83)])
    return study


def metrics(study: MadeUpStudy, run: str = "replay/s0-o1", schedule: str = "sequential", **references: str) -> dict:
    study.metrics(run, schedule, references)
    rows = study.rows(f"metrics/{run}.parquet", "metrics", protocol=PROTOCOL)
    return {(row["metric"], row["index"] or row["task"]): row for row in rows}


def value(rows: dict, metric: str, at: int | str | None = None) -> float:
    return rows[metric, at]["value"]


def test_a_sequential_run_has_a_row_of_every_metric(study: MadeUpStudy) -> None:
    assert {metric for metric, _ in metrics(study, **REFERENCES)} == set(METRICS.names())


def test_values_follow_the_order_of_the_run(study: MadeUpStudy) -> None:
    rows = metrics(study)
    assert value(rows, "backward_transfer") == pytest.approx(-0.20)
    assert value(rows, "average_accuracy_at_k", 2) == pytest.approx(0.885)
    assert [value(rows, "final_accuracy", task) for task in OTHER] == pytest.approx([0.75, 0.60, 0.88])


def test_reference_values_are_looked_up_by_task_and_not_by_position(study: MadeUpStudy) -> None:
    rows = metrics(study, **REFERENCES)
    # isolated on mole, zebra, ape: 93, 91, 92; the diagonal is 90, 85, 88
    assert value(rows, "intransigence_isolated") == pytest.approx((3 + 6 + 4) / 300)
    assert value(rows, "forward_transfer_isolated") == pytest.approx((85 - 91 + 88 - 92) / 200)
    assert value(rows, "gap_to_joint") == pytest.approx(0.82 - (75 + 60 + 88) / 300)


def test_a_final_joint_model_gives_intransigence_on_the_last_task_of_the_run_alone(study: MadeUpStudy) -> None:
    rows = metrics(study, **REFERENCES)
    assert value(rows, "intransigence_joint_at_k", 3) == pytest.approx(0.82 - 0.88)
    assert value(rows, "intransigence_joint_at_k", 1) is None
    assert rows["intransigence_joint", None]["missing"] == "joint_at_k[1], joint_at_k[2]"


def test_a_joint_model_per_stage_counts_where_it_saw_the_same_tasks(study: MadeUpStudy) -> None:
    study.run("joint/s0-o1", OTHER, [[95, 0, 0], [94, 93, 0], [92, 91, 90]])
    rows = metrics(study, joint="joint/s0-o1")
    at_k = [value(rows, "intransigence_joint_at_k", k) for k in (1, 2, 3)]
    assert at_k == pytest.approx([0.05, 0.08, 0.02])
    # zebra, ape and mole, zebra are not the same two tasks
    study.run("joint/s0", CANONICAL, [[95, 0, 0], [94, 93, 0], [92, 91, 90]])
    rows = metrics(study, joint="joint/s0")
    assert [value(rows, "intransigence_joint_at_k", k) is None for k in (1, 2, 3)] == [True, True, False]


def test_forward_transfer_against_an_untrained_model_is_null_in_a_class_incremental_study(study: MadeUpStudy) -> None:
    row = metrics(study, **REFERENCES)["forward_transfer_random_init", None]
    assert (row["value"], row["missing"]) == (None, "equals −b̄ by construction")


def test_a_run_that_ended_early_has_nulls_that_name_the_absent_cells(study: MadeUpStudy) -> None:
    study.run("replay/s0-o1", OTHER, MATRIX[:2])
    rows = metrics(study)
    assert rows["average_accuracy", None]["missing"] == "a[3,1], a[3,2], a[3,3]"
    assert rows["final_accuracy", "ape"]["missing"] == "a[3,3]"
    assert value(rows, "average_accuracy_at_k", 2) == pytest.approx(0.885)
    assert value(rows, "average_accuracy_at_k", 3) is None


def test_a_run_that_ended_before_its_first_evaluation_keeps_its_rows(study: MadeUpStudy) -> None:
    study.run("replay/s0-o1", OTHER, [])
    study.metrics("replay/s0-o1", protocols=[PROTOCOL])
    rows = {row["metric"]: row for row in study.rows("metrics/replay/s0-o1.parquet", "metrics")}
    assert set(rows) == set(METRICS.names())
    assert all(row["value"] is None and row["missing"] for row in rows.values())


def test_reference_runs_have_only_what_is_defined_for_them(study: MadeUpStudy) -> None:
    assert set(metrics(study, "isolated/s0", "isolated")) == {("learning_accuracy", None)}
    assert set(metrics(study, "random_init/s0", "untrained")) == {("average_accuracy", None)}
    joint = metrics(study, "joint/s0", "joint")
    assert set(joint) == {("average_accuracy", None), ("overall_accuracy", None), ("average_accuracy_at_k", 3)}
    assert value(joint, "average_accuracy") == pytest.approx(0.82)


def test_an_absent_cell_of_an_untrained_model_is_named_by_its_stage_zero(study: MadeUpStudy) -> None:
    study.run("random_init/s0", CANONICAL, [[10, None, 30]], first_stage=0)
    row = metrics(study, "random_init/s0", "untrained")["average_accuracy", None]
    assert row["missing"] == "a[0,2]"


def test_other_names_of_the_tasks_change_no_value(study: MadeUpStudy) -> None:
    before = metrics(study, **REFERENCES)
    names = {"zebra": "t1", "ape": "t3", "mole": "t2"}
    study.plan({unit: [names[task] for task in order] for unit, order in (("s0", CANONICAL), ("s0-o1", OTHER))})
    for run in ("replay/s0-o1", *REFERENCES.values()):
        rows = study.rows(f"evaluation/{run}/matrix.parquet", "matrix")
        renamed = [(row["stage"], names.get(row["trained_task"], ""), names[row["task"]]) for row in rows]
        study.matrix(run, [(*cell, row["n_correct"]) for cell, row in zip(renamed, rows, strict=True)])
    after = metrics(study, **REFERENCES)
    assert {key: row["value"] for key, row in after.items()} == {
        (metric, names.get(at, at)): row["value"] for (metric, at), row in before.items()
    }


def test_the_matrices_and_the_units_are_the_parents(study: MadeUpStudy) -> None:
    metrics(study, **REFERENCES)
    parents = read_lineage(study.folder / "metrics/replay/s0-o1.parquet")["parents"]
    matrices = {f"evaluation/{run}/matrix.parquet" for run in ("replay/s0-o1", *REFERENCES.values())}
    assert set(parents) == {"plan/code/rules/metrics.json", "plan/units.parquet", *matrices}


@pytest.mark.parametrize(
    ("cells", "n_total", "message"),
    [
        ([(1, "mole", "mole", 101)], 100, "101 of 100"),
        ([(1, "mole", "mole", 0)], 0, "0 of 0"),
        ([(1, "ape", "mole", 50)], 100, "stage 1 trains mole"),
        ([(4, "mole", "mole", 50)], 100, "stage 4"),
        ([(1, "mole", "cat", 50)], 100, "cat"),
        ([(1, "mole", "mole", 50), (1, "mole", "mole", 50)], 100, "2 rows for 1 cells"),
    ],
)
def test_a_matrix_that_contradicts_itself_or_the_plan_is_refused(
    study: MadeUpStudy, cells: list, n_total: int, message: str
) -> None:
    study.matrix("replay/s0-o1", cells, n_total)
    with pytest.raises(MatrixError, match="contradicts") as error:
        metrics(study)
    assert message in str(error.value)


def test_a_task_whose_number_of_test_samples_changes_between_stages_is_refused(study: MadeUpStudy) -> None:
    study.matrix("replay/s0-o1", [(1, "mole", "mole", 50), (2, "zebra", "mole", 50)], 100, 99)
    with pytest.raises(MatrixError) as error:
        metrics(study)
    assert "100 test samples, as at the other stages" in str(error.value)


def test_a_reference_that_was_evaluated_on_other_samples_is_refused(study: MadeUpStudy) -> None:
    study.matrix("joint/s0", [(3, "union", "ape", 50)], 99)
    with pytest.raises(MatrixError) as error:
        metrics(study, joint="joint/s0")
    assert "100 test samples of task ape, as in replay/s0-o1" in str(error.value)


def test_an_unknown_schedule_is_refused(study: MadeUpStudy) -> None:
    with pytest.raises(StudyError, match="no schedule named"):
        metrics(study, schedule="parallel")
