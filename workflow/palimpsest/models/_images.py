"""Inputs as convolutions take them."""

from __future__ import annotations

import torch
from torch import nn


class Channels(nn.Module):
    """Images as they are stored, `[batch, height, width]` or `[batch, height, width, channels]`, channels first."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """`[batch, channels, height, width]`."""
        return images[:, None] if images.dim() == 3 else images.permute(0, 3, 1, 2)


def n_channels(input_shape: tuple[int, ...]) -> int:
    """1 for grey images, `[height, width]`; else the last entry.

    Raises:
        ValueError: the inputs are no images.
    """
    if len(input_shape) not in (2, 3):
        raise ValueError(f"expected images, [height, width] or [height, width, channels]; got {list(input_shape)}")
    return 1 if len(input_shape) == 2 else input_shape[2]
