"""Floating-point operations, counted by PyTorch's own counter.

A multiplication and an addition count as two; matrix products and convolutions are counted, elementwise operations are
not. The steps of one shape cost the same, so one of them is counted and the count is reused.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from palimpsest.methods._hooks import Batch, Context, State
from palimpsest.methods._method import Method

Costs = dict[str, int]


class StepCounter:
    """FLOPs of a step by the number of new and of replayed samples.

    Args:
        method: hooks.
        known: `{forward, backward, project, after_step}` by `NEW+REPLAYED`; kept in the resume file, so that a stage
            that was interrupted counts as one that was not.
    """

    def __init__(self, method: Method, known: dict[str, Costs]) -> None:
        self.method, self.known = method, known

    def count(self, context: Context, state: State, batch: Batch, replayed: int) -> Costs:
        """FLOPs of a step like this one, counted on a copy of the model: training itself is left untouched."""
        shape = f"{len(batch)}+{replayed}"
        if shape not in self.known:
            copied = replace(context, model=copy.deepcopy(context.model))
            loss, forward = counted(self.method.loss, copied, state, batch)
            trained = {name: p for name, p in copied.model.named_parameters() if p.requires_grad}
            gradients, backward = counted(
                lambda: torch.autograd.grad(loss.value, list(trained.values()), allow_unused=True)
            )
            found = {name: g for name, g in zip(trained, gradients, strict=True) if g is not None}
            project = counted(self.method.project, copied, state, found)[1] if self.method.projects else 0
            self.known[shape] = {"forward": forward, "backward": backward, "project": project}
        return self.known[shape]

    def after_step(self, costs: Costs, *arguments: Any) -> State:
        """The hook `after_step` itself, counted where it is called for the first time in a step of these costs."""
        if "after_step" in costs:
            return self.method.after_step(*arguments)
        state, costs["after_step"] = counted(self.method.after_step, *arguments)
        return state


def replayed_share(costs: Costs, n_new: int, replayed: int) -> int:
    """FLOPs of the loss, forwards and backwards, that go to replayed samples: all samples are taken to cost the same.

    >>> replayed_share({"forward": 300, "backward": 600}, 10, 5)
    300
    """
    return (costs["forward"] + costs["backward"]) * replayed // (n_new + replayed)


def counted(function: Any, *arguments: Any) -> tuple[Any, int]:
    """A function's result and the FLOPs that it took."""
    with FlopCounterMode(display=False) as counter:
        result = function(*arguments)
    return result, counter.get_total_flops()
