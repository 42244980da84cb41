"""The ledger: one shard per method and one for what the study's methods share, and the root over all shards.

A shard lists artifacts whose files were hashed again and found to be the recorded ones. Telemetry and the report are
in no shard.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.audit.hashed import hashed_rows
from palimpsest.audit.merkle import merkle_root
from palimpsest.core.artifact import Job, hash_content, read_lineage, recorded_paths
from palimpsest.core.errors import ArtifactError
from palimpsest.core.tables import TABLES

ROOT = "audit/root.json"
STUDY_FOLDERS = ("plan", "data", "aggregate", "statistics")
ROWS_AT_ONCE = 4096
# Every run has these, however it ended: without one of them the run was removed.
OF_EVERY_RUN = ("runs/{run}/outcome.parquet", "evaluation/{run}/matrix.parquet", "metrics/{run}.parquet")


def shard_path(name: str) -> str:
    """Place of a method's shard; `_study` is the one for what belongs to no method."""
    return f"audit/ledger/{name}.parquet"


def write_method_shard(job: Job, method: str) -> None:
    """Write the shard of a method: its programs, and all artifacts of its runs up to their metrics.

    Args:
        job: the open job; the plan becomes its parent. The listed artifacts do not: the rows say more.
        method: the method's label; its runs are those of `plan/runs.parquet`.

    Raises:
        ArtifactError: an artifact is missing or not the one that was recorded, or a run is not the one of the plan.
    """
    job = job.fork(method=method)
    planned = _planned_runs(job, method)
    paths = {f"plan/code/{method}.json", f"plan/code/evaluate/{method}.json"}
    for run in planned:
        paths.update(_paths_of_run(job, run))
    rows = hashed_rows(job, method, paths)
    _require_planned_runs(job, planned)
    _write_shard(job, method, rows)


def write_root(job: Job, methods: Sequence[str]) -> None:
    """Write the shard of the study and the Merkle root over all shards.

    `audit/root.json` holds `{root, shards: {path: content hash}}`; its parents are the shards.

    Args:
        job: the open job.
        methods: labels of all methods and references of the study.

    Raises:
        ArtifactError: an artifact is missing or not the one that was recorded, or was made from one that is not.
    """
    job = job.fork(methods=list(methods))
    shards = {shard_path(method): job.read_table(shard_path(method), "ledger") for method in sorted(methods)}
    listed = {path for shard in shards.values() for path in shard["path"].to_pylist()}
    shared = {path for folder in STUDY_FOLDERS for path in recorded_paths(job.study, folder)}
    _write_shard(job, "_study", hashed_rows(job, "_study", shared - listed))
    shards[shard_path("_study")] = job.read_table(shard_path("_study"), "ledger")
    _require_same_parents(list(shards.values()), job.parents)
    content = {path: hash_content("ledger", shard) for path, shard in shards.items()}
    job.write_json(ROOT, {"root": merkle_root(content), "shards": content}, "root")


def _planned_runs(job: Job, method: str) -> dict[str, str]:
    """Hash of the specification by run, of all runs of a method in the plan."""
    runs = job.read_table("plan/runs.parquet", "runs")
    of_method = runs.filter(pc.equal(runs["method"], method))
    return dict(zip(of_method["run"].to_pylist(), of_method["spec_hash"].to_pylist(), strict=True))


def _require_planned_runs(job: Job, planned: Mapping[str, str]) -> None:
    """Compare the specification of every evaluated run with the plan's: Snakemake's notes are no evidence of it.

    The matrices were hashed before.
    """
    for run in planned:
        matrix = job.study / f"evaluation/{run}/matrix.parquet"
        if read_lineage(matrix)["spec"] != planned[run]:
            raise ArtifactError(
                "a run is not the one that the plan describes",
                where=str(matrix),
                expected=f"a run of the specification {planned[run]}",
                got=f"one of {read_lineage(matrix)['spec']}",
                next=f"remove {job.study}/runs/{run} and {matrix.parent}, and start snakemake",
            )


def _paths_of_run(job: Job, run: str) -> set[str]:
    found = {path for folder in ("runs", "evaluation") for path in recorded_paths(job.study, f"{folder}/{run}")}
    return found | {path.format(run=run) for path in OF_EVERY_RUN}


def _write_shard(job: Job, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = {column: [row[column] for row in rows] for column in TABLES["ledger"].schema.names}
    job.write_table(shard_path(name), "ledger", columns)


def _require_same_parents(shards: Sequence[pa.Table], sha256_of_shards: Mapping[str, str]) -> None:
    """Compare the hash of each parent, as its child recorded it, with what lies there now, shards included.

    Whether each parent is listed at all is not asked.
    """
    sha256 = dict(sha256_of_shards)
    for shard in shards:
        sha256.update(zip(shard["path"].to_pylist(), shard["sha256"].to_pylist(), strict=True))
    for path, parents in (pair for shard in shards for pair in _parents(shard)):
        for parent, recorded in parents.items():
            if sha256.get(parent, recorded) != recorded:
                raise ArtifactError(
                    "an artifact was made from another version of its parent",
                    where=path,
                    expected=f"{parent} with sha256 {sha256[parent]}, as the ledger says",
                    got=f"sha256 {recorded}",
                    next=f"remove {path} and start snakemake: it is made again from what is there now",
                )


def _parents(shard: pa.Table) -> Iterator[tuple[str, dict[str, str]]]:
    """Path and recorded parents of each row, of some thousand rows at a time: a study can have a million."""
    for batch in shard.select(["path", "parents"]).to_batches(max_chunksize=ROWS_AT_ONCE):
        for path, parents in zip(batch["path"].to_pylist(), batch["parents"].to_pylist(), strict=True):
            yield path, json.loads(parents)
