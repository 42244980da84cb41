"""The runs of a job as arguments: what their method's runs share, and the units."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from palimpsest.core.artifact import Job
from palimpsest.core.hashing import hash_json
from palimpsest.plan.grid import complete_spec

Method = Annotated[str, typer.Option(help="Key of the method in the study.")]
Shared = Annotated[str, typer.Option(help="What all runs of the method are told, as JSON.")]
Recorded = Annotated[
    str, typer.Option("--recording", help="What is recorded beside the steps, as JSON: probes and prequential.")
]
Units = Annotated[str, typer.Option(help="The units to work on, as JSON: unit, seed, order_id, tasks.")]


def modules_of(shared: str) -> list[str]:
    """What runs of a method find by name: its parts, and the model."""
    told = json.loads(shared)
    return [
        *(f"palimpsest.methods.{p}" for p in told["method"].split("+")),
        f"palimpsest.models.{told['model']['name']}",
    ]


def threads_of(shared: str) -> int:
    """Threads of one training job, from the plan."""
    return json.loads(shared)["numerics"]["threads"]


def each_run(job: Job, method: str, shared: str, units: str) -> Iterator[tuple[Job, str, dict[str, Any]]]:
    """A job of its own for each run, with the run's id and specification."""
    told = json.loads(shared)
    for unit in json.loads(units):
        spec = complete_spec(told, unit)
        run = f"{method}/{unit['unit']}"
        yield job.fork(hash_json(spec), run=run), run, spec
