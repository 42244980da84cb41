"""A small convolutional network: blocks of a 3 × 3 convolution, ReLU and 2 × 2 pooling, then fully connected layers."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from palimpsest.models._images import Channels, n_channels

REFERENCE = (
    "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, Proceedings "
    "of the IEEE 86 (1998) 2278-2324, doi:10.1109/5.726791"
)
LAYERED = True


class Options(BaseModel):
    """Options of the model `convnet`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    channels: list[Annotated[int, Field(ge=1)]] = Field(
        min_length=1, description="Channels of each convolution.", examples=[[16, 32]]
    )
    hidden: list[Annotated[int, Field(ge=1)]] = Field(
        default_factory=list, description="Width of each fully connected layer, in units.", examples=[[128]]
    )


def build(options: Options, input_shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    """The layers, `[batch, *input_shape]` to `[batch, n_features]`, and n_features.

    Raises:
        ValueError: the inputs are no images, or smaller than the pooling needs.
    """
    channels = [n_channels(input_shape), *options.channels]
    layers: list[tuple[str, nn.Module]] = [("channels", Channels())]
    for number, (before, after) in enumerate(itertools.pairwise(channels), start=1):
        layers += [(f"conv{number}", nn.Conv2d(before, after, 3, padding=1)), (f"convrelu{number}", nn.ReLU())]
        layers += [(f"pool{number}", nn.MaxPool2d(2))]
    height, width = (size >> len(options.channels) for size in input_shape[:2])
    if not height * width:
        raise ValueError(f"{len(options.channels)} poolings need larger images than {list(input_shape)}")
    widths = [channels[-1] * height * width, *options.hidden]
    layers.append(("flatten", nn.Flatten()))
    for number, (before, after) in enumerate(itertools.pairwise(widths), start=1):
        layers += [(f"hidden{number}", nn.Linear(before, after)), (f"relu{number}", nn.ReLU())]
    return nn.Sequential(OrderedDict(layers)), widths[-1]
