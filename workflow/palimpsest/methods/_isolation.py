"""What methods share that keep the weights of earlier tasks from being changed."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from palimpsest.methods._declaration import Facts, ModelError
from palimpsest.methods._hooks import Context, Gradients

NORMALISATION = (nn.modules.batchnorm._BatchNorm, nn.GroupNorm, nn.LayerNorm)


def require_own_outputs(facts: Facts) -> None:
    """Refuse a head whose outputs tasks share: it would forget, whatever the method does to the layers before.

    Raises:
        ModelError: the study's head is not `multi`.
    """
    if facts["model"]["head"] != "multi":
        raise ModelError("model.head multi, a layer of outputs for each task", facts["model"]["head"])


def require_layers(facts: Facts) -> None:
    """Refuse a model that is no plain sequence of layers.

    Raises:
        ModelError: its layers cannot be walked one after the other.
    """
    if not facts["model"]["layered"]:
        raise ModelError("a model that is a sequence of layers, each with its own ReLU", facts["model"]["name"])


def weight_layers(backbone: nn.Module) -> dict[str, nn.Module]:
    """The linear and convolutional layers, by name, in their order."""
    return {n: m for n, m in backbone.named_modules() if isinstance(m, nn.Linear | nn.modules.conv._ConvNd)}


def hold(gradients: Gradients, frozen: Mapping[str, torch.Tensor]) -> Gradients:
    """Gradients with zeros where a mask is true."""
    return {name: g.masked_fill(frozen[name], 0) if name in frozen else g for name, g in gradients.items()}


@torch.no_grad()
def put_back(context: Context, kept: Mapping[str, torch.Tensor], frozen: Mapping[str, torch.Tensor]) -> None:
    """Undo what momentum or weight decay did to weights whose gradient is zero."""
    for name, mask in frozen.items():
        parameter = context.model.get_parameter(name)
        parameter.copy_(torch.where(mask, kept[name], parameter))


def freeze_normalisation(network: nn.Module) -> None:
    """Let normalisation layers use the statistics that they have, in training too, and leave them and their weights."""
    for module in network.modules():
        if isinstance(module, NORMALISATION):
            module.requires_grad_(False)
            module.eval()
            module.train = lambda mode=True, module=module: module
