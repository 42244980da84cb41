"""`palimpsest schema`: the generated explanation of the study file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[Path, typer.Option(help="Where README.md and study.schema.json are written.")] = Path("config"),
) -> None:
    """Write the page that explains every field of a study, and its JSON Schema."""
    from palimpsest.core.artifact import write_atomically
    from palimpsest.plan.document import json_schema

    write_atomically(folder / "README.md", page().encode())
    write_atomically(folder / "study.schema.json", json_schema().encode())


def page() -> str:
    """The page with the options of every method, benchmark and model."""
    from palimpsest.benchmarks import BENCHMARKS
    from palimpsest.methods import METHODS
    from palimpsest.models import MODELS
    from palimpsest.plan.document import markdown
    from palimpsest.plan.grid import REFERENCES

    methods = {name: METHODS.load(name, "").Hyperparameters for name in METHODS.names() if name not in REFERENCES}
    return markdown(
        {
            "Hyperparameters of the methods": methods,
            "Options of the benchmarks": {name: BENCHMARKS.load(name, "").Options for name in BENCHMARKS.names()},
            "Options of the models": {name: MODELS.load(name, "").Options for name in MODELS.names()},
        }
    )
