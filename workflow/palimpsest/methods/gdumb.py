"""GDumb: a greedy sampler stores a class-balanced part of the stream; a model is trained from scratch on that alone.

When a stage begins, its samples come once, in a random sequence, to the greedy sampler (`methods._storage`), and the
model is set back to its initial weights. Each step of the stage then takes the next samples of a shuffled pass over the
memory; the stage's own mini-batches only say how many steps there are, and no weight sees them. The learner is the
study's: its optimizer and its schedule, which begin anew with each stage unless `reset_optimizer` is off. The paper's
learner (SGDR and CutMix) is left to the study; a model is made after each stage, as a protocol with predictions then
asks for, and not at any moment within one.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from palimpsest.methods import _memory as memory
from palimpsest.methods import _storage as storage
from palimpsest.methods._declaration import Declaration, Facts
from palimpsest.methods._hooks import Batch, Context, Loss, State

REFERENCE = (
    "A. Prabhu, P. H. S. Torr, P. K. Dokania, GDumb: a simple approach that questions our progress in continual "
    "learning, ECCV 2020"
)
DECLARATION = Declaration(stores_raw_data=True, needs_task_boundaries=True, pairing="init")


class Hyperparameters(BaseModel):
    """Hyperparameters of `gdumb`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    buffer_bytes: memory.BufferBytes
    replayed: memory.Replayed


def check(hyperparameters: Hyperparameters, facts: Facts) -> None:
    """Refuse a memory that holds no sample: there would be nothing to learn from.

    Raises:
        HyperparameterError: it holds none.
    """
    memory.require_room(hyperparameters.buffer_bytes, facts, zero=False)


def init(context: Context) -> State:
    """An empty memory."""
    return {"memory": memory.empty(context.hyperparameters.buffer_bytes, context.facts)}


def begin_task(context: Context, state: State) -> State:
    """Offer the stage's samples to the memory, each once, and forget all that was learned."""
    context.model.load_state_dict(context.initial())
    stream = context.samples(context.stream("sequence").permutation(context.n_samples))
    return {"memory": storage.offer("greedy", context, state["memory"], stream)}


def loss(context: Context, state: State, batch: Batch) -> Loss:
    """Mean cross-entropy of the next stored samples."""
    drawn = memory.next_of_pass(context, state["memory"], context.hyperparameters.replayed)
    return Loss(context.cross_entropy(memory.take(context, state["memory"], drawn)), replayed=len(drawn))
