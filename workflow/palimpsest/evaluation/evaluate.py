"""Every checkpoint of a run on the test samples of every task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from palimpsest.core.artifact import ROWS_AT_ONCE, Job
from palimpsest.core.tables import TABLES
from palimpsest.data.samples import read_samples
from palimpsest.methods._hooks import Context
from palimpsest.methods._method import Method, load_method
from palimpsest.plan.matrix import matrix_of_run
from palimpsest.training.checkpoint import read_checkpoint
from palimpsest.training.exact import be_exact
from palimpsest.training.learner import fresh_model
from palimpsest.training.stage import training_mask
from palimpsest.training.stages import checkpoint_of, read_record

Columns = dict[str, Any]


def evaluate_run(job: Job, run: str, spec: dict[str, Any]) -> None:
    """Write `predictions.parquet` and `matrix.parquet` of a run; stages after its end have no rows."""
    samples = _TestSamples(job)
    be_exact(spec["numerics"]["threads"])
    method = load_method(spec["method"], spec["hyperparameters"], "the run's specification")
    tables = []
    for stage in spec["stages"]:
        if read_record(job, f"runs/{run}", stage["stage"])["status"] == "complete":
            content = read_checkpoint(job, checkpoint_of(f"runs/{run}", stage["stage"]))
            tables.append(_predict(spec, stage, method, content, samples))
    schema = TABLES["predictions"].schema
    predictions = pa.concat_tables([schema.empty_table(), *(pa.table(columns, schema=schema) for columns in tables)])
    job.write_table(f"evaluation/{run}/predictions.parquet", "predictions", predictions)
    counted = predictions.to_batches(max_chunksize=ROWS_AT_ONCE)
    job.write_table(f"evaluation/{run}/matrix.parquet", "matrix", matrix_of_run(counted, spec))


class _TestSamples:
    """Test samples of all tasks, in order."""

    def __init__(self, job: Job) -> None:
        table, self.inputs = read_samples(job)
        (self.rows,) = np.nonzero(pc.equal(table["split"], "test").to_numpy(zero_copy_only=False))
        self.table = table.take(pa.array(self.rows))
        self.labels = torch.from_numpy(self.table["label"].to_numpy().astype(np.int64))

    def batches(self, size: int) -> Iterator[torch.Tensor]:
        """Inputs, `size` at a time."""
        for start in range(0, len(self.rows), size):
            yield torch.from_numpy(self.inputs[self.rows[start : start + size]])


@torch.no_grad()
def _predict(
    spec: dict[str, Any], stage: dict[str, Any], method: Method, content: dict[str, Any], samples: _TestSamples
) -> Columns:
    model = fresh_model(spec)
    model.load_state_dict(content["model"])
    model.eval()
    context = _context(spec, stage, model)
    size = spec["numerics"]["evaluation_batch_size"]
    scores = torch.cat([method.predict(context, content["method"], inputs) for inputs in samples.batches(size)])
    labels = samples.labels
    predicted, log_probability = _choose(scores, labels, training_mask(spec, stage, spec["evaluation_mask"]))
    in_task, in_task_log_probability = _choose(scores, labels, training_mask(spec, stage, "current"))
    return {
        "stage": pa.array(np.full(len(labels), stage["stage"]), pa.int32()),
        "task": samples.table["task"],
        "sample": samples.table["sample"],
        "label": samples.table["label"],
        "predicted": predicted,
        "predicted_in_task": in_task,
        "label_log_probability": _finite(log_probability),
        "label_log_probability_in_task": _finite(in_task_log_probability),
    }


def _choose(scores: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor | None) -> tuple[pa.Array, np.ndarray]:
    """Most probable output among those allowed, and the log-probability of the label among them.

    There is no choice (null) where no output is allowed, as for the untrained model under `seen`, or a score is NaN.
    """
    allowed = scores if mask is None else scores.masked_fill(~mask[labels], -torch.inf)
    log_probabilities = torch.log_softmax(allowed, dim=1)
    of_label = log_probabilities.gather(1, labels[:, None])[:, 0]
    no_choice = torch.isneginf(allowed).all(dim=1) | torch.isnan(allowed).any(dim=1)
    return pa.array(allowed.argmax(dim=1).numpy(), pa.int32(), mask=no_choice.numpy()), of_label.numpy()


def _finite(values: np.ndarray) -> pa.Array:
    """Log-probabilities; null where the label was not among the outputs to choose from."""
    return pa.array(values, pa.float32(), mask=~np.isfinite(values))


def _context(spec: dict[str, Any], stage: dict[str, Any], model: torch.nn.Module) -> Context:
    def no_samples(indices: Any) -> Any:
        raise AssertionError("a prediction sees no training samples")

    return Context(
        model=model,
        hyperparameters=None,
        facts=spec["inputs"],
        stage=stage["stage"],
        task=stage["task"],
        visit=stage["visit"],
        step=0,
        key=(spec["seed"], ",".join(spec["order"]), spec["method"]),
        mask=None,
        n_samples=0,
        samples=no_samples,
    )
