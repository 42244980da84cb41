"""All that changes while a run trains, and how it becomes a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from palimpsest.methods._hooks import State, Structure
from palimpsest.methods._method import Method
from palimpsest.models._initial import reset_outputs, set_initial_weights
from palimpsest.models._network import SharedHead, new_network, task_positions
from palimpsest.plan.schedule import ancestry, earlier_tasks, seen_tasks

COUNTERS = ("step", "samples_seen", "first_step", "flops")


@dataclass
class Learner:
    """The moving parts of a run.

    Args:
        model: the network.
        optimizer, scheduler: of the current stage.
        method: the method's state.
        epoch, batch: the sampler's position within the stage: the next batch to train on.
        step, samples_seen: optimizer steps and new samples since the run began.
        first_step: optimizer steps before the current stage.
        flops: of training since the run began, a method's work between tasks included.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    method: State = field(default_factory=dict)
    epoch: int = 0
    batch: int = 0
    step: int = 0
    samples_seen: int = 0
    first_step: int = 0
    flops: int = 0

    def content(self) -> dict[str, Any]:
        """Everything, as a nested dict of tensors and plain values."""
        return {
            "model": self.model.state_dict(),
            "optimizer": _optimizer_content(self.optimizer, self.model),
            "scheduler": _plain(self.scheduler.state_dict()),
            "method": self.method,
            "sampler": {"epoch": self.epoch, "batch": self.batch},
            "counters": {name: torch.tensor(getattr(self, name)) for name in COUNTERS},
        }

    def begin_from(self, content: dict[str, Any], *, with_optimizer: bool) -> None:
        """Take over the parent's checkpoint at the start of a stage: the sampler and the schedule begin anew.

        Parameters that the parent did not have keep their initial values, and have no optimizer state.
        """
        rates = [group["lr"] for group in self.optimizer.param_groups]
        unknown = content["model"].keys() - self.model.state_dict().keys()
        assert not unknown, f"the network of this stage lost {sorted(unknown)}"
        self._take_over({**content, "model": self.model.state_dict() | content["model"]}, with_optimizer=with_optimizer)
        self.first_step = self.step
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
        for name in COUNTERS:
            setattr(self, name, content["counters"][name].item())
        if with_optimizer:
            self.optimizer.load_state_dict(_optimizer_state(content["optimizer"], self.model, self.optimizer))

    def reset_new_outputs(self, spec: dict[str, Any], stage: dict[str, Any]) -> None:
        """Give the outputs that come with this stage fresh weights in every shared head.

        What earlier tasks did to outputs that they never used is undone, so that it tells nothing of tasks to come.
        """
        known = {output for task in earlier_tasks(spec["stages"], stage) for output in spec["tasks"][task]}
        for name, head in self.model.named_modules():
            if isinstance(head, SharedHead):
                for task in stage["tasks"]:
                    new = [output for output in spec["tasks"][task] if output not in known]
                    reset_outputs(head, new, spec["seed"], f"{name} for {task}")


def network_of(spec: dict[str, Any], stage: dict[str, Any], method: Method) -> nn.Module:
    """The network of a stage with the weights with which it would begin a run; grown, if the method grows it."""
    seen, positions = seen_tasks(spec["stages"], stage), task_positions(spec["tasks"])
    trained = [tuple(positions[task] for task in s["tasks"]) for s in ancestry(spec["stages"], stage)]
    structure = Structure(
        hyperparameters=None,  # each part of the method gets its own
        stages=tuple(trained),
        n_tasks=len(positions),
        new_network=lambda name: new_network(spec, seen, name),
        set_initial_weights=lambda module, name: set_initial_weights(module, spec["seed"], name),
    )
    with torch.random.fork_rng(devices=[]):
        return method.network(structure, new_network(spec, seen))


def plain_network(spec: dict[str, Any], stage: dict[str, Any]) -> nn.Module:
    """The network of a stage as it would be without the method."""
    with torch.random.fork_rng(devices=[]):
        return new_network(spec, seen_tasks(spec["stages"], stage))


def fresh_learner(spec: dict[str, Any], stage: dict[str, Any], method: Method, n_steps: int) -> Learner:
    """A learner before the first step of a stage: initial weights, fresh optimizer, no method state yet."""
    model, training = network_of(spec, stage, method), spec["training"]
    optimizer = _optimizer((p for _, p in _trained(model)), training)
    return Learner(model, optimizer, _scheduler(optimizer, training["schedule"], n_steps))


def _trained(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Names and parameters that the optimizer changes: a method may have frozen others."""
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]


def _optimizer(parameters: Iterable[nn.Parameter], training: dict[str, Any]) -> torch.optim.Optimizer:
    shared = {"lr": training["learning_rate"], "weight_decay": training["weight_decay"]}
    if training["optimizer"] == "adam":
        return torch.optim.Adam(parameters, **shared)
    return torch.optim.SGD(parameters, momentum=training["momentum"], **shared)


def _scheduler(optimizer: torch.optim.Optimizer, schedule: str, steps: int) -> torch.optim.lr_scheduler.LRScheduler:
    if schedule == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(steps, 1))
    return torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)


def _optimizer_content(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Any]:
    """State by the name of each parameter: where a network grows, numbers would shift."""
    content, names = optimizer.state_dict(), [name for name, _ in _trained(model)]
    groups = [
        {key: value for key, value in _plain(group).items() if key != "params"} for group in content["param_groups"]
    ]
    return {"state": {names[key]: value for key, value in content["state"].items()}, "param_groups": groups}


def _optimizer_state(content: dict[str, Any], model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What the optimizer loads: the state of the parameters that are there."""
    number = {name: index for index, (name, _) in enumerate(_trained(model))}
    groups = zip(content["param_groups"], optimizer.state_dict()["param_groups"], strict=True)
    return {
        "state": {number[name]: value for name, value in content["state"].items() if name in number},
        "param_groups": [{**kept, "params": now["params"]} for kept, now in groups],
    }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Only what belongs into a checkpoint: torch's private notes are rebuilt with the object."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if not key.startswith("_") or key == "_last_lr"
    }
