"""Samples that are stored with the outputs that the network had for them when they were learned, before that step.

Outputs that the training mask hid from a sample, and those that the head did not have, are stored as −∞ and never
compared.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import BaseModel, Field

from palimpsest.methods import _memory as memory
from palimpsest.methods import _storage as storage
from palimpsest.methods._declaration import Facts
from palimpsest.methods._hooks import Batch, Context, Loss, State

REFERENCE = (
    "P. Buzzega, M. Boschini, A. Porrello, D. Abati, S. Calderara, Dark experience for general continual learning: a "
    "strong, simple baseline, NeurIPS 2020"
)
Alpha = Annotated[
    float,
    Field(
        ge=0,
        le=1e30,
        allow_inf_nan=False,
        description="α, weight of the squared difference between outputs and stored outputs.",
        examples=[0.5],
    ),
]
LogitType = Annotated[
    Literal["float32", "float16"],
    Field(description="Number type of the stored outputs, of 4 or 2 bytes each; both count in the budget."),
]


def extra(hyperparameters: BaseModel, facts: Facts) -> memory.Extra:
    """What is kept beside a sample."""
    return {"logits": ((facts["n_outputs"],), getattr(torch, hyperparameters.logit_type))}


def check(hyperparameters: BaseModel, facts: Facts) -> None:
    """Refuse a budget that pays for no sample.

    Raises:
        HyperparameterError: the buffer has more than 0 bytes and holds nothing.
    """
    memory.require_room(hyperparameters.buffer_bytes, facts, extra(hyperparameters, facts))


def init(context: Context) -> State:
    """An empty memory."""
    kept = extra(context.hyperparameters, context.facts)
    return {"memory": memory.empty(context.hyperparameters.buffer_bytes, context.facts, kept)}


def loss(context: Context, state: State, batch: Batch) -> Loss:
    """Mean cross-entropy of the new samples, and α times the difference of drawn samples from their stored outputs."""
    outputs, kept, chosen = context.outputs(batch.inputs, batch.tasks), state["memory"], context.hyperparameters
    value, replayed = context.cross_entropy(batch, outputs), 0
    drawn = memory.draw(context, kept, chosen.replayed)
    if chosen.alpha and len(drawn):
        value, replayed = value + chosen.alpha * difference(context, kept, drawn), len(drawn)
    return Loss(value, replayed, outputs.detach())


def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """Offer the new samples, with the outputs of the loss, to the reservoir, each once."""
    logits = context.visible(loss.outputs, batch.tasks)
    return {"memory": storage.offer("reservoir", context, state["memory"], batch, logits=logits)}


def difference(context: Context, kept: State, chosen: torch.Tensor) -> torch.Tensor:
    """Squared difference between the outputs for stored samples and those stored, a mean over outputs and samples.

    1/m Σ_x 1/|O_x| Σ_{o ∈ O_x} (h_o(x) − z_o(x))²; O_x are the outputs that x could see then and can see now.
    """
    samples, stored = memory.take(context, kept, chosen), kept["logits"][chosen].float()
    outputs = context.visible(context.outputs(samples.inputs, samples.tasks), samples.tasks)
    there = torch.isfinite(stored) & torch.isfinite(outputs)
    squares = (outputs.masked_fill(~there, 0) - stored.masked_fill(~there, 0)).square()
    return (squares.sum(dim=1) / there.sum(dim=1).clamp(min=1)).mean()
