"""Reads the metrics of all runs and writes the statistics of the study."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.core.artifact import Job
from palimpsest.core.tables import TABLES
from palimpsest.plan.gates import Gate
from palimpsest.plan.grid import REFERENCES
from palimpsest.statistics import decisions
from palimpsest.statistics.claims import PLASTICITY, Claim, Plasticity, compare_plasticity, judge_claim
from palimpsest.statistics.comparisons import compare
from palimpsest.statistics.evidence import evidence_level
from palimpsest.statistics.gates import judge_gate
from palimpsest.statistics.orders import FinalAccuracy, order_rows
from palimpsest.statistics.pairs import Pairs, find_pairs
from palimpsest.statistics.plan import Analysis, read_analysis


def write_statistics(job: Job, analysis: Mapping[str, Any], marks: Mapping[str, Any]) -> None:
    """Write `comparisons`, `orders` and `decisions` in `statistics/`.

    Args:
        job: the open job; the units and the aggregated tables become its parents.
        analysis: the analysis plan, as the lock holds it.
        marks: what of it is exploratory for good (`plan.marks`).

    Raises:
        StudyError: the plan cannot be carried out on these runs.
        ArtifactError: a table is missing or not the one that was written.
    """
    job = job.fork(analysis=dict(analysis), marks=dict(marks))
    plan = read_analysis(analysis, marks)
    units = job.read_table("plan/units.parquet", "units").to_pylist()
    metrics = job.read_table("aggregate/metrics.parquet", "metrics")
    by_name = {row["unit"]: row for row in units}
    failed = set(job.read_table("aggregate/failures.parquet", "failures")["run"].to_pylist())
    pairs = [find_pairs(comparison, metrics, by_name, failed) for comparison in plan.comparisons]
    rows = compare(plan, pairs)
    _write(job, "comparisons", rows)
    finals = metrics.filter(pc.equal(metrics["metric"], "final_accuracy"))
    _write(job, "orders", [row for group in _by_method(finals) for row in order_rows(_final_accuracies(group, units))])
    claims = [
        (claim, _plasticity(plan, claim.comparison, metrics, by_name, failed))
        for claim in decisions.read_claims(analysis, marks)
    ]
    gates = decisions.read_gates(analysis, marks)
    _write(job, "decisions", _decisions(job, plan, gates, claims, rows, _evidence(rows, pairs)))


def _decisions(
    job: Job,
    plan: Analysis,
    gates: Sequence[Gate],
    claims: Sequence[tuple[Claim, Plasticity]],
    comparisons: Sequence[dict[str, Any]],
    evidence: Mapping[str, str],
) -> list[dict[str, Any]]:
    costs = {row["method"]: row for row in job.read_table("aggregate/costs.parquet", "costs").to_pylist()}
    summary = job.read_table("aggregate/summary.parquet", "summary")
    of_methods = pc.invert(pc.is_in(summary["method"], pa.array(REFERENCES)))
    whole = pc.and_(pc.is_null(summary["index"]), pc.is_null(summary["task"]))
    found = decisions.quantities(comparisons, costs)
    judged = [judge_gate(gate, found) for gate in gates]
    running = decisions.candidates(plan, judged, summary.filter(pc.and_(of_methods, whole)).to_pylist(), costs)
    by_name = {row["comparison"]: row for row in comparisons}
    judged_claims = [judge_claim(claim, by_name[claim.comparison], plasticity) for claim, plasticity in claims]
    return decisions.decision_rows(judged, judged_claims, running, by_name, evidence)


def _plasticity(
    plan: Analysis, name: str, metrics: pa.Table, units: Mapping[str, Mapping[str, Any]], failed: Collection[str]
) -> Plasticity:
    (comparison,) = (comparison for comparison in plan.comparisons if comparison.name == name)
    diagonal = replace(comparison, metric=PLASTICITY, index=None)
    return compare_plasticity(find_pairs(diagonal, metrics, units, failed), plan.alpha)


def _evidence(rows: Sequence[Mapping[str, Any]], pairs: Sequence[Pairs]) -> dict[str, str]:
    levels = {}
    for row, found in zip(rows, pairs, strict=True):
        clusters = found.differences("complete")[1]
        n_orders, n_seeds = (len(set(clusters[factor])) for factor in ("order", "seed"))
        levels[row["comparison"]] = evidence_level(row, n_orders, n_seeds)
    return levels


def _by_method(finals: pa.Table) -> Iterator[pa.Table]:
    """Rows of each method and protocol: as objects, those of all methods together would fill the memory."""
    methods = pc.replace_substring_regex(finals["run"], "/.*", "")
    for method in sorted(pc.unique(methods).to_pylist()):
        of_method = finals.filter(pc.equal(methods, method))
        for protocol in sorted(pc.unique(of_method["protocol"]).to_pylist()):
            yield of_method.filter(pc.equal(of_method["protocol"], protocol))


def _final_accuracies(finals_of_runs: pa.Table, units: Sequence[Mapping[str, Any]]) -> list[FinalAccuracy]:
    position = {(row["unit"], row["task"]): row for row in units}
    finals = []
    for row in finals_of_runs.select(["run", "protocol", "task", "value"]).to_pylist():
        method, unit = row["run"].split("/")
        at = position[unit, row["task"]]
        placed = {"seed": at["seed"], "order": at["order_id"], "position": at["position"]}
        finals.append(FinalAccuracy(method, row["protocol"], row["task"], value=row["value"], **placed))
    return finals


def _write(job: Job, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = {column: [row[column] for row in rows] for column in TABLES[name].schema.names}
    job.write_table(f"statistics/{name}.parquet", name, columns)
