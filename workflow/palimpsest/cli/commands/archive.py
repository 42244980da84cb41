"""`palimpsest archive`: one file that holds a study and verifies elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    study: Annotated[Path, typer.Argument(help="The results of a finished study, results/STUDY.")],
    without: Annotated[
        str, typer.Option(help="Parts to leave out, separated by commas: checkpoints, predictions, inputs, telemetry.")
    ] = "",
    out: Annotated[Path, typer.Option(help="Folder to write the archive to.")] = Path(),
    config: Annotated[
        Path | None, typer.Option(help="Folder of study file, lock and journal; config beside results if left out.")
    ] = None,
    licence: Annotated[str | None, typer.Option(help="Licence of the results, an address.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell the sizes and write nothing.")] = False,
) -> None:
    """Write NAME-ROOT.crate.zip, a Workflow Run RO-Crate: plan, journal, program, ledger, trajectories, results."""
    from palimpsest.audit.archive import archive_name, left_out, members, sizes, write_archive
    from palimpsest.audit.crate import NO_LICENCE, describe
    from palimpsest.cli.archiving import open_finished, readme, require_own_program
    from palimpsest.cli.progress import bars

    study = study.absolute()
    plan, lines, root = open_finished(study, config or study.parents[1] / "config")
    require_own_program(study, plan)
    chosen = sorted(filter(None, without.split(",")))
    found = members(study, config or study.parents[1] / "config", chosen)
    absent = left_out(found)
    found = [readme(study.name, root, absent), *found]
    for part, (files, size) in sizes(found).items():
        print(f"{part:<13} {files:>7} files {size:>15,} bytes")
    target = out / archive_name(study.name, root, absent)
    total = sum(member.bytes for member in found)
    print(f"{'together':<13} {len(found):>7} files {total:>15,} bytes, to be {target}")
    if dry_run:
        return
    description = describe(plan, lines, root, found, absent, licence or NO_LICENCE)
    with bars() as track:
        write_archive(target, description, found, track)
    print(f"{target} written, {target.stat().st_size:,} bytes; root {root}")
