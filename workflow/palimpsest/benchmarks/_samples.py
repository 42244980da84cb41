"""What all benchmarks share: how many samples of each class go where, and whether labels tell the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.core.errors import StudyError
from palimpsest.data.raw import Load
from palimpsest.data.sources import SOURCES
from palimpsest.data.splits import SPLITS, counts, parts, stratified

Some = Annotated[int, Field(ge=1)] | Literal["all"]


class PerClass(BaseModel):
    """How many samples of each class go where."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    train: Some = Field(
        description="Samples of each class for training, or `all` that the other splits leave.", examples=[350, "all"]
    )
    validation: int = Field(ge=0, description="Samples of each class for what feeds back into a run.", examples=[50])
    test: Some = Field(
        description="Samples of each class for reporting, or `all`. Where the data set has test samples of its own, "
        "these are drawn from them, and the others from the rest.",
        examples=[100, "all"],
    )


def describe_samples(dataset: str, per_class: PerClass, where: str) -> dict[str, list[int]]:
    """Samples of each class in each split.

    Raises:
        StudyError: the data set does not exist, or a class has too few samples.
    """
    source = SOURCES.load(dataset, f"{where}.dataset")
    asked = per_class.model_dump()
    for part, of_part in parts(asked, "test" in source.N_PER_CLASS).items():
        there = min(source.N_PER_CLASS[part])
        n_all = sum(n == "all" for n in of_part.values())
        wanted = sum(1 if n == "all" else n for n in of_part.values())
        if wanted > there or n_all > 1:
            raise StudyError(
                "the data set has too few samples per class",
                where=f"{where}.samples_per_class",
                expected=f"at most {there} samples per class of {dataset} for {' and '.join(of_part)}, and `all` once",
                got=", ".join(f"{split} {n}" for split, n in of_part.items()),
                next="ask for fewer",
            )
    return counts(source.N_PER_CLASS, asked)


def draw_samples(
    dataset: str, per_class: PerClass, seed: int, load: Load
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The samples of a data set that belong to a split: their rows, ascending, inputs, classes and splits."""
    inputs, classes = load(dataset)
    n_own_test = sum(SOURCES.load(dataset, "").N_PER_CLASS.get("test", ()))
    drawn = stratified(classes, n_own_test, per_class.model_dump(), seed, dataset)
    split_of = np.full(len(classes), "", dtype=object)
    for split in SPLITS:
        split_of[drawn[split]] = split
    (rows,) = np.nonzero(split_of != "")
    return rows, inputs[rows], classes[rows], split_of[rows]


def describe_inputs(dataset: str, tasks: Sequence[Sequence[int]], label_tells_task: bool) -> dict[str, Any]:
    """What a plan tells of the inputs.

    Args:
        dataset: its name.
        tasks: outputs of each task.
        label_tells_task: whether each output belongs to one task.
    """
    shape = SOURCES.load(dataset, "").INPUT_SHAPE
    n_outputs = len({output for outputs in tasks for output in outputs})
    return {
        "shape": list(shape),
        "n_outputs": n_outputs,
        "sample_bytes": int(np.prod(shape)),
        "label_bytes": 1 if n_outputs <= 256 else 2,
        "label_tells_task": label_tells_task,
    }
