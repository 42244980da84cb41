"""A memory of training samples under a budget of bytes, as part of a method's state.

Its places are filled one by one: `inputs` as stored by the benchmark (uint8), `labels` in 1 or 2 bytes, `tasks` in as
many where a label does not tell its task, and whatever else a method keeps of each sample (`extra`). Which sample gets
which place is decided in `methods._storage`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import numpy as np
import torch
from pydantic import Field

from palimpsest.methods._declaration import Facts, HyperparameterError
from palimpsest.methods._hooks import Batch, Context, State

Extra = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""Shape and type of what else is kept of each sample, by name."""
STORED = "stored"

BufferBytes = Annotated[
    int,
    Field(
        ge=0,
        description="Memory for stored samples, in bytes. Each costs its input and label as stored, its task where the "
        "label does not tell it, and what else the method keeps of it. 0 stores none.",
        examples=[157000],
    ),
]
Replayed = Annotated[
    int, Field(ge=1, description="Stored samples drawn for each step, as far as there are so many.", examples=[10])
]


def columns(facts: Facts, extra: Extra | None = None) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Shape and type of everything that is kept of one sample, by name."""
    kept = {
        "inputs": (tuple(facts["shape"]), torch.uint8),
        "labels": ((), torch.uint8 if facts["label_bytes"] == 1 else torch.int16),
    }
    if not facts["label_tells_task"]:
        kept["tasks"] = ((), torch.uint8 if len(facts["tasks"]) <= 256 else torch.int16)
    return {**kept, **(extra or {})}


def sample_bytes(facts: Facts, extra: Extra | None = None) -> int:
    """What one sample costs."""
    return sum(math.prod(shape) * kind.itemsize for shape, kind in columns(facts, extra).values())


def capacity(buffer_bytes: int, facts: Facts, extra: Extra | None = None) -> int:
    """Number of samples that a budget holds."""
    return buffer_bytes // sample_bytes(facts, extra)


def require_room(
    buffer_bytes: int, facts: Facts, extra: Extra | None = None, groups: int = 1, *, zero: bool = True
) -> None:
    """Refuse a budget that does not pay for one sample of each of several groups.

    Args:
        buffer_bytes, facts, extra: of the memory.
        groups: how many there are.
        zero: whether 0 bytes mean that there is no memory, which is allowed.

    Raises:
        HyperparameterError: the memory has more than 0 bytes and holds too little.
    """
    if (buffer_bytes or not zero) and capacity(buffer_bytes, facts, extra) < groups:
        cost = groups * sample_bytes(facts, extra)
        size = "the size of one sample" if groups == 1 else f"the size of one sample for each of {groups}"
        raise HyperparameterError("buffer_bytes", f"{'0 for no buffer, or ' * zero}at least {cost} bytes, {size}")


def empty(buffer_bytes: int, facts: Facts, extra: Extra | None = None) -> State:
    """A memory without samples; it takes all its bytes from the start."""
    places = capacity(buffer_bytes, facts, extra)
    tensors = {name: torch.zeros((places, *shape), dtype=kind) for name, (shape, kind) in columns(facts, extra).items()}
    return {**tensors, STORED: 0}


def places(memory: State) -> int:
    """How many samples it can hold."""
    return len(memory["labels"])


def put(memory: State, placed: Mapping[int, int], batch: Batch, **extra: torch.Tensor) -> State:
    """The memory with some samples of a batch in places of theirs, whatever was there.

    Args:
        memory: its tensors are changed.
        placed: row of the batch for each place; places are filled from the first one on, without a gap.
        batch: the samples.
        extra: what else is kept of them, `[batch, …]` each.
    """
    if not placed:
        return memory
    where, chosen = list(placed), list(placed.values())
    rows = {"inputs": batch.inputs, "labels": batch.labels, "tasks": batch.tasks, **extra}
    for name, values in rows.items():
        if name in memory:
            memory[name][where] = values[chosen].to(memory[name].dtype)
    return {**memory, STORED: max(memory[STORED], max(where) + 1)}


def draw(context: Context, memory: State, count: int, purpose: str = "draw") -> torch.Tensor:
    """Places of different stored samples, drawn with equal chance; `count`, or all if there are no more."""
    stored = memory[STORED]
    drawn = context.stream(purpose).choice(stored, size=min(count, stored), replace=False)
    return torch.from_numpy(drawn.astype(np.int64, copy=False))


def next_of_pass(context: Context, memory: State, count: int) -> torch.Tensor:
    """Places of the step's samples in shuffled passes over all stored ones; the last step of a pass may have fewer."""
    stored = memory[STORED]
    number, position = divmod(context.stage_step - 1, -(-stored // count))
    shuffled = context.stream("pass", number).permutation(stored)
    return torch.from_numpy(shuffled[position * count : (position + 1) * count])


def take(context: Context, memory: State, chosen: torch.Tensor) -> Batch:
    """Stored samples in some places, as a batch that the run has met before."""
    labels, tasks = labels_and_tasks(context, memory, chosen)
    return Batch(memory["inputs"][chosen], labels, tasks, torch.zeros(len(labels), dtype=torch.bool))


def labels_and_tasks(context: Context, memory: State, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels, and positions of the tasks, of the samples in some places, `[place]` int64 each."""
    labels = memory["labels"][chosen].long()
    return labels, memory["tasks"][chosen].long() if "tasks" in memory else context.task_of_output[labels]


def filled(memory: State) -> torch.Tensor:
    """The places in which there is a sample."""
    return torch.arange(memory[STORED])
