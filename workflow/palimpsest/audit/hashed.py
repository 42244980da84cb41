"""What the ledger hashed before, so that one new run among thousands does not make it read all of them again.

A row of the ledger is taken over where the system says that neither the artifact nor its record was touched since it
was hashed: inode, size, times of modification and of change. The time of change cannot be set by a program. Nothing of
this is evidence: it is telemetry, and a verification reads every byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from palimpsest.core.artifact import Job, check_artifact, read_plain_table, record_path
from palimpsest.core.errors import ArtifactError
from palimpsest.core.hashing import canonical_json
from palimpsest.core.tables import TABLES

Row = dict[str, Any]
# Times are kept in steps of some milliseconds: what changed this shortly before the note was written is hashed again.
_TOO_RECENT_NS = 10**9


def hashed_rows(job: Job, shard: str, paths: Iterable[str]) -> list[Row]:
    """Rows of the ledger of some artifacts, in the order of their paths; only what changed since is read.

    Raises:
        ArtifactError: an artifact is missing or not the one that was recorded.
    """
    before = _before(job.study, shard)
    states = {path: _state(job.study, path) for path in sorted(paths)}
    rows = [
        before[path] if state is not None and before.get(path, {}).get("state") == state else _row(job, path, state)
        for path, state in states.items()
    ]
    known = [row for row in rows if row["state"] is not None]
    names = TABLES["hashed"].schema.names
    job.write_telemetry(_place(shard), "hashed", {name: [row[name] for row in known] for name in names})
    return rows


def _row(job: Job, path: str, state: str | None) -> Row:
    record = check_artifact(job.study, path)
    return {**record, "parents": canonical_json(record["parents"]).decode(), "state": state}


def _before(study: Path, shard: str) -> dict[str, Row]:
    """What was hashed before by path; nothing where there is no note, or none that can be read."""
    place = study / _place(shard)
    try:
        rows = read_plain_table(place, "hashed").to_pylist()
        written = place.stat().st_mtime_ns
    except (OSError, pa.ArrowException, ArtifactError):
        return {}
    return {row["path"]: row for row in rows if _changed_ns(row["state"]) < written - _TOO_RECENT_NS}


def _place(shard: str) -> str:
    return f"telemetry/hashed/{shard}.parquet"


def _state(study: Path, path: str) -> str | None:
    """What the system says of an artifact and its record, or null where one of them is missing."""
    try:
        found = [place.stat() for place in (study / path, record_path(study, path))]
    except FileNotFoundError:
        return None
    newest = max(one.st_ctime_ns for one in found)
    return " ".join(map(str, [newest, *(f"{one.st_ino} {one.st_size} {one.st_mtime_ns}" for one in found)]))


def _changed_ns(state: str) -> int:
    return int(state.split()[0])
