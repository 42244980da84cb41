"""The accuracy matrix of predictions, counted as they stream by: memory does not grow with their number."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.core.tables import TABLES

IN_TASK = {"task_incremental": ("predicted_in_task", "label_log_probability_in_task")}
OVER_ALL = dict.fromkeys(("class_incremental", "domain_incremental"), ("predicted", "label_log_probability"))
COLUMNS = ["stage", "task", "label", *IN_TASK["task_incremental"], *OVER_ALL["class_incremental"]]
"""What is counted of the table `predictions`."""

# A float32 is a whole number of 24 bits times a power of two from 2^-149 to 2^104: sums of these numbers, one for each
# power, are whole and exact below 2^53, which a batch of 2^28 rows stays under.
_LOWEST, _N_POWERS = -172, 304
_Cell = tuple[int, str]


def read_as(protocol: str) -> dict[str, tuple[str, str]]:
    """The protocols under which the predictions of a study are counted, each with the columns that it looks at.

    >>> list(read_as("class_incremental")), list(read_as("domain_incremental"))
    (['task_incremental', 'class_incremental'], ['domain_incremental'])
    """
    own = {protocol: (OVER_ALL | IN_TASK)[protocol]}
    return IN_TASK | own if protocol == "class_incremental" else own


def matrix(
    predictions: Iterable[pa.RecordBatch],
    protocol: str,
    trained: Mapping[int, str],
    choosable: Mapping[str, Mapping[int, Collection[str]]] | None = None,
) -> dict[str, list[Any]]:
    """The accuracy matrix of predictions, as columns of the table `matrix`.

    In a class-incremental study the choice within the sample's own task is given too, as the protocol
    `task_incremental` of the same predictions. Losses are sums of −log p(label) in nats, exactly rounded, whatever the
    batches: null where a log-probability is.

    Args:
        predictions: rows with (at least) the columns `COLUMNS`, in any order and in batches of any size.
        protocol: of the study.
        trained: the task that each stage trained.
        choosable: the tasks whose outputs a prediction may choose from, by protocol and stage; all if left out. The
            others would score 0 by construction: their cells are left out, as not measured.
    """
    counts = {name: _Counts(*columns) for name, columns in read_as(protocol).items()}
    for batch in predictions:
        for part in counts.values():
            part.add(batch)
    rows: dict[str, list[Any]] = defaultdict(list)
    for name, part in counts.items():
        for (stage, task), cell in sorted(part.cells.items()):
            if name in (choosable or {}) and task not in choosable[name][stage]:
                continue
            rows["protocol"].append(name)
            rows["stage"].append(stage)
            rows["trained_task"].append(trained[stage])
            rows["task"].append(task)
            rows["n_correct"].append(cell.n_correct)
            rows["n_total"].append(cell.n_total)
            rows["loss_sum"].append(cell.loss_sum())
    return {name: rows[name] for name in TABLES["matrix"].schema.names}


class _CellCounts:
    """What is known so far of one stage and task: `mantissas` are the sums of −log p by power of two."""

    def __init__(self) -> None:
        self.n_total = self.n_correct = self.n_null = 0
        self.mantissas = [0] * _N_POWERS

    def loss_sum(self) -> float | None:
        """−Σ log p, exactly rounded: each term below is exact."""
        if self.n_null:
            return None
        terms = ((mantissa, power) for power, mantissa in enumerate(self.mantissas, start=_LOWEST) if mantissa)
        halves = ((part, power) for mantissa, power in terms for part in _halves(mantissa))
        return math.fsum(math.ldexp(part, power) for part, power in halves)


class _Counts:
    """Counts of all cells under one protocol."""

    def __init__(self, predicted: str, log_probability: str) -> None:
        self.predicted, self.log_probability = predicted, log_probability
        self.cells: dict[_Cell, _CellCounts] = defaultdict(_CellCounts)

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch."""
        names, codes = _codes(batch)
        correct = pc.fill_null(pc.equal(batch[self.predicted], batch["label"]), False)
        values = batch[self.log_probability]
        n = len(names)
        totals = np.bincount(codes, minlength=n)
        right = np.bincount(codes[_numpy(correct)], minlength=n)
        nulls = np.bincount(codes[_numpy(values.is_null())], minlength=n)
        sums = _sums_by_power(codes, n, _numpy(pc.fill_null(values, 0.0)))
        for at, name in enumerate(names):
            cell = self.cells[name]
            cell.n_total += int(totals[at])
            cell.n_correct += int(right[at])
            cell.n_null += int(nulls[at])
            for power in np.flatnonzero(sums[at]):
                cell.mantissas[power] += int(sums[at, power])


def _codes(batch: pa.RecordBatch) -> tuple[list[_Cell], np.ndarray]:
    """The cells that occur in a batch, and for each row the number of its one."""
    stages = batch["stage"].dictionary_encode()
    tasks = batch["task"]
    tasks = tasks if pa.types.is_dictionary(tasks.type) else tasks.dictionary_encode()
    n_tasks = len(tasks.dictionary)
    pairs = _numpy(stages.indices).astype(np.int64) * n_tasks + _numpy(tasks.indices)
    present = np.flatnonzero(np.bincount(pairs, minlength=1))
    number = np.zeros(len(stages.dictionary) * n_tasks, dtype=np.int64)
    number[present] = np.arange(len(present))
    of_stage, of_task = stages.dictionary.to_pylist(), tasks.dictionary.to_pylist()
    return [(of_stage[pair // n_tasks], of_task[pair % n_tasks]) for pair in present], number[pairs]


def _sums_by_power(codes: np.ndarray, n_cells: int, log_probabilities: np.ndarray) -> np.ndarray:
    """Sums of −log p by cell and power of two, each a whole number."""
    fractions, exponents = np.frexp(-log_probabilities.astype(np.float64))
    mantissas = np.ldexp(fractions, 24)
    at = codes * _N_POWERS + (exponents - 24 - _LOWEST)
    return np.bincount(at, mantissas, minlength=n_cells * _N_POWERS).reshape(n_cells, _N_POWERS)


def _halves(whole: int) -> tuple[int, int]:
    """Two numbers of at most 53 bits whose sum is a whole number of up to 106 bits."""
    high = whole >> 53 << 53
    return high, whole - high


def _numpy(values: pa.Array) -> np.ndarray:
    return values.to_numpy(zero_copy_only=False)
