"""The stage `metrics`: from the matrices of a run and its references to the rows of its metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_up_study import PROTOCOL, MadeUpStudy
from palimpsest.core.artifact import read_lineage
from palimpsest.core.errors import MatrixError, StudyError
from palimpsest.core.tables import TABLES
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


def probe(stage: int, batch: int, task: str, n_correct: int, group: str = "all", **changes: object) -> dict:
    row = {"stage": stage, "batch": batch, "samples_seen": batch * 10, "split": "test", "protocol": PROTOCOL}
    return {**row, "task": task, "n_correct": n_correct, "n_total": 100, "loss_sum": 1.0, "group": group, **changes}


def write_recorded(study: MadeUpStudy, name: str, rows: list[dict]) -> None:
    columns = {column: [row[column] for row in rows] for column in TABLES[name].schema.names}
    study.job("collect").write_table(f"runs/replay/s0-o1/{name}.parquet", name, columns)


PROBES = [
    *[probe(1, b, "mole", n) for b, n in ((0, 40), (1, 60), (2, 95))],
    *[probe(2, b, "zebra", n) for b, n in ((0, 20), (1, 40))],
    *[probe(3, b, "ape", n) for b, n in ((0, 30), (1, 50), (2, 70))],
    probe(2, 1, "mole", 97),
    probe(1, 1, "mole", 1, group="new"),
    probe(1, 1, "mole", 2, protocol="task_incremental"),
    probe(1, 1, "mole", 3, split="validation"),
]


def test_a_run_without_probes_and_stream_has_one_null_of_each_metric_that_needs_them(study: MadeUpStudy) -> None:
    rows = metrics(study, **REFERENCES)
    probed = ("b_shot", "learning_curve_area", "learning_curve_area_trapezoid", "learning_curve_gain")
    for name in (*probed, "forgetting_at_peak"):
        assert (rows[name, None]["value"], rows[name, None]["missing"]) == (None, "not probed")
    assert rows["prequential_accuracy", None]["missing"] == "no stream"


def test_the_learning_curve_is_that_of_each_stage_on_its_own_task(study: MadeUpStudy) -> None:
    write_recorded(study, "probes", PROBES)
    study.metrics("replay/s0-o1")
    rows = study.rows("metrics/replay/s0-o1.parquet", "metrics", protocol=PROTOCOL, metric="b_shot")
    found = {row["index"]: row for row in rows}
    assert [found[b]["value"] for b in (0, 1)] == pytest.approx([0.30, 0.50])
    assert (found[2]["value"], found[2]["missing"]) == (None, "after_batches[2,2]")
    (area,) = study.rows("metrics/replay/s0-o1.parquet", "metrics", metric="learning_curve_area", index=1)
    assert area["value"] == pytest.approx(0.40)


def test_the_peak_is_over_probes_and_stage_ends_of_the_same_samples(study: MadeUpStudy) -> None:
    write_recorded(study, "probes", PROBES)
    # mole: 97 by a probe, 75 at the end; zebra: 85 at the end of its stage, 60 at the end of the run
    assert value(metrics(study), "forgetting_at_peak") == pytest.approx((0.97 - 0.75 + 0.85 - 0.60) / 2)


def test_probes_of_other_samples_than_the_test_samples_have_an_end_of_their_own(study: MadeUpStudy) -> None:
    last = [probe(3, 2, "mole", 50), probe(3, 2, "zebra", 30)]
    write_recorded(study, "probes", [{**row, "split": "validation"} for row in [*PROBES[:9], *last]])
    assert value(metrics(study), "forgetting_at_peak") == pytest.approx((0.97 - 0.50 + 0.40 - 0.30) / 2)


def test_probes_of_some_test_samples_have_an_end_of_their_own(study: MadeUpStudy) -> None:
    """The evaluation after a stage is on all 100 samples: it is neither peak nor end of probes on 50 of them."""
    last = [probe(3, 2, "mole", 20), probe(3, 2, "zebra", 10)]
    rows = [{**row, "n_total": 50, "n_correct": row["n_correct"] // 2} for row in [*PROBES[:9], *last]]
    write_recorded(study, "probes", rows)
    assert value(metrics(study), "forgetting_at_peak") == pytest.approx((48 / 50 - 10 / 50 + 20 / 50 - 5 / 50) / 2)


def test_metrics_that_need_boundaries_are_null_where_there_are_none(study: MadeUpStudy) -> None:
    """What looks at the end of the run or at all probes alike is defined; the rest says why it is not."""
    write_recorded(study, "probes", PROBES)
    study.stage("metrics", schedule="sequential", runs=["replay/s0-o1"], boundaries="hidden")
    rows = study.rows("metrics/replay/s0-o1.parquet", "metrics", protocol=PROTOCOL)
    reason = "the stream has no boundaries between tasks"
    null = {row["metric"] for row in rows if row["missing"] == reason}
    defined = {row["metric"] for row in rows if row["value"] is not None}
    assert {"forgetting", "backward_transfer", "learning_accuracy", "b_shot", "average_accuracy_at_k"} <= null
    assert {"average_accuracy", "overall_accuracy", "final_accuracy", "forgetting_at_peak"} <= defined
    assert not null & defined


def test_the_number_of_probes_behind_a_peak_is_noted(study: MadeUpStudy) -> None:
    write_recorded(study, "probes", PROBES)
    metrics(study)
    assert read_lineage(study.folder / "metrics/replay/s0-o1.parquet")["n_probes"] == 8


def test_the_prequential_accuracy_is_over_all_samples_of_the_stream(study: MadeUpStudy) -> None:
    seen = [(1, 1, 5), (1, 2, 7), (2, 1, 0), (3, 1, 8)]
    rows = [{"stage": k, "batch": b, "samples_seen": 10 * b, "n_correct": n, "n_total": 10} for k, b, n in seen]
    write_recorded(study, "prequential", [{**row, "loss_sum": 1.0} for row in rows])
    study.metrics("replay/s0-o1", protocols=[PROTOCOL, "task_incremental"])
    found = study.rows("metrics/replay/s0-o1.parquet", "metrics", metric="prequential_accuracy")
    by_protocol = {row["protocol"]: row for row in found}
    assert by_protocol[PROTOCOL]["value"] == pytest.approx(20 / 40)
    assert by_protocol["task_incremental"]["missing"] == "no stream"


def test_a_stream_that_ended_early_is_null_and_names_the_stage(study: MadeUpStudy) -> None:
    row = {"stage": 1, "batch": 1, "samples_seen": 10, "n_correct": 5, "n_total": 10, "loss_sum": 1.0}
    write_recorded(study, "prequential", [row])
    missing = metrics(study)["prequential_accuracy", None]["missing"]
    assert missing == "stream_correct[2], stream_correct[3], stream_total[2], stream_total[3]"


def test_what_a_run_recorded_is_a_parent(study: MadeUpStudy) -> None:
    write_recorded(study, "probes", PROBES)
    metrics(study)
    assert "runs/replay/s0-o1/probes.parquet" in read_lineage(study.folder / "metrics/replay/s0-o1.parquet")["parents"]


def test_a_probe_that_counts_more_hits_than_samples_is_refused(study: MadeUpStudy) -> None:
    write_recorded(study, "probes", [probe(1, 0, "mole", 101)])
    with pytest.raises(MatrixError, match="recorded"):
        metrics(study)
