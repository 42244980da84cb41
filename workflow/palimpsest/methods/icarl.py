"""iCaRL: exemplars chosen by herding, prediction by the nearest mean of exemplars, distillation by sigmoids.

Each step trains on new samples and on exemplars drawn from the memory together. The loss is the binary cross-entropy of
a sigmoid for each output, summed over the outputs and averaged over the samples; outputs of the stage's tasks have the
label as target, those of earlier tasks the sigmoid of the model as it was when the stage began, and those of tasks to
come take no part. (The paper draws from the union of new samples and exemplars; here their shares of a step are fixed.)

Features are normalised to length 1. After a stage the memory is shared equally by all classes so far: of earlier
classes the first exemplars stay; for each class of the stage those are chosen, one after the other, whose plain mean
comes nearest to the plain mean of the class. A sample belongs to the class whose exemplars' mean, normalised again, is
nearest; a score is minus the squared distance, and −∞ for a class without exemplars. Means are those of the model as it
predicts, made for each batch of predictions. Before there are exemplars the network's outputs decide.
"""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits, normalize

from palimpsest.methods import _memory as memory
from palimpsest.methods._declaration import Declaration, Facts, ModelError
from palimpsest.methods._hooks import Batch, Context, Loss, State, scale

REFERENCE = (
    "S.-A. Rebuffi, A. Kolesnikov, G. Sperl, C. H. Lampert, iCaRL: incremental classifier and representation learning, "
    "CVPR 2017, arXiv:1611.07725"
)
DECLARATION = Declaration(stores_raw_data=True, needs_task_boundaries=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `icarl`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    buffer_bytes: memory.BufferBytes
    replayed: memory.Replayed


def check(hyperparameters: Hyperparameters, facts: Facts) -> None:
    """Refuse a memory without room for an exemplar of each class, and tasks that share their classes.

    Raises:
        HyperparameterError: the memory holds too little.
        ModelError: a label does not tell the task.
    """
    if not facts["label_tells_task"]:
        raise ModelError("tasks of different classes, each with exemplars of its own", "tasks that share their classes")
    memory.require_room(hyperparameters.buffer_bytes, facts, groups=facts["n_outputs"], zero=False)


def init(context: Context) -> State:
    """No exemplars, and no model before."""
    return {"memory": memory.empty(context.hyperparameters.buffer_bytes, context.facts), "teacher": {}}


def loss(context: Context, state: State, batch: Batch) -> Loss:
    """Binary cross-entropy of labels and of earlier outputs, over new samples and exemplars."""
    drawn = memory.draw(context, state["memory"], context.hyperparameters.replayed)
    both = batch + memory.take(context, state["memory"], drawn) if len(drawn) else batch
    outputs = context.outputs(both.inputs, both.tasks)
    targets = torch.nn.functional.one_hot(both.labels, outputs.shape[1]).to(outputs.dtype)
    earlier = _of_tasks(context, set(context.seen) - set(context.tasks))
    if state["teacher"]:
        with torch.no_grad(), context.evaluating():
            before = functional_call(context.model, state["teacher"], (scale(both.inputs), both.tasks), strict=False)
        targets = torch.where(earlier, before.sigmoid(), targets)
    known = earlier | _of_tasks(context, set(context.tasks))
    shown = known & torch.isfinite(context.visible(outputs, both.tasks))
    total = binary_cross_entropy_with_logits(outputs[shown], targets[shown], reduction="sum")
    return Loss(total / len(both), replayed=len(drawn))


def after_task(context: Context, state: State) -> State:
    """Share the memory anew, choose exemplars of the stage's classes, and hold on to the model as it is."""
    kept = state["memory"]
    labels, _ = memory.labels_and_tasks(context, kept, memory.filled(kept))
    stream = context.samples(range(context.n_samples))
    came = sorted(set(stream.labels.tolist()))
    old = sorted(set(labels.tolist()) - set(came))
    share = memory.places(kept) // max(len(came) + len(old), 1)
    parts = [memory.take(context, kept, torch.nonzero(labels == label)[:share, 0]) for label in old]
    for label in came:
        of_class = stream[stream.labels == label]
        parts.append(of_class[herd(_features(context, of_class.inputs), share)])
    made = memory.empty(context.hyperparameters.buffer_bytes, context.facts)
    for part in parts:
        first = made[memory.STORED]
        made = memory.put(made, {first + row: row for row in range(len(part))}, part)
    return {"memory": made, "teacher": {name: value.clone() for name, value in context.model.state_dict().items()}}


def herd(features: torch.Tensor, count: int) -> torch.Tensor:
    """Rows whose running mean stays nearest to the mean of all, in the sequence in which they are chosen."""
    mean, total = features.mean(dim=0), torch.zeros(features.shape[1])
    free, chosen = torch.ones(len(features), dtype=torch.bool), []
    for k in range(1, min(count, len(features)) + 1):
        distances = (mean - (total + features) / k).square().sum(dim=1).masked_fill(~free, torch.inf)
        best = int(distances.argmin())
        free[best] = False
        total = total + features[best]
        chosen.append(best)
    return torch.tensor(chosen, dtype=torch.int64)


def predict(context: Context, state: State, inputs: torch.Tensor, tasks: torch.Tensor | None) -> torch.Tensor:
    """Minus the squared distance to the mean of each class's exemplars."""
    kept = state["memory"]
    if kept[memory.STORED] == 0:
        return context.outputs(inputs, tasks)
    exemplars = memory.take(context, kept, memory.filled(kept))
    features = _features(context, exemplars.inputs)
    own = _features(context, inputs)
    scores = torch.full((len(inputs), context.facts["n_outputs"]), -torch.inf)
    for label in exemplars.labels.unique().tolist():
        mean = normalize(features[exemplars.labels == label].mean(dim=0), dim=0)
        scores[:, label] = -(own - mean).square().sum(dim=1)
    return scores


def _features(context: Context, inputs: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), context.evaluating():
        return normalize(context.features(inputs), dim=1)


def _of_tasks(context: Context, tasks: set[int]) -> torch.Tensor:
    """Which outputs belong to some tasks, `[n_outputs]` bool."""
    return torch.isin(context.task_of_output, torch.tensor(sorted(tasks), dtype=torch.int64))
