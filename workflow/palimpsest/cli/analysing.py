"""The analysis of a study carried out again by the installed program: from the matrices to the report, no training."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from palimpsest.audit.layout import rule_of
from palimpsest.cli.main import STAGES
from palimpsest.core.artifact import Job, read_record, record_path, recorded_paths
from palimpsest.core.errors import ArtifactError
from palimpsest.core.hashing import canonical_json
from palimpsest.core.progress import Track
from palimpsest.plan.grid import Grid
from palimpsest.plan.journal import read_journal
from palimpsest.plan.lock import read_lock
from palimpsest.plan.marks import marks, workflow_programs

TAKEN = ("plan", "plan_code", "data", "manifest", "train", "rewind", "collect", "evaluate")
"""Rules whose artifacts are taken as they are."""
CARRIED_OUT = ("metrics", "ledger", "aggregate", "statistics", "audit", "report")
TELEMETRY = ("journal.jsonl", "publication.json")


def analyse_again(study: Path, into: Path, track: Track) -> str:
    """Analyse a study in a folder of its own, and leave the study itself as it is; returns the new root.

    Args:
        study: the results, whole or without checkpoints and predictions.
        into: the folder of the new results; empty, or not there.
        track: shows how far the work is.

    Raises:
        ArtifactError: the folder is not empty, or the study has no plan.
        LockError: the installed program would make other runs of the plan.
    """
    _require_places(study, into)
    grid = Grid(read_lock(study / "plan/lock.json"))
    _take(study, into, track)
    programs = _programs(into, grid)
    lines = read_journal(study / "telemetry" / TELEMETRY[0])
    known = any(line["event"] in ("evaluation", "found") for line in lines)
    marked = marks(grid.plan, lines, workflow_programs(grid.plan, programs), not known)
    for method in track(grid.methods, "computing metrics"):
        measure(into, grid, method)
        stage(into, "ledger", method=method)
    stage(into, "aggregate", methods=grid.methods)
    stage(into, "statistics", analysis=grid.analysis, marks=marked)
    stage(into, "audit", methods=grid.methods)
    stage(into, "report")
    return json.loads((into / "audit/root.json").read_bytes())["root"]


def other_tables(study: Path, again: Path) -> list[str]:
    """Tables of metrics and of what follows from them whose rows are not those of the study."""
    paths = [path for path in recorded_paths(again, ".") if rule_of(path) in ("metrics", "aggregate", "statistics")]
    return [path for path in paths if _content(study, path) != _content(again, path)]


def _content(study: Path, path: str) -> str | None:
    return read_record(study, path)["content_sha256"] if record_path(study, path).is_file() else None


def stage(study: Path, name: str, code: str = "", **options: Any) -> None:
    """Carry out a stage as its rule does; options that are not texts are passed as JSON."""
    texts = {key: value if isinstance(value, str | Path) else json.dumps(value) for key, value in options.items()}
    STAGES.load(name, "the analysis").command(study=study, code=code or f"plan/code/rules/{name}.json", **texts)


def measure(study: Path, grid: Grid, method: str) -> None:
    """Compute the metrics of all runs of a method."""
    runs = [run for run in grid.runs.values() if run.method == method]
    stage(
        study,
        "metrics",
        schedule=grid.schedule(method),
        runs=[run.run for run in runs],
        references={run.run: grid.references_of(run) for run in runs},
        protocols=grid.protocols,
    )


def _require_places(study: Path, into: Path) -> None:
    if not (study / "plan/lock.json").is_file():
        raise ArtifactError(
            "there is nothing to analyse",
            where=str(study),
            expected="the results of a study, with plan/lock.json",
            got="no such file",
            next="name the folder results/STUDY",
        )
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise ArtifactError(
            "a study is analysed again in an empty folder alone",
            where=str(into),
            expected="a folder that is empty, or not there",
            got="a folder that holds something",
            next="name another one by --into; the results themselves stay as they are",
        )


def _take(study: Path, into: Path, track: Track) -> None:
    """Link, or else copy, what the analysis starts from; what is absent has no record there either."""
    own = {f"plan/code/rules/{rule}.json" for rule in CARRIED_OUT}
    paths = [p for p in recorded_paths(study, ".") if rule_of(p) in TAKEN and p not in own and (study / p).is_file()]
    for path in track(paths, "taking over"):
        for source in (study / path, record_path(study, path)):
            _link(source, into / source.relative_to(study))
    for name in TELEMETRY:
        if (study / "telemetry" / name).is_file():
            _link(study / "telemetry" / name, into / "telemetry" / name)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _programs(into: Path, grid: Grid) -> dict[str, str]:
    """Record the installed program of what is carried out; returns all recorded programs by name."""
    installed = grid.programs()
    for rule in CARRIED_OUT:
        content = json.loads(installed[f"rules/{rule}"])
        job = Job(into, "plan_code", content["code"], content["environment"])
        job.write_bytes(f"plan/code/rules/{rule}.json", canonical_json(content), "program")
    codes = into / "plan/code"
    return {str(p.relative_to(codes).with_suffix("")): p.read_text() for p in codes.rglob("*.json")}
