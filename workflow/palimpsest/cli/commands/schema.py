"""`palimpsest schema`: the generated explanations of the study file and of definitions elsewhere."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer


def command(
    folder: Annotated[Path, typer.Option(help="Where README.md and study.schema.json are written.")] = Path("config"),
    docs: Annotated[Path, typer.Option(help="Where definitions.md is written.")] = Path("docs"),
) -> None:
    """Write the page that explains every field of a study, its JSON Schema, and how other programs define metrics."""
    from palimpsest.core.artifact import write_atomically
    from palimpsest.metrics._definitions import definitions_page
    from palimpsest.plan.document import json_schema

    write_atomically(folder / "README.md", page().encode())
    write_atomically(folder / "study.schema.json", json_schema().encode())
    write_atomically(docs / "definitions.md", definitions_page().encode())


def page() -> str:
    """The page with the options of every method, benchmark and model, and the data sets."""
    from palimpsest.benchmarks import BENCHMARKS
    from palimpsest.data.sources import SOURCES
    from palimpsest.methods import METHODS
    from palimpsest.models import MODELS
    from palimpsest.plan.document import markdown
    from palimpsest.plan.grid import REFERENCES

    methods = {name: METHODS.load(name, "").Hyperparameters for name in METHODS.names() if name not in REFERENCES}
    sources = {name: SOURCES.load(name, "") for name in SOURCES.names()}
    return markdown(
        {
            "Hyperparameters of the methods": methods,
            "Options of the benchmarks": {name: BENCHMARKS.load(name, "").Options for name in BENCHMARKS.names()},
            "Options of the models": {name: MODELS.load(name, "").Options for name in MODELS.names()},
        },
        {name: (_first_line(source), source.GET, source.LICENCE) for name, source in sources.items()},
    )


def _first_line(module: ModuleType) -> str:
    return (module.__doc__ or "").splitlines()[0]
