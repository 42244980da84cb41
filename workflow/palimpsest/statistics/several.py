"""Several studies: each with its own results, and whether methods rank alike in all of them. Nothing is pooled.

============ ===============================================================================================
`kind`       a row of the table `ranks` says
============ ===============================================================================================
`study`      mean of a method in a study, as in its table `summary`, and the method's rank there
`mean rank`  mean of a method's ranks over the studies
`test`       Friedman's test that all methods rank alike (`friedman`), or the reason why there is none
`pair`       Nemenyi's p of two methods, `method` and `against`; only behind a test that rejects
============ ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palimpsest.core.errors import StudyError
from palimpsest.core.tables import TABLES
from palimpsest.metrics import METRICS
from palimpsest.metrics._evaluate import declaration
from palimpsest.statistics.friedman import friedman
from palimpsest.statistics.sources import Runs

Row = dict[str, Any]


def rank_studies(studies: Sequence[Runs], metric: str, alpha: float) -> list[Row]:
    """Rows of the table `ranks`, in the order of the kinds above; ranks from 1, the best.

    Args:
        studies: of the same methods, each under its own protocol.
        metric: one with one value per run.
        alpha: level of the test.

    Raises:
        StudyError: there is no such metric, or the studies cannot be ranked together.
    """
    METRICS.require(metric, "metric")
    _require(declaration(metric).index is None, "metric", "a metric with one value per run", metric)
    _require(0 < alpha < 1, "alpha", "a number between 0 and 1", f"{alpha:g}")
    names = [runs.name for runs in studies]
    _require(len(set(names)) == len(names), "studies", "another name for each of them", ", ".join(names))
    found = {runs.name: _summaries(runs, metric) for runs in studies}
    _require_alike(found)
    return [{**dict.fromkeys(TABLES["ranks"].schema.names), **row} for row in _rows(found, metric, alpha)]


def _summaries(runs: Runs, metric: str) -> list[Row]:
    rows = [
        row
        for row in runs.summary().to_pylist()
        if (row["metric"], row["protocol"], row["index"], row["task"]) == (metric, runs.protocol, None, None)
    ]
    return [{**row, "study": runs.name} for row in rows if row["method"] in runs.methods and row["mean"] is not None]


def _rows(found: dict[str, list[Row]], metric: str, alpha: float) -> list[Row]:
    direction = declaration(metric).direction
    means = {study: {row["method"]: row["mean"] for row in rows} for study, rows in found.items()}
    test = friedman(means, direction == "higher", alpha)
    about = {"metric": metric, "direction": direction}
    rows = [
        {
            **about,
            "kind": "study",
            **{name: row[name] for name in _OF_SUMMARY},
            "rank": test.by_study[study][row["method"]],
        }
        for study, of_study in found.items()
        for row in of_study
    ]
    n = {"n_studies": test.n_studies}
    rows += [{**about, **n, "kind": "mean rank", "method": name, "rank": rank} for name, rank in test.ranks.items()]
    tested = {name: getattr(test, name) for name in ("statistic", "p", "exact", "smallest_p", "reason")}
    rows.append({**about, **n, "kind": "test", **tested})
    pairs = test.post_hoc.items()
    return rows + [{**about, **n, "kind": "pair", "method": a, "against": b, "p": p} for (a, b), p in pairs]


_OF_SUMMARY = ("study", "method", "protocol", "unit", "n", "n_failed", "mean", "sd", "ci_low", "ci_high")


def _require_alike(found: dict[str, list[Row]]) -> None:
    methods = {study: sorted(row["method"] for row in rows) for study, rows in found.items()}
    same = len({tuple(names) for names in methods.values()}) == 1
    enough = len(methods) > 1 and same and len(next(iter(methods.values()))) > 1
    expected = "two or more studies with a value of the metric for the same two or more methods"
    got = "; ".join(f"{study}: {', '.join(names) or 'none'}" for study, names in methods.items())
    _require(enough, "studies", expected, got or "none")


def _require(condition: bool, where: str, expected: str, got: str) -> None:
    if not condition:
        raise StudyError(
            "these studies cannot be ranked together",
            where=where,
            expected=expected,
            got=got,
            next="name finished studies or files of the same methods, and a metric with one value per run",
        )
