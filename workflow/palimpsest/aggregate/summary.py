"""Summaries over the runs of a method. Metrics are computed per run and then averaged, never the other way round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.aggregate.means import Clusters, estimates, pick, widest
from palimpsest.core.tables import TABLES

CONFIDENCE = 0.95
_KEYS = ("protocol", "metric", "index", "task", "unit", "direction")
Factors = Mapping[str, Mapping[str, object]]


def summarise_metrics(metrics: pa.Table, n_failed: Mapping[str, int], units: Factors) -> pa.Table:
    """Rows of the table `summary`: mean, spread and worst of each metric over the runs of each method.

    Null values do not count: `n` is the number of runs that have a value. `sd` is the sample SD (divisor n − 1);
    `ci_low`, `ci_high` bound the 95 % t interval of the mean; all three are null for n < 2. Runs that share seeds or
    orders are not independent: of the estimates in `means.estimates` the one with the widest interval counts, and
    `clustered_by` says which; on an incomplete grid its middle is the mean of cluster means. `worst` is the lowest
    value of a metric of which more is better, else the highest.

    Args:
        metrics: rows of the table `metrics`, of all runs.
        n_failed: by method, the runs that did not complete.
        units: the levels of the factors `seed` and `order` of each unit.
    """
    methods = pc.replace_substring_regex(metrics["run"], "/.*", "")
    schema = TABLES["summary"].schema
    found = [schema.empty_table()]
    for method in sorted(pc.unique(methods).to_pylist()):
        columns = _of_method(metrics.filter(pc.equal(methods, method)), units)
        n = len(columns["n"])
        columns |= {"method": pa.repeat(method, n), "n_failed": pa.repeat(n_failed[method], n)}
        found.append(pa.table([pa.array(columns[f.name]) for f in schema], names=schema.names).cast(schema))
    return pa.concat_tables(found)


def _of_method(rows: pa.Table, units: Factors) -> dict[str, pa.Array | np.ndarray]:
    """Columns of the summary of one method: a row for each combination of the keys."""
    of_row = pc.utf8_slice_codeunits(rows["run"], len(rows["run"][0].as_py().split("/")[0]) + 1)
    names = sorted(pc.unique(of_row).to_pylist())
    column = pc.index_in(of_row, pa.array(names)).to_numpy()
    first, place = _groups(rows)
    values = np.full((len(first), len(names)), np.nan)
    values[place, column] = pc.fill_null(rows["value"], np.nan).to_numpy()
    keys = rows.take(pa.array(first))
    columns: dict[str, Any] = {key: keys[key].combine_chunks() for key in _KEYS}
    higher = pc.equal(keys["direction"], "higher").to_numpy()
    described = _described(values, higher, {f: [units[name][f] for name in names] for f in ("seed", "order")})
    return columns | described


def _groups(rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The first row of every combination of the keys, and the combination of every row."""
    code = np.zeros(len(rows), dtype=np.int64)
    for key in _KEYS:
        encoded = rows[key].combine_chunks().dictionary_encode(null_encoding="encode")
        code = code * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy(zero_copy_only=False)
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    return first, place


def _described(values: np.ndarray, higher: np.ndarray, factors: Clusters) -> dict[str, Any]:
    """Columns from values `[row, run]`, NaN where a run has none; rows that lack the same runs are taken together."""
    n_rows = len(values)
    found = {name: np.full(n_rows, np.nan) for name in ("mean", "sd", "ci_low", "ci_high", "worst")}
    by = np.full(n_rows, None, dtype=object)
    patterns, pattern = np.unique(np.isnan(values), axis=0, return_inverse=True)
    for number, absent in enumerate(patterns):
        at = np.flatnonzero(pattern.ravel() == number)
        there = values[np.ix_(at, ~absent)]
        if there.shape[1]:
            found["mean"][at] = there.mean(1)
            found["worst"][at] = np.where(higher[at], there.min(1), there.max(1))
        if there.shape[1] > 1:
            found["sd"][at] = there.std(1, ddof=1)
            kept = {name: [levels[run] for run in np.flatnonzero(~absent)] for name, levels in factors.items()}
            found["ci_low"][at], found["ci_high"][at], by[at] = _interval(there, kept)
    numbers = {name: pa.array(column, pa.float64(), from_pandas=True) for name, column in found.items()}
    return {"n": (~np.isnan(values)).sum(1), "clustered_by": pa.array(by, pa.string()), **numbers}


def _interval(values: np.ndarray, factors: Clusters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds, and what the widest interval allows for."""
    from scipy.special import stdtrit

    candidates = estimates(values, factors)
    chosen = widest(candidates, 1 - CONFIDENCE)
    mean, error, df = pick(candidates, chosen)
    half = stdtrit(df, (1 + CONFIDENCE) / 2) * error
    return mean - half, mean + half, np.array([candidate.by for candidate in candidates], dtype=object)[chosen]


def summarise_matrix(method: str, protocol: str, accuracy: pa.Table) -> pa.Table:
    """Rows of the table `matrix_summary`, for heat maps only: mean and sample SD of the accuracy by stage and position.

    Args:
        method, protocol: of what.
        accuracy: columns `stage, position, value`, one row per run and measured cell.
    """
    grouped = _describe(accuracy, ["stage", "position"], "value")
    named = {
        name: pa.repeat(pa.scalar(text), len(grouped)) for name, text in (("method", method), ("protocol", protocol))
    }
    rows = pa.table({**named, **{column: grouped[column] for column in grouped.column_names}})
    schema = TABLES["matrix_summary"].schema
    return rows.select(schema.names).cast(schema)


def _describe(rows: pa.Table, keys: list[str], column: str) -> pa.Table:
    """Number, mean and sample SD (null for fewer than two) of a column's values, null ones left out.

    One thread and a fixed order of the rows: the same values give the same bits.
    """
    ordered = rows.sort_by([(key, "ascending") for key in [*keys, column]]).combine_chunks()
    spread = pc.VarianceOptions(ddof=1, min_count=2)
    wanted = [(column, "count", None), (column, "mean", None), (column, "stddev", spread)]
    grouped = ordered.group_by(keys, use_threads=False).aggregate(wanted)
    return grouped.rename_columns([*keys, "n", "mean", "sd"])
