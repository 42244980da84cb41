"""Initial weights from named streams: the same seed and parameter name give the same values, in any model."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from palimpsest.core.streams import generator


@torch.no_grad()
def set_initial_weights(model: nn.Module, seed: int) -> None:
    """Draw every parameter from its own stream.

    Weights and biases of linear and convolutional layers: uniform on ±1/√fan_in, where fan_in is the number of inputs
    of one output (what PyTorch's own layers use). Parameters of normalisation layers keep their constants.

    Raises:
        TypeError: the model has parameters in a kind of layer for which nothing is declared.
    """
    for prefix, layer in model.named_modules():
        parameters = list(layer.named_parameters(recurse=False))
        if not parameters or isinstance(layer, nn.modules.batchnorm._BatchNorm | nn.GroupNorm | nn.LayerNorm):
            continue
        if not isinstance(layer, nn.Linear | nn.modules.conv._ConvNd):
            raise TypeError(f"no initial values are declared for {prefix}, a {type(layer).__name__}")
        bound = 1 / math.sqrt(layer.weight[0].numel())
        for name, parameter in parameters:
            draws = generator("init", seed, f"{prefix}.{name}").uniform(-bound, bound, tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(draws.astype(np.float32)))
