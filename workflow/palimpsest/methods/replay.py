"""Experience replay: a memory of past samples; each step trains on new and on stored ones together.

With n new samples and m drawn from the memory without replacement, the loss is the mean cross-entropy over the n + m.
After the step each new sample is offered to the memory, at its first presentation only; `storage` decides whether it is
stored, and in whose place (`methods._storage`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from palimpsest.methods import _memory as memory
from palimpsest.methods import _storage as storage
from palimpsest.methods._declaration import Declaration, Facts
from palimpsest.methods._hooks import Batch, Context, Loss, State

REFERENCE = (
    "A. Chaudhry et al., On tiny episodic memories in continual learning, arXiv:1902.10486 (2019), with reservoir "
    "sampling (J. S. Vitter, ACM TOMS 11 (1985) 37-57) or ring buffers; A. Chrysakis, M.-F. Moens, Online continual "
    "learning from imbalanced data, ICML 2020, for class-balanced storage"
)
DECLARATION = Declaration(stores_raw_data=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `replay`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    buffer_bytes: memory.BufferBytes
    replayed: memory.Replayed
    storage: Literal["reservoir", "ring", "class_balanced"] = Field(
        "reservoir",
        description="Which samples are stored: all so far with equal chance; the last ones of each class of each task, "
        "with equal room for each; or class-balancing reservoir sampling, which keeps the classes equal in number.",
    )


def check(hyperparameters: Hyperparameters, facts: Facts) -> None:
    """Refuse a budget that pays for no sample, or for less than one in each ring.

    Raises:
        HyperparameterError: the buffer has more than 0 bytes and holds too little.
    """
    groups = storage.n_groups(hyperparameters.storage, facts)
    memory.require_room(hyperparameters.buffer_bytes, facts, groups=groups)


def init(context: Context) -> State:
    """An empty memory."""
    return {"memory": memory.empty(context.hyperparameters.buffer_bytes, context.facts)}


def loss(context: Context, state: State, batch: Batch) -> Loss:
    """Mean cross-entropy over the new samples and those drawn from the memory."""
    drawn = memory.draw(context, state["memory"], context.hyperparameters.replayed)
    if len(drawn) == 0:
        return Loss(context.cross_entropy(batch))
    return Loss(context.cross_entropy(batch + memory.take(context, state["memory"], drawn)), replayed=len(drawn))


def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """Offer the new samples to the memory, each once."""
    return {"memory": storage.offer(context.hyperparameters.storage, context, state["memory"], batch)}
