"""A method that is told nothing of tasks: one stream of samples, from the first step of the run to its last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from palimpsest.methods._hooks import Batch, Context, Gradients, Loss, State, Structure
from palimpsest.methods._method import Method


def as_told(method: Method, spec: dict[str, Any]) -> Method | Unbounded:
    """The method as a run calls it: as it is, or without a word of tasks where the study hides their boundaries."""
    return Unbounded(method) if spec.get("boundaries") == "hidden" else method


@dataclass(frozen=True)
class Unbounded:
    """A method behind a curtain.

    Neither begin nor end of a task is announced; every sample seems to be of the first of all tasks; a context counts
    the steps of the run alone, and gives no samples to look up. What a protocol tells of test samples is told.
    """

    method: Method

    def network(self, structure: Structure, network: nn.Module) -> nn.Module:
        """The network of the run."""
        return self.method.network(replace(structure, stages=((),)), network)

    def init(self, context: Context) -> State:
        """State before the first step."""
        return self.method.init(_hidden(context))

    def begin_task(self, context: Context, state: State) -> State:
        """Nothing is announced."""
        return state

    def loss(self, context: Context, state: State, batch: Batch) -> Loss:
        """The method's own."""
        return self.method.loss(_hidden(context), state, _of_one_task(batch))

    @property
    def projects(self) -> bool:
        """As the method's own."""
        return self.method.projects

    def project(self, context: Context, state: State, gradients: Gradients) -> Gradients:
        """The method's own."""
        return self.method.project(_hidden(context), state, gradients)

    def after_step(self, context: Context, state: State, batch: Batch, loss: Loss) -> State:
        """The method's own."""
        return self.method.after_step(_hidden(context), state, _of_one_task(batch), loss)

    def after_task(self, context: Context, state: State) -> State:
        """Nothing is announced."""
        return state

    def predict(self, context: Context, state: State, inputs: torch.Tensor, tasks: torch.Tensor | None) -> torch.Tensor:
        """The method's own."""
        return self.method.predict(_hidden(context), state, inputs, tasks)


def _hidden(context: Context) -> Context:
    def nothing(*indices: Any) -> Any:
        raise AssertionError("a stream has no samples to look up: a method that needs them must declare boundaries")

    return replace(
        context,
        facts=context.facts | {"tasks": [sorted(set().union(*context.facts["tasks"]))]},
        stage=1,
        task=None,
        tasks=(),
        seen=(),
        visit=1,
        task_of_output=None if context.task_of_output is None else torch.zeros_like(context.task_of_output),
        n_samples=0,
        samples=nothing,
        n_steps=0,
        epoch_steps=0,
        stage_step=context.step,
    )


def _of_one_task(batch: Batch) -> Batch:
    return replace(batch, tasks=torch.zeros_like(batch.tasks))
