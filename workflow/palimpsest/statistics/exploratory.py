"""The comparison of two methods that no plan announced: the same test, and never confirmatory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.core.errors import StudyError
from palimpsest.core.tables import TABLES
from palimpsest.metrics import METRICS
from palimpsest.metrics._evaluate import declaration
from palimpsest.statistics.comparisons import compare
from palimpsest.statistics.pairs import find_pairs
from palimpsest.statistics.plan import Alternative, Analysis, Comparison
from palimpsest.statistics.sources import Runs

NOT_ANNOUNCED = "no plan announced it before the results were known"


@dataclass(frozen=True)
class Question:
    """What is to be compared, and by which rules.

    Args:
        a, b: methods; differences are A − B.
        metric, index: which value of each run is compared.
        alternative: of A − B.
        alpha: error rate of the test.
        margin: δ of the test of equivalence, a fraction, or None.
    """

    a: str
    b: str
    metric: str = "average_accuracy"
    index: int | None = None
    alternative: Alternative = "two-sided"
    alpha: float = 0.05
    margin: float | None = None


def answer(runs: Runs, question: Question) -> dict[str, Any]:
    """The row of the table `comparisons`, its role `exploratory`.

    Raises:
        StudyError: a method, a metric or its index does not exist, or a number is out of range.
    """
    _require_sensible(runs, question)
    comparison = Comparison(
        f"{question.a} − {question.b}",
        "exploratory",
        question.a,
        question.b,
        question.metric,
        question.index,
        runs.protocol,
        question.alternative,
        mark=NOT_ANNOUNCED,
    )
    pairs = find_pairs(comparison, runs.metrics, runs.units, runs.failed)
    rows = compare(Analysis(question.alpha, question.margin, (comparison,)), [pairs])
    return pa.Table.from_pylist(rows, TABLES["comparisons"].schema).to_pylist()[0]


def _require_sensible(runs: Runs, question: Question) -> None:
    """Raise where the question makes no sense; in the words of who asked, for there is no study file to correct."""
    METRICS.require(question.metric, "metric")
    methods = ", ".join(runs.methods)
    for name, method in (("a", question.a), ("b", question.b)):
        _require(method in runs.methods, name, f"one of {methods}", method)
    _require(question.a != question.b, "b", "another method than a", question.b)
    alternatives = get_args(Alternative)
    _require(question.alternative in alternatives, "alternative", " or ".join(alternatives), question.alternative)
    _require(0 < question.alpha < 1, "alpha", "a number between 0 and 1", question.alpha)
    _require(question.margin is None or 0 < question.margin <= 1, "margin", "a fraction above 0", question.margin)
    kind = declaration(question.metric).index
    _require(kind != "task", "metric", "a metric with one value per run", question.metric)
    if kind is None:
        _require(question.index is None, "index", f"no index for {question.metric}", question.index)
        return
    there = runs.metrics.filter((pc.field("metric") == question.metric) & (pc.field("protocol") == runs.protocol))
    known = sorted({at for at in there["index"].unique().to_pylist() if at is not None})
    expected = (
        f"one of {', '.join(map(str, known))}" if known else f"a value of {question.metric}, of which there is none"
    )
    _require(question.index in known, "index", expected, question.index)


def _require(condition: bool, where: str, expected: str, got: object) -> None:
    if not condition:
        raise StudyError(
            "two methods cannot be compared like this",
            where=where,
            expected=expected,
            got=str(got),
            next="ask for something else",
        )
