"""Split: the classes of one data set are dealt to the tasks, so that each class belongs to one task.

Split MNIST is `dataset: mnist5k, n_tasks: 5, classes_per_task: 2`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.core.errors import StudyError
from palimpsest.core.streams import generator
from palimpsest.data.samples import Samples, load_source
from palimpsest.data.sources import SOURCES
from palimpsest.data.splits import SPLITS, stratified

REFERENCE = (
    "F. Zenke, B. Poole, S. Ganguli, Continual learning through synaptic intelligence, ICML 2017, section 5.1 (Split "
    "MNIST); Y.-C. Hsu et al., Re-evaluating continual learning scenarios, arXiv:1810.12488 (2018)"
)


class PerClass(BaseModel):
    """How many samples of each class go where."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    train: int = Field(ge=1, description="Samples of each class for training.", examples=[350])
    validation: int = Field(ge=0, description="Samples of each class for what feeds back into a run.", examples=[50])
    test: int = Field(ge=1, description="Samples of each class for reporting.", examples=[100])


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


def describe(options: Options, where: str) -> dict[str, Any]:
    """Tasks and inputs of the benchmark.

    Returns:
        `{sources, tasks: {id: {classes, n_train, n_validation, n_test}}, inputs: {shape, n_outputs, sample_bytes,
        label_bytes, label_tells_task}}`.

    Raises:
        StudyError: the data set does not exist or has too few classes or samples.
    """
    source = SOURCES.load(options.dataset, f"{where}.dataset")
    needed = {
        "classes": (options.n_tasks * options.classes_per_task, source.N_CLASSES, "n_tasks × classes_per_task"),
        "samples per class": (sum(_counts(options).values()), source.N_PER_CLASS, "samples_per_class"),
    }
    for noun, (asked, there, field) in needed.items():
        if asked > there:
            raise StudyError(
                f"the data set has too few {noun}",
                where=f"{where}.{field}",
                expected=f"at most {there} {noun} of {options.dataset}",
                got=str(asked),
                next="ask for fewer",
            )
    return {
        "sources": [options.dataset],
        "tasks": {
            task: {"classes": classes, **{f"n_{split}": n * len(classes) for split, n in _counts(options).items()}}
            for task, classes in _tasks(options).items()
        },
        "inputs": {
            "shape": list(source.INPUT_SHAPE),
            "n_outputs": options.n_tasks * options.classes_per_task,
            "sample_bytes": int(np.prod(source.INPUT_SHAPE)),
            "label_bytes": 1 if options.n_tasks * options.classes_per_task <= 256 else 2,
            "label_tells_task": True,
        },
    }


def build(options: Options, seed: int) -> Samples:
    """The samples of all tasks; labels are numbered in the order in which the classes are dealt."""
    inputs, labels = load_source(options.dataset)
    tasks = _tasks(options)
    output_of = _output_of_class(options, seed)
    split_of = {
        int(sample): split
        for split, members in stratified(labels, _counts(options), seed, options.dataset).items()
        for sample in members
        if int(labels[sample]) in output_of
    }
    sample = np.array(sorted(split_of), dtype=np.int64)
    label = np.array([output_of[int(labels[s])] for s in sample], dtype=np.int64)
    task_of_output = {output: task for task, outputs in tasks.items() for output in outputs}
    return Samples(
        inputs=inputs[sample],
        dataset=[options.dataset] * len(sample),
        split=[split_of[int(s)] for s in sample],
        sample=sample,
        label=label,
        task=[task_of_output[int(output)] for output in label],
        sources=(options.dataset,),
    )


def _counts(options: Options) -> dict[str, int]:
    return {split: getattr(options.samples_per_class, split) for split in SPLITS}


def _tasks(options: Options) -> dict[str, list[int]]:
    """Outputs of each task: `t1` has the first ones."""
    size = options.classes_per_task
    return {f"t{n + 1}": list(range(n * size, (n + 1) * size)) for n in range(options.n_tasks)}


def _output_of_class(options: Options, seed: int) -> dict[int, int]:
    n_classes = SOURCES.load(options.dataset, "benchmark.options.dataset").N_CLASSES
    shuffled = options.class_order == "shuffled"
    dealt = (
        generator("split", seed, options.dataset, "classes").permutation(n_classes) if shuffled else range(n_classes)
    )
    return {int(c): output for output, c in enumerate(dealt) if output < options.n_tasks * options.classes_per_task}
