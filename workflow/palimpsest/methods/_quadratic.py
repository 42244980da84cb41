"""The penalty that EWC, SI, MAS and RWalk share: they differ in the importance alone."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from palimpsest.methods._hooks import Batch, Context, State

Weights = dict[str, torch.Tensor]


def penalty(context: Context, *remembered: tuple[Weights, Weights]) -> torch.Tensor:
    """Σ Σ_i Ω_i (θ_i − θ*_i)², a scalar, over pairs of an importance Ω and an anchor θ*, and the parameters in Ω."""
    parameters = dict(context.model.named_parameters())
    return sum(
        _Quadratic.apply(
            list(importance.values()), [anchor[n] for n in importance], *(parameters[n] for n in importance)
        )
        for importance, anchor in remembered
    )


def around_last_weights(context: Context, state: State, batch: Batch) -> torch.Tensor | None:
    """The hook `penalty` of a method with one importance Ω and one anchor θ*: strength · Σ_i Ω_i (θ_i − θ*_i)²."""
    if not state["importance"] or context.hyperparameters.strength == 0:
        return None
    return context.hyperparameters.strength * penalty(context, (state["importance"], state["anchor"]))


class _Quadratic(torch.autograd.Function):
    """Σ_i Ω_i (θ_i − θ*_i)² with its gradient 2 Ω (θ − θ*) at hand: half the passes over memory of PyTorch's own."""

    @staticmethod
    def forward(
        ctx: Any, importance: list[torch.Tensor], anchor: list[torch.Tensor], *parameters: torch.Tensor
    ) -> torch.Tensor:
        """A scalar."""
        ctx.importance = importance
        ctx.ways = [p - a for p, a in zip(parameters, anchor, strict=True)]
        terms = [torch.dot((o * way).flatten(), way.flatten()) for o, way in zip(importance, ctx.ways, strict=True)]
        return torch.stack(terms).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """For each parameter."""
        return None, None, *((2 * outer * o).mul_(way) for o, way in zip(ctx.importance, ctx.ways, strict=True))


def weights(context: Context) -> Weights:
    """A copy of the parameters that are trained, by name."""
    return {name: p.detach().clone() for name, p in context.model.named_parameters() if p.requires_grad}


def zeros(context: Context) -> Weights:
    """A zero for each parameter that is trained."""
    return {name: torch.zeros_like(p) for name, p in context.model.named_parameters() if p.requires_grad}


def accumulate(old: Weights, new: Weights, decay: float = 1.0) -> Weights:
    """decay · old + new; what only one of them has counts as 0 in the other."""
    return {
        name: new.get(name, 0) + decay * old[name] if name in old else new[name] for name in dict.fromkeys([*old, *new])
    }


@torch.no_grad()
def follow(context: Context, state: State, path: Weights, before: Weights) -> None:
    """Add what the last step did: path −= g Δθ, and before becomes the weights after it; both are changed in place.

    g is the gradient that the optimizer got, at the weights before the step, without the penalty's own part,
    strength · 2 Ω (θ − θ*); where another part of a composition projects gradients, it is what the projection left.
    """
    strength = context.hyperparameters.strength
    for name, old in before.items():
        parameter = context.model.get_parameter(name)
        step = parameter - old
        if parameter.grad is not None:
            path[name].addcmul_(parameter.grad, step, value=-1)
            if strength and name in state["importance"]:
                own = (old - state["anchor"][name]).mul_(state["importance"][name])
                path[name].addcmul_(own, step, value=2 * strength)
        old.copy_(parameter)
