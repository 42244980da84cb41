"""Predictions of a run's model: after a stage, and at any moment within it without a trace in the run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from palimpsest.methods._declaration import facts_of
from palimpsest.methods._hooks import Context
from palimpsest.methods._method import Method
from palimpsest.models._network import task_positions
from palimpsest.plan.schedule import earlier_tasks
from palimpsest.training.flops import counted
from palimpsest.training.learner import Learner
from palimpsest.training.outputs import task_of_output, visible_outputs


@dataclass(frozen=True)
class Choice:
    """What was predicted for some samples.

    Args:
        predicted: the most probable output among those allowed, `[sample]` int64; −1 where none could be chosen: no
            output is allowed, as for the untrained model under `seen`, or a score is NaN.
        log_probability: of the label among the outputs allowed, `[sample]`; not finite where it is none of them.
    """

    predicted: np.ndarray
    log_probability: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[Choice]) -> Choice:
        """Of the samples of all parts, one after the other."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    def counts(self, labels: np.ndarray) -> tuple[int, int, float]:
        """Right choices, samples, and −Σ log p(label) in nats, exactly rounded; NaN where a label was not allowed."""
        losses = -self.log_probability.astype(np.float64)
        loss_sum = math.fsum(losses.tolist()) if np.isfinite(losses).all() else math.nan
        return int((self.predicted == labels).sum()), len(labels), loss_sum


def choose(scores: torch.Tensor, labels: torch.Tensor, tasks: torch.Tensor, mask: torch.Tensor | None) -> Choice:
    """The choice by scores `[sample, n_outputs]`, for samples of these tasks, among the outputs that a mask shows."""
    allowed = scores if mask is None else scores.masked_fill(~mask[tasks], -torch.inf)
    of_label = torch.log_softmax(allowed, dim=1).gather(1, labels[:, None])[:, 0]
    no_choice = torch.isneginf(allowed).all(dim=1) | torch.isnan(allowed).any(dim=1)
    return Choice(allowed.argmax(dim=1).masked_fill(no_choice, -1).numpy(), of_label.numpy())


def masks(spec: dict[str, Any], stage: dict[str, Any]) -> dict[str, torch.Tensor | None]:
    """Outputs that a prediction may choose from, by the protocols under which a study's predictions are read.

    A class-incremental study has the choice within the sample's own task as a second one.
    """
    kinds = {spec["protocol"]: spec["evaluation_mask"], "task_incremental": "current"}
    return {protocol: visible_outputs(spec, stage, kind) for protocol, kind in kinds.items()}


def prediction_context(spec: dict[str, Any], stage: dict[str, Any], model: nn.Module) -> Context:
    """What the hook `predict` may know: no training samples, and no step."""

    def no_samples(*indices: Any) -> Any:
        raise AssertionError("a prediction sees no training samples")

    positions = task_positions(spec["tasks"])
    return Context(
        model=model,
        hyperparameters=None,  # each part of the method gets its own
        facts=facts_of(spec["inputs"], spec["tasks"]),
        stage=stage["stage"],
        task=stage["task"],
        tasks=tuple(positions[task] for task in stage["tasks"]),
        seen=tuple(positions[task] for task in earlier_tasks(spec["stages"], stage)),
        visit=stage["visit"],
        key=(spec["seed"], ",".join(spec["order"]), spec["method"]),
        mask=None,
        task_of_output=task_of_output(spec),
        n_samples=0,
        samples=no_samples,
        initial=no_samples,
        n_steps=0,
        epoch_steps=0,
    )


class Predictor:
    """Predicts with a learner's model as it is, and leaves it as it was.

    Attributes:
        flops: of all predictions so far; one of each size is counted, the others cost the same.
    """

    def __init__(self, spec: dict[str, Any], stage: dict[str, Any], learner: Learner, method: Method) -> None:
        self.learner, self.method = learner, method
        self.context = prediction_context(spec, stage, learner.model)
        self.masks = masks(spec, stage)
        self.told = spec["protocol"] == "task_incremental"
        self.flops = 0
        self._flops_of_size: dict[int, int] = {}

    def __call__(self, inputs: torch.Tensor, labels: torch.Tensor, tasks: torch.Tensor) -> dict[str, Choice]:
        """Choices for stored inputs, by protocol."""
        arguments = (self.context, self.learner.method, inputs, tasks if self.told else None)
        with undisturbed(self.learner.model):
            if len(inputs) in self._flops_of_size:
                scores = self.method.predict(*arguments)
            else:
                scores, self._flops_of_size[len(inputs)] = counted(self.method.predict, *arguments)
        self.flops += self._flops_of_size[len(inputs)]
        return {protocol: choose(scores, labels, tasks, mask) for protocol, mask in self.masks.items()}


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """The model as in a test and without gradients; afterwards every layer is in the mode in which it was."""
    modes = {layer: layer.training for layer in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for layer, training in modes.items():
            layer.training = training
