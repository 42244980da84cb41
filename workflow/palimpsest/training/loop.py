"""The training loop: one stage of one run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from palimpsest.core.streams import generator
from palimpsest.methods._hooks import Batch, Context, State
from palimpsest.methods._method import Method
from palimpsest.training.budget import Budget
from palimpsest.training.flops import Costs, StepCounter, counted, replayed_share
from palimpsest.training.learner import Learner

FLOPS = ("begin_task", "forward", "backward", "replayed", "project", "after_step", "after_task")
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
        flops: sums over the stage, by what was done; `replayed` is a share of `forward` and `backward`.
        known: FLOPs of the steps of each shape (`training.flops.StepCounter`).
    """

    status: str = "complete"
    reason: str | None = None
    steps: dict[str, list[Any]] = field(default_factory=lambda: {column: [] for column in STEP_COLUMNS})
    flops: Costs = field(default_factory=lambda: dict.fromkeys(FLOPS, 0))
    known: dict[str, Costs] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        """Whether a step was made."""
        return bool(self.steps["step"])

    def end(self, reason: str) -> None:
        """Note that the trajectory ends here."""
        self.status, self.reason = "ended", reason


def train_stage(
    learner: Learner,
    method: Method,
    context: Context,
    training: dict[str, Any],
    seed: int,
    budget: Budget,
    result: Trained,
    before_step: Callable[[Batch], None],
    after_step: Callable[[], None],
    after_epoch: Callable[[], str | None],
) -> None:
    """Train one stage from the learner's position to its end; learner and result are changed in place.

    Args:
        learner: where the run stands; in the middle of the stage, if it was resumed there.
        method: hooks, hyperparameters.
        context: what the hooks may know; its steps are replaced at every step.
        training: the study's section: batch size, epochs, and steps where it fixes them.
        seed: the unit's seed, which with task, visit and epoch fixes the mini-batches.
        budget: what the run may use.
        result: what the stage came to so far; new, if it begins here.
        before_step: called with each mini-batch before the model is trained on it; leaves learner and result alone.
        after_step: called when learner and result are consistent; may raise to stop here.
        after_epoch: the same, and says why the stage stops early, or null.
    """
    counter, size = StepCounter(method, result.known), training["batch_size"]
    learner.model.train()
    if not result.begun:
        _between(learner, method.begin_task, context, result, "begin_task")
    while learner.epoch < training["epochs"] and not _is_over(learner, training):
        shuffled = generator("batches", seed, context.task, context.visit, learner.epoch).permutation(context.n_samples)
        for start in range(learner.batch * size, context.n_samples, size):
            batch = _take(context, shuffled[start : start + size], learner.epoch)
            before_step(batch)
            now = _at(context, learner.step + 1, learner)
            reason = _step(learner, method, now, batch, counter, budget, result) or budget.is_exceeded(learner)
            if reason:
                return result.end(reason)
            learner.batch += 1
            after_step()
            if _is_over(learner, training):
                break
        else:
            learner.epoch, learner.batch = learner.epoch + 1, 0
            result.reason = after_epoch()
            if result.reason:
                break
    if result.reason is None and "steps" in training and not _is_over(learner, training):
        made = learner.step - learner.first_step
        return result.end(
            f"data: {context.n_samples} samples of {context.task} give {made} steps in {training['epochs']} epochs, "
            f"and {training['steps']} were asked for; exhausted after step {learner.step}"
        )
    _between(learner, method.after_task, context, result, "after_task")
    exceeded = budget.is_exceeded(learner)
    return result.end(exceeded) if exceeded else None


def _is_over(learner: Learner, training: dict[str, Any]) -> bool:
    """Whether the stage has the steps that the plan asks for."""
    return "steps" in training and learner.step - learner.first_step >= training["steps"]


def _between(learner: Learner, hook: Callable[..., State], context: Context, result: Trained, name: str) -> None:
    """A hook between tasks, with its FLOPs."""
    learner.method, flops = counted(hook, _at(context, learner.step, learner), learner.method)
    result.flops[name] += flops
    learner.flops += flops


def _step(
    learner: Learner,
    method: Method,
    context: Context,
    batch: Batch,
    counter: StepCounter,
    budget: Budget,
    result: Trained,
) -> str | None:
    """One optimizer step; returns why the trajectory ends here, or null."""
    learner.optimizer.zero_grad(set_to_none=True)
    loss = method.loss(context, learner.method, batch)
    value = loss.value.item()
    if not math.isfinite(value):
        return f"numerical: the loss is {value} at step {context.step}"
    costs = counter.count(context, learner.method, batch, loss.replayed)
    if refused := budget.refuses(learner, len(batch), sum(costs.values())):
        return refused
    loss.value.backward()
    if method.projects:
        _project(learner, method, context)
    gradients = [p.grad for p in learner.model.parameters() if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients).item()
    if not math.isfinite(norm):
        return f"numerical: the gradient's norm is {norm} at step {context.step}"
    learning_rate = learner.optimizer.param_groups[0]["lr"]
    learner.optimizer.step()
    learner.scheduler.step()
    done = replace(loss, value=loss.value.detach())
    learner.method = counter.after_step(costs, context, learner.method, batch, done)
    learner.step, learner.samples_seen = context.step, learner.samples_seen + len(batch)
    learner.flops += sum(costs.values())
    for name, flops in (costs | {"replayed": replayed_share(costs, len(batch), loss.replayed)}).items():
        result.flops[name] += flops
    row = (
        context.stage, context.task, learner.step, learner.samples_seen, sum(costs.values()), value, learning_rate,
        norm, loss.replayed,
    )  # fmt: skip
    for column, entry in zip(STEP_COLUMNS, row, strict=True):
        result.steps[column].append(entry)
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
