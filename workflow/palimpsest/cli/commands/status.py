"""`palimpsest status`: how far a study is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    study: Annotated[str | None, typer.Argument(help="Name of the study; all below results/ if left out.")] = None,
    results: Annotated[Path, typer.Option(help="Folder of all results.")] = Path("results"),
) -> None:
    """Runs that are done, running, failed or still to come, with reasons and the time left."""
    from rich.console import Console

    from palimpsest.core.errors import ArtifactError

    folders = [results / study] if study else sorted(path.parent for path in results.glob("*/telemetry"))
    if not folders or not folders[0].is_dir():
        raise ArtifactError(
            "there is nothing to tell the status of",
            where=str(folders[0] if folders else results),
            expected="a study that has begun, below the folder --results",
            got="no such folder",
            next="begin it by envs/run snakemake --configfile config/NAME.yaml, in the project's folder",
        )
    for folder in folders:
        _show(folder, Console())


def _show(folder: Path, console) -> None:
    from palimpsest.core.exclusive import is_held
    from palimpsest.core.numbers import duration
    from palimpsest.plan.grid import Grid
    from palimpsest.plan.lock import read_lock
    from palimpsest.plan.status import cells, seconds_left

    lock = folder / "plan" / "lock.json"
    if not lock.is_file():
        print(f"{folder.name}: {'a workflow is preparing its plan' if is_held(folder / '.lock') else 'no plan yet'}")
        return
    found = cells(folder, Grid(read_lock(lock)))
    console.print(_table(folder.name, found))
    console.print("ended: as a recorded outcome; failed: its last attempt broke off; trained: not analysed yet")
    for cell in found:
        if cell.reason:
            console.print(f"{cell.run}: {cell.state} in {cell.reason}", markup=False, highlight=False)
    working = is_held(folder / ".lock")
    left = seconds_left(found)
    report = folder / "report" / "index.html"
    console.print("a workflow is working on it" if working else "no workflow is working on it", highlight=False)
    if left:
        console.print(f"about {duration(left)} of training left, one run at a time", highlight=False)
    if report.is_file():
        console.print(f"report: {report}", markup=False, highlight=False)


def _table(study: str, found: list):
    from rich.table import Table

    from palimpsest.plan.status import STATES

    table = Table("method", *STATES, "stages", title=f"{study}: {len(found)} runs", title_justify="left")
    for method in dict.fromkeys(cell.run.split("/")[0] for cell in found):
        own = [cell for cell in found if cell.run.split("/")[0] == method]
        counts = [sum(cell.state == state for cell in own) for state in STATES]
        stages = f"{sum(cell.stages_done for cell in own)} of {sum(cell.stages for cell in own)}"
        table.add_row(method, *(str(count or "·") for count in counts), stages)
    return table
