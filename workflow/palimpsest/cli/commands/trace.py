"""`palimpsest trace`: from a number back to runs, stages, predictions, samples, checkpoints, program and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    artifact: Annotated[
        str,
        typer.Argument(
            help="A table of a study or of its report (Parquet, CSV), any other artifact, or index.html#ID."
        ),
    ],
    row: Annotated[int | None, typer.Option(help="Row of the table, from 0; the whole artifact if left out.")] = None,
    column: Annotated[str | None, typer.Option(help="Column of report/tables/results.csv.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trace as JSON, with every sample.")] = False,
    prov: Annotated[Path | None, typer.Option(help="Write the trace as W3C PROV (PROV-JSON) to this file.")] = None,
    samples: Annotated[Path | None, typer.Option(help="Write the samples as images into this folder.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all branches, and not the first of many.")] = False,
) -> None:
    """Show what a table's row, or an element of the report, was computed from, down to samples, code and raw data."""
    import json
    import sys

    from palimpsest.audit.trace.find import find
    from palimpsest.audit.trace.follow import trace
    from palimpsest.cli.repository import commits

    asked = find(artifact, row, column)
    graph = trace(asked)
    for program in graph.of_kind("program"):
        program.about |= commits(program.about["files"])
    if prov is not None:
        _write_prov(asked.study, graph, prov)
    if samples is not None:
        from palimpsest.audit.trace.images import write_images

        n = write_images(asked.study, graph, samples)
        typer.echo(f"{n} samples written to {samples}", err=True)
    if as_json:
        print(json.dumps(graph.content(), ensure_ascii=False))
    else:
        from rich.console import Console

        from palimpsest.cli.tree import tree

        # Not cut off where nobody looks at it, as in a pipe.
        wide = None if sys.stdout.isatty() else 1000
        Console(highlight=False, width=wide).print(tree(graph, everything))


def _write_prov(study: Path, graph, target: Path) -> None:
    import json

    from palimpsest.audit.trace.provenance import prov_json
    from palimpsest.core.artifact import write_atomically

    name = json.loads((study / "plan" / "lock.json").read_bytes())["study"]["study"]
    write_atomically(target, json.dumps(prov_json(graph, name), indent=1, ensure_ascii=False).encode())
