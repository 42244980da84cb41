"""Experience replay: a reservoir of past samples; each step trains on new and on stored ones together.

With n new samples and m drawn from the reservoir without replacement, the loss is the mean cross-entropy over the
n + m. After the step, each new sample at its first presentation enters the reservoir by Vitter's algorithm R: sample
number i of the stream takes a place with probability C / i, so that all samples so far are stored with equal chance.
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.methods import _memory as memory
from palimpsest.methods._declaration import Declaration, Facts
from palimpsest.methods._hooks import Batch, Context, Loss, State

REFERENCE = (
    "A. Chaudhry et al., On tiny episodic memories in continual learning, arXiv:1902.10486 (2019), with reservoir "
    "sampling; J. S. Vitter, Random sampling with a reservoir, ACM TOMS 11 (1985) 37-57"
)
DECLARATION = Declaration(stores_raw_data=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `replay`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    buffer_bytes: int = Field(
        ge=0,
        description="Memory for stored samples, in bytes: each costs its input as stored and its label. 0 stores none.",
        examples=[157000],
    )
    replayed: int = Field(
        ge=1, description="Stored samples added to each step, as far as there are so many.", examples=[10]
    )


def check(hyperparameters: Hyperparameters, facts: Facts) -> None:
    """Refuse a budget that pays for no sample.

    Raises:
        HyperparameterError: the buffer has more than 0 bytes and holds nothing.
    """
    memory.require_room(hyperparameters.buffer_bytes, facts)


def init(context: Context) -> State:
    """An empty reservoir."""
    return {"memory": memory.empty(context.hyperparameters.buffer_bytes, context.facts), "seen": 0}


def loss(context: Context, state: State, batch: Batch) -> Loss:
    """Mean cross-entropy over the new samples and those drawn from the reservoir."""
    stored = state["memory"][memory.STORED]
    count = min(context.hyperparameters.replayed, stored)
    if count == 0:
        return Loss(context.cross_entropy(batch))
    drawn = torch.from_numpy(context.stream("draw").choice(stored, size=count, replace=False))
    return Loss(context.cross_entropy(batch + memory.take(context, state["memory"], drawn)), replayed=count)


def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """Offer the new samples to the reservoir, each once."""
    first = batch[batch.first_presentation]
    return {**state, "seen": offer(context, state["memory"], state["seen"], first)}


def offer(context: Context, reservoir: State, seen: int, batch: Batch, **extra: torch.Tensor) -> int:
    """Vitter's algorithm R: sample number i of the stream takes a place with probability C / i; returns the new i."""
    places = memory.places(reservoir)
    # One number for each sample, whether it is needed or not: draws do not depend on what happened before.
    numbers = context.stream("store").integers(0, seen + 1 + np.arange(len(batch)))
    for index, number in enumerate(numbers.tolist()):
        place = seen + index if seen + index < places else number
        if place < places:
            memory.put(reservoir, place, batch, index, **extra)
    return seen + len(batch)
