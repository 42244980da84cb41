"""The stage `aggregate`: tables over all runs, out of what the ledger lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from made_up_study import MadeUpStudy, counted
from palimpsest.aggregate.summary import summarise_metrics
from palimpsest.core.artifact import read_lineage
from palimpsest.core.errors import ArtifactError
from palimpsest.core.tables import TABLES

ORDERS = {"s0-o0": ("a", "b"), "s1-o1": ("b", "a"), "s2-o0": ("a", "b")}
PAIRED = {f"s{at}": {"seed": at, "order": f"o{at}"} for at in range(9)}
FAILED = {"status": "ended", "reason": "numerical: the loss is not finite"}


@pytest.fixture
def study(tmp_path: Path) -> MadeUpStudy:
    study = MadeUpStudy(tmp_path)
    study.plan(ORDERS)
    study.run("replay/s0-o0", ORDERS["s0-o0"], [[90, 10], [70, 80]])
    study.run("replay/s1-o1", ORDERS["s1-o1"], [[80, 20], [50, 90]])
    study.run("replay/s2-o0", ORDERS["s2-o0"], [[60, 30]], outcome=FAILED)
    for unit in ORDERS:
        study.metrics(f"replay/{unit}")
    study.stage("ledger", method="replay")
    return study


def summary(study: MadeUpStudy, **where: Any) -> dict[str, Any]:
    study.stage("aggregate", methods=["replay"])
    return study.rows("aggregate/summary.parquet", "summary", **where)[0]


def test_the_summary_has_mean_sample_sd_and_t_interval_of_the_runs_that_have_a_value(study: MadeUpStudy) -> None:
    row = summary(study, metric="average_accuracy")
    values = np.array([0.75, 0.70])
    interval = stats.t.interval(0.95, 1, values.mean(), stats.sem(values))
    assert (row["n"], row["mean"], row["sd"]) == (2, pytest.approx(0.725), pytest.approx(values.std(ddof=1)))
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(interval)


def test_a_run_that_ended_is_counted_as_failed(study: MadeUpStudy) -> None:
    assert summary(study, metric="average_accuracy")["n_failed"] == 1
    (failure,) = study.rows("aggregate/failures.parquet", "failures")
    assert (failure["run"], failure["stage"], failure["reason"]) == ("replay/s2-o0", 1, FAILED["reason"])


def test_a_declared_early_stop_is_not_a_failure(study: MadeUpStudy) -> None:
    stopped = {"status": "complete", "reason": "early_stop: stage 1 of 1"}
    study.run("replay/s2-o0", ORDERS["s2-o0"], [[60, 30]], outcome=stopped)
    study.stage("ledger", method="replay")
    assert summary(study, metric="average_accuracy")["n_failed"] == 0
    (costs,) = study.rows("aggregate/costs.parquet", "costs")
    assert (costs["n"], costs["n_early_stopped"]) == (3, 1)


def test_the_worst_run_follows_the_direction_of_the_metric(study: MadeUpStudy) -> None:
    assert summary(study, metric="average_accuracy")["worst"] == pytest.approx(0.70)
    assert summary(study, metric="forgetting")["worst"] == pytest.approx(0.30)


def test_a_single_value_has_neither_sd_nor_interval() -> None:
    row = summarise_metrics(_metrics_table([0.5, None]), {"replay": 0}, PAIRED).to_pylist()[0]
    assert (row["n"], row["mean"]) == (1, 0.5)
    assert (row["sd"], row["ci_low"], row["ci_high"]) == (None, None, None)


def test_a_metric_without_any_value_stays_in_the_summary_as_null() -> None:
    row = summarise_metrics(_metrics_table([None, None]), {"replay": 2}, PAIRED).to_pylist()[0]
    assert (row["n"], row["n_failed"], row["mean"], row["worst"]) == (0, 2, None, None)


def test_runs_that_share_seeds_and_orders_have_the_interval_of_their_factors() -> None:
    """Not the narrower one of independent runs; the table says which it is."""
    values = np.array([0.50, 0.51, 0.70, 0.71, 0.60, 0.61])
    units = {f"s{at}": {"seed": at, "order": at // 2} for at in range(6)}
    row = summarise_metrics(_metrics_table(values.tolist()), {"replay": 0}, units).to_pylist()[0]
    by_order = values.reshape(3, 2).mean(1)
    expected = stats.t.interval(0.95, 2, by_order.mean(), stats.sem(by_order))
    assert (row["clustered_by"], row["ci_low"], row["ci_high"]) == ("order", *map(pytest.approx, expected))


def test_metrics_that_lack_different_runs_are_summarised_each_over_its_own() -> None:
    tables = [_metrics_table([0.5, None, 0.7]), _metrics_table([None, 0.2, 0.4])]
    other = tables[1].set_column(2, "metric", pa.array(["forgetting"] * 3))
    rows = summarise_metrics(pa.concat_tables([tables[0], other]), {"replay": 0}, PAIRED).to_pylist()
    assert {row["metric"]: (row["n"], round(row["mean"], 12)) for row in rows} == {
        "average_accuracy": (2, 0.6),
        "forgetting": (2, 0.3),
    }


def _metrics_table(values: list[float | None]) -> pa.Table:
    n = len(values)
    texts = {"protocol": "p", "metric": "average_accuracy", "unit": "fraction", "direction": "higher"}
    columns: dict[str, list[Any]] = {name: [text] * n for name, text in texts.items()}
    columns |= {name: [None] * n for name in ("index", "task", "missing")}
    columns |= {"run": [f"replay/s{i}" for i in range(n)], "value": values}
    return pa.table(columns, schema=TABLES["metrics"].schema)


def test_the_heat_map_averages_cells_by_stage_and_position(study: MadeUpStudy) -> None:
    study.stage("aggregate", methods=["replay"])
    cells = study.rows("aggregate/matrix.parquet", "matrix_summary")
    n_and_mean = {(cell["stage"], cell["position"]): (cell["n"], round(cell["mean"], 6)) for cell in cells}
    assert n_and_mean == {(1, 1): (3, 0.766667), (1, 2): (3, 0.2), (2, 1): (2, 0.6), (2, 2): (2, 0.85)}


def test_costs_are_summed_over_the_stages_of_a_run_and_averaged_over_the_complete_runs(study: MadeUpStudy) -> None:
    study.job("train").write_json(
        "runs/replay/s1-o1/stage-2.json", {"counted": counted(3), "machine": {"threads": 2}}, "stage"
    )
    study.stage("ledger", method="replay")
    study.stage("aggregate", methods=["replay"])
    (row,) = study.rows("aggregate/costs.parquet", "costs")
    # the second stage of one run cost as much as a third one, and the third run failed
    expected = {
        "method": "replay",
        "n": 2,
        "n_early_stopped": 0,
        "n_several_machines": 1,
        "flops_mean": 1001 * (3 + 4) / 2,
        "flops_method_mean": (3 + 4) / 2,
        "steps_mean": (30 + 40) / 2,
        "flops_probing_mean": (1 + 2 + 1 + 3) / 2,
        "flops_evaluation_mean": 50,
        "parameters": 7,
        "method_bytes_max": 300,
        "copies_bytes_max": 300,
    }
    assert row == {name: expected.get(name, 0) for name in row}


def test_a_method_without_a_complete_run_has_no_costs(study: MadeUpStudy) -> None:
    for unit, order in ORDERS.items():
        study.run(f"replay/{unit}", order, [[60, 30]], outcome=FAILED)
    study.stage("ledger", method="replay")
    study.stage("aggregate", methods=["replay"])
    (row,) = study.rows("aggregate/costs.parquet", "costs")
    assert row == {**dict.fromkeys(row), "method": "replay", "n": 0, "n_early_stopped": 0, "n_several_machines": 0}


def test_the_record_of_a_stage_that_is_not_the_one_in_the_ledger_is_refused(study: MadeUpStudy) -> None:
    (study.folder / "runs/replay/s0-o0/stage-1.json").write_text('{"counted": {}}')
    with pytest.raises(ArtifactError, match="not the one that was written") as error:
        study.stage("aggregate", methods=["replay"])
    assert error.value.where.endswith("runs/replay/s0-o0/stage-1.json")


def test_all_runs_stand_in_one_table(study: MadeUpStudy) -> None:
    study.stage("aggregate", methods=["replay"])
    rows = study.rows("aggregate/metrics.parquet", "metrics")
    assert {row["run"] for row in rows} == {f"replay/{unit}" for unit in ORDERS}


def test_the_shards_are_the_parents_and_not_the_runs(study: MadeUpStudy) -> None:
    study.stage("aggregate", methods=["replay"])
    parents = read_lineage(study.folder / "aggregate/summary.parquet")["parents"]
    shard_and_plan = {"audit/ledger/replay.parquet", "plan/units.parquet", "plan/code/rules/aggregate.json"}
    assert set(parents) == shard_and_plan


def test_a_table_that_is_not_the_one_in_the_ledger_is_refused(study: MadeUpStudy) -> None:
    study.run("replay/s0-o0", ORDERS["s0-o0"], [[91, 10], [70, 80]])
    with pytest.raises(ArtifactError, match="not the one that was written") as error:
        study.stage("aggregate", methods=["replay"])
    assert "evaluation/replay/s0-o0/matrix.parquet" in str(error.value)
    assert "the ledger" in str(error.value)


def test_a_table_that_the_ledger_does_not_list_is_refused(study: MadeUpStudy) -> None:
    with pytest.raises(ArtifactError, match="not in the ledger"):
        study.job("look").read_listed("metrics/replay/s0-o0.parquet", "metrics", {})
