"""What GEM and A-GEM share: memories of earlier tasks, and gradients as vectors."""

from __future__ import annotations

import torch
from pydantic import BaseModel

from palimpsest.methods import _memory as memory
from palimpsest.methods import _storage as storage
from palimpsest.methods._declaration import Facts
from palimpsest.methods._hooks import Batch, Context, Gradients, State

RULE = "ring_of_tasks"


def check(hyperparameters: BaseModel, facts: Facts) -> None:
    """Refuse a budget that does not pay for one sample of each task.

    Raises:
        HyperparameterError: the buffer has more than 0 bytes and holds too little.
    """
    memory.require_room(hyperparameters.buffer_bytes, facts, groups=storage.n_groups(RULE, facts))


def init(context: Context) -> State:
    """Empty memories."""
    return {"memory": memory.empty(context.hyperparameters.buffer_bytes, context.facts)}


def earlier(context: Context, kept: State) -> dict[int, torch.Tensor]:
    """Places of the samples of each task that is not trained on now, by its position."""
    _, tasks = memory.labels_and_tasks(context, kept, memory.filled(kept))
    others = [task for task in tasks.unique().tolist() if task not in context.tasks]
    return {task: torch.nonzero(tasks == task)[:, 0] for task in others}


def complete(context: Context, gradients: Gradients) -> Gradients:
    """Gradients of all parameters that are trained, 0 for those that the step's loss did not reach.

    The layer of another task's outputs is one: the loss on that task's samples depends on it.
    """
    trained = {name: p for name, p in context.model.named_parameters() if p.requires_grad}
    return {name: gradients.get(name, torch.zeros_like(p)) for name, p in trained.items()}


def gradient(context: Context, samples: Batch, like: Gradients) -> torch.Tensor:
    """Gradient of the mean cross-entropy of some samples, as a vector; 0 for what the loss does not reach."""
    parameters = [context.model.get_parameter(name) for name in like]
    found = torch.autograd.grad(context.cross_entropy(samples), parameters, allow_unused=True, materialize_grads=True)
    return torch.cat([g.flatten() for g in found])


def vector(gradients: Gradients) -> torch.Tensor:
    """All gradients, one after the other."""
    return torch.cat([g.flatten() for g in gradients.values()])


def unpacked(values: torch.Tensor, like: Gradients) -> Gradients:
    """A vector as gradients by parameter name."""
    parts = values.split([g.numel() for g in like.values()])
    return {name: part.view_as(g) for (name, g), part in zip(like.items(), parts, strict=True)}
