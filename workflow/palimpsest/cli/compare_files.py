"""From a file of matrices to the paired comparison of two of its methods."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from palimpsest.cli.metric_tables import rows_of_matrix
from palimpsest.core.errors import MatrixError
from palimpsest.core.tables import TABLES
from palimpsest.metrics._files import NamedMatrix, read_matrices
from palimpsest.plan.marks import no_marks
from palimpsest.statistics import wording
from palimpsest.statistics.compare import compare
from palimpsest.statistics.pairs import find_pairs
from palimpsest.statistics.plan import RULES, read_analysis

# Units as a study names them: seed 0, order 2.
_UNIT = re.compile(r"(s\d+)-(o\w+)")


@dataclass(frozen=True)
class Question:
    """What is to be compared, and by which rules.

    Args:
        a, b: methods; differences are A − B.
        metric, index, protocol: which value of each run is compared.
        alternative: of A − B.
        alpha: error rate of the test.
        margin: δ of the test of equivalence, a fraction, or None.
    """

    a: str
    b: str
    metric: str
    index: int | None
    protocol: str
    alternative: str
    alpha: float
    margin: float | None


def compare_file(path: Path, question: Question, percent: bool = False) -> list[str]:
    """The comparison in words: the verdict, the numbers behind it, what it is about and what it may be used for.

    Raises:
        MatrixError: the file is not what it should be, or has no methods and units.
        StudyError: a method or metric does not exist.
    """
    matrices = _of_methods(path, read_matrices(path, percent), question)
    table = [
        {**row, "run": f"{matrix.about['method']}/{matrix.about['unit']}"}
        for matrix in matrices
        for row in rows_of_matrix(matrix, {}, question.protocol)
    ]
    analysis = read_analysis(_plan(question), no_marks())
    metrics = pa.Table.from_pylist(table, TABLES["metrics"].schema)
    pairs = [find_pairs(comparison, metrics, _units(matrices), failed=()) for comparison in analysis.comparisons]
    (row,) = compare(analysis, pairs)
    return [
        wording.sentence(row),
        f"{wording.quantity(row)}; {wording.preference(row)}",
        wording.evidence(row),
        f"worst task: {wording.worst_task(row)}",
        *([f"remark: {row['reason']}"] if row["reason"] else []),
        "Exploratory: no plan announced this comparison before the results were known.",
    ]


def _of_methods(path: Path, matrices: Sequence[NamedMatrix], question: Question) -> list[NamedMatrix]:
    for matrix in matrices:
        lacking = [name for name in ("method", "unit") if name not in matrix.about]
        if lacking:
            raise _error(path, "the columns method and unit", f"no column {' and no column '.join(lacking)}")
    methods = sorted({matrix.about["method"] for matrix in matrices})
    for option, method in (("--a", question.a), ("--b", question.b)):
        if method not in methods:
            raise _error(f"{path}, {option}", f"one of {', '.join(methods)}", method)
    named = [matrix for matrix in matrices if matrix.about["method"] in (question.a, question.b)]
    units = [(matrix.about["method"], matrix.about["unit"]) for matrix in named]
    doubled = sorted({f"{method}/{unit}" for method, unit in units if units.count((method, unit)) > 1})
    if doubled:
        raise _error(path, "one run of each method and unit", f"several of {', '.join(doubled)}")
    return named


def _plan(question: Question) -> dict[str, Any]:
    primary = {
        "name": f"{question.a} − {question.b}",
        **{name: getattr(question, name) for name in ("a", "b", "metric", "index", "protocol", "alternative")},
    }
    rules = {"alpha": question.alpha, "equivalence_margin": question.margin}
    return {**RULES, **rules, "primary": primary, "secondary": []}


def _units(matrices: Sequence[NamedMatrix]) -> dict[str, Mapping[str, str]]:
    """Seed and order of each unit: what the file says, else what the unit's name says, else its own of each."""
    found = {}
    for matrix in matrices:
        unit = matrix.about["unit"]
        named = _UNIT.fullmatch(unit)
        seed, order = named.groups() if named else (unit, unit)
        found[unit] = {"seed": matrix.about.get("seed", seed), "order_id": matrix.about.get("order", order)}
    return found


def _error(where: Path | str, expected: str, got: str) -> MatrixError:
    return MatrixError(
        "two methods cannot be compared on this file",
        where=str(where),
        expected=expected,
        got=got,
        next="give rows with the columns method, unit, stage, task, value",
    )
