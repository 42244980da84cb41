"""The specification of a run as an argument: what training and evaluation are told, and nothing else."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

RunId = Annotated[str, typer.Option("--run", help="The run, METHOD/UNIT.")]
SpecText = Annotated[str, typer.Option("--spec", help="The run's specification in canonical JSON.")]


def read_spec(text: str) -> tuple[dict[str, Any], list[str]]:
    """The specification, and the modules that it names: parts of the method, model."""
    spec = json.loads(text)
    parts = [f"palimpsest.methods.{part}" for part in spec["method"].split("+")]
    return spec, [*parts, f"palimpsest.models.{spec['model']['name']}"]
