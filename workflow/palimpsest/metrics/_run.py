"""From the matrices of a run and of its references to the rows of the run's metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from palimpsest.core.artifact import Job
from palimpsest.core.errors import MatrixError, StudyError
from palimpsest.core.tables import TABLES
from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import Inputs
from palimpsest.metrics._evaluate import declaration, rows
from palimpsest.metrics._recorded import count_probes, probe_inputs, read_recorded, stream_inputs

# What is defined for a run of each schedule; None stands for every metric. An isolated model saw one task only: the
# last row of its matrix is no result on a sequence.
METRICS_OF_SCHEDULE: dict[str, tuple[str, ...] | None] = {
    "sequential": None,
    "cumulative": None,
    "joint": ("average_accuracy", "overall_accuracy", "average_accuracy_at_k"),
    "isolated": ("learning_accuracy",),
    "untrained": ("average_accuracy",),
}
SCHEDULE_OF_REFERENCE = {"random_init": "untrained", "isolated": "isolated", "joint": "joint"}


@dataclass(frozen=True)
class Evaluation:
    """The matrix of one run under one protocol.

    Args:
        run: METHOD/UNIT.
        schedule: what the run trains on, a key of `METRICS_OF_SCHEDULE`.
        order: the tasks of the run's unit, by position.
        cells: `(n_correct, n_total)` by stage and task id.
    """

    run: str
    schedule: str
    order: tuple[str, ...]
    cells: Mapping[tuple[int, str], tuple[int, int]]

    @property
    def stages(self) -> range:
        """The stages that the plan foresees: 1…T, or 0 for an untrained model."""
        return range(1) if self.schedule == "untrained" else range(1, len(self.order) + 1)

    @property
    def tasks(self) -> list[str]:
        """The tasks by the position at which they first occur."""
        return list(dict.fromkeys(self.order))

    @property
    def n_total(self) -> dict[str, int]:
        """Number of test samples of each task that was evaluated."""
        return {task: n_total for (_, task), (_, n_total) in self.cells.items()}

    def accuracy(self, stage: int, task: str) -> float:
        """n_correct / n_total of a cell, NaN where it was not measured."""
        n_correct, n_total = self.cells.get((stage, task), (np.nan, np.nan))
        return n_correct / n_total


class Reader:
    """Orders of the units and matrices of runs, each read once in a job: runs of one seed share their references.

    Args:
        job: the open job; the units become its parent.
    """

    def __init__(self, job: Job) -> None:
        self.orders = read_orders(job)
        self._found: dict[str, tuple[dict[str, str], dict[str, Evaluation]]] = {}

    def own(self, job: Job, run: str, schedule: str) -> dict[str, Evaluation]:
        """Evaluations of a run by protocol; its matrix becomes a parent of `job`."""
        return _read_evaluations(job, run, schedule, self.orders)

    def reference(self, job: Job, run: str, schedule: str) -> dict[str, Evaluation]:
        """The same of a reference run, which is kept."""
        if run not in self._found:
            reading = job.fork()
            reading.parents.clear()
            evaluations = self.own(reading, run, schedule)
            self._found[run] = (reading.parents, evaluations)
        parents, evaluations = self._found[run]
        job.parents.update(parents)
        return evaluations


def write_metrics(
    job: Job,
    run: str,
    schedule: str,
    references: Mapping[str, str],
    protocols: Sequence[str],
    boundaries: str,
    reader: Reader | None = None,
) -> None:
    """Compute every metric that is defined for a run and write `metrics/METHOD/UNIT.parquet`.

    Args:
        job: the open job, of which a fork writes; the units, the matrices, and what the run recorded are the parents.
        run: METHOD/UNIT.
        schedule: what the run trains on, a key of `METRICS_OF_SCHEDULE`.
        references: METHOD/UNIT of the reference runs by what they are, the keys of `SCHEDULE_OF_REFERENCE`.
        protocols: protocols of the study, so that a run which ended before its first evaluation has its nulls too.
        boundaries: `told`, or `hidden`: metrics that need them are undefined.
        reader: where a job computes the metrics of several runs, their common one, made of the job before it forks.

    Raises:
        ArtifactError: a matrix is missing or not the one that was written.
        MatrixError: a matrix contradicts itself or the plan.
        StudyError: there is no such schedule.
    """
    if schedule not in METRICS_OF_SCHEDULE:
        raise StudyError(
            f"there is no schedule named {schedule!r}",
            where=run,
            expected="one of " + ", ".join(METRICS_OF_SCHEDULE),
            got=repr(schedule),
            next="the rule `metrics` takes it from the plan: look there",
        )
    reader = reader or Reader(job)
    job = job.fork(
        run=run, schedule=schedule, references=dict(references), protocols=list(protocols), boundaries=boundaries
    )
    probes = read_recorded(job, run, "probes")
    found = inputs_by_protocol(job, run, schedule, references, protocols, boundaries, reader, probes)
    rows_of_run = [row for evaluation, inputs in found.values() for row in metric_rows(evaluation, inputs)]
    job.write_table(
        f"metrics/{run}.parquet",
        "metrics",
        {name: [row[name] for row in rows_of_run] for name in TABLES["metrics"].schema.names},
        n_probes=count_probes(probes),
    )


def inputs_by_protocol(
    job: Job,
    run: str,
    schedule: str,
    references: Mapping[str, str],
    protocols: Sequence[str],
    boundaries: str,
    reader: Reader,
    probes: list[dict[str, Any]] | None,
) -> dict[str, tuple[Evaluation, Inputs]]:
    """What the metrics of a run are computed from, under each protocol; arguments and errors as of `write_metrics`."""
    own = reader.own(job, run, schedule)
    others = {
        role: reader.reference(job, reference, SCHEDULE_OF_REFERENCE[role]) for role, reference in references.items()
    }
    stream = read_recorded(job, run, "prequential")
    scored_under, made = sorted({*own, *protocols}), {}
    for protocol in scored_under:
        evaluation = own.get(protocol) or Evaluation(run, schedule, reader.orders[_unit(run)], {})
        found = {role: by_protocol[protocol] for role, by_protocol in others.items() if protocol in by_protocol}
        recorded = {}
        if METRICS_OF_SCHEDULE[schedule] is None:
            recorded = {"has_boundaries": boundaries == "told"}
            recorded |= probe_inputs(probes, evaluation.order, protocol, evaluation.cells)
            recorded |= stream_inputs(
                stream if protocol == _trained_under(scored_under) else None, len(evaluation.order)
            )
        made[protocol] = (evaluation, _inputs(evaluation, protocol, found, recorded))
    return made


def _trained_under(protocols: list[str]) -> str:
    # Beside its own protocol a study has at most the choice within the task; the stream knows only the own one.
    return next((protocol for protocol in protocols if protocol != "task_incremental"), "task_incremental")


def read_orders(job: Job) -> dict[str, tuple[str, ...]]:
    """The tasks of every unit by position, from `plan/units.parquet`."""
    rows = job.read_table("plan/units.parquet", "units").sort_by([("unit", "ascending"), ("position", "ascending")])
    orders: dict[str, list[str]] = {}
    for unit, task in zip(rows["unit"].to_pylist(), rows["task"].to_pylist(), strict=True):
        orders.setdefault(unit, []).append(task)
    return {unit: tuple(tasks) for unit, tasks in orders.items()}


def metric_rows(evaluation: Evaluation, inputs: Inputs) -> list[dict[str, Any]]:
    """Rows of the table `metrics` for one run under one protocol, of all metrics that are defined for its schedule."""
    defined = METRICS_OF_SCHEDULE[evaluation.schedule]
    names = METRICS.names() if defined is None else sorted(defined)
    return [row for name in names for row in _rows_of_metric(name, evaluation, inputs)]


def _inputs(
    evaluation: Evaluation, protocol: str, references: Mapping[str, Evaluation], recorded: Mapping[str, Any]
) -> Inputs:
    """Inputs of the metrics, the reference runs scored under the same protocol; `recorded` of probes and the stream."""
    for reference in references.values():
        _require_same_samples(evaluation, reference)
    return Inputs(
        accuracy=_accuracy(evaluation),
        protocol=protocol,
        n_total=_n_total(evaluation),
        first_stage=evaluation.stages[0],
        **_reference_accuracies(evaluation, references),
        **recorded,
    )


def _rows_of_metric(name: str, evaluation: Evaluation, inputs: Inputs) -> list[dict[str, Any]]:
    own = {"run": evaluation.run, "protocol": inputs.protocol}
    at_stages = declaration(name).index == "k"
    return [
        {**row, **own, "task": None if row["task"] is None else evaluation.tasks[row["task"] - 1]}
        for row in rows(name, inputs)
        if not at_stages or _planned(evaluation, row["index"])
    ]


def _planned(evaluation: Evaluation, stage: int) -> bool:
    # A joint model is trained at the last stage, or at every one: what it has rows for tells which.
    return evaluation.schedule != "joint" or any(at == stage for at, _ in evaluation.cells)


def _accuracy(evaluation: Evaluation) -> np.ndarray:
    return np.array([[evaluation.accuracy(stage, task) for task in evaluation.tasks] for stage in evaluation.stages])


def _n_total(evaluation: Evaluation) -> np.ndarray:
    n_total = evaluation.n_total
    return np.array([n_total.get(task, np.nan) for task in evaluation.tasks])


def _reference_accuracies(evaluation: Evaluation, references: Mapping[str, Evaluation]) -> dict[str, np.ndarray]:
    """Accuracies of the reference runs by the positions of the run's own order; tasks are looked up by name."""
    found: dict[str, list[float]] = {}
    if random_init := references.get("random_init"):
        found["random_init"] = [random_init.accuracy(0, task) for task in evaluation.tasks]
    if isolated := references.get("isolated"):
        stage_of = {task: stage for stage, task in enumerate(isolated.order, start=1)}
        found["isolated"] = [isolated.accuracy(stage_of.get(task, -1), task) for task in evaluation.tasks]
    if joint := references.get("joint"):
        found["joint"] = [joint.accuracy(len(joint.order), task) for task in evaluation.tasks]
        # One value per stage; with repeated tasks there are more stages than columns, and no metric takes them.
        found["joint_at_k"] = [_joint_at(joint, evaluation.order, k) for k in range(1, len(evaluation.tasks) + 1)]
    return {name: np.array(accuracies) for name, accuracies in found.items()}


def _joint_at(joint: Evaluation, order: tuple[str, ...], k: int) -> float:
    """a*_k: its stage k counts only where it was trained on the run's own first k tasks, in whatever order."""
    same_tasks = set(joint.order[:k]) == set(order[:k])
    return joint.accuracy(k, order[k - 1]) if same_tasks else np.nan


def _read_evaluations(
    job: Job, run: str, schedule: str, orders: Mapping[str, tuple[str, ...]]
) -> dict[str, Evaluation]:
    columns = job.read_table(f"evaluation/{run}/matrix.parquet", "matrix").to_pydict()
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if _unit(run) not in orders:
        raise _matrix_error(run, "a unit of plan/units.parquet", _unit(run))
    by_protocol: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_protocol.setdefault(row["protocol"], []).append(row)
    return {protocol: _evaluation(run, schedule, orders[_unit(run)], found) for protocol, found in by_protocol.items()}


def _evaluation(run: str, schedule: str, order: tuple[str, ...], rows: list[dict[str, Any]]) -> Evaluation:
    cells = {(row["stage"], row["task"]): (row["n_correct"], row["n_total"]) for row in rows}
    evaluation = Evaluation(run, schedule, order, cells)
    if len(cells) < len(rows):
        raise _matrix_error(run, "one row per protocol, stage and task", f"{len(rows)} rows for {len(cells)} cells")
    totals: dict[str, int] = {}
    for row in rows:
        _require_planned(row, evaluation)
        _require_counts(row, run, totals.setdefault(row["task"], row["n_total"]))
    return evaluation


def _require_planned(row: Mapping[str, Any], evaluation: Evaluation) -> None:
    if row["stage"] not in evaluation.stages or row["task"] not in evaluation.order:
        raise _matrix_error(evaluation.run, "the stages and tasks of its unit", f"stage {row['stage']}, {row['task']}")
    follows_order = evaluation.schedule in ("sequential", "isolated")
    if follows_order and row["trained_task"] != evaluation.order[row["stage"] - 1]:
        expected = f"stage {row['stage']} trains {evaluation.order[row['stage'] - 1]}, as the unit's order says"
        raise _matrix_error(evaluation.run, expected, f"trained_task {row['trained_task']}")


def _require_counts(row: Mapping[str, Any], run: str, n_total: int) -> None:
    cell = f"stage {row['stage']}, task {row['task']}"
    if row["n_total"] != n_total:
        raise _matrix_error(run, f"{n_total} test samples, as at the other stages", f"{row['n_total']} ({cell})")
    if n_total < 1 or not 0 <= row["n_correct"] <= n_total:
        raise _matrix_error(run, "0 ≤ n_correct ≤ n_total, n_total ≥ 1", f"{row['n_correct']} of {n_total} ({cell})")


def _require_same_samples(evaluation: Evaluation, reference: Evaluation) -> None:
    own, others = evaluation.n_total, reference.n_total
    for task in sorted(own.keys() & others.keys()):
        if own[task] != others[task]:
            expected = f"{own[task]} test samples of task {task}, as in {evaluation.run}"
            raise _matrix_error(reference.run, expected, str(others[task]))


def _unit(run: str) -> str:
    return run.split("/")[1]


def _matrix_error(run: str, expected: str, got: str) -> MatrixError:
    return MatrixError(
        "a run's matrix contradicts itself or the plan",
        where=f"evaluation/{run}/matrix.parquet",
        expected=expected,
        got=got,
        next="remove the file and start snakemake: evaluation makes it again",
    )
