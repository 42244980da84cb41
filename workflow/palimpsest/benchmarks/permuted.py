"""Permuted: each task is the whole data set with its pixels at other places, the same ones in all its inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from palimpsest.benchmarks._domains import DomainOptions, build_domains, describe_domains
from palimpsest.core.streams import generator
from palimpsest.data.raw import Load
from palimpsest.data.samples import Samples

REFERENCE = (
    "I. Goodfellow et al., An empirical investigation of catastrophic forgetting in gradient-based neural networks, "
    "arXiv:1312.6211 (2013); J. Kirkpatrick et al., PNAS 114 (2017) 3521-3526"
)


class Options(DomainOptions):
    """Options of the benchmark `permuted`."""


def describe(options: Options, seed: int, where: str) -> dict[str, Any]:
    """Tasks and inputs of the benchmark; raises as `describe_domains`."""
    return describe_domains(options, where)


def build(options: Options, seed: int, load: Load) -> Samples:
    """The samples of all tasks; each task's permutation has a stream of its own."""

    def move(task: str, shape: tuple[int, ...]) -> np.ndarray:
        return generator("tasks", seed, "permutation", task).permutation(shape[0] * shape[1])

    return build_domains(options, seed, load, move)
