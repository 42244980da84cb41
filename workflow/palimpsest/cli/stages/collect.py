"""`palimpsest stage collect`: steps, outcome and telemetry of some runs from their stages. No torch."""

from __future__ import annotations

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.cli.runs import Method, Shared, Units, each_run


def command(study: StudyFolder, code: CodeFile, method: Method, shared: Shared, units: Units) -> None:
    """Write runs/METHOD/UNIT/steps.parquet and outcome.parquet, and telemetry/METHOD/UNIT.parquet."""
    job = begin(study, "collect", code)
    from palimpsest.training.collect import collect_run

    for run_job, run, spec in each_run(job, method, shared, units):
        collect_run(run_job, run, [stage["stage"] for stage in spec["stages"]])
