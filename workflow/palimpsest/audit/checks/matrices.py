"""Every complete stage was evaluated on every test sample, and the matrix is what these predictions count up to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from palimpsest.audit.chain import Chain
from palimpsest.audit.checks.data import SAMPLES
from palimpsest.audit.checks.stages import records_of
from palimpsest.audit.finding import Finding, guarded
from palimpsest.audit.same import first_difference
from palimpsest.core.artifact import ROWS_AT_ONCE
from palimpsest.core.progress import Track
from palimpsest.core.tables import TABLES
from palimpsest.plan.grid import Run
from palimpsest.plan.matrix import matrix_of_run


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Count every run's predictions again, a few hundred thousand rows at a time."""
    tests = _tests(chain) if chain.is_sound(SAMPLES) else None
    for run in track(list(chain.runs.values()), "counting predictions"):
        predictions, matrix = (f"evaluation/{run.run}/{name}.parquet" for name in ("predictions", "matrix"))
        if chain.is_sound(predictions):
            if tests is not None:
                work = lambda run=run: _samples(chain, run, tests)  # noqa: E731
                yield from guarded(predictions, "its rows cannot be compared with the samples", work)
            if chain.is_sound(matrix):
                work = lambda run=run: _matrix(chain, run)  # noqa: E731
                yield from guarded(matrix, "it cannot be counted again", work)


@dataclass(frozen=True)
class _Tests:
    """Task, sample and label of every test sample, in the order of the table `predictions`."""

    columns: pa.Table

    def __len__(self) -> int:
        return len(self.columns)

    def rows(self, start: int, n: int) -> pa.Table:
        """What stands in n rows of predictions from row `start` on: the same samples after each stage."""
        return self.columns.take(pa.array(np.arange(start, start + n) % len(self)))


def _tests(chain: Chain) -> _Tests:
    samples = pq.ParquetFile(chain.study / SAMPLES).read(columns=["task", "sample", "label", "split"])
    tests = samples.filter(pc.equal(samples["split"], "test")).select(["task", "sample", "label"])
    return _Tests(tests.sort_by([("task", "ascending"), ("sample", "ascending")]).replace_schema_metadata(None))


def _samples(chain: Chain, run: Run, tests: _Tests) -> Iterator[Finding]:
    path = f"evaluation/{run.run}/predictions.parquet"
    stages = [record["stage"] for _, record in records_of(chain, run) if record["status"] == "complete"]
    file = pq.ParquetFile(chain.study / path)
    if file.metadata.num_rows != len(stages) * len(tests):
        expected = f"{len(stages)} stages × {len(tests)} test samples = {len(stages) * len(tests)} rows"
        yield Finding(path, "it has not one row for each stage and test sample", expected, str(file.metadata.num_rows))
        return
    start = 0
    for batch in file.iter_batches(ROWS_AT_ONCE, columns=["stage", "task", "sample", "label"]):
        at = np.arange(start, start + len(batch))
        expected = tests.rows(start, len(batch)).add_column(
            0, "stage", pa.array(np.take(stages, at // len(tests)), "int32")
        )
        found = pa.Table.from_batches([batch]).replace_schema_metadata(None)
        if not found.equals(expected):
            reason = "its rows are not the test samples with their labels, after every complete stage"
            yield Finding(path, reason, *first_difference(expected, found, start))
            return
        start += len(batch)


def _matrix(chain: Chain, run: Run) -> Iterator[Finding]:
    predictions, path = (f"evaluation/{run.run}/{name}.parquet" for name in ("predictions", "matrix"))
    with pq.ParquetFile(chain.study / predictions, read_dictionary=["task"]) as file:
        columns = matrix_of_run(file.iter_batches(ROWS_AT_ONCE), run.spec)
    declared = TABLES["matrix"]
    expected = pa.table(columns, schema=declared.schema).sort_by([(name, "ascending") for name in declared.key])
    found = pq.ParquetFile(chain.study / path).read().replace_schema_metadata(None)
    if not found.equals(expected):
        yield Finding(path, f"it is not what {predictions} counts up to", *first_difference(expected, found))
