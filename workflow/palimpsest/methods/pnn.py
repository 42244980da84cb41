"""Progressive neural networks: a new column of layers for each task, fed by all earlier columns, which are fixed.

Layer i of column k computes, before its ReLU, W_i^k h_{i−1}^k + b_i^k + Σ_{j<k} U_i^{k:j} h_{i−1}^j (equation 1 of the
paper), the layer of outputs too; the first layer sees the inputs alone. Column k is trained in stage k and never after,
so that earlier tasks forget exactly nothing; a task that comes back gets another column. Parameters grow with the
square of the number of stages.
"""

from __future__ import annotations

import copy

import torch
from torch import nn

from palimpsest.methods import _isolation as isolation
from palimpsest.methods._declaration import Declaration, Facts, NoHyperparameters
from palimpsest.methods._hooks import Structure

REFERENCE = "A. A. Rusu et al., Progressive neural networks, arXiv:1606.04671 (2016)"
DECLARATION = Declaration(needs_task_boundaries=True, needs_task_identity=True, grows=True)
Hyperparameters = NoHyperparameters


def check(hyperparameters: NoHyperparameters, facts: Facts) -> None:
    """Columns are walked layer by layer, and each task needs its own outputs.

    Raises:
        ModelError: the model is no sequence of layers, or the head is not `multi`.
    """
    isolation.require_own_outputs(facts)
    isolation.require_layers(facts)


def network(structure: Structure, network: nn.Module) -> nn.Module:
    """One column for each stage; all but the last one are fixed."""
    columns = []
    for number, tasks in enumerate(structure.stages):
        base = network if number == 0 else structure.new_network(f"column{number + 1}")
        columns.append(Column(base, tasks, columns))
        structure.set_initial_weights(columns[-1].laterals, f"column{number + 1}.laterals")
        if number + 1 < len(structure.stages):
            columns[-1].requires_grad_(False)
            isolation.freeze_normalisation(columns[-1])
    return Columns(columns, structure.stages, structure.new_network("").head)


class Column(nn.Module):
    """Layers of the study's model, a layer of outputs for each task of the stage, and what feeds in earlier columns."""

    def __init__(self, base: nn.Module, tasks: tuple[int, ...], earlier: list[Column]) -> None:
        super().__init__()
        self.backbone = base.backbone
        self.head = nn.ModuleDict({name: base.head[name] for name, task in base.head.names.items() if task in tasks})
        fed = [*list(isolation.weight_layers(self.backbone))[1:], *(f"head.{name}" for name in self.head)]
        self.laterals = nn.ModuleList(
            nn.ModuleDict({key(name): _without_bias(self.layer(name)) for name in fed}) for _ in earlier
        )

    def layer(self, name: str) -> nn.Module:
        """A layer of the backbone, or one of outputs, `head.TASK`."""
        return self.head[name.removeprefix("head.")] if name.startswith("head.") else self.backbone.get_submodule(name)

    def apply_layer(self, name: str, h: torch.Tensor, before: list[torch.Tensor]) -> torch.Tensor:
        """W h + b + Σ_j U_j h_j: of the layer's own input, and of what earlier columns have in its place."""
        laterals = [of_column[key(name)] for of_column in self.laterals if key(name) in of_column]
        return sum((u(other) for u, other in zip(laterals, before, strict=False)), self.layer(name)(h))


class Columns(nn.Module):
    """All columns; a sample is answered by the last one that was trained on its task.

    Args:
        columns: one for each stage.
        stages: positions of the tasks of each.
        untrained: outputs for tasks to come, with their initial weights, fed by the last column; no part of the state.
    """

    def __init__(self, columns: list[Column], stages: tuple[tuple[int, ...], ...], untrained: nn.Module) -> None:
        super().__init__()
        self.columns = nn.ModuleList(columns)
        self.of_task = {task: number for number, tasks in enumerate(stages) for task in tasks}
        self.rest = [untrained.requires_grad_(False)]  # in a list, so that it is not registered

    def activations(self, inputs: torch.Tensor, n_columns: int) -> list[dict[str, torch.Tensor]]:
        """By column, what goes into each layer; the features under `head`."""
        found: list[dict[str, torch.Tensor]] = []
        for column in list(self.columns)[:n_columns]:
            h, into = inputs, {}
            for name, layer in column.backbone.named_children():
                into[name] = h
                weights = isinstance(layer, nn.Linear | nn.modules.conv._ConvNd)
                h = column.apply_layer(name, h, [other[name] for other in found]) if weights else layer(h)
            found.append({**into, "head": h})
        return found

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """What the outputs of the last column see of its own."""
        return self.activations(inputs, len(self.columns))[-1]["head"]

    def forward(self, inputs: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """`[batch, *shape]` and positions of tasks `[batch]` to `[batch, n_outputs]`; by groups as the study's own."""
        if tasks.dim() == 2:
            return torch.stack([self(inputs, of_group) for of_group in tasks])
        (rest,) = self.rest
        last = len(self.columns) - 1
        number_of = {task: self.of_task.get(task, last) for task in tasks.unique().tolist()}
        into = self.activations(inputs, max(number_of.values()) + 1)
        scores = None
        for name, task in rest.names.items():
            if task in number_of:
                number = number_of[task]
                column, h = self.columns[number], into[number]["head"]
                known = task in self.of_task
                before = [other["head"] for other in into[:number]]
                own = column.apply_layer(f"head.{name}", h, before) if known else rest[name](h)
                placed = rest.place(name, own)
                scores = placed if scores is None else torch.where((tasks == task)[:, None], placed, scores)
        return scores


def key(name: str) -> str:
    """A layer's name as the key of a module: without the dots that PyTorch refuses there."""
    return name.replace(".", "_")


def _without_bias(layer: nn.Module) -> nn.Module:
    lateral = copy.deepcopy(layer)
    lateral.bias = None
    return lateral
