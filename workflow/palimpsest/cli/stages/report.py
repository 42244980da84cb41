"""The stage `report`: one page, figures and tables of a study."""

from __future__ import annotations

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.metrics import METRICS


def command(study: StudyFolder, code: CodeFile) -> None:
    """Write the study's report: report/index.html, report/figures/ and report/tables/, and report/costs.html."""
    from palimpsest.report.build import build, build_costs

    job = begin(study, "report", code, METRICS.modules())
    build(job)
    build_costs(job)
