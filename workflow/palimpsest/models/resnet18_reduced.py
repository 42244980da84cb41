"""The reduced ResNet-18 of the GEM paper: a third of the channels, a first convolution of 3 × 3 without pooling.

Batch normalisation. In training a layer normalises by the mean and variance of the batch, new and replayed samples
together where a method joins them in one pass, and takes these into its running statistics; so what is replayed changes
the outputs of new samples, and the running statistics follow the mixture. In a test, and where methods take gradients
sample by sample, it uses the running statistics and leaves them; they are saved with every checkpoint. Where tasks come
without replay they drift to the last task, as published results of such methods have it.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from palimpsest.models._images import Channels, n_channels

REFERENCE = (
    "K. He, X. Zhang, S. Ren, J. Sun, Deep residual learning for image recognition, CVPR 2016, arXiv:1512.03385; "
    "reduced as in D. Lopez-Paz, M. Ranzato, Gradient episodic memory for continual learning, NeurIPS 2017, "
    "arXiv:1706.08840"
)
LAYERED = False
BLOCKS = ((1, 1), (2, 2), (4, 2), (8, 2))
"""Width in multiples of the first, and stride, of each of the four groups of two blocks."""

SMALLEST = 8


class Options(BaseModel):
    """Options of the model `resnet18_reduced`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    width: int = Field(20, ge=1, description="Channels of the first group; 20 in the GEM paper, 64 in ResNet-18.")


class Block(nn.Module):
    """Two 3 × 3 convolutions with batch normalisation around a shortcut, which is convolved where shapes differ."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.norm2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        same = stride == 1 and before == after
        convolved = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        self.shortcut = nn.Identity() if same else convolved

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[batch, before, h, w]` to `[batch, after, h / stride, w / stride]`."""
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


def build(options: Options, input_shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    """The layers up to the mean over pixels, `[batch, *input_shape]` to `[batch, n_features]`, and n_features.

    Raises:
        ValueError: the inputs are no images, or of 8 × 8 pixels at most: after three halvings one pixel would be left,
            and a batch of one sample could not be normalised.
    """
    if max(input_shape[:2]) <= SMALLEST:
        raise ValueError(f"expected images larger than {SMALLEST} × {SMALLEST} pixels; got {list(input_shape)}")
    width, layers = options.width, [("channels", Channels())]
    layers += [("conv", nn.Conv2d(n_channels(input_shape), width, 3, 1, 1, bias=False))]
    layers += [("norm", nn.BatchNorm2d(width)), ("relu", nn.ReLU())]
    before = width
    for group, (multiple, stride) in enumerate(BLOCKS, start=1):
        for number in (1, 2):
            block = Block(before, multiple * width, stride if number == 1 else 1)
            layers.append((f"group{group}block{number}", block))
            before = multiple * width
    layers += [("pool", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten())]
    return nn.Sequential(OrderedDict(layers)), before
