"""Initial weights from named streams: the same seed and parameter name give the same values, in any model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from palimpsest.core.streams import generator


@torch.no_grad()
def set_initial_weights(model: nn.Module, seed: int, name: str = "") -> None:
    """Draw every parameter from its own stream.

    Weights and biases of linear and convolutional layers: uniform on ±1/√fan_in, where fan_in is the number of inputs
    of one output (what PyTorch's own layers use). Embeddings: standard normal. Parameters of normalisation layers keep
    their constants.

    Args:
        model: its parameters are changed in place.
        seed: the unit's.
        name: of the model within the network; the streams are named `NAME.PARAMETER`.

    Raises:
        TypeError: the model has parameters in a kind of layer for which nothing is declared.
    """
    for prefix, layer in model.named_modules():
        for short, parameter in layer.named_parameters(recurse=False):
            values = _initial(layer, prefix, seed, ".".join(part for part in (name, prefix, short) if part))
            if values is not None:
                parameter.copy_(torch.from_numpy(values.astype(np.float32)))


@torch.no_grad()
def reset_outputs(head: nn.Linear, outputs: Sequence[int], seed: int, name: str) -> None:
    """Draw the weights and biases of some outputs of a linear head anew, from streams of this name."""
    bound = 1 / math.sqrt(head.in_features)
    for short, parameter in head.named_parameters():
        values = generator("init", seed, f"{name}.{short}").uniform(-bound, bound, (len(outputs), *parameter.shape[1:]))
        parameter[list(outputs)] = torch.from_numpy(values.astype(np.float32))


def _initial(layer: nn.Module, prefix: str, seed: int, name: str) -> np.ndarray | None:
    """Values of one parameter, in its shape; none where it keeps its constants."""
    if isinstance(layer, nn.modules.batchnorm._BatchNorm | nn.GroupNorm | nn.LayerNorm):
        return None
    shape = tuple(layer.get_parameter(name.rsplit(".", 1)[-1]).shape)
    if isinstance(layer, nn.Embedding):
        return generator("init", seed, name).standard_normal(shape)
    if isinstance(layer, nn.Linear | nn.modules.conv._ConvNd):
        bound = 1 / math.sqrt(layer.weight[0].numel())
        return generator("init", seed, name).uniform(-bound, bound, shape)
    raise TypeError(f"no initial values are declared for {prefix or name}, a {type(layer).__name__}")
