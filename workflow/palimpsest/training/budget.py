"""Budgets of a run, asked at every step; and the bytes that a method keeps, by what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from palimpsest.training.learner import Learner


@dataclass(frozen=True)
class Budget:
    """What a run may use at most.

    Args:
        limits: by name (`plan.study.Budgets`); what is not named has none.
        samples_bytes: of the earlier tasks' samples on which the stage trains again.
    """

    limits: Mapping[str, int]
    samples_bytes: int

    def refuses(self, learner: Learner, n_samples: int, flops: int) -> str | None:
        """Why the next step must not be made, or null.

        Args:
            learner: before the step.
            n_samples: new samples that it would train on.
            flops: that it would take.
        """
        used = {"steps": learner.step, "samples": learner.samples_seen, "flops": learner.flops}
        for name, needed in {"steps": 1, "samples": n_samples, "flops": flops}.items():
            if name in self.limits and used[name] + needed > self.limits[name]:
                left = f"{used[name]} of {self.limits[name]} {name} are used"
                return f"resource: {left}, and step {learner.step + 1} needs {needed}"
        return None

    def is_exceeded(self, learner: Learner) -> str | None:
        """Which budget a learner exceeds as it stands, or null."""
        held = {"flops": learner.flops} if "flops" in self.limits else {}
        if "memory_bytes" in self.limits or "method_bytes" in self.limits:
            held |= kept_bytes(learner, self.samples_bytes)
        for name, value in held.items():
            if name in self.limits and value > self.limits[name]:
                return f"resource: {value} {name} after step {learner.step}, where {self.limits[name]} are allowed"
        return None


def kept_bytes(learner: Learner, samples_bytes: int) -> dict[str, int]:
    """Bytes of what a method keeps beside the network.

    Args:
        learner: its method's state.
        samples_bytes: as of `Budget`.

    Returns:
        `copies_bytes`: tensors that bear the name and the shape of a weight of the network (its older values, their
        importance, masks); `memory_bytes`: all others, and the samples of earlier tasks; `method_bytes`: both.
    """
    shapes = {name: tensor.shape for name, tensor in learner.model.state_dict().items()}
    copies = memory = 0
    for name, tensor in _tensors("", learner.method):
        if shapes.get(name) == tensor.shape:
            copies += tensor.nbytes
        else:
            memory += tensor.nbytes
    memory += samples_bytes
    return {"method_bytes": copies + memory, "memory_bytes": memory, "copies_bytes": copies}


def _tensors(key: str, state: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors of a nested state, each with the innermost key under which it stands."""
    if isinstance(state, torch.Tensor):
        yield key, state
    elif isinstance(state, dict):
        for name, value in state.items():
            yield from _tensors(name, value)
    elif isinstance(state, list):
        for value in state:
            yield from _tensors(key, value)
