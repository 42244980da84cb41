"""`palimpsest compare-studies`: how methods rank over several finished studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def command(
    studies: Annotated[list[str], typer.Argument(help="Names of studies that have the same methods.")],
    results: Annotated[Path, typer.Option(help="Folder of all results.")] = Path("results"),
    metric: Annotated[str, typer.Option(help="A metric with one value per run.")] = "average_accuracy",
    alpha: Annotated[float, typer.Option(help="Level of the test.", min=0, max=1)] = 0.05,
) -> None:
    """Mean ranks and Friedman's test over studies, each under its own protocol; accuracies are never pooled."""
    from palimpsest.statistics.friedman import friedman

    found = [_means(results / study, metric) for study in dict.fromkeys(studies)]
    values = dict(zip(dict.fromkeys(studies), (means for means, _ in found), strict=True))
    _require_alike(values, metric)
    test = friedman(values, found[0][1] == "higher", alpha)
    print(f"{metric}: mean ranks over {test.n_studies} studies, 1 is best")
    for method, rank in sorted(test.ranks.items(), key=lambda item: item[1]):
        per_study = ", ".join(f"{study} {100 * means[method]:.1f}" for study, means in values.items())
        print(f"  {method}: {rank:.2f} ({per_study}; percent)")
    if test.p is None:
        print(f"not tested: {test.reason}")
        return
    how = "counted over all rankings" if test.exact else "chi-squared approximation"
    print(
        f"Friedman's chi-squared {test.statistic:.2f}, p = {test.p:.4f} ({how}; least possible {test.smallest_p:.2g})"
    )
    for (a, b), p in test.post_hoc.items():
        print(f"  {a} and {b}: p = {p:.4f} (Nemenyi, an approximation for many studies)")
    print("exploratory: no plan announced it")


def _means(folder: Path, metric: str) -> tuple[dict[str, float], str]:
    """The mean of each method of a study, without references, and the direction of the metric."""
    from palimpsest.core.artifact import Job

    job = Job(folder, "compare-studies", code="", environment="")
    plan = job.read_json("plan/lock.json")
    methods = [name for name, about in plan["methods"].items() if about["role"] == "method"]
    rows: list[dict[str, Any]] = [
        row
        for row in job.read_table("aggregate/summary.parquet", "summary").to_pylist()
        if (row["metric"], row["protocol"], row["index"], row["task"])
        == (metric, plan["study"]["protocol"], None, None)
    ]
    means = {row["method"]: row["mean"] for row in rows if row["method"] in methods and row["mean"] is not None}
    return means, rows[0]["direction"] if rows else "higher"


def _require_alike(values: dict[str, dict[str, float]], metric: str) -> None:
    from palimpsest.core.errors import StudyError

    methods = {frozenset(means) for means in values.values()}
    if len(values) < 2 or len(methods) > 1 or len(next(iter(methods))) < 2:
        raise StudyError(
            "these studies cannot be ranked together",
            where=f"{metric} in aggregate/summary.parquet",
            expected="two or more studies with a value of the metric for the same two or more methods",
            got="; ".join(f"{study}: {', '.join(sorted(means)) or 'none'}" for study, means in values.items()),
            next="name finished studies of the same methods, and a metric with one value per run",
        )
