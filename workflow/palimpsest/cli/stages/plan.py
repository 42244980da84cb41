"""`palimpsest stage plan`: the locked plan as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin


def command(
    study: StudyFolder, code: CodeFile, lock: Annotated[Path, typer.Option(help="The lock, config/NAME.lock.json.")]
) -> None:
    """Write plan/lock.json, plan/units.parquet and plan/runs.parquet."""
    job = begin(study, "plan", code)
    from palimpsest.plan.tables import write_plan

    write_plan(job, lock)
