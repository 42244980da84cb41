"""Collects what the ledger lists of all runs and writes the tables of the study."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.aggregate.costs import SEVERAL, Cost, cost_of_run, summarise_costs
from palimpsest.aggregate.curves import Curve, held_out_curves, stream_curve, summarise_curves
from palimpsest.aggregate.summary import summarise_matrix, summarise_metrics
from palimpsest.core.artifact import Job
from palimpsest.core.errors import ArtifactError
from palimpsest.core.hashing import canonical_json
from palimpsest.core.tables import TABLES


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

    def stages(self, unit: str) -> list[str]:
        """Paths of the records of a run's stages, in the order of the stages."""
        record = re.compile(rf"runs/{re.escape(self.method)}/{re.escape(unit)}/stage-(\d+)\.json")
        found = {int(match[1]): path for path in self.sha256 if (match := record.fullmatch(path))}
        return [path for _, path in sorted(found.items())]


def write_aggregates(job: Job, methods: Sequence[str]) -> None:
    """Write the tables `metrics`, `summary`, `matrix`, `costs`, `curves` and `failures` in `aggregate/`.

    The parents are the shards of the ledger and the units; every file that a shard names is compared with its hash.

    Args:
        job: the open job.
        methods: labels of all methods and references of the study.

    Raises:
        ArtifactError: a table is missing, or not the one in the ledger.
    """
    job = job.fork(methods=list(methods))
    shards = [_read_shard(job, method) for method in sorted(methods)]
    units = job.read_table("plan/units.parquet", "units").sort_by("position").to_pylist()
    positions = _positions(units)
    factors = {row["unit"]: {"seed": row["seed"], "order": row["order_id"]} for row in units}
    metrics = pa.concat_tables(
        job.read_listed(f"metrics/{shard.method}/{unit}.parquet", "metrics", shard.sha256)
        for shard, unit in _runs(shards)
    )
    matrices = [summarise_matrix(*found) for shard in shards for found in _accuracies(job, shard, positions)]
    outcomes = [_outcome(job, shard, unit) for shard, unit in _runs(shards)]
    failures = [outcome for outcome in outcomes if outcome["status"] != "complete"]
    failed = {s.method: [row["unit"] for row in failures if row["method"] == s.method] for s in shards}
    n_failed = {method: len(units) for method, units in failed.items()}
    costs = {shard.method: _costs(job, shard, failed[shard.method]) for shard in shards}
    job.write_table("aggregate/metrics.parquet", "metrics", metrics)
    job.write_table("aggregate/summary.parquet", "summary", summarise_metrics(metrics, n_failed, factors))
    job.write_table(
        "aggregate/matrix.parquet",
        "matrix_summary",
        pa.concat_tables([TABLES["matrix_summary"].schema.empty_table(), *matrices]),
    )
    job.write_table("aggregate/costs.parquet", "costs", summarise_costs(costs, _early_stopped(outcomes, methods)))
    job.write_table("aggregate/curves.parquet", "curves", summarise_curves(_curves(job, shards)))
    names = TABLES["failures"].schema.names
    job.write_table("aggregate/failures.parquet", "failures", {name: [row[name] for row in failures] for name in names})


def _early_stopped(outcomes: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> dict[str, int]:
    """By method, complete runs with a stage that stopped early, as the plan declares: the outcome says which."""
    stopped = [row["method"] for row in outcomes if row["status"] == "complete" and row["reason"] is not None]
    return {method: stopped.count(method) for method in methods}


def _read_shard(job: Job, method: str) -> Shard:
    rows = job.read_table(f"audit/ledger/{method}.parquet", "ledger")
    return Shard(method, dict(zip(rows["path"].to_pylist(), rows["sha256"].to_pylist(), strict=True)))


def _runs(shards: Sequence[Shard]) -> Iterator[tuple[Shard, str]]:
    return ((shard, unit) for shard in shards for unit in shard.units())


def _positions(units: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Position of each task in each unit's order; of a repeated task the first one."""
    positions: dict[str, dict[str, int]] = {}
    for row in units:
        positions.setdefault(row["unit"], {}).setdefault(row["task"], row["position"])
    return positions


def _accuracies(
    job: Job, shard: Shard, positions: Mapping[str, Mapping[str, int]]
) -> Iterator[tuple[str, str, pa.Table]]:
    """Method, protocol and the accuracies of all runs; one method at a time, for a study can have millions of cells."""
    runs = [_accuracies_of_run(job, shard, unit, positions[unit]) for unit in shard.units()]
    for protocol in sorted({protocol for run in runs for protocol in run}):
        yield shard.method, protocol, pa.concat_tables(run[protocol] for run in runs if protocol in run)


def _accuracies_of_run(job: Job, shard: Shard, unit: str, position: Mapping[str, int]) -> dict[str, pa.Table]:
    matrix = job.read_listed(f"evaluation/{shard.method}/{unit}/matrix.parquet", "matrix", shard.sha256)
    tasks = matrix["task"].combine_chunks().dictionary_encode()
    places = pa.array([position[task] for task in tasks.dictionary.to_pylist()], pa.int32())
    value = pc.divide(matrix["n_correct"].cast(pa.float64()), matrix["n_total"])
    cells = pa.table({"stage": matrix["stage"], "position": places.take(tasks.indices), "value": value})
    protocols = pc.unique(matrix["protocol"]).to_pylist()
    return {protocol: cells.filter(pc.equal(matrix["protocol"], protocol)) for protocol in protocols}


def _curves(job: Job, shards: Sequence[Shard]) -> dict[tuple[str, str | None, str], list[Curve]]:
    """What runs recorded over the samples that they saw, by method, protocol and name of the curve."""
    found: dict[tuple[str, str | None, str], list[Curve]] = {}
    for shard, unit in _runs(shards):
        probes, stream = (f"runs/{shard.method}/{unit}/{name}.parquet" for name in ("probes", "prequential"))
        if probes in shard.sha256:
            for protocol, group, curve in held_out_curves(job.read_listed(probes, "probes", shard.sha256)):
                found.setdefault((shard.method, protocol, group), []).append(curve)
        if stream in shard.sha256 and (curve := stream_curve(job.read_listed(stream, "prequential", shard.sha256))):
            # The stream is scored under the study's own protocol, which its table does not name.
            found.setdefault((shard.method, None, "stream"), []).append(curve)
    return found


def _outcome(job: Job, shard: Shard, unit: str) -> dict[str, Any]:
    run = f"{shard.method}/{unit}"
    rows = job.read_listed(f"runs/{run}/outcome.parquet", "outcome", shard.sha256).to_pylist()
    assert len(rows) == 1, f"{run} has {len(rows)} outcomes"
    return {"run": run, "method": shard.method, "unit": unit, **rows[0]}


def _costs(job: Job, shard: Shard, failed: Sequence[str]) -> list[Cost]:
    """Costs of the runs that completed."""
    return [_cost(job, shard, unit) for unit in shard.units() if unit not in failed]


def _cost(job: Job, shard: Shard, unit: str) -> Cost:
    records = [job.read_listed_json(path, shard.sha256) for path in shard.stages(unit)]
    if not any(record["counted"] for record in records):
        raise ArtifactError(
            "a complete run has no record of a trained stage",
            where=f"audit/ledger/{shard.method}.parquet",
            expected=f"a row runs/{shard.method}/{unit}/stage-….json",
            got="none",
            next="remove the run's outcome.parquet and start snakemake: what is missing is made again",
        )
    matrix = job.read_listed_footer(f"evaluation/{shard.method}/{unit}/matrix.parquet", shard.sha256)
    machines = {canonical_json(record["machine"]) for record in records if record["counted"]}
    return cost_of_run([record["counted"] for record in records], matrix["flops"]) | {SEVERAL: int(len(machines) > 1)}
