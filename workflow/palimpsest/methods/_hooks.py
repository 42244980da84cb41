"""The hooks of a method: their arguments, and what plain training does in each.

A method's state is a nested dict of tensors and plain numbers; whatever a method must remember is in it, and the
training loop saves it with every checkpoint. A hook gets the state and returns it; it may reuse its tensors. Hooks that
run outside of a step (`begin_task`, `after_step`, `after_task`) may also change the model's weights in place. Test data
is out of reach of every hook but `predict`, which sees inputs only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    """Some training samples.

    Args:
        inputs: as stored, `[batch, *shape]` uint8.
        labels: output numbers, `[batch]` int64.
        tasks: position of each sample's task in the sorted list of the study's tasks, `[batch]` int64.
        first_presentation: whether the run meets a sample for the first time, `[batch]` bool.
    """

    inputs: torch.Tensor
    labels: torch.Tensor
    tasks: torch.Tensor
    first_presentation: torch.Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def __add__(self, other: Batch) -> Batch:
        """The samples of both, one after the other."""
        return Batch(*(torch.cat([getattr(self, name), getattr(other, name)]) for name in self.__dataclass_fields__))

    def __getitem__(self, index: slice | torch.Tensor) -> Batch:
        """Some of the samples."""
        return Batch(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Loss:
    """Result of the loss hook.

    Args:
        value: a scalar to minimise.
        replayed: how many stored samples took part in it.
        outputs: the model's outputs for the new samples, `[batch, n_outputs]`, where `after_step` needs them.
    """

    value: torch.Tensor
    replayed: int = 0
    outputs: torch.Tensor | None = None


@dataclass(frozen=True)
class Structure:
    """What the structure of a stage's network may depend on.

    Args:
        hyperparameters: the method's own.
        stages: positions of the tasks that the run trained on, stage by stage; the last entry is this stage's.
        n_tasks: of the study.
        new_network: makes another untrained network of the study's model, with streams under the name it is given.
        set_initial_weights: draws the weights of any module, with streams under the name it is given.
    """

    hyperparameters: BaseModel
    stages: tuple[tuple[int, ...], ...]
    n_tasks: int
    new_network: Callable[[str], nn.Module]
    set_initial_weights: Callable[[nn.Module, str], None]


@dataclass(frozen=True)
class Context:
    """What a hook may know.

    Args:
        model: the network; a hook must leave its mode as it found it.
        hyperparameters: the method's own.
        facts: inputs of the benchmark (`methods._declaration.Facts`).
        stage: position in the run, from 1.
        task: what the stage trains on, by name.
        tasks: positions of the tasks that it trains on.
        seen: positions of the tasks that the run learned before, in the order in which they came.
        visit: how often the run has come to this task, from 1.
        step: number of the optimizer step within the run, from 1; 0 before the first.
        stage_step: the same within the stage.
        n_steps: optimizer steps of the whole stage, and
        epoch_steps: of one epoch.
        key: what the method's random streams depend on: seed, order, method.
        mask: outputs that the loss of each task's samples may see, `[n_tasks, n_outputs]` bool, or none for all.
        task_of_output: position of the task to which each output belongs, `[n_outputs]`, where labels tell the task.
        n_samples: number of training samples of the stage.
        samples: gives training samples of the stage by index, as at their first presentation.
        initial: gives the weights with which the network of this stage would begin a run, by name.
    """

    model: nn.Module
    hyperparameters: BaseModel
    facts: Facts
    stage: int
    task: str | None
    tasks: tuple[int, ...]
    seen: tuple[int, ...]
    visit: int
    key: tuple[Key, ...]
    mask: torch.Tensor | None
    task_of_output: torch.Tensor | None
    n_samples: int
    samples: Callable[[Sequence[int] | np.ndarray], Batch]
    initial: Callable[[], dict[str, torch.Tensor]]
    n_steps: int
    epoch_steps: int
    step: int = 0
    stage_step: int = 0

    def stream(self, purpose: str, number: int | None = None) -> np.random.Generator:
        """A fresh generator of the method's own stream for this step, or for what else a number counts in the stage."""
        moment = self.step if number is None else number
        return generator("method", *self.key, self.task or "", self.visit, moment, purpose)

    def outputs(self, inputs: torch.Tensor, tasks: torch.Tensor | None) -> torch.Tensor:
        """The model's outputs for stored inputs, `[batch, n_outputs]`; −∞ where the head has no such output."""
        return self.model(scale(inputs), tasks)

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """What the model's head sees of stored inputs, `[batch, n_features]`."""
        return self.model.features(scale(inputs))

    def visible(self, outputs: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """Outputs with those that the training mask hides set to −∞; rows belong to samples of these tasks."""
        return outputs if self.mask is None else outputs.masked_fill(~self.mask[tasks], -torch.inf)

    def cross_entropy(self, batch: Batch, outputs: torch.Tensor | None = None) -> torch.Tensor:
        """Mean cross-entropy in nats over the outputs that the training mask shows; `outputs`, if they are known."""
        outputs = self.outputs(batch.inputs, batch.tasks) if outputs is None else outputs
        return nn.functional.cross_entropy(self.visible(outputs, batch.tasks), batch.labels)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """The model as in a test: normalisation layers use the statistics that they have, and leave them."""
        training = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(training)


def scale(inputs: torch.Tensor) -> torch.Tensor:
    """Stored bytes 0 … 255 as float32 in [0, 1]."""
    return inputs.to(torch.float32) / 255


class Hooks:
    """What plain training does. A method's file overrides by a function of the same name and signature."""

    @staticmethod
    def network(structure: Structure, network: nn.Module) -> nn.Module:
        """The network of a stage, made of the study's own with its initial weights; that one, unless a method grows.

        It is called when a stage begins and when its checkpoint is read, and depends on the structure alone. Parameters
        keep their names from stage to stage: those that are there already get the parent's values. It takes inputs
        `[batch, *shape]` float32 and the positions of their tasks `[batch]` (where the loss is left to others,
        `[group, batch]` too, which gives `[group, batch, n_outputs]`), and has `features(inputs)`.
        """
        return network

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
        return Loss(context.cross_entropy(batch))

    @staticmethod
    def penalty(context: Context, state: State, batch: Batch) -> torch.Tensor | None:
        """A scalar added to the loss, or none."""
        return None

    @staticmethod
    def project(context: Context, state: State, gradients: Gradients) -> Gradients:
        """Gradients by parameter name, before the optimizer sees them."""
        return gradients

    @staticmethod
    def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
        """After the optimizer's step on a batch; the step's gradients still stand in the parameters' `grad`."""
        return state

    @staticmethod
    def after_task(context: Context, state: State) -> State:
        """After the last step of a stage."""
        return state

    @staticmethod
    def predict(context: Context, state: State, inputs: torch.Tensor, tasks: torch.Tensor | None) -> torch.Tensor:
        """Scores of stored inputs, `[batch, n_outputs]`; softmax over them gives probabilities.

        It may be called at any moment after `begin_task`, and leaves the model and the state as they are. `tasks` are
        the positions of their tasks, where the protocol tells them.
        """
        return context.outputs(inputs, tasks)


HOOKS = ("network", "init", "begin_task", "loss", "penalty", "project", "after_step", "after_task", "predict")
