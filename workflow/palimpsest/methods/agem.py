"""Averaged GEM: a step must not raise the loss on a random batch of stored samples of all earlier tasks.

With g the gradient of the step and r that of the mean cross-entropy over the batch, g stays as it is if gᵀ r ≥ 0; else
it becomes g − (gᵀ r / rᵀ r) r. When a task ends, samples of it are drawn at random for its places, of which each task
of the study has the same number; a task that comes back is drawn anew.
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict

from palimpsest.methods import _memory as memory
from palimpsest.methods import _projection as projection
from palimpsest.methods import _storage as storage
from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import Context, Gradients, State

REFERENCE = (
    "A. Chaudhry, M. Ranzato, M. Rohrbach, M. Elhoseiny, Efficient lifelong learning with A-GEM, ICLR 2019, "
    "arXiv:1812.00420"
)
DECLARATION = Declaration(stores_raw_data=True, needs_task_boundaries=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `agem`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    buffer_bytes: memory.BufferBytes
    replayed: memory.Replayed


check = projection.check
init = projection.init


def project(context: Context, state: State, gradients: Gradients) -> Gradients:
    """The gradients without what would raise the loss of the drawn samples."""
    tasks = projection.earlier(context, state["memory"])
    if not tasks:
        return gradients
    places = torch.cat(list(tasks.values()))
    count = min(context.hyperparameters.replayed, len(places))
    drawn = places[torch.from_numpy(context.stream("draw").choice(len(places), size=count, replace=False))]
    whole = projection.complete(context, gradients)
    reference = projection.gradient(context, memory.take(context, state["memory"], drawn), whole)
    wanted = projection.vector(whole)
    product = wanted @ reference
    if product >= 0:
        return gradients
    return projection.unpacked(wanted - product / (reference @ reference) * reference, whole)


def after_task(context: Context, state: State) -> State:
    """Draw samples of the task for its places; what was drawn at an earlier visit is replaced."""
    kept = state["memory"]
    share = memory.places(kept) // storage.n_groups(projection.RULE, context.facts)
    count = min(share, context.n_samples)
    if count == 0:
        return state
    indices = context.stream("store").choice(context.n_samples, size=count, replace=False)
    _, tasks = memory.labels_and_tasks(context, kept, memory.filled(kept))
    own = torch.nonzero(torch.isin(tasks, torch.tensor(context.tasks)))[:, 0].tolist()
    places = [*own, *range(kept[memory.STORED], kept[memory.STORED] + count)][:count]
    return {"memory": memory.put(kept, {p: row for row, p in enumerate(places)}, context.samples(np.sort(indices)))}
