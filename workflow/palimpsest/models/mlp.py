"""Multilayer perceptron: fully connected layers with rectified linear units."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from torch import nn

REFERENCE = "D. E. Rumelhart, G. E. Hinton, R. J. Williams, Nature 323 (1986) 533-536, doi:10.1038/323533a0"
LAYERED = True


class Options(BaseModel):
    """Options of the model `mlp`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    hidden: list[Annotated[int, Field(ge=1)]] = Field(
        description="Width of each hidden layer, in units.", examples=[[256, 256]]
    )


def build(options: Options, input_shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    """The hidden layers, `[batch, *input_shape]` to `[batch, n_features]`, and n_features, the width of the last."""
    widths = [math.prod(input_shape), *options.hidden]
    layers: list[tuple[str, nn.Module]] = [("flatten", nn.Flatten())]
    for number, (before, after) in enumerate(itertools.pairwise(widths), start=1):
        layers += [(f"hidden{number}", nn.Linear(before, after)), (f"relu{number}", nn.ReLU())]
    return nn.Sequential(OrderedDict(layers)), widths[-1]
