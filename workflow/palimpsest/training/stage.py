"""One stage: from the parent's checkpoint (or fresh weights) to its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from palimpsest.core.artifact import Job
from palimpsest.core.attempts import Notes
from palimpsest.core.errors import StoppedError
from palimpsest.data.samples import Data, read_samples
from palimpsest.methods._hooks import Batch, Context
from palimpsest.methods._method import Method, load_method
from palimpsest.models._network import task_positions
from palimpsest.plan.probing import Recording
from palimpsest.plan.schedule import earlier_tasks
from palimpsest.training.budget import Budget, kept_bytes
from palimpsest.training.checkpoint import lists_of, read_checkpoint, tensors_of, write_checkpoint
from palimpsest.training.early_stop import EarlyStop
from palimpsest.training.exact import be_exact
from palimpsest.training.learner import Learner, fresh_learner, network_of, plain_network
from palimpsest.training.loop import Trained, train_stage
from palimpsest.training.outputs import visible_outputs
from palimpsest.training.predicting import prediction_context
from palimpsest.training.recorder import Recorder
from palimpsest.training.resume import Resume
from palimpsest.training.unbounded import as_told

Ask = Callable[[], Literal["go", "save", "stop"]]
"""Asked after every step: go on, write the resume file first, or write it and stop."""


def train_one_stage(
    job: Job,
    run: str,
    spec: dict[str, Any],
    stage: dict[str, Any],
    recording: Recording,
    key: str,
    ask: Ask,
    say: Callable[[str], None],
    notes: Notes,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Train a stage, from where a killed attempt left it, and write its checkpoint and tables.

    Args:
        job: of the stage; checkpoints that it reads become its parents.
        run: `METHOD/UNIT`.
        spec, stage: the run's specification, and the stage in it.
        recording: what is recorded beside the steps.
        key: hash of all that the stage's bytes depend on, by which a resume file is known.
        ask: see `Ask`.
        say: prints one line of progress.
        notes: told of a resumption, and of the time that recording takes.

    Returns:
        What the record says of the outcome, and the SHA-256 of each file written beside it.

    Raises:
        StoppedError: `ask` said stop; the resume file is written.
    """
    be_exact(spec["numerics"]["threads"])
    method = as_told(load_method(spec["method"], spec["hyperparameters"], "the run's specification"), spec)
    data = read_samples(job)
    samples = _Samples(data, spec, stage)
    learner = fresh_learner(spec, stage, method, _steps_of_stage(spec, len(samples)))
    context = _context(spec, stage, method, learner, samples)
    resume = Resume(job.study, run, stage["stage"], key, say)
    recorder = Recorder(job, data, spec, stage, recording, learner, method, context.epoch_steps, notes.aside)
    early_stop = EarlyStop(data, spec, stage, learner, method)
    trained = _begin(job, run, spec, stage, learner, method, context, resume, (recorder, early_stop))
    if trained.begun:
        notes.resumed(learner.step)

    def after_step() -> None:
        recorder.after_step()
        wish = ask()
        if wish != "go":
            aside = {"recorded": recorder.content(), "early_stop": early_stop.content()}
            resume.keep({**learner.content(), "trained": _content(trained), **aside})
        if wish == "stop":
            raise StoppedError(f"stage {stage['stage']} stopped after step {learner.step}; start again to go on")

    def after_epoch() -> str | None:
        say(f"stage {stage['stage']} ({stage['task']}): epoch {learner.epoch} of {spec['training']['epochs']}")
        return early_stop.after_epoch() if learner.epoch < spec["training"]["epochs"] else None

    budget = Budget(spec.get("budgets", {}), _bytes_of_earlier(spec, stage, samples))
    moments = (recorder.before_step, after_step, after_epoch)
    train_stage(learner, method, context, spec["training"], spec["seed"], budget, trained, *moments)
    if trained.status == "complete" and not _finite(learner):
        trained.end(f"numerical: a weight is not finite after step {learner.step}")
    files = _write_files(job, f"runs/{run}", stage["stage"], learner, trained, recorder)
    outcome = {
        "status": trained.status,
        "ended_in": stage["stage"] if trained.status == "ended" else None,
        "step": learner.step,
        "reason": trained.reason,
        "counted": _counted(learner, trained)
        | kept_bytes(learner, budget.samples_bytes)
        | {"parameters_added": _n_parameters(learner.model) - _n_parameters(plain_network(spec, stage))}
        | {"flops_probing": recorder.predictor.flops, "flops_validation": early_stop.flops},
        **({"validation": [None if math.isnan(v) else v for v in early_stop.values]} if early_stop.rule else {}),
    }
    return outcome, files


def _begin(
    job: Job,
    run: str,
    spec: dict[str, Any],
    stage: dict[str, Any],
    learner: Learner,
    method: Method,
    context: Context,
    resume: Resume,
    aside: tuple[Recorder, EarlyStop],
) -> Trained:
    """Bring the learner to where the stage begins, or to where a killed attempt left it."""
    if stage["parent"] is None:
        learner.method = method.init(context)
    else:
        content = read_checkpoint(job, f"runs/{run}/stage-{stage['parent']}.safetensors")
        learner.begin_from(content, with_optimizer=not spec["training"]["reset_optimizer"])
        if spec["model"]["reset_new_outputs"]:
            learner.reset_new_outputs(spec, stage)
    left = resume.load()
    if left is None:
        return Trained()
    learner.resume_from(left)
    for part, name in zip(aside, ("recorded", "early_stop"), strict=True):
        part.restore(left[name])
    resume.say(f"stage {stage['stage']}: resumed after step {learner.step}")
    return _trained(left["trained"])


def _content(trained: Trained) -> dict[str, Any]:
    """The steps so far and their costs, for a resume file: numbers as tensors, and the name of the task once."""
    columns = dict(trained.steps)
    (task,) = set(columns.pop("task"))
    flops = {"stage": trained.flops, **trained.known}
    return {
        "task": task,
        "steps": tensors_of(columns),
        "flops": {of: {name: torch.tensor(n) for name, n in costs.items()} for of, costs in flops.items()},
    }


def _trained(content: dict[str, Any]) -> Trained:
    columns = lists_of(content["steps"])
    known = {of: {name: n.item() for name, n in costs.items()} for of, costs in content["flops"].items()}
    steps = {**columns, "task": [content["task"]] * len(columns["step"])}
    return Trained(steps=steps, flops=known.pop("stage"), known=known)


class _Samples:
    """Training samples of a stage, by index; inputs stay mapped on disk until a batch needs them."""

    def __init__(self, data: Data, spec: dict[str, Any], stage: dict[str, Any]) -> None:
        table, self.inputs = data
        wanted = pc.and_(
            pc.equal(table["split"], "train"), pc.is_in(table["task"], pa.array(stage["tasks"], pa.string()))
        )
        (self.rows,) = np.nonzero(wanted.to_numpy(zero_copy_only=False))
        positions, of_row = task_positions(spec["tasks"]), table["task"].take(pa.array(self.rows)).to_pylist()
        self.labels = torch.from_numpy(table["label"].to_numpy().astype(np.int64)[self.rows])
        self.tasks = torch.tensor([positions[task] for task in of_row], dtype=torch.int64)
        earlier = torch.tensor([positions[task] for task in earlier_tasks(spec["stages"], stage)], dtype=torch.int64)
        self.new = ~torch.isin(self.tasks, earlier)

    def __len__(self) -> int:
        return len(self.rows)

    def __call__(self, indices: Any) -> Batch:
        inputs = torch.from_numpy(self.inputs[self.rows[indices]])
        return Batch(inputs, self.labels[indices], self.tasks[indices], self.new[indices])


def _context(
    spec: dict[str, Any], stage: dict[str, Any], method: Method, learner: Learner, samples: _Samples
) -> Context:
    return replace(
        prediction_context(spec, stage, learner.model),
        mask=visible_outputs(spec, stage, spec["training_mask"]),
        n_samples=len(samples),
        samples=samples,
        initial=lambda: network_of(spec, stage, method).state_dict(),
        n_steps=_steps_of_stage(spec, len(samples)),
        epoch_steps=_steps_of_epoch(spec, len(samples)),
    )


def _write_files(
    job: Job, folder: str, number: int, learner: Learner, trained: Trained, recorder: Recorder
) -> dict[str, str]:
    steps = f"{folder}/stage-{number}.steps.parquet"
    files = {steps: job.write_table(steps, "steps", trained.steps), **recorder.write(folder, number)}
    if trained.status == "complete":
        checkpoint = f"{folder}/stage-{number}.safetensors"
        files[checkpoint] = write_checkpoint(job, checkpoint, learner.content())
    return {Path(path).name: digest for path, digest in files.items()}


def _counted(learner: Learner, trained: Trained) -> dict[str, int | float]:
    """What the stage cost, counted: steps, FLOPs by what was done, parameters."""
    flops = {"steps": sum(trained.steps["flops"]), **trained.flops}
    return {
        "steps": len(trained.steps["step"]),
        "samples_seen": learner.samples_seen,
        **{f"flops_{name}": _exact(n) for name, n in flops.items()},
        "parameters": _n_parameters(learner.model),
    }


def _exact(n: int) -> int | float:
    """A count as JSON can hold it: from 2⁵³ on, the nearest floating-point number."""
    return n if n < 2**53 else float(n)


def _n_parameters(model: torch.nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def _bytes_of_earlier(spec: dict[str, Any], stage: dict[str, Any], samples: _Samples) -> int:
    """Bytes of the samples of earlier tasks on which the stage trains again, as they were stored to that end."""
    if stage["parent"] is None or len(stage["tasks"]) == 1:
        return 0
    newest = task_positions(spec["tasks"])[stage["tasks"][-1]]
    inputs = spec["inputs"]
    return int((samples.tasks != newest).sum()) * (inputs["sample_bytes"] + inputs["label_bytes"])


def _finite(learner: Learner) -> bool:
    return all(bool(torch.isfinite(p).all()) for p in learner.model.parameters())


def _steps_of_stage(spec: dict[str, Any], n_samples: int) -> int:
    return spec["training"].get("steps", spec["training"]["epochs"] * _steps_of_epoch(spec, n_samples))


def _steps_of_epoch(spec: dict[str, Any], n_samples: int) -> int:
    return -(-n_samples // spec["training"]["batch_size"])
