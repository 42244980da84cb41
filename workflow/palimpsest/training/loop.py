"""The training loop: one stage of one run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from palimpsest.core.streams import generator
from palimpsest.methods._hooks import Batch, Context
from palimpsest.methods._method import Method
from palimpsest.training.flops import StepCounter, counted
from palimpsest.training.learner import Learner

STEP_COLUMNS = (
    "stage", "task", "step", "samples_seen", "flops", "loss", "learning_rate", "gradient_norm", "replayed",
)  # fmt: skip


@dataclass
class Trained:
    """What a stage came to.

    Args:
        status: `complete`, or `ended` where the trajectory ends as a recorded outcome.
        reason: null, or why it ended (`numerical: …`).
        steps: columns of the table `steps`.
        flops_after_task: FLOPs of the method's work at the end of the stage.
    """

    status: str = "complete"
    reason: str | None = None
    steps: dict[str, list[Any]] = field(default_factory=lambda: {column: [] for column in STEP_COLUMNS})
    flops_after_task: int = 0

    @property
    def begun(self) -> bool:
        """Whether a step was made."""
        return bool(self.steps["step"])


def train_stage(
    learner: Learner,
    method: Method,
    context: Context,
    training: dict[str, Any],
    seed: int,
    result: Trained,
    before_step: Callable[[Batch], None],
    after_step: Callable[[], None],
    after_epoch: Callable[[], None],
) -> None:
    """Train one stage from the learner's position to its end; learner and result are changed in place.

    Args:
        learner: where the run stands; in the middle of the stage, if it was resumed there.
        method: hooks, hyperparameters.
        context: what the hooks may know; `its steps are replaced at every step.
        training: the study's section: batch size and epochs.
        seed: the unit's seed, which with task, visit and epoch fixes the mini-batches.
        result: what the stage came to so far; new, if it begins here.
        before_step: called with each mini-batch before the model is trained on it; leaves learner and result alone.
        after_step, after_epoch: called when learner and result are consistent; the first may raise to stop here.
    """
    counter, size = StepCounter(method), training["batch_size"]
    learner.model.train()
    if not result.begun:
        learner.method = method.begin_task(_at(context, learner.step, learner), learner.method)
    while learner.epoch < training["epochs"]:
        shuffled = generator("batches", seed, context.task, context.visit, learner.epoch).permutation(context.n_samples)
        for start in range(learner.batch * size, context.n_samples, size):
            batch = _take(context, shuffled[start : start + size], learner.epoch)
            before_step(batch)
            now = _at(context, learner.step + 1, learner)
            result.reason = _step(learner, method, now, batch, counter, result.steps)
            if result.reason:
                result.status = "ended"
                return
            learner.batch += 1
            after_step()
        learner.epoch, learner.batch = learner.epoch + 1, 0
        after_epoch()
    learner.method, result.flops_after_task = counted(
        method.after_task, _at(context, learner.step, learner), learner.method
    )


def _step(
    learner: Learner, method: Method, context: Context, batch: Batch, counter: StepCounter, rows: dict[str, list[Any]]
) -> str | None:
    """One optimizer step; returns why the trajectory ends here, or null."""
    learner.optimizer.zero_grad(set_to_none=True)
    loss = method.loss(context, learner.method, batch)
    value = loss.value.item()
    if not math.isfinite(value):
        return f"numerical: the loss is {value} at step {context.step}"
    loss.value.backward()
    if method.projects:
        _project(learner, method, context)
    gradients = [p.grad for p in learner.model.parameters() if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients).item()
    if not math.isfinite(norm):
        return f"numerical: the gradient's norm is {norm} at step {context.step}"
    learning_rate = learner.optimizer.param_groups[0]["lr"]
    flops = counter.count(context, learner.method, batch, loss.replayed)
    learner.optimizer.step()
    learner.scheduler.step()
    done = replace(loss, value=loss.value.detach())
    learner.method = method.after_step(context, learner.method, batch, done)
    learner.step, learner.samples_seen = context.step, learner.samples_seen + len(batch)
    row = (
        context.stage, context.task, learner.step, learner.samples_seen, flops, value, learning_rate, norm,
        loss.replayed,
    )  # fmt: skip
    for column, entry in zip(STEP_COLUMNS, row, strict=True):
        rows[column].append(entry)
    return None


def _project(learner: Learner, method: Method, context: Context) -> None:
    gradients = {name: p.grad for name, p in learner.model.named_parameters() if p.grad is not None}
    projected = method.project(context, learner.method, gradients)
    for name, parameter in learner.model.named_parameters():
        parameter.grad = projected.get(name)


def _take(context: Context, indices: np.ndarray, epoch: int) -> Batch:
    batch = context.samples(indices)
    return batch if epoch == 0 else replace(batch, first_presentation=torch.zeros_like(batch.first_presentation))


def _at(context: Context, step: int, learner: Learner) -> Context:
    return replace(context, step=step, stage_step=step - learner.first_step)
