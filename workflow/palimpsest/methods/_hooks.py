"""The hooks of a method: their arguments, and what plain training does in each.

A method's state is a nested dict of tensors and plain numbers; whatever a method must remember is in it, and the
training loop saves it with every checkpoint. A hook gets the state and returns it; it may reuse its tensors. Test data
is out of reach of every hook but `predict`, which sees inputs only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from torch import nn

from palimpsest.core.streams import Key, generator
from palimpsest.methods._declaration import Facts

State = dict[str, Any]
Gradients = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Batch:
    """Samples of one step.

    Args:
        inputs: as stored, `[batch, *shape]` uint8.
        labels: output numbers, `[batch]` int64.
        first_presentation: whether the run meets these samples for the first time.
    """

    inputs: torch.Tensor
    labels: torch.Tensor
    first_presentation: bool

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Loss:
    """Result of the loss hook: a scalar to minimise, and how many stored samples took part in it."""

    value: torch.Tensor
    replayed: int = 0


@dataclass(frozen=True)
class Context:
    """What a hook may know.

    Args:
        model: the network; a hook must leave its mode as it found it.
        hyperparameters: the method's own.
        facts: inputs of the benchmark (`methods._declaration.Facts`).
        stage: position in the run, from 1.
        task: what the stage trains on, by name.
        visit: how often the run has come to this task, from 1.
        step: number of the optimizer step within the run, from 1; 0 before the first.
        key: what the method's random streams depend on: seed, order, method.
        mask: outputs that each label's loss may see, `[n_outputs, n_outputs]` bool, or none for all.
        n_samples: number of training samples of the stage.
        samples: gives training samples of the stage by index: inputs and labels.
    """

    model: nn.Module
    hyperparameters: BaseModel
    facts: Facts
    stage: int
    task: str | None
    visit: int
    step: int
    key: tuple[Key, ...]
    mask: torch.Tensor | None
    n_samples: int
    samples: Callable[[Sequence[int] | np.ndarray], tuple[torch.Tensor, torch.Tensor]]

    def stream(self, purpose: str) -> np.random.Generator:
        """A fresh generator of the method's own stream for this step."""
        return generator("method", *self.key, self.task or "", self.visit, self.step, purpose)

    def outputs(self, inputs: torch.Tensor) -> torch.Tensor:
        """The model's outputs for stored inputs, `[batch, n_outputs]`."""
        return self.model(scale(inputs))

    def visible(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Outputs with those that the training mask hides set to −∞; rows belong to labels."""
        return outputs if self.mask is None else outputs.masked_fill(~self.mask[labels], -torch.inf)

    def cross_entropy(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy in nats over the outputs that the training mask shows."""
        return nn.functional.cross_entropy(self.visible(self.outputs(inputs), labels), labels)


def scale(inputs: torch.Tensor) -> torch.Tensor:
    """Stored bytes 0 … 255 as float32 in [0, 1]."""
    return inputs.to(torch.float32) / 255


class Hooks:
    """What plain training does. A method's file overrides by a function of the same name and signature."""

    @staticmethod
    def init(context: Context) -> State:
        """State before the first task."""
        return {}

    @staticmethod
    def begin_task(context: Context, state: State) -> State:
        """Before the first step of a stage."""
        return state

    @staticmethod
    def loss(context: Context, state: State, batch: Batch) -> Loss:
        """What is minimised: mean cross-entropy of the batch."""
        return Loss(context.cross_entropy(batch.inputs, batch.labels))

    @staticmethod
    def penalty(context: Context, state: State, batch: Batch) -> torch.Tensor | None:
        """A scalar added to the loss, or none."""
        return None

    @staticmethod
    def project(context: Context, state: State, gradients: Gradients) -> Gradients:
        """Gradients by parameter name, before the optimizer sees them."""
        return gradients

    @staticmethod
    def after_step(context: Context, state: State, batch: Batch) -> State:
        """After the optimizer's step on a batch."""
        return state

    @staticmethod
    def after_task(context: Context, state: State) -> State:
        """After the last step of a stage."""
        return state

    @staticmethod
    def predict(context: Context, state: State, inputs: torch.Tensor) -> torch.Tensor:
        """Scores of stored inputs, `[batch, n_outputs]`; softmax over them gives probabilities."""
        return context.outputs(inputs)


HOOKS = ("init", "begin_task", "loss", "penalty", "project", "after_step", "after_task", "predict")
