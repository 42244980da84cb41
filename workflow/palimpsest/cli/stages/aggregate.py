"""The stage `aggregate`: tables over all runs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin


def command(
    study: StudyFolder,
    code: CodeFile,
    methods: Annotated[str, typer.Option(help="Labels of all methods and references, a JSON list.")],
) -> None:
    """Collect the metrics of all runs that the ledger lists, and summarise them per method."""
    from palimpsest.aggregate.study import write_aggregates

    write_aggregates(begin(study, "aggregate", code), json.loads(methods))
