"""A method as the training loop sees it: one file, or several composed by `+`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import Any

import torch
from pydantic import BaseModel
from torch import nn

from palimpsest.core.errors import StudyError
from palimpsest.methods import METHODS
from palimpsest.methods._declaration import Declaration, Facts
from palimpsest.methods._hooks import Batch, Context, Gradients, Hooks, Loss, State, Structure

EXCLUSIVE = ("network", "loss", "predict")
"""Hooks that only one part of a composition may have: two networks, losses or predictions cannot both count."""


@dataclass(frozen=True)
class Method:
    """One or more parts, each with its own hooks, hyperparameters and state.

    Penalties add up; gradients are projected, and states changed, in the order of the parts.
    """

    parts: dict[str, ModuleType]
    hyperparameters: dict[str, BaseModel]

    def hook(self, part: str, name: str) -> Any:
        """A part's hook, or what plain training does."""
        return getattr(self.parts[part], name, getattr(Hooks, name))

    def network(self, structure: Structure, network: nn.Module) -> nn.Module:
        """The network of a stage, by the part that has one of its own."""
        part = self._only("network")
        return self.hook(part, "network")(replace(structure, hyperparameters=self.hyperparameters[part]), network)

    def init(self, context: Context) -> State:
        """State of every part before the first task."""
        return {part: self.hook(part, "init")(self._of(part, context)) for part in self.parts}

    def begin_task(self, context: Context, state: State) -> State:
        """Every part, before the first step of a stage."""
        return {part: self.hook(part, "begin_task")(self._of(part, context), state[part]) for part in self.parts}

    def loss(self, context: Context, state: State, batch: Batch) -> Loss:
        """The loss of the part that has one, with the penalties of all."""
        part = self._only("loss")
        loss = self.hook(part, "loss")(self._of(part, context), state[part], batch)
        for part in self.parts:
            penalty = self.hook(part, "penalty")(self._of(part, context), state[part], batch)
            loss = loss if penalty is None else replace(loss, value=loss.value + penalty)
        return loss

    @property
    def projects(self) -> bool:
        """Whether any part changes gradients."""
        return any(hasattr(module, "project") for module in self.parts.values())

    def project(self, context: Context, state: State, gradients: Gradients) -> Gradients:
        """Gradients after every part, in order."""
        for part in self.parts:
            gradients = self.hook(part, "project")(self._of(part, context), state[part], gradients)
        return gradients

    def after_step(self, context: Context, state: State, batch: Batch, loss: Loss) -> State:
        """Every part, after an optimizer step."""
        return {p: self.hook(p, "after_step")(self._of(p, context), state[p], batch, loss) for p in self.parts}

    def after_task(self, context: Context, state: State) -> State:
        """Every part, after the last step of a stage."""
        return {part: self.hook(part, "after_task")(self._of(part, context), state[part]) for part in self.parts}

    def predict(self, context: Context, state: State, inputs: torch.Tensor, tasks: torch.Tensor | None) -> torch.Tensor:
        """Scores by the part that predicts, else by the model."""
        part = self._only("predict")
        return self.hook(part, "predict")(self._of(part, context), state[part], inputs, tasks)

    def _only(self, hook: str) -> str:
        return next((part for part, module in self.parts.items() if hasattr(module, hook)), next(iter(self.parts)))

    def _of(self, part: str, context: Context) -> Context:
        return replace(context, hyperparameters=self.hyperparameters[part], key=(*context.key, part))


def load_method(name: str, hyperparameters: dict[str, Any], where: str) -> Method:
    """A method, or a composition `a+b`, with validated hyperparameters.

    Args:
        name: the file's name, or names joined by `+`.
        hyperparameters: of the one method; for a composition one mapping for each part.
        where: place in the study, for errors.

    Raises:
        StudyError: there is no such method, or the parts cannot be composed.
        pydantic.ValidationError: a hyperparameter is unknown, missing or out of range.
    """
    names = name.split("+")
    parts = {part: METHODS.load(part, where) for part in names}
    _check_composition(names, parts, where)
    if len(names) == 1:
        hyperparameters = {name: hyperparameters}
    unknown = sorted(set(hyperparameters) - set(names))
    if unknown:
        raise StudyError(
            "hyperparameters of a method that is no part of the composition",
            where=where,
            expected="one mapping for each of " + ", ".join(names),
            got=", ".join(unknown),
            next="write the hyperparameters of each part under its name",
        )
    return Method(
        parts,
        {part: module.Hyperparameters.model_validate(hyperparameters.get(part, {})) for part, module in parts.items()},
    )


def resolved_hyperparameters(method: Method) -> dict[str, Any]:
    """Every hyperparameter with its default, in the form in which `load_method` takes them."""
    dumped = {part: values.model_dump(mode="json") for part, values in method.hyperparameters.items()}
    return dumped if len(dumped) > 1 else next(iter(dumped.values()))


def declaration(method: Method) -> Declaration:
    """What the composition stores and needs: all that any part does."""
    declared = [module.DECLARATION for module in method.parts.values()]
    flags = {
        field.name: any(getattr(d, field.name) for d in declared)
        for field in fields(Declaration)
        if field.name not in ("pairing", "schedule")
    }
    pairing = "init" if any(d.pairing == "init" for d in declared) else "init+batches"
    return Declaration(**flags, pairing=pairing, schedule=declared[0].schedule)


def check_benchmark(method: Method, facts: Facts) -> None:
    """Ask every part whether it can work on the benchmark and with the model.

    Raises:
        HyperparameterError, ModelError: it cannot.
    """
    for part, module in method.parts.items():
        if hasattr(module, "check"):
            module.check(method.hyperparameters[part], facts)


def memory_bytes(method: Method, facts: Facts) -> int:
    """Bytes that the parts declare to store at most beside copies of weights.

    A part says it by a function `memory_need(hyperparameters, facts)` in its file, or by a hyperparameter
    `buffer_bytes`.
    """
    return sum(_memory_of(module, method.hyperparameters[part], facts) for part, module in method.parts.items())


def _memory_of(module: ModuleType, hyperparameters: BaseModel, facts: Facts) -> int:
    if hasattr(module, "memory_need"):
        return module.memory_need(hyperparameters, facts)
    return getattr(hyperparameters, "buffer_bytes", 0)


def _check_composition(names: list[str], parts: dict[str, ModuleType], where: str) -> None:
    clashes = [hook for hook in EXCLUSIVE if sum(hasattr(module, hook) for module in parts.values()) > 1]
    schedules = {module.DECLARATION.schedule for module in parts.values()}
    if len(set(names)) < len(names) or clashes or len(schedules) > 1:
        raise StudyError(
            "these methods cannot be composed",
            where=where,
            expected="different methods of one schedule, of which at most one has each of " + ", ".join(EXCLUSIVE),
            got="+".join(names) + (f" (both have {', '.join(clashes)})" if clashes else ""),
            next="compose other methods, or write the combination as a method of its own",
        )
