"""Split: the classes of one data set are dealt to the tasks, so that each class belongs to one task.

Split MNIST is `dataset: mnist5k, n_tasks: 5, classes_per_task: 2`. With `outputs: shared` the first class of every task
has the first output, and so on: Split MNIST becomes telling even from odd digits in each task.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.benchmarks._samples import PerClass, describe_inputs, describe_samples, draw_samples
from palimpsest.core.errors import StudyError
from palimpsest.core.streams import generator
from palimpsest.data.raw import Load
from palimpsest.data.samples import Samples
from palimpsest.data.sources import SOURCES

REFERENCE = (
    "F. Zenke, B. Poole, S. Ganguli, Continual learning through synaptic intelligence, ICML 2017, section 5.1 (Split "
    "MNIST); Y.-C. Hsu et al., Re-evaluating continual learning scenarios, arXiv:1810.12488 (2018)"
)


class Options(BaseModel):
    """Options of the benchmark `split`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    dataset: str = Field(description="A file in `workflow/palimpsest/data/sources/`.", examples=["mnist5k"])
    n_tasks: int = Field(ge=1, description="Number of tasks.", examples=[5])
    classes_per_task: int = Field(ge=1, description="Classes of each task.", examples=[2])
    samples_per_class: PerClass = Field(description="How many samples of each class go where.")
    class_order: Literal["natural", "shuffled"] = Field(
        "natural", description="Classes are dealt to the tasks in their natural order, or shuffled by the seed."
    )
    # Left out of a lock where it is the default: locks that were made before it keep their hashes.
    outputs: Literal["own", "shared"] = Field(
        "own",
        description="`own`: each class has an output of its own; `shared`: the tasks share their outputs, as the "
        "protocol domain_incremental needs.",
        exclude_if=lambda value: value == "own",
    )
    output_order: Literal["by_task", "scrambled"] = Field(
        "by_task",
        description="Own outputs are numbered as the classes are dealt, or in an order that the seed scrambles, so "
        "that neighbouring outputs tell nothing of the task.",
        exclude_if=lambda value: value == "by_task",
    )


def describe(options: Options, seed: int, where: str) -> dict[str, Any]:
    """Tasks and inputs of the benchmark.

    Raises:
        StudyError: the data set does not exist or has too few classes or samples.
    """
    source, needed = SOURCES.load(options.dataset, f"{where}.dataset"), options.n_tasks * options.classes_per_task
    if needed > source.N_CLASSES:
        raise StudyError(
            "the data set has too few classes",
            where=f"{where}.n_tasks × classes_per_task",
            expected=f"at most {source.N_CLASSES} classes of {options.dataset}",
            got=str(needed),
            next="ask for fewer",
        )
    n_of = describe_samples(options.dataset, options.samples_per_class, where)
    dealt = _dealt(options, seed)
    output = _output_of_place(options, seed)
    tasks = {task: list(dict.fromkeys(output[place] for place in places)) for task, places in _places(options)}
    return {
        "sources": [options.dataset],
        "tasks": {
            task: {
                "classes": tasks[task],
                **{
                    f"n_{split}": sum(n_of_class[dealt[place]] for place in places)
                    for split, n_of_class in n_of.items()
                },
            }
            for task, places in _places(options)
        },
        "inputs": describe_inputs(options.dataset, list(tasks.values()), options.outputs == "own"),
    }


def build(options: Options, seed: int, load: Load) -> Samples:
    """The samples of all tasks; labels are numbered in the order in which the classes are dealt."""
    rows, inputs, classes, split_of = draw_samples(options.dataset, options.samples_per_class, seed, load)
    place_of_class = {c: place for place, c in enumerate(_dealt(options, seed))}
    is_dealt = np.isin(classes, list(place_of_class))
    places = np.array([place_of_class[int(c)] for c in classes[is_dealt]], dtype=np.int64)
    output = np.array(_output_of_place(options, seed), dtype=np.int64)
    task_of = {place: task for task, places_of_task in _places(options) for place in places_of_task}
    return Samples(
        inputs=inputs[is_dealt],
        input=np.arange(len(places)),
        dataset=[options.dataset] * len(places),
        split=split_of[is_dealt].tolist(),
        sample=rows[is_dealt],
        label=output[places],
        task=[task_of[place] for place in places.tolist()],
        sources=(options.dataset,),
    )


def _places(options: Options) -> list[tuple[str, range]]:
    """Each task with its places in the sequence of dealt classes: `t1` has the first ones."""
    size = options.classes_per_task
    return [(f"t{n + 1}", range(n * size, (n + 1) * size)) for n in range(options.n_tasks)]


def _output_of_place(options: Options, seed: int) -> list[int]:
    """The output of each class, by its place in the sequence in which the classes are dealt."""
    n_places = options.n_tasks * options.classes_per_task
    if options.outputs == "shared":
        return [place % options.classes_per_task for place in range(n_places)]
    if options.output_order == "by_task":
        return list(range(n_places))
    return generator("split", seed, options.dataset, "outputs").permutation(n_places).tolist()


def _dealt(options: Options, seed: int) -> list[int]:
    """The classes by their place in the sequence in which they are dealt."""
    n_classes = SOURCES.load(options.dataset, "benchmark.options.dataset").N_CLASSES
    if options.class_order == "natural":
        return list(range(n_classes))[: options.n_tasks * options.classes_per_task]
    shuffled = generator("split", seed, options.dataset, "classes").permutation(n_classes)
    return shuffled.tolist()[: options.n_tasks * options.classes_per_task]
