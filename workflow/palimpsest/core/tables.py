"""Schemas of every table: fixed column names and types, and the key by which rows are sorted.

Accuracy is stored as the integers `n_correct` and `n_total`. A cell that was not measured is absent or null, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

_STRING, _FLOAT, _INT, _SMALL = pa.string(), pa.float64(), pa.int64(), pa.int32()


@dataclass(frozen=True)
class Table:
    """One table: its name, version, Arrow schema and key columns."""

    name: str
    version: int
    schema: pa.Schema
    key: tuple[str, ...]


def _table(name: str, key: str, **columns: pa.DataType) -> Table:
    return Table(name, 1, pa.schema(list(columns.items())), tuple(key.split()))


TABLES: dict[str, Table] = {
    table.name: table
    for table in [
        _table("units", "unit position", unit=_STRING, seed=_INT, order_id=_STRING, position=_SMALL, task=_STRING),
        _table(
            "runs",
            "run",
            run=_STRING,
            method=_STRING,
            unit=_STRING,
            protocol=_STRING,
            hyperparameters=_STRING,
            spec_hash=_STRING,
        ),
        _table(
            "samples",
            "sample",
            dataset=_STRING,
            split=_STRING,
            sample=_INT,
            label=_SMALL,
            task=_STRING,
            sha256=_STRING,
            duplicate_of=_INT,
        ),
        _table(
            "steps",
            "stage step",
            stage=_SMALL,
            task=_STRING,
            step=_INT,
            samples_seen=_INT,
            flops=_INT,
            loss=_FLOAT,
            learning_rate=_FLOAT,
            gradient_norm=_FLOAT,
            replayed=_SMALL,
        ),
        _table("outcome", "stage", status=_STRING, stage=_SMALL, step=_INT, reason=_STRING),
        _table(
            "predictions",
            "stage task sample",
            stage=_SMALL,
            task=_STRING,
            sample=_INT,
            label=_SMALL,
            predicted=_SMALL,
            predicted_in_task=_SMALL,
            label_log_probability=pa.float32(),
            label_log_probability_in_task=pa.float32(),
        ),
        _table(
            "matrix",
            "protocol stage task",
            protocol=_STRING,
            stage=_SMALL,
            trained_task=_STRING,
            task=_STRING,
            n_correct=_INT,
            n_total=_INT,
            loss_sum=_FLOAT,
        ),
        _table(
            "metrics",
            "run protocol metric index task",
            run=_STRING,
            protocol=_STRING,
            metric=_STRING,
            index=_SMALL,
            task=_STRING,
            value=_FLOAT,
            unit=_STRING,
            direction=_STRING,
            missing=_STRING,
        ),
        _table(
            "summary",
            "method protocol metric index task",
            method=_STRING,
            protocol=_STRING,
            metric=_STRING,
            index=_SMALL,
            task=_STRING,
            unit=_STRING,
            direction=_STRING,
            n=_SMALL,
            n_failed=_SMALL,
            mean=_FLOAT,
            sd=_FLOAT,
            ci_low=_FLOAT,
            ci_high=_FLOAT,
            worst=_FLOAT,
        ),
        _table(
            "matrix_summary",
            "method protocol stage position",
            method=_STRING,
            protocol=_STRING,
            stage=_SMALL,
            position=_SMALL,
            n=_SMALL,
            mean=_FLOAT,
            sd=_FLOAT,
        ),
        _table(
            "costs",
            "method",
            method=_STRING,
            n=_SMALL,
            flops_mean=_FLOAT,
            parameters=_INT,
            method_bytes_max=_INT,
            steps_mean=_FLOAT,
        ),
        _table(
            "comparisons",
            "comparison",
            comparison=_STRING,
            role=_STRING,
            a=_STRING,
            b=_STRING,
            protocol=_STRING,
            metric=_STRING,
            index=_SMALL,
            unit=_STRING,
            metric_direction=_STRING,
            alternative=_STRING,
            alpha=_FLOAT,
            equivalence_margin=_FLOAT,
            n=_SMALL,
            n_failed_a=_SMALL,
            n_failed_b=_SMALL,
            mean=_FLOAT,
            sd=_FLOAT,
            standard_error=_FLOAT,
            clustered_by=_STRING,
            t=_FLOAT,
            df=_SMALL,
            p=_FLOAT,
            p_adjusted=_FLOAT,
            ci_low=_FLOAT,
            ci_high=_FLOAT,
            p_equivalence=_FLOAT,
            p_equivalence_adjusted=_FLOAT,
            mean_bound_low=_FLOAT,
            mean_bound_high=_FLOAT,
            p_wilcoxon=_FLOAT,
            orders_agreeing=_SMALL,
            n_orders=_SMALL,
            worst_task=_STRING,
            worst_task_change=_FLOAT,
            worst_task_ci_low=_FLOAT,
            worst_task_ci_high=_FLOAT,
            confirmatory=pa.bool_(),
            verdict=_STRING,
            reason=_STRING,
        ),
        _table(
            "orders",
            "method protocol by task level",
            method=_STRING,
            protocol=_STRING,
            by=_STRING,
            task=_STRING,
            level=_STRING,
            n=_SMALL,
            mean=_FLOAT,
            sd=_FLOAT,
            quantile_low=_FLOAT,
            quantile_high=_FLOAT,
            worst=_FLOAT,
            n_orders=_SMALL,
            n_seeds=_SMALL,
            order_disparity=_FLOAT,
            missing=_STRING,
        ),
        _table(
            "telemetry",
            "run stage attempt",
            run=_STRING,
            stage=_SMALL,
            attempt=_SMALL,
            outcome=_STRING,
            started=_STRING,
            ended=_STRING,
            wall_clock_s=_FLOAT,
            peak_memory_bytes=_INT,
            host=_STRING,
        ),
        _table(
            "ledger",
            "path",
            path=_STRING,
            sha256=_STRING,
            content_sha256=_STRING,
            kind=_STRING,
            bytes=_INT,
            rule=_STRING,
            parents=_STRING,
            code=_STRING,
            environment=_STRING,
        ),
    ]
}
