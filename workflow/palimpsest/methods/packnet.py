"""PackNet: each task keeps a part of the weights for itself, chosen by magnitude; what is left is free for the next.

In stage k all weights of the backbone that no earlier task owns are trained. Before the last `retrain_fraction` of the
steps, in each layer the smallest `prune_fraction` of them by |w| is set to 0 and given free; the others belong to task
k from then on, and are trained for the rest of the steps. A sample of task j is predicted with the weights that belong
to tasks 1 … j, so that task j forgets exactly nothing. Biases and normalisation layers are trained in the first stage
and fixed then, as in the paper; outputs are a layer for each task.
"""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from torch.func import functional_call

from palimpsest.methods import _isolation as isolation
from palimpsest.methods._declaration import Declaration, Facts
from palimpsest.methods._hooks import Batch, Context, Gradients, Loss, State, Structure, scale

REFERENCE = (
    "A. Mallya, S. Lazebnik, PackNet: Adding multiple tasks to a single network by iterative pruning, CVPR 2018, "
    "arXiv:1711.05769"
)
DECLARATION = Declaration(needs_task_boundaries=True, needs_task_identity=True)
FREE = 0


class Hyperparameters(BaseModel):
    """Hyperparameters of `packnet`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    prune_fraction: float = Field(
        ge=0, lt=1, description="Share of a layer's newly trained weights that is given free again.", examples=[0.75]
    )
    retrain_fraction: float = Field(
        ge=0, lt=1, description="Share of a stage's steps that follows the pruning.", examples=[0.5]
    )


def check(hyperparameters: Hyperparameters, facts: Facts) -> None:
    """Each task needs its own outputs.

    Raises:
        ModelError: the head is not `multi`.
    """
    isolation.require_own_outputs(facts)


def network(structure: Structure, network: nn.Module) -> nn.Module:
    """From the second stage on, normalisation layers are as the first stage left them."""
    if len(structure.stages) > 1:
        isolation.freeze_normalisation(network)
    return network


def init(context: Context) -> State:
    """All weights of the backbone are free."""
    layers = isolation.weight_layers(context.model.backbone)
    owner = {
        f"backbone.{name}.weight": torch.full_like(layer.weight, FREE, dtype=torch.int16)
        for name, layer in layers.items()
    }
    return {"owner": owner, "part_of_task": {}, "pruned": False, "kept": {}}


def begin_task(context: Context, state: State) -> State:
    """Remember the backbone as it stands; the new task owns the next part."""
    kept = {name: p.detach().clone() for name, p in context.model.named_parameters() if name.startswith("backbone.")}
    parts = {str(task): context.stage for task in context.tasks}
    return {**state, "part_of_task": state["part_of_task"] | parts, "pruned": False, "kept": kept}


def project(context: Context, state: State, gradients: Gradients) -> Gradients:
    """No gradient for what belongs to earlier tasks, nor for what was given free in this one."""
    return isolation.hold(gradients, frozen(context, state))


def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """Put fixed weights back; prune when the time has come."""
    isolation.put_back(context, state["kept"], frozen(context, state))
    rest = round(context.hyperparameters.retrain_fraction * context.n_steps)
    due = not state["pruned"] and context.stage_step >= context.n_steps - rest
    return prune(context, state) if due else state


def after_task(context: Context, state: State) -> State:
    """A stage that ended before its pruning is pruned now."""
    return {**(state if state["pruned"] else prune(context, state)), "kept": {}}


def predict(context: Context, state: State, inputs: torch.Tensor, tasks: torch.Tensor | None) -> torch.Tensor:
    """Outputs by the weights that belong to the tasks up to a sample's own; up to the last one for tasks to come."""
    latest = max(state["part_of_task"].values(), default=FREE)
    parts = torch.tensor([state["part_of_task"].get(str(task), latest) for task in tasks.tolist()])
    scores = torch.empty(0)
    for part in parts.unique().tolist():
        found = functional_call(context.model, weights_of(context, state, part), (scale(inputs), tasks))
        scores = torch.where((parts == part)[:, None], found, scores) if len(scores) else found
    return scores


def frozen(context: Context, state: State) -> dict[str, torch.Tensor]:
    """Where the backbone is fixed now, by parameter name, `[*shape]` bool."""
    first = len(context.seen) == 0
    fixed = {}
    for name in state["kept"]:
        owner = state["owner"].get(name)
        if owner is None:
            if not first:
                fixed[name] = torch.ones_like(state["kept"][name], dtype=torch.bool)
        else:
            earlier = (owner != FREE) & (owner != context.stage)
            fixed[name] = earlier | (owner == FREE) if state["pruned"] else earlier
    return fixed


@torch.no_grad()
def prune(context: Context, state: State) -> State:
    """Set the smallest of the free weights of each layer to 0; the others belong to this stage."""
    owner, kept = dict(state["owner"]), dict(state["kept"])
    for name, of_layer in owner.items():
        weight = context.model.get_parameter(name)
        magnitudes = weight.abs()[of_layer == FREE]
        released = int(context.hyperparameters.prune_fraction * len(magnitudes))
        # By rank, not by a threshold: equal magnitudes must not make the share larger.
        belongs = torch.full((len(magnitudes),), context.stage, dtype=torch.int16)
        belongs[magnitudes.argsort(stable=True)[:released]] = FREE
        owner[name] = of_layer.clone().masked_scatter_(of_layer == FREE, belongs)
        weight.masked_fill_(owner[name] == FREE, 0)
        kept[name] = weight.clone()
    return {**state, "owner": owner, "kept": kept, "pruned": True}


def weights_of(context: Context, state: State, part: int) -> dict[str, torch.Tensor]:
    """Weights of the backbone with 0 where they do not belong to parts 1 … `part`.

    Before the pruning of the current stage, its part is whatever is free.
    """
    training_now = not state["pruned"] and part == context.stage
    return {
        name: torch.where((owner <= part) & ((owner != FREE) | training_now), context.model.get_parameter(name), 0)
        for name, owner in state["owner"].items()
    }
