"""`palimpsest stage plan_code`: record the program of a rule as it was when the workflow run began."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder
from palimpsest.core.artifact import Job


def command(
    study: StudyFolder,
    code: CodeFile,
    program: Annotated[str, typer.Option(help="Hash and files of the program, as JSON.")],
) -> None:
    """Write plan/code/….json, an input of the rule's jobs: each refuses to run another program."""
    content = json.loads(program)
    job = Job(study, "plan_code", content["code"], content["environment"])
    job.write_json(code, content, kind="program")
