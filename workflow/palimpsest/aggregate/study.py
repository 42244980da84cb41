"""Collects what the ledger lists of all runs and writes the tables of the study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.aggregate.summary import summarise_matrix, summarise_metrics
from palimpsest.core.artifact import Job


@dataclass(frozen=True)
class Shard:
    """A method's shard of the ledger, as far as it is needed here.

    Args:
        method: the method's label.
        sha256: of each listed artifact, by path.
    """

    method: str
    sha256: Mapping[str, str]

    def units(self) -> list[str]:
        """Units of the method's runs, sorted."""
        start, end = f"metrics/{self.method}/", ".parquet"
        return sorted(path[len(start) : -len(end)] for path in self.sha256 if path.startswith(start))


def write_aggregates(job: Job, methods: Sequence[str]) -> None:
    """Write `aggregate/metrics.parquet`, `aggregate/summary.parquet` and `aggregate/matrix.parquet`.

    The parents are the shards of the ledger and the units; every file that a shard names is compared with its hash.

    Args:
        job: the open job.
        methods: labels of all methods and references of the study.

    Raises:
        ArtifactError: a table is missing, or not the one in the ledger.
    """
    shards = [_read_shard(job, method) for method in sorted(methods)]
    positions = _read_positions(job)
    metrics = pa.concat_tables(
        job.read_listed(f"metrics/{shard.method}/{unit}.parquet", "metrics", shard.sha256)
        for shard, unit in _runs(shards)
    )
    accuracy = pa.concat_tables(_accuracy_of_run(job, shard, unit, positions[unit]) for shard, unit in _runs(shards))
    n_failed = {shard.method: sum(_failed(job, shard, unit) for unit in shard.units()) for shard in shards}
    job.write_table("aggregate/metrics.parquet", "metrics", metrics)
    job.write_table("aggregate/summary.parquet", "summary", summarise_metrics(metrics, n_failed))
    job.write_table("aggregate/matrix.parquet", "matrix_summary", summarise_matrix(accuracy))


def _read_shard(job: Job, method: str) -> Shard:
    rows = job.read_table(f"audit/ledger/{method}.parquet", "ledger")
    return Shard(method, dict(zip(rows["path"].to_pylist(), rows["sha256"].to_pylist(), strict=True)))


def _runs(shards: Sequence[Shard]) -> Iterator[tuple[Shard, str]]:
    return ((shard, unit) for shard in shards for unit in shard.units())


def _read_positions(job: Job) -> dict[str, dict[str, int]]:
    """Position of each task in each unit's order; of a repeated task the first one."""
    positions: dict[str, dict[str, int]] = {}
    for row in job.read_table("plan/units.parquet", "units").sort_by("position").to_pylist():
        positions.setdefault(row["unit"], {}).setdefault(row["task"], row["position"])
    return positions


def _accuracy_of_run(job: Job, shard: Shard, unit: str, position: Mapping[str, int]) -> pa.Table:
    matrix = job.read_listed(f"evaluation/{shard.method}/{unit}/matrix.parquet", "matrix", shard.sha256)
    return pa.table(
        {
            "method": pa.array([shard.method] * len(matrix), pa.string()),
            "protocol": matrix["protocol"],
            "stage": matrix["stage"],
            "position": pa.array([position[task] for task in matrix["task"].to_pylist()], pa.int32()),
            "value": pc.divide(matrix["n_correct"].cast(pa.float64()), matrix["n_total"]),
        }
    )


def _failed(job: Job, shard: Shard, unit: str) -> bool:
    """Whether a run did not complete; one that stopped early as its plan declares did."""
    outcome = job.read_listed(f"runs/{shard.method}/{unit}/outcome.parquet", "outcome", shard.sha256).to_pylist()
    assert len(outcome) == 1, f"{shard.method}/{unit} has {len(outcome)} outcomes"
    status, reason = outcome[0]["status"], outcome[0]["reason"] or ""
    return status != "complete" and not reason.startswith("early_stop")
