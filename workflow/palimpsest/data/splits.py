"""Which samples are for training, for validation and for test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from palimpsest.core.streams import generator

SPLITS = ("train", "validation", "test")
Asked = int | Literal["all"]
"""Samples of one class; `all` are those that the other splits leave."""


def parts(asked: Mapping[str, Asked], own_test: bool) -> dict[str, dict[str, Asked]]:
    """What is drawn from which part of a data set: without test samples of its own, all from the one.

    >>> parts({"train": "all", "validation": 9, "test": "all"}, own_test=True)
    {'train': {'train': 'all', 'validation': 9}, 'test': {'test': 'all'}}
    """
    if not own_test:
        return {"train": dict(asked)}
    return {"train": {split: asked[split] for split in ("train", "validation")}, "test": {"test": asked["test"]}}


def counts(n_per_class: Mapping[str, Sequence[int]], asked: Mapping[str, Asked]) -> dict[str, list[int]]:
    """Samples of each class in each split.

    Args:
        n_per_class: what there is of each class, under `train` and, for the data set's own test samples, `test`.
        asked: samples of one class for each of `SPLITS`.

    Returns:
        For each of `SPLITS` a number for each class; below 1 where nothing is left for `all`.

    >>> counts({"train": (7, 8), "test": (3, 4)}, {"train": "all", "validation": 2, "test": "all"})
    {'train': [5, 6], 'validation': [2, 2], 'test': [3, 4]}
    """
    found: dict[str, list[int]] = {}
    for part, of_part in parts(asked, "test" in n_per_class).items():
        sizes = [_sizes(there, of_part) for there in n_per_class[part]]
        found |= {split: [of_class[split] for of_class in sizes] for split in of_part}
    return found


def stratified(
    labels: np.ndarray, n_own_test: int, asked: Mapping[str, Asked], seed: int, dataset: str
) -> dict[str, np.ndarray]:
    """Draw samples of every class for each split, without overlap.

    Where the data set has test samples of its own, the test split is drawn from them and the others from the rest.

    Args:
        labels: class of each sample, `[sample]`.
        n_own_test: how many samples at the end are the data set's own test samples; 0 where it has none.
        asked: samples of one class for each of `SPLITS`.
        seed: the benchmark's seed; each class has a stream of its own.
        dataset: name of the data set, part of the stream's key.

    Returns:
        Sorted sample indices for each split. Samples that are left over belong to none.
    """
    chosen: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    is_test = np.arange(len(labels)) >= len(labels) - n_own_test
    for part, of_part in parts(asked, n_own_test > 0).items():
        here, stream = (is_test, f"{dataset}/test") if part == "test" else (~is_test, dataset)
        for label in np.unique(labels):
            (members,) = np.nonzero(here & (labels == label))
            sizes = _sizes(len(members), of_part)
            wanted = sum(sizes.values())
            assert wanted <= len(members), (
                f"class {label} of {stream} has {len(members)} samples, {wanted} are asked for"
            )
            shuffled = generator("split", seed, stream, int(label)).permutation(members)
            ends = np.cumsum(list(sizes.values()))
            for split, drawn in zip(sizes, np.split(shuffled[:wanted], ends[:-1]), strict=True):
                chosen[split].append(drawn)
    return {split: np.sort(np.concatenate(drawn)) for split, drawn in chosen.items()}


def _sizes(there: int, of_part: Mapping[str, Asked]) -> dict[str, int]:
    left = there - sum(n for n in of_part.values() if n != "all")
    return {split: left if n == "all" else n for split, n in of_part.items()}
