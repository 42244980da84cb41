"""Tasks that are one data set, seen otherwise in each: pixels at other places, the classes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.benchmarks._samples import PerClass, describe_inputs, describe_samples, draw_samples
from palimpsest.data.raw import Load
from palimpsest.data.samples import Samples
from palimpsest.data.sources import SOURCES

Move = Callable[[str, tuple[int, ...]], np.ndarray]
"""Of a task and the shape of its inputs: for each pixel, row by row, which stored pixel stands there; −1 for none."""


class DomainOptions(BaseModel):
    """What all such benchmarks are told."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    dataset: str = Field(description="A file in `workflow/palimpsest/data/sources/`.", examples=["mnist5k"])
    n_tasks: int = Field(ge=1, description="Number of tasks; those of fewer are the first ones of more.", examples=[20])
    samples_per_class: PerClass = Field(
        description="How many samples of each class go where: the same samples in every task."
    )
    outputs: Literal["shared", "own"] = Field(
        "shared",
        description="`shared`: a class has the same output in every task, as the protocol domain_incremental needs; "
        "`own`: each task has outputs of its own, as class_incremental needs.",
    )
    identity_first: bool = Field(False, description="Leave the inputs of the first task as they are.")


def describe_domains(options: DomainOptions, where: str) -> dict[str, Any]:
    """Tasks and inputs of a benchmark.

    Raises:
        StudyError: the data set does not exist or has too few samples.
    """
    n_of = describe_samples(options.dataset, options.samples_per_class, where)
    tasks = {task: _outputs(options, number) for number, task in enumerate(_tasks(options))}
    sizes = {f"n_{split}": sum(n_of_class) for split, n_of_class in n_of.items()}
    return {
        "sources": [options.dataset],
        "tasks": {task: {"classes": outputs, **sizes} for task, outputs in tasks.items()},
        "inputs": describe_inputs(options.dataset, list(tasks.values()), options.outputs == "own"),
    }


def build_domains(options: DomainOptions, seed: int, load: Load, move: Move) -> Samples:
    """The samples of all tasks: each stored once, and in every task under a number of its own.

    The sample of row r of the data set in the task number t (from 0) has the number t · (rows of the data set) + r.
    """
    rows, inputs, classes, split_of = draw_samples(options.dataset, options.samples_per_class, seed, load)
    source, tasks = SOURCES.load(options.dataset, ""), _tasks(options)
    n_rows = sum(sum(n_of_class) for n_of_class in source.N_PER_CLASS.values())
    n_pixels = int(np.prod(source.INPUT_SHAPE[:2]))
    identity = {tasks[0]: np.arange(n_pixels)} if options.identity_first else {}
    return Samples(
        inputs=inputs,
        input=np.tile(np.arange(len(rows)), len(tasks)),
        dataset=[options.dataset] * (len(rows) * len(tasks)),
        split=split_of.tolist() * len(tasks),
        sample=np.concatenate([number * n_rows + rows for number in range(len(tasks))]),
        label=np.concatenate([np.array(_outputs(options, number))[classes] for number in range(len(tasks))]),
        task=np.repeat(tasks, len(rows)).tolist(),
        sources=(options.dataset,),
        moves={task: move(task, source.INPUT_SHAPE) for task in tasks} | identity,
    )


def _tasks(options: DomainOptions) -> list[str]:
    return [f"t{number + 1}" for number in range(options.n_tasks)]


def _outputs(options: DomainOptions, number: int) -> list[int]:
    n_classes = SOURCES.load(options.dataset, "").N_CLASSES
    first = number * n_classes if options.outputs == "own" else 0
    return list(range(first, first + n_classes))
