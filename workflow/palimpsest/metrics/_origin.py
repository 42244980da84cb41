"""What one value of a run's metric was computed from: cells of matrices, probes, the stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from palimpsest.core.artifact import Job
from palimpsest.metrics._evaluate import declaration, needed
from palimpsest.metrics._recorded import read_recorded
from palimpsest.metrics._run import Evaluation, Reader, inputs_by_protocol

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """Rows of a table that a value was computed from.

    Args:
        path: of the table, in the study.
        where: values of its columns, by which the rows are found.
    """

    path: str
    where: Mapping[str, Any]


def sources(job: Job, row: Row, told: Mapping[str, Any], reader: Reader) -> list[Source]:
    """The rows that a row of `metrics/METHOD/UNIT.parquet` was computed from.

    Which cells a formula needs is found by asking it, as for the reasons of nulls.

    Args:
        job: reads what the rule `metrics` read; every hash is compared.
        row: of the table `metrics`.
        told: the parameters in the table's footer.
        reader: for the rows of one study.
    """
    run, protocol = row["run"], row["protocol"]
    about = (told["schedule"], told["references"], told["protocols"], told["boundaries"])
    found = inputs_by_protocol(job, run, *about, reader, read_recorded(job, run, "probes"))
    evaluation, inputs = found[protocol]
    of_tasks = declaration(row["metric"]).index == "task"
    place = evaluation.tasks.index(row["task"]) + 1 if of_tasks else row["index"]
    made = [
        _source(need, cell, evaluation, protocol, told["references"], reader)
        for need, cell in needed(row["metric"], inputs, place)
    ]
    return list({(source.path, str(source.where)): source for source in made if source is not None}.values())


def _source(
    need: str, cell: tuple[int, ...], own: Evaluation, protocol: str, references: Mapping[str, str], reader: Reader
) -> Source | None:
    """The rows behind one cell of an input; none for numbers of samples, which stand in the matrix's cells."""
    at, stage = cell[-1], cell[0] + 1
    if need == "n_total":
        return None
    if need == "accuracy":
        return _cell(own.run, protocol, cell[0] + own.stages[0], own.tasks[at])
    if need in ("stream_correct", "stream_total"):
        return Source(f"runs/{own.run}/prequential.parquet", {"stage": stage})
    if need in ("after_batches", "probe_peak", "probe_end"):
        where = {"protocol": protocol, "group": "all", "task": own.order[cell[0]] if len(cell) > 1 else own.tasks[at]}
        return Source(f"runs/{own.run}/probes.parquet", where | ({"stage": stage} if len(cell) > 1 else {}))
    return _of_reference(need, at, own, protocol, references, reader)


def _of_reference(
    need: str, at: int, own: Evaluation, protocol: str, references: Mapping[str, str], reader: Reader
) -> Source:
    run = references[need.removesuffix("_at_k")]
    order = reader.orders[run.split("/")[1]]
    if need == "joint_at_k":
        return _cell(run, protocol, at + 1, own.order[at])
    stage = {"random_init": 0, "joint": len(order)}.get(need)
    return _cell(run, protocol, order.index(own.tasks[at]) + 1 if stage is None else stage, own.tasks[at])


def _cell(run: str, protocol: str, stage: int, task: str) -> Source:
    return Source(f"evaluation/{run}/matrix.parquet", {"protocol": protocol, "stage": stage, "task": task})
