"""Which samples are for training, for validation and for test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from palimpsest.core.streams import generator

SPLITS = ("train", "validation", "test")


def stratified(labels: np.ndarray, per_class: Mapping[str, int], seed: int, dataset: str) -> dict[str, np.ndarray]:
    """Draw the same number of samples of every class for each split, without overlap.

    Args:
        labels: class of each sample, `[sample]`.
        per_class: samples of one class for each of `SPLITS`.
        seed: the benchmark's seed; each class has a stream of its own.
        dataset: name of the data set, part of the stream's key.

    Returns:
        Sorted sample indices for each split. Samples that are left over belong to none.
    """
    wanted = sum(per_class[split] for split in SPLITS)
    chosen: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for label in np.unique(labels):
        (members,) = np.nonzero(labels == label)
        assert len(members) >= wanted, f"class {label} of {dataset} has {len(members)} samples, {wanted} are asked for"
        shuffled = generator("split", seed, dataset, int(label)).permutation(members)
        ends = np.cumsum([per_class[split] for split in SPLITS])
        for split, part in zip(SPLITS, np.split(shuffled[:wanted], ends[:-1]), strict=True):
            chosen[split].append(part)
    return {split: np.sort(np.concatenate(parts)) for split, parts in chosen.items()}
