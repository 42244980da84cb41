"""The penalty that EWC, SI, MAS and RWalk share: they differ in the importance alone."""

from __future__ import annotations

import torch

from palimpsest.methods._hooks import Context

Weights = dict[str, torch.Tensor]


def penalty(context: Context, *remembered: tuple[Weights, Weights]) -> torch.Tensor:
    """Σ Σ_i Ω_i (θ_i − θ*_i)², a scalar, over pairs of an importance Ω and an anchor θ*, and the parameters in Ω."""
    parameters = dict(context.model.named_parameters())
    terms = [
        (importance[name] * (parameters[name] - anchor[name]).square()).sum()
        for importance, anchor in remembered
        for name in importance
    ]
    return torch.stack(terms).sum()


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


def own_gradients(context: Context, importance: Weights, anchor: Weights, before: Weights, strength: float) -> Weights:
    """Gradient of the last step without this penalty's part, strength · 2 Ω (θ − θ*), at the weights before the step.

    A parameter that the loss did not reach has a gradient of 0.
    """
    found = {}
    for name, old in before.items():
        gradient = context.model.get_parameter(name).grad
        gradient = torch.zeros_like(old) if gradient is None else gradient
        if strength and name in importance:
            gradient = gradient - 2 * strength * importance[name] * (old - anchor[name])
        found[name] = gradient
    return found
