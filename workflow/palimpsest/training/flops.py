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


class StepCounter:
    """FLOPs of a step (forward, backward, projection) by the number of new and of replayed samples."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.known: dict[tuple[int, int], int] = {}

    def count(self, context: Context, state: State, batch: Batch, replayed: int) -> int:
        """FLOPs of a step like this one, counted on a copy of the model: training itself is left untouched."""
        shape = (len(batch), replayed)
        if shape not in self.known:
            copied = replace(context, model=copy.deepcopy(context.model))
            with FlopCounterMode(display=False) as counter:
                loss = self.method.loss(copied, state, batch)
                trained = {name: p for name, p in copied.model.named_parameters() if p.requires_grad}
                gradients = torch.autograd.grad(loss.value, list(trained.values()), allow_unused=True)
                if self.method.projects:
                    found = {name: g for name, g in zip(trained, gradients, strict=True) if g is not None}
                    self.method.project(copied, state, found)
            self.known[shape] = counter.get_total_flops()
        return self.known[shape]


def counted(function: Any, *arguments: Any) -> tuple[Any, int]:
    """A function's result and the FLOPs that it took."""
    with FlopCounterMode(display=False) as counter:
        result = function(*arguments)
    return result, counter.get_total_flops()
