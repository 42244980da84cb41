"""Rotated: each task is the whole data set, turned about the centre by an angle of the task's own.

Nearest pixel, black where nothing comes to lie: what `torchvision.transforms.functional.rotate` does, by which the
benchmark of the reference is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from palimpsest.benchmarks._domains import DomainOptions, build_domains, describe_domains
from palimpsest.core.streams import generator
from palimpsest.data.raw import Load
from palimpsest.data.samples import Samples

REFERENCE = (
    "P. Buzzega et al., Dark experience for general continual learning, NeurIPS 2020, section 4 (R-MNIST); "
    "D. Lopez-Paz, M. Ranzato, Gradient episodic memory for continual learning, NeurIPS 2017, section 5.1"
)


class Options(DomainOptions):
    """Options of the benchmark `rotated`."""

    max_degrees: float = Field(180.0, gt=0, le=360, description="Angles are drawn between 0 and this, in degrees.")


def describe(options: Options, seed: int, where: str) -> dict[str, Any]:
    """Tasks and inputs of the benchmark; raises as `describe_domains`."""
    return describe_domains(options, where)


def build(options: Options, seed: int, load: Load) -> Samples:
    """The samples of all tasks; each task's angle, uniform on [0, `max_degrees`), has a stream of its own."""

    def move(task: str, shape: tuple[int, ...]) -> np.ndarray:
        degrees = generator("tasks", seed, "rotation", task).uniform(0, options.max_degrees)
        return rotation(degrees, shape[0], shape[1])

    return build_domains(options, seed, load, move)


def rotation(degrees: float, height: int, width: int) -> np.ndarray:
    """For each pixel, row by row, which pixel of the unturned input comes to lie there; −1 for none.

    The centre of a target pixel is turned back, clockwise, about the centre of the input, and the pixel into which it
    falls is taken.

    >>> rotation(90.0, 2, 2).tolist()
    [1, 3, 0, 2]
    """
    angle = np.deg2rad(degrees)
    down, right = np.mgrid[:height, :width] + 0.5
    y, x = down - height / 2, right - width / 2
    # Rounded before the floor: a quarter turn leads to the middle of a pixel, whatever the last bit of the cosine.
    column = np.floor(np.round(np.cos(angle) * x - np.sin(angle) * y + width / 2, 9)).astype(np.int64)
    row = np.floor(np.round(np.sin(angle) * x + np.cos(angle) * y + height / 2, 9)).astype(np.int64)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    return np.where(inside, row * width + column, -1).ravel()
