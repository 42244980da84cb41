"""All that changes while a run trains, and how it becomes a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from palimpsest.methods._hooks import State
from palimpsest.models import MODELS
from palimpsest.models._initial import set_initial_weights


@dataclass
class Learner:
    """The moving parts of a run.

    Args:
        model: the network.
        optimizer, scheduler: of the current stage.
        method: the method's state.
        epoch, batch: the sampler's position within the stage: the next batch to train on.
        step, samples_seen: optimizer steps and new samples since the run began.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    method: State = field(default_factory=dict)
    epoch: int = 0
    batch: int = 0
    step: int = 0
    samples_seen: int = 0

    def content(self) -> dict[str, Any]:
        """Everything, as a nested dict of tensors and plain values."""
        return {
            "model": self.model.state_dict(),
            "optimizer": _optimizer_content(self.optimizer),
            "scheduler": _plain(self.scheduler.state_dict()),
            "method": self.method,
            "sampler": {"epoch": self.epoch, "batch": self.batch},
            "counters": {"step": self.step, "samples_seen": self.samples_seen},
        }

    def begin_from(self, content: dict[str, Any], *, with_optimizer: bool) -> None:
        """Take over the parent's checkpoint at the start of a stage: the sampler and the schedule begin anew."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self._take_over(content, with_optimizer=with_optimizer)
        # The checkpoint's rate is where the parent's schedule ended; this stage's begins at the study's.
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def resume_from(self, content: dict[str, Any]) -> None:
        """Take over where the same stage stood: optimizer, schedule and the sampler's position included."""
        self._take_over(content, with_optimizer=True)
        self.scheduler.load_state_dict(content["scheduler"])
        self.epoch, self.batch = content["sampler"]["epoch"], content["sampler"]["batch"]

    def _take_over(self, content: dict[str, Any], *, with_optimizer: bool) -> None:
        self.model.load_state_dict(content["model"])
        self.method = content["method"]
        self.step, self.samples_seen = content["counters"]["step"], content["counters"]["samples_seen"]
        if with_optimizer:
            state = {int(key): value for key, value in content["optimizer"]["state"].items()}
            self.optimizer.load_state_dict({**content["optimizer"], "state": state})


def fresh_model(spec: dict[str, Any]) -> nn.Module:
    """The untrained model of a run's specification."""
    module = MODELS.load(spec["model"]["name"], "model.name")
    inputs = spec["inputs"]
    options = module.Options.model_validate(spec["model"]["options"])
    # Layers draw from torch's global generator when they are made; the streams' values replace what they drew.
    with torch.random.fork_rng(devices=[]):
        model = module.build(options, tuple(inputs["shape"]), inputs["n_outputs"])
    set_initial_weights(model, spec["seed"])
    return model


def fresh_learner(spec: dict[str, Any], steps_of_stage: int) -> Learner:
    """A learner before the first step: initial weights, fresh optimizer, no method state yet."""
    model, training = fresh_model(spec), spec["training"]
    optimizer = _optimizer(model, training)
    return Learner(model, optimizer, _scheduler(optimizer, training["schedule"], steps_of_stage))


def _optimizer(model: nn.Module, training: dict[str, Any]) -> torch.optim.Optimizer:
    shared = {"lr": training["learning_rate"], "weight_decay": training["weight_decay"]}
    if training["optimizer"] == "adam":
        return torch.optim.Adam(model.parameters(), **shared)
    return torch.optim.SGD(model.parameters(), momentum=training["momentum"], **shared)


def _scheduler(optimizer: torch.optim.Optimizer, schedule: str, steps: int) -> torch.optim.lr_scheduler.LRScheduler:
    if schedule == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(steps, 1))
    return torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)


def _optimizer_content(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    content = optimizer.state_dict()
    return {
        "state": {str(key): value for key, value in content["state"].items()},
        "param_groups": [_plain(group) for group in content["param_groups"]],
    }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Only what belongs into a checkpoint: torch's private notes are rebuilt with the object."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if not key.startswith("_") or key == "_last_lr"
    }
