"""A network: a backbone that makes features of inputs, and a head that makes outputs of features.

========= ======================================================= ==========================================
head      weights                                                  an output that is not there
========= ======================================================= ==========================================
shared    one layer for all outputs, from the start                none
expanding one layer for the new outputs of each task, as it comes  −∞ until its task has come
multi     one layer for each task, from the start                  −∞ for samples of other tasks
========= ======================================================= ==========================================

`multi` needs the task of each sample, in training and in test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from palimpsest.models import MODELS
from palimpsest.models._initial import set_initial_weights


class Network(nn.Module):
    """Inputs `[batch, *shape]` float32, and the position of each sample's task `[batch]`, to `[batch, n_outputs]`."""

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """What the head sees, `[batch, n_features]`."""
        return self.backbone(inputs)

    def forward(self, inputs: torch.Tensor, tasks: torch.Tensor | None = None) -> torch.Tensor:
        """Outputs before softmax; of `tasks` `[group, batch]`, by one pass, `[group, batch, n_outputs]`."""
        features = self.features(inputs)
        if tasks is not None and tasks.dim() == 2:
            return torch.stack([self.head(features, of_group) for of_group in tasks])
        return self.head(features, tasks)


class SharedHead(nn.Linear):
    """One linear layer for all outputs."""

    def forward(self, features: torch.Tensor, tasks: torch.Tensor | None = None) -> torch.Tensor:
        """`[batch, n_features]` to `[batch, n_outputs]`."""
        return super().forward(features)


class ExpandingHead(nn.ModuleDict):
    """A linear layer for the new outputs of each task that has come; the others are −∞.

    Args:
        n_features: of the backbone.
        outputs: those of each task, in the order in which the tasks came.
        n_outputs: of the benchmark.
    """

    def __init__(self, n_features: int, outputs: Mapping[str, Sequence[int]], n_outputs: int) -> None:
        super().__init__()
        there: list[int] = []
        for task, of_task in outputs.items():
            new = [output for output in of_task if output not in there]
            if new:
                self[task] = nn.Linear(n_features, len(new))
                there += new
        # Where each output stands among those of all layers; the last column stands for what is not there.
        self.column = [there.index(output) if output in there else len(there) for output in range(n_outputs)]

    def forward(self, features: torch.Tensor, tasks: torch.Tensor | None = None) -> torch.Tensor:
        """`[batch, n_features]` to `[batch, n_outputs]`."""
        absent = features.new_full((len(features), 1), -torch.inf)
        return torch.cat([*(layer(features) for layer in self.values()), absent], dim=1)[:, self.column]


class MultiHead(nn.ModuleDict):
    """A linear layer for each task; a sample has the outputs of its own task, the others are −∞.

    Args:
        n_features: of the backbone.
        outputs: those of each task.
        n_outputs: of the benchmark.
    """

    def __init__(self, n_features: int, outputs: Mapping[str, Sequence[int]], n_outputs: int) -> None:
        super().__init__({task: nn.Linear(n_features, len(of_task)) for task, of_task in outputs.items()})
        self.columns = {
            task: [list(of_task).index(o) if o in of_task else len(of_task) for o in range(n_outputs)]
            for task, of_task in outputs.items()
        }
        self.names = task_positions(outputs)

    def forward(self, features: torch.Tensor, tasks: torch.Tensor | None = None) -> torch.Tensor:
        """`[batch, n_features]` to `[batch, n_outputs]`; only layers of tasks that are in the batch are used."""
        assert tasks is not None, "a head for each task needs the task of each sample"
        scores = features.new_full((len(features), len(next(iter(self.columns.values())))), -torch.inf)
        for task, position in self.names.items():
            if bool((tasks == position).any()):
                scores = torch.where((tasks == position)[:, None], self.place(task, self[task](features)), scores)
        return scores

    def place(self, task: str, own: torch.Tensor) -> torch.Tensor:
        """Outputs of one task, `[batch, outputs of the task]`, in their places, `[batch, n_outputs]`."""
        absent = own.new_full((len(own), 1), -torch.inf)
        return torch.cat([own, absent], dim=1)[:, self.columns[task]]


def task_positions(tasks: Mapping[str, Any]) -> dict[str, int]:
    """The number by which tensors call each task: its place in the sorted list of the study's tasks."""
    return {task: position for position, task in enumerate(sorted(tasks))}


def new_network(spec: dict[str, Any], seen: Sequence[str], name: str = "") -> Network:
    """An untrained network of a run's model.

    Args:
        spec: the run's specification.
        seen: tasks that it is or was trained on, in order.
        name: under which its streams of initial weights go; none for the network that all methods share.
    """
    module, inputs, outputs = MODELS.load(spec["model"]["name"], "model.name"), spec["inputs"], spec["tasks"]
    options, n_outputs = module.Options.model_validate(spec["model"]["options"]), inputs["n_outputs"]
    # Layers draw from torch's global generator when they are made; the streams' values replace what they drew.
    with torch.random.fork_rng(devices=[]):
        backbone, n_features = module.build(options, tuple(inputs["shape"]))
        network = Network(
            backbone,
            {
                "shared": lambda: SharedHead(n_features, n_outputs),
                "expanding": lambda: ExpandingHead(n_features, {task: outputs[task] for task in seen}, n_outputs),
                "multi": lambda: MultiHead(n_features, outputs, n_outputs),
            }[spec["model"]["head"]](),
        )
    set_initial_weights(network.backbone, spec["seed"], name)
    set_initial_weights(network.head, spec["seed"], f"{name}.head".lstrip("."))
    return network
