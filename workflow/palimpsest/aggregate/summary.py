"""Summaries over the runs of a method. Metrics are computed per run and then averaged, never the other way round."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.core.tables import TABLES

CONFIDENCE = 0.95


def summarise_metrics(metrics: pa.Table, n_failed: Mapping[str, int]) -> pa.Table:
    """Rows of the table `summary`: mean, spread and worst of each metric over the runs of each method.

    Null values do not count: `n` is the number of runs that have a value. `sd` is the sample SD (divisor n − 1);
    `ci_low`, `ci_high` bound the 95 % t interval of the mean, which takes runs as independent; all three are null for
    n < 2. `worst` is the lowest value of a metric of which more is better, else the highest.

    Args:
        metrics: rows of the table `metrics`, of all runs.
        n_failed: by method, the runs that did not complete.
    """
    methods = pc.replace_substring_regex(metrics["run"], "/.*", "")
    keys = ["method", "protocol", "metric", "index", "task", "unit", "direction"]
    grouped = _describe(metrics.append_column("method", methods), keys, "value")
    n, mean, sd = (grouped[column].to_numpy() for column in ("n", "mean", "sd"))
    half_width = _t_quantile(n) * sd / np.sqrt(np.maximum(n, 1))
    worst = pc.if_else(pc.equal(grouped["direction"], "higher"), grouped["min"], grouped["max"])
    columns = {key: grouped[key] for key in keys}
    columns |= {"n": grouped["n"], "n_failed": [n_failed[method] for method in grouped["method"].to_pylist()]}
    columns |= {"mean": grouped["mean"], "sd": grouped["sd"], "worst": worst}
    columns |= {"ci_low": _nullable(mean - half_width), "ci_high": _nullable(mean + half_width)}
    return pa.table(columns)


def summarise_matrix(method: str, protocol: str, accuracy: pa.Table) -> pa.Table:
    """Rows of the table `matrix_summary`, for heat maps only: mean and sample SD of the accuracy by stage and position.

    Args:
        method, protocol: of what.
        accuracy: columns `stage, position, value`, one row per run and measured cell.
    """
    grouped = _describe(accuracy, ["stage", "position"], "value").drop_columns(["min", "max"])
    named = {
        name: pa.repeat(pa.scalar(text), len(grouped)) for name, text in (("method", method), ("protocol", protocol))
    }
    rows = pa.table({**named, **{column: grouped[column] for column in grouped.column_names}})
    schema = TABLES["matrix_summary"].schema
    return rows.select(schema.names).cast(schema)


def _describe(rows: pa.Table, keys: list[str], column: str) -> pa.Table:
    """Number, mean, sample SD (null for fewer than two), minimum and maximum of a column's values, null ones left out.

    One thread and a fixed order of the rows: the same values give the same bits.
    """
    ordered = rows.sort_by([(key, "ascending") for key in [*keys, column]]).combine_chunks()
    spread = pc.VarianceOptions(ddof=1, min_count=2)
    wanted = [(column, "count", None), (column, "mean", None), (column, "stddev", spread)]
    wanted += [(column, "min", None), (column, "max", None)]
    grouped = ordered.group_by(keys, use_threads=False).aggregate(wanted)
    return grouped.rename_columns([*keys, "n", "mean", "sd", "min", "max"])


def _t_quantile(n: np.ndarray) -> np.ndarray:
    from scipy.special import stdtrit

    degrees = np.where(n < 2, np.nan, n - 1.0)
    return stdtrit(degrees, (1 + CONFIDENCE) / 2)


def _nullable(values: np.ndarray) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)
