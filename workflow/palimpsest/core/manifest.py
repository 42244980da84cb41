"""The manifest of a study's data: how many samples of each class there are, and what leaks from one part to another.

It is made of `data/samples.parquet` and `data/inputs.npy`, which training reads, and training does not read it.
Inputs are compared as they are stored, before a task moves their pixels: a picture that is trained in one task and
tested, turned, in another one is a leak. Samples of one split that share a stored input do so by design, and are not
counted as duplicates.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.core.artifact import Job
from palimpsest.core.duplicates import LEVEL_BITS, PER, exact_groups, near_pairs

SAMPLES, INPUTS = "data/samples.parquet", "data/inputs.npy"
CLASSES, DUPLICATES, TIERS_TABLE = (f"data/manifest/{name}.parquet" for name in ("classes", "duplicates", "tiers"))
SPLITS = ("train", "validation", "test")
FED_BACK = ("train", "validation")
"""Splits that a run learns from, or that decide over it."""
TIERS = {
    "confirmed": "the same input is a training or validation sample, under any label",
    "strong": "a near duplicate is a training or validation sample with the same label",
    "weak": "near duplicates are training or validation samples, with other labels",
    "none": "neither",
}
"""Tiers of contamination of a test sample and their rules; the first that holds counts."""
_ABSENT = np.iinfo(np.int64).max

Pair = tuple[np.ndarray, np.ndarray]


def write_manifest(job: Job) -> dict[str, int]:
    """Write the tables of `data/manifest/`; returns how many test samples there are of each tier.

    `classes` counts samples by task, split and label. `duplicates` counts the samples of a split that have an exact or
    a near duplicate in a split, of the same task or of another one. `tiers` has the tier of each test sample, with the
    first sample of training or validation that is the reason.
    """
    samples = job.read_table(SAMPLES, "samples")
    stored = np.load(job.locate(INPUTS), mmap_mode="r", allow_pickle=False)
    keys = ["task", "split", "label"]
    classes = samples.group_by(keys, use_threads=False).aggregate([([], "count_all")])
    job.write_table(CLASSES, "classes", classes.rename_columns([*keys, "n"]))
    first = exact_groups(stored)
    (distinct,) = np.nonzero(first == np.arange(len(first)))
    near = [(distinct[a], distinct[b]) for a, b in near_pairs(stored[distinct])]
    about = {"near": {"levels": 2**LEVEL_BITS, "contrast_per_squared_distance": PER}, "tiers": TIERS}
    job.write_table(DUPLICATES, "duplicates", _duplicates(samples, first, near), **about)
    tiers = _tiers(samples, first, near)
    job.write_table(TIERS_TABLE, "tiers", tiers, **about)
    counted = Counter(tiers["tier"].to_pylist())
    return {tier: counted[tier] for tier in TIERS}


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray, list[Any]]:
    """Each value's place among the distinct ones, and these."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _duplicates(samples: pa.Table, first: np.ndarray, near: list[Pair]) -> dict[str, Any]:
    own, input = first[samples["input"].to_numpy()], samples["input"].to_numpy()
    (task, tasks), split = _codes(samples["task"]), pc.index_in(samples["split"], pa.array(SPLITS)).to_numpy()
    place = split.astype(np.int64) * len(tasks) + task
    shape = (len(first), len(SPLITS) * len(tasks))
    # Of each distinct input and each split and task: whether there is a sample, and under which stored inputs.
    there, lowest, highest = np.zeros(shape, bool), np.full(shape, _ABSENT), np.full(shape, -1)
    there[own, place] = True
    np.minimum.at(lowest, (own, place), input)
    np.maximum.at(highest, (own, place), input)
    beside = np.zeros(shape, bool)
    for a, b in near:
        np.logical_or.at(beside, a, there[b])
        np.logical_or.at(beside, b, there[a])
    rows = []
    for kind in ("exact", "near"):
        for other in range(len(SPLITS)):
            columns = slice(other * len(tasks), (other + 1) * len(tasks))
            if kind == "near":
                found = beside[own, columns]
            else:
                # Within a split, the sample's own stored input is no duplicate of itself.
                differs = (lowest[own, columns] != input[:, None]) | (highest[own, columns] != input[:, None])
                found = there[own, columns] & (differs | (split != other)[:, None])
            same = found[np.arange(len(own)), task]
            elsewhere = found.sum(axis=1) > same
            for here, name in enumerate(SPLITS):
                for tasks_are, hit in (("same", same), ("other", elsewhere)):
                    n = int((hit & (split == here)).sum())
                    rows.append((kind, name, SPLITS[other], tasks_are, n))
    return dict(zip(("kind", "split", "other_split", "tasks", "n"), zip(*rows, strict=True), strict=True))


def _tiers(samples: pa.Table, first: np.ndarray, near: list[Pair]) -> dict[str, Any]:
    own, number = first[samples["input"].to_numpy()], samples["sample"].to_numpy()
    label, labels = _codes(samples["label"])
    feeds = pc.is_in(samples["split"], pa.array(FED_BACK)).to_numpy(zero_copy_only=False)
    is_test = pc.equal(samples["split"], "test").to_numpy(zero_copy_only=False)
    # Of each distinct input and label: the first sample that feeds back, and the first near one.
    exact = np.full((len(first), len(labels)), _ABSENT)
    np.minimum.at(exact, (own[feeds], label[feeds]), number[feeds])
    beside = np.full_like(exact, _ABSENT)
    for a, b in near:
        np.minimum.at(beside, a, exact[b])
        np.minimum.at(beside, b, exact[a])
    own, label = own[is_test], label[is_test]
    reasons = {"confirmed": exact.min(axis=1)[own], "strong": beside[own, label], "weak": beside.min(axis=1)[own]}
    tier, reason = np.full(len(own), "none", dtype=object), np.full(len(own), _ABSENT)
    for name, found in reversed(reasons.items()):
        tier[found != _ABSENT] = name
        reason = np.where(found != _ABSENT, found, reason)
    tests = samples.filter(pa.array(is_test))
    return {
        "sample": tests["sample"],
        "task": tests["task"],
        "tier": pa.array(tier, pa.string()),
        "because_of": pa.array(reason, mask=reason == _ABSENT),
    }
