"""Preregistered comparisons: pairs, tests, verdicts, and how much the order of the tasks matters.

For runs from anywhere, as matrices by method and unit, as files, or as the folder of a finished study:

>>> from palimpsest.statistics import compare, compare_studies
>>> def matrices(*finals):
...     return {f"s{seed}-o{seed}": [[0.9, None], [final, 0.8]] for seed, final in enumerate(finals)}
>>> runs = {"replay": matrices(0.70, 0.75, 0.71, 0.73, 0.74), "finetune": matrices(0.31, 0.35, 0.33, 0.30, 0.38)}
>>> found = compare(runs, a="replay", b="finetune", margin=0.02)
>>> found["verdict"], found["n"], round(found["mean"], 3), round(found["ci_low"], 3), round(found["ci_high"], 3)
('better', 5, 0.196, 0.18, 0.212)
>>> found["role"], found["confirmatory"]
('exploratory', False)

>>> rows = compare_studies({name: runs for name in ("mnist", "cifar", "svhn", "cub", "core50", "omniglot")})
>>> [(row["method"], row["rank"]) for row in rows if row["kind"] == "mean rank"]
[('finetune', 2.0), ('replay', 1.0)]
>>> [(round(row["p"], 5), row["exact"]) for row in rows if row["kind"] == "test"]
[(0.03125, True)]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palimpsest.statistics.plan import Alternative
    from palimpsest.statistics.sources import Source


def compare(
    runs: Source,
    a: str,
    b: str,
    metric: str = "average_accuracy",
    *,
    index: int | None = None,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
    margin: float | None = None,
    protocol: str | None = None,
    percent: bool = False,
    **references: Any,
) -> dict[str, Any]:
    """The paired comparison of two methods, A − B, over the units that they share.

    Args:
        runs: matrices by method and unit; a file, or several, that `palimpsest.metrics.read` reads; or a folder of
            results. Pairs that share a seed or an order (columns of a file, or units named s0-o2) are no independent
            ones, and are tested as such.
        a, b: methods.
        metric, index: which value of each run is compared.
        alternative: of A − B.
        alpha: error rate of the test; intervals are at 1 − alpha.
        margin: δ of the test of equivalence, a fraction.
        protocol: under which predictions were scored; of a folder of results the study's own, if left out.
        percent: whether values are percent instead of fractions.
        references: `random_init`, `isolated`, `joint`, `n_total`: a number for each task, for metrics that need them.

    Returns:
        A row of the table `comparisons`: verdict, mean, interval, tests, bounds for failed runs. Never confirmatory,
        for no plan announced it.

    Raises:
        MatrixError: runs are not what they should be.
        StudyError: a method, a metric or its index does not exist.
    """
    from palimpsest.statistics.exploratory import Question, answer

    opened = _open(runs, protocol, percent, references)
    return answer(opened, Question(a, b, metric, index, alternative, alpha, margin))


def compare_studies(
    studies: Mapping[str, Source],
    metric: str = "average_accuracy",
    *,
    alpha: float = 0.05,
    protocol: str | None = None,
    percent: bool = False,
    **references: Any,
) -> list[dict[str, Any]]:
    """Results of each study, and whether methods rank alike over the studies: Friedman's test; nothing is pooled.

    Args:
        studies: runs by the name of their study; see `compare` for these and for the other arguments.
        metric: one with one value per run.
        alpha: level of the test.
        protocol, percent, references: of all studies.

    Returns:
        Rows of the table `ranks`; see `several`.

    Raises:
        MatrixError: runs are not what they should be.
        StudyError: the studies cannot be ranked together.
    """
    from dataclasses import replace

    from palimpsest.statistics.several import rank_studies

    opened = {name: _open(runs, protocol, percent, references) for name, runs in studies.items()}
    return rank_studies([replace(runs, name=name) for name, runs in opened.items()], metric, alpha)


def _open(runs: Source, protocol: str | None, percent: bool, references: dict[str, Any]) -> Any:
    import numpy as np

    from palimpsest.statistics.sources import open_runs

    arrays = {name: np.atleast_1d(np.array(values, dtype=float)) for name, values in references.items()}
    return open_runs(runs, protocol, percent, arrays)
