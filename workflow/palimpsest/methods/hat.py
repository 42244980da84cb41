"""Hard attention to the task: a gate for each unit and task, learned with the weights; used units are protected.

Layer l of task t passes a_l^t ⊙ h_l with a_l^t = σ(s · e_l^t). In training s rises over the steps of an epoch from
1/s_max to s_max: s = 1/s_max + (s_max − 1/s_max) (b − 1)/(B − 1) in step b of B; in a test it is s_max. After task t
a^{≤t} = max(a^{≤t−1}, a^t). The gradient of the weight from unit j of layer l − 1 to unit i of layer l is multiplied by
1 − min(a_{l,i}^{<t}, a_{l−1,j}^{<t}), that of a bias by 1 − a_{l,i}^{<t}. The loss is the cross-entropy plus
c · Σ_l Σ_i a_{l,i}^t (1 − a_{l,i}^{<t}) / Σ_l Σ_i (1 − a_{l,i}^{<t}). The gradient of an embedding is multiplied by
s_max (cosh(s e) + 1) / (s (cosh(e) + 1)), with |s e| ≤ 50, and |e| is kept below 6, all as in the paper.

With `gates: binary` a gate is 1 where a > 1/2 and else 0, after a task and in tests: then nothing is forgotten at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from palimpsest.methods import _isolation as isolation
from palimpsest.methods._declaration import Declaration, Facts
from palimpsest.methods._hooks import Batch, Context, Gradients, Loss, State, Structure, scale

REFERENCE = (
    "J. Serrà, D. Surís, M. Miron, A. Karatzoglou, Overcoming catastrophic forgetting with hard attention to the task, "
    "ICML 2018, arXiv:1801.01423"
)
DECLARATION = Declaration(needs_task_boundaries=True, needs_task_identity=True)
LARGEST_EMBEDDING, LARGEST_EXPONENT = 6.0, 50.0


class Hyperparameters(BaseModel):
    """Hyperparameters of `hat`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    strength: float = Field(ge=0, le=1e30, allow_inf_nan=False, description="c, weight of sparsity.", examples=[0.75])
    s_max: float = Field(ge=1, le=1e6, description="Steepest slope of a gate.", examples=[400.0])
    gates: Literal["soft", "binary"] = Field("soft", description="What a gate is after its task and in tests.")


def check(hyperparameters: Hyperparameters, facts: Facts) -> None:
    """Gates stand between layers, and each task needs its own outputs.

    Raises:
        ModelError: the model is no sequence of layers, or the head is not `multi`.
    """
    isolation.require_own_outputs(facts)
    isolation.require_layers(facts)


class Gated(nn.Module):
    """The study's network with gates after each hidden layer.

    `slope` and `binary` say how gates are made of embeddings; hooks set them before they use the network.
    """

    def __init__(self, network: nn.Module, n_tasks: int) -> None:
        super().__init__()
        self.backbone, self.head = network.backbone, network.head
        layers = isolation.weight_layers(self.backbone)
        self.gates = nn.ModuleDict({name: nn.Embedding(n_tasks, len(layer.weight)) for name, layer in layers.items()})
        self.slope, self.binary = 1.0, False

    def gate(self, name: str, tasks: torch.Tensor) -> torch.Tensor:
        """Gates of a layer, `[batch, units]`."""
        soft = torch.sigmoid(self.slope * self.gates[name](tasks))
        return (soft > 0.5).to(soft.dtype) if self.binary else soft

    def features(self, inputs: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """What the head sees; a gate follows each ReLU."""
        h, last = inputs, ""
        for name, layer in self.backbone.named_children():
            h, last = layer(h), name if name in self.gates else last
            if isinstance(layer, nn.ReLU):
                gate = self.gate(last, tasks)
                h = h * gate.reshape(*gate.shape, *[1] * (h.dim() - 2))
        return h

    def forward(self, inputs: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """`[batch, *shape]` and positions of tasks `[batch]` to `[batch, n_outputs]`."""
        return self.head(self.features(inputs, tasks), tasks)


def network(structure: Structure, network: nn.Module) -> nn.Module:
    """Gates for all tasks, from the start."""
    gated = Gated(network, structure.n_tasks)
    structure.set_initial_weights(gated.gates, "gates")
    return gated


def init(context: Context) -> State:
    """No unit is used."""
    used = {name: torch.zeros(gate.embedding_dim) for name, gate in context.model.gates.items()}
    return {"used": used, "kept": {}}


def begin_task(context: Context, state: State) -> State:
    """Remember the weights as they stand."""
    return {**state, "kept": {name: p.detach().clone() for name, p in context.model.named_parameters()}}


def loss(context: Context, state: State, batch: Batch) -> Loss:
    """Cross-entropy through the gates of the step, and their sparsity."""
    _set_gates(context, slope(context), binary=False)
    value = context.cross_entropy(batch)
    if context.hyperparameters.strength:
        value = value + context.hyperparameters.strength * sparsity(context, state)
    return Loss(value)


def sparsity(context: Context, state: State) -> torch.Tensor:
    """Σ a (1 − a^{<t}) / Σ (1 − a^{<t}), over the units of all layers; over the tasks of the stage its mean."""
    tasks = torch.tensor(context.tasks)
    free = {name: 1 - used for name, used in state["used"].items()}
    total = sum(values.sum() for values in free.values())
    active = sum((context.model.gate(name, tasks) * values).sum() for name, values in free.items()) / len(tasks)
    return active / total.clamp(min=1e-12)


def project(context: Context, state: State, gradients: Gradients) -> Gradients:
    """Less gradient for weights between used units; embeddings get what the slope took from them."""
    factors = dict(protection(context, state))
    s, s_max = slope(context), context.hyperparameters.s_max
    changed = {name: g * factors[name] if name in factors else g for name, g in gradients.items()}
    for name in (name for name in gradients if name.startswith("gates.")):
        e = context.model.get_parameter(name).detach()
        exponent = (s * e).clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT)
        changed[name] = gradients[name] * (s_max / s) * (torch.cosh(exponent) + 1) / (torch.cosh(e) + 1)
    return changed


@torch.no_grad()
def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """Keep embeddings small, and what is fully protected as it was."""
    for gate in context.model.gates.values():
        gate.weight.clamp_(-LARGEST_EMBEDDING, LARGEST_EMBEDDING)
    fixed = {name: (factor == 0).expand_as(state["kept"][name]) for name, factor in protection(context, state)}
    others = torch.ones(len(next(iter(context.model.gates.values())).weight), 1, dtype=torch.bool)
    others[list(context.tasks)] = False
    fixed |= {n: others.expand_as(kept) for n, kept in state["kept"].items() if n.startswith("gates.")}
    isolation.put_back(context, state["kept"], fixed)
    return state


@torch.no_grad()
def after_task(context: Context, state: State) -> State:
    """The units of this task are used from now on."""
    _set_gates(context, context.hyperparameters.s_max, binary=context.hyperparameters.gates == "binary")
    tasks = torch.tensor(context.tasks)
    used = {n: torch.maximum(u, context.model.gate(n, tasks).amax(dim=0)) for n, u in state["used"].items()}
    return {"used": used, "kept": {}}


def predict(context: Context, state: State, inputs: torch.Tensor, tasks: torch.Tensor | None) -> torch.Tensor:
    """Outputs through the gates of each sample's task."""
    _set_gates(context, context.hyperparameters.s_max, binary=context.hyperparameters.gates == "binary")
    return context.model(scale(inputs), tasks)


def slope(context: Context) -> float:
    """s in this step: from 1/s_max to s_max over an epoch."""
    s_max, last = context.hyperparameters.s_max, max(context.epoch_steps - 1, 1)
    return 1 / s_max + (s_max - 1 / s_max) * ((context.stage_step - 1) % context.epoch_steps) / last


def protection(context: Context, state: State) -> Iterator[tuple[str, torch.Tensor]]:
    """By parameter of the backbone, what its gradient is multiplied by: broadcasts to its shape, 0 to 1."""
    before = None
    for name, layer in isolation.weight_layers(context.model.backbone).items():
        used = state["used"][name]
        shape = (-1, *[1] * (layer.weight.dim() - 1))
        factor = 1 - used.reshape(shape)
        if before is not None:
            # Where maps of channels are flattened, each channel stands for all its pixels.
            of_input = before.repeat_interleave(layer.weight.shape[1] // len(before))
            factor = 1 - torch.minimum(used.reshape(shape), of_input.reshape(1, -1, *shape[2:]))
        yield f"backbone.{name}.weight", factor
        yield f"backbone.{name}.bias", 1 - used
        before = used


def _set_gates(context: Context, slope: float, *, binary: bool) -> None:
    context.model.slope, context.model.binary = slope, binary
