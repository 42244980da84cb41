"""A memory of training samples under a budget of bytes, as part of a method's state.

Its places are filled one by one: `inputs` as stored by the benchmark (uint8), `labels` in 1 or 2 bytes, `tasks` in one
byte where a label does not tell its task, and whatever else a method keeps of each sample (`extra`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from palimpsest.methods._declaration import Facts, HyperparameterError
from palimpsest.methods._hooks import Batch, Context, State

Extra = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""Shape and type of what else is kept of each sample, by name."""
STORED = "stored"


def columns(facts: Facts, extra: Extra | None = None) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Shape and type of everything that is kept of one sample, by name."""
    kept = {
        "inputs": (tuple(facts["shape"]), torch.uint8),
        "labels": ((), torch.uint8 if facts["label_bytes"] == 1 else torch.int16),
    }
    if not facts["label_tells_task"]:
        kept["tasks"] = ((), torch.uint8)
    return {**kept, **(extra or {})}


def sample_bytes(facts: Facts, extra: Extra | None = None) -> int:
    """What one sample costs."""
    return sum(math.prod(shape) * kind.itemsize for shape, kind in columns(facts, extra).values())


def capacity(buffer_bytes: int, facts: Facts, extra: Extra | None = None) -> int:
    """Number of samples that a budget holds."""
    return buffer_bytes // sample_bytes(facts, extra)


def require_room(buffer_bytes: int, facts: Facts, extra: Extra | None = None) -> None:
    """Refuse a budget that pays for no sample.

    Raises:
        HyperparameterError: the memory has more than 0 bytes and holds nothing.
    """
    if buffer_bytes and not capacity(buffer_bytes, facts, extra):
        cost = sample_bytes(facts, extra)
        raise HyperparameterError("buffer_bytes", f"0 for no buffer, or at least {cost} bytes, the size of one sample")


def empty(buffer_bytes: int, facts: Facts, extra: Extra | None = None) -> State:
    """A memory without samples; it takes all its bytes from the start."""
    places = capacity(buffer_bytes, facts, extra)
    tensors = {name: torch.zeros((places, *shape), dtype=kind) for name, (shape, kind) in columns(facts, extra).items()}
    return {**tensors, STORED: 0}


def places(memory: State) -> int:
    """How many samples it can hold."""
    return len(memory["labels"])


def put(memory: State, place: int, batch: Batch, index: int, **extra: torch.Tensor) -> None:
    """Store one sample of a batch in a place, in place of what was there; `extra` has a row for each of the batch."""
    rows = {"inputs": batch.inputs, "labels": batch.labels, "tasks": batch.tasks, **extra}
    for name, values in rows.items():
        if name in memory:
            memory[name][place] = values[index]
    memory[STORED] = max(memory[STORED], place + 1)


def take(context: Context, memory: State, chosen: torch.Tensor) -> Batch:
    """Stored samples in some places, as a batch that the run has met before."""
    labels = memory["labels"][chosen].long()
    tasks = memory["tasks"][chosen].long() if "tasks" in memory else context.task_of_output[labels]
    return Batch(memory["inputs"][chosen], labels, tasks, torch.zeros(len(labels), dtype=torch.bool))
