"""Stage records, what lies beside them, and what was collected from them agree; every stage starts from its parent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.audit.chain import Chain
from palimpsest.audit.finding import Finding, guarded
from palimpsest.core.artifact import hash_content
from palimpsest.core.progress import Track
from palimpsest.plan.grid import Run
from palimpsest.plan.outcome import outcome_of

# Of a table that the stages write one piece each, and that is collected whole.
_PIECE = re.compile(r"stage-\d+\.(\w+)\.parquet")


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Compare the records of every run's stages with their files, and put the stages together again."""
    for run in track(list(chain.runs.values()), "following stages"):
        yield from guarded(f"runs/{run.run}", "its stages cannot be read", lambda run=run: _run(chain, run))


def records_of(chain: Chain, run: Run) -> list[tuple[str, dict[str, Any]]]:
    """Path and content of each stage's record that is sound, in the order of the stages."""
    paths = [f"runs/{run.run}/stage-{stage}.json" for stage in run.stage_numbers]
    return [(path, chain.read_json(path)) for path in paths if chain.is_sound(path)]


def _run(chain: Chain, run: Run) -> Iterator[Finding]:
    records = records_of(chain, run)
    for path, record in records:
        yield from _record(chain, run, path, record)
    if len(records) == len(run.stage_numbers):
        yield from _outcome(chain, run, [record for _, record in records])
        yield from _collected(chain, run, [record for _, record in records])


def _record(chain: Chain, run: Run, path: str, record: dict[str, Any]) -> Iterator[Finding]:
    folder = path.rsplit("/", 1)[0]
    (stage,) = (stage for stage in run.spec["stages"] if path == f"{folder}/stage-{stage['stage']}.json")
    if record["stage"] != stage["stage"]:
        yield Finding(path, "it is the record of another stage", str(stage["stage"]), str(record["stage"]))
    for name, digest in record["files"].items():
        row = chain.rows.get(f"{folder}/{name}")
        if row is None:
            yield Finding(f"{folder}/{name}", f"{path} names it, and the ledger does not", digest, "no row")
        elif row.sha256 != digest:
            reason = f"it is not the file that its stage left, which {path} names"
            yield Finding(f"{folder}/{name}", reason, digest, row.sha256)
    if record["status"] == "complete" and f"stage-{stage['stage']}.safetensors" not in record["files"]:
        yield Finding(path, "a complete stage left no checkpoint", f"stage-{stage['stage']}.safetensors", "none")
    if stage["parent"] is not None and record["status"] == "complete":
        parent = f"{folder}/stage-{stage['parent']}.safetensors"
        if parent not in chain.rows[path].parents:
            yield Finding(path, "it does not start from the stage before it", parent, "no such parent")
    yield from _steps(chain, f"{folder}/stage-{stage['stage']}.steps.parquet", record)


def _steps(chain: Chain, path: str, record: dict[str, Any]) -> Iterator[Finding]:
    if not record["counted"] or not chain.is_sound(path):
        return
    n_rows = pq.read_metadata(chain.study / path).num_rows
    if n_rows != record["counted"]["steps"]:
        yield Finding(
            path, "it has not one row for each step that the record counts", record["counted"]["steps"], n_rows
        )


def _outcome(chain: Chain, run: Run, records: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    path = f"runs/{run.run}/outcome.parquet"
    if not chain.is_sound(path):
        return
    expected = outcome_of(records)
    found = pq.ParquetFile(chain.study / path).read().to_pylist()
    if found != [expected]:
        yield Finding(path, "it does not follow from the records of the stages", str(expected), str(found))


def _collected(chain: Chain, run: Run, records: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    """A table that was collected holds the rows of its pieces, and no others."""
    pieces: dict[str, list[str]] = {}
    for record in records:
        for name in record["files"]:
            if match := _PIECE.fullmatch(name):
                pieces.setdefault(match[1], []).append(f"runs/{run.run}/{name}")
    for name, paths in pieces.items():
        whole = f"runs/{run.run}/{name}.parquet"
        if not all(map(chain.is_sound, [whole, *paths])):
            continue
        tables = [pq.ParquetFile(chain.study / path).read().replace_schema_metadata(None) for path in paths]
        digest = hash_content(name, pa.concat_tables(tables))
        if digest != chain.rows[whole].content_sha256:
            stated = chain.rows[whole].content_sha256
            yield Finding(
                whole, "its rows are not those of the stages together", f"content {digest}", f"content {stated}"
            )
