"""`palimpsest stage evaluate`: every checkpoint of some runs of one method on every task."""

from __future__ import annotations

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.cli.runs import Method, Shared, Units, each_run, modules_of, threads_of


def command(study: StudyFolder, code: CodeFile, method: Method, shared: Shared, units: Units) -> None:
    """Write evaluation/METHOD/UNIT/predictions.parquet and matrix.parquet."""
    from palimpsest.cli.numerics import pin_numerics

    job = begin(study, "evaluate", code, modules_of(shared))
    pin_numerics(threads_of(shared))
    from palimpsest.evaluation.evaluate import evaluate_run

    for run_job, run, spec in each_run(job, method, shared, units):
        evaluate_run(run_job, run, spec)
