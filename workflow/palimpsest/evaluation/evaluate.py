"""Every checkpoint of a run on the test samples of every task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from palimpsest.core.artifact import ROWS_AT_ONCE, Job
from palimpsest.core.tables import TABLES
from palimpsest.data.samples import read_samples
from palimpsest.methods._method import Method, load_method
from palimpsest.models._network import task_positions
from palimpsest.plan.matrix import matrix_of_run
from palimpsest.training.checkpoint import read_checkpoint
from palimpsest.training.exact import be_exact
from palimpsest.training.flops import counted
from palimpsest.training.learner import network_of
from palimpsest.training.predicting import Choice, choose, masks, prediction_context
from palimpsest.training.stages import checkpoint_of, read_record
from palimpsest.training.unbounded import as_told

Columns = dict[str, Any]


def evaluate_run(job: Job, run: str, spec: dict[str, Any]) -> None:
    """Write `predictions.parquet` and `matrix.parquet` of a run; stages after its end have no rows."""
    predictions, flops = predict(job, run, spec, [stage["stage"] for stage in spec["stages"]])
    job.write_table(f"evaluation/{run}/predictions.parquet", "predictions", predictions)
    batches = predictions.to_batches(max_chunksize=ROWS_AT_ONCE)
    job.write_table(f"evaluation/{run}/matrix.parquet", "matrix", matrix_of_run(batches, spec), flops=flops)


def predict(job: Job, run: str, spec: dict[str, Any], numbers: Sequence[int]) -> tuple[pa.Table, int]:
    """Rows of the table `predictions` for some stages of a run, as far as they are complete, and what they cost."""
    samples = _TestSamples(job, spec)
    be_exact(spec["numerics"]["threads"])
    method = as_told(load_method(spec["method"], spec["hyperparameters"], "the run's specification"), spec)
    schema = TABLES["predictions"].schema
    tables, flops = [schema.empty_table()], 0
    for stage in (stage for stage in spec["stages"] if stage["stage"] in numbers):
        if read_record(job, f"runs/{run}", stage["stage"])["status"] == "complete":
            content = read_checkpoint(job, checkpoint_of(f"runs/{run}", stage["stage"]))
            columns, cost = _predict(spec, stage, method, content, samples)
            tables.append(pa.table(columns, schema=schema))
            flops += cost
    return pa.concat_tables(tables), flops


class _TestSamples:
    """Test samples of all tasks, in order."""

    def __init__(self, job: Job, spec: dict[str, Any]) -> None:
        table, self.inputs = read_samples(job)
        (self.rows,) = np.nonzero(pc.equal(table["split"], "test").to_numpy(zero_copy_only=False))
        self.table = table.take(pa.array(self.rows))
        self.labels = torch.from_numpy(self.table["label"].to_numpy().astype(np.int64))
        positions = task_positions(spec["tasks"])
        self.tasks = torch.tensor([positions[task] for task in self.table["task"].to_pylist()], dtype=torch.int64)

    def batches(self, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Inputs and the positions of their tasks, `size` at a time."""
        for start in range(0, len(self.rows), size):
            part = slice(start, start + size)
            yield torch.from_numpy(self.inputs[self.rows[part]]), self.tasks[part]


@torch.no_grad()
def _predict(
    spec: dict[str, Any], stage: dict[str, Any], method: Method, content: dict[str, Any], samples: _TestSamples
) -> tuple[Columns, int]:
    """Columns of the predictions after one stage, and their FLOPs: counted on one batch of each size."""
    model = network_of(spec, stage, method)
    model.load_state_dict(content["model"])
    model.eval()
    context, told = prediction_context(spec, stage, model), spec["protocol"] == "task_incremental"
    size = spec["numerics"]["evaluation_batch_size"]
    found, of_size, flops = [], {}, 0
    for inputs, tasks in samples.batches(size):
        arguments = (context, content["method"], inputs, tasks if told else None)
        if len(inputs) in of_size:
            found.append(method.predict(*arguments))
        else:
            scores, of_size[len(inputs)] = counted(method.predict, *arguments)
            found.append(scores)
        flops += of_size[len(inputs)]
    scores = torch.cat(found)
    choices = {
        protocol: choose(scores, samples.labels, samples.tasks, mask) for protocol, mask in masks(spec, stage).items()
    }
    own, in_task = choices[spec["protocol"]], choices["task_incremental"]
    return {
        "stage": pa.array(np.full(len(samples.labels), stage["stage"]), pa.int32()),
        "task": samples.table["task"],
        "sample": samples.table["sample"],
        "label": samples.table["label"],
        "predicted": _chosen(own),
        "predicted_in_task": _chosen(in_task),
        "label_log_probability": _finite(own.log_probability),
        "label_log_probability_in_task": _finite(in_task.log_probability),
    }, flops


def _chosen(choice: Choice) -> pa.Array:
    """Predicted outputs; null where there is no choice."""
    return pa.array(choice.predicted, pa.int32(), mask=choice.predicted < 0)


def _finite(values: np.ndarray) -> pa.Array:
    """Log-probabilities; null where the label was not among the outputs to choose from."""
    return pa.array(values, pa.float32(), mask=~np.isfinite(values))
