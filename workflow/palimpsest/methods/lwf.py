"""Learning without forgetting: on new samples, outputs of old tasks are held to what the model before gave for them.

The loss is the cross-entropy plus strength · KL(softmax(z*/T) ‖ softmax(z/T)), the mean over the batch, over the
outputs of the tasks before; z* are the outputs of the model as it was when the stage began. The Kullback-Leibler
divergence has the gradient of the paper's cross-entropy and is 0 at the start; there is no factor T². Under the
training mask `current` each old task has a softmax of its own, as in the paper, and the terms of all old tasks add up;
else there is one over all old outputs. The model before is held as a copy of the weights.
"""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch.func import functional_call
from torch.nn.functional import kl_div, log_softmax

from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import Batch, Context, Loss, State, scale

REFERENCE = "Z. Li, D. Hoiem, Learning without forgetting, ECCV 2016, arXiv:1606.09282"
DECLARATION = Declaration(needs_task_boundaries=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `lwf`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    strength: float = Field(ge=0, le=1e30, allow_inf_nan=False, description="Weight of distillation.", examples=[1.0])
    temperature: float = Field(2.0, gt=0, le=1e6, description="T, which softens both distributions.")


def init(context: Context) -> State:
    """There is no model before."""
    return {"teacher": {}}


def after_task(context: Context, state: State) -> State:
    """The model as it is now is what the next stage is held to."""
    return {"teacher": {name: value.clone() for name, value in context.model.state_dict().items()}}


def loss(context: Context, state: State, batch: Batch) -> Loss:
    """Cross-entropy of the batch, and distillation, by one pass of the model and one of the model before."""
    if not state["teacher"] or context.hyperparameters.strength == 0:
        return Loss(context.cross_entropy(batch))
    tasks, shown = groups(context, batch)
    own, *new = context.outputs(batch.inputs, torch.cat([batch.tasks[None], tasks]))
    with torch.no_grad(), context.evaluating():
        old = functional_call(context.model, state["teacher"], (scale(batch.inputs), tasks), strict=False)
    terms = [
        divergence(*of_group, context.hyperparameters.temperature) for of_group in zip(new, old, shown, strict=True)
    ]
    value = context.cross_entropy(batch, own) + context.hyperparameters.strength * torch.stack(terms).sum()
    return Loss(value, outputs=own)


def divergence(new: torch.Tensor, old: torch.Tensor, shown: torch.Tensor, temperature: float) -> torch.Tensor:
    """KL(softmax(old/T) ‖ softmax(new/T)) over the outputs that are shown, the mean over the batch."""
    # Outputs that the head has not got are −∞ in both and take no part.
    there = shown & torch.isfinite(old[0]) & torch.isfinite(new[0])
    softened = [log_softmax(z[:, there] / temperature, dim=1) for z in (new, old)]
    return kl_div(*softened, reduction="batchmean", log_target=True)


def groups(context: Context, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Tasks by which outputs are asked for, `[group, batch]`, and which share a softmax, `[group, n_outputs]` bool."""
    if context.mask is not None and bool((context.mask != context.mask[0]).any()):
        seen = torch.tensor(context.seen)
        return seen[:, None].expand(-1, len(batch)), context.mask[seen]
    if context.task_of_output is None:
        return batch.tasks[None], torch.ones((1, context.facts["n_outputs"]), dtype=torch.bool)
    return batch.tasks[None], torch.isin(context.task_of_output, torch.tensor(context.seen))[None]
