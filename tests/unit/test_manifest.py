"""Duplicates, class balance and contamination, on pictures whose relations are known by construction."""

from __future__ import annotations

import numpy as np
import pytest

from palimpsest.core.artifact import Job
from palimpsest.core.duplicates import PER, near_pairs
from palimpsest.core.manifest import CLASSES, DUPLICATES, TIERS_TABLE, write_manifest
from palimpsest.core.streams import generator
from palimpsest.data.samples import Samples
from palimpsest.data.write import write_samples

SHAPES = [(28, 28), (9, 7), (8, 8, 3)]


def pictures(n: int, shape: tuple[int, ...] = (28, 28)) -> np.ndarray:
    return generator("test", "pictures", *shape).integers(0, 256, (n, *shape), dtype=np.uint8)


def by_definition(stored: np.ndarray) -> set[tuple[int, int]]:
    """Every pair that the definition calls near, in exact whole numbers, without bounds and blocks."""
    levels = (stored >> 4).reshape(len(stored), -1).astype(object)
    n_pixels = levels.shape[1]
    contrast = [n_pixels * (row**2).sum() - row.sum() ** 2 for row in levels]
    return {
        (a, b)
        for b in range(len(levels))
        for a in range(b)
        if PER * n_pixels * ((levels[a] - levels[b]) ** 2).sum() <= min(contrast[a], contrast[b])
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_near_pairs_are_those_of_the_definition(shape, monkeypatch):
    """Pictures with ever stronger noise, on both sides of the threshold, over several blocks; blank ones, too."""
    monkeypatch.setattr("palimpsest.core.duplicates.BLOCK", 16)
    noise = generator("test", "noise").normal(0, 1, (40, *shape)) * np.arange(40).reshape(40, *(1 for _ in shape))
    noisy = np.clip(pictures(1, shape) + noise, 0, 255).astype(np.uint8)
    blank = np.stack([np.full(shape, grey, np.uint8) for grey in (0, 1, 200)])
    stored = np.concatenate([noisy, pictures(10, shape), blank])
    expected = by_definition(stored)
    found = [tuple(sorted(pair)) for a, b in near_pairs(stored) for pair in zip(a.tolist(), b.tolist(), strict=True)]
    assert sorted(found) == sorted(expected)
    assert 20 < len(expected) < 780


def manifest(folder, rows) -> Job:
    """Samples from rows (stored input, split, task, label); the manifest is written."""
    base = pictures(3)
    brighter = np.clip(base.astype(int) + 3, 0, 255).astype(np.uint8)
    stored = np.concatenate([base, brighter, base[:1]])  # 3, 4, 5 are near 0, 1, 2; 6 is 0 once more
    inputs, splits, tasks, labels = (list(column) for column in zip(*rows, strict=True))
    job = Job(folder, "data", code="c" * 64, environment="e" * 64)
    numbers = np.arange(len(rows))
    write_samples(
        job, Samples(stored, np.array(inputs), ["d"] * len(rows), splits, numbers, np.array(labels), tasks, ())
    )
    write_manifest(job)
    return job


ROWS = [
    *[(0, "train", "a", 0), (1, "train", "a", 1), (2, "validation", "b", 0)],
    *[(6, "test", "a", 1), (3, "test", "a", 0), (4, "test", "b", 0), (5, "test", "b", 0)],
]


def test_the_tier_of_a_test_sample_follows_the_first_rule_that_holds(tmp_path):
    """The same bytes under another label, near with the same label, near with another one; and nothing."""
    job = manifest(tmp_path, ROWS[:6])
    tiers = job.read_table(TIERS_TABLE, "tiers").to_pylist()
    assert [(row["sample"], row["tier"], row["because_of"]) for row in tiers] == [
        (3, "confirmed", 0),
        (4, "strong", 0),
        (5, "weak", 1),
    ]
    job = manifest(tmp_path, [(0, "train", "a", 0), (2, "test", "a", 0), (5, "test", "a", 0)])
    assert job.read_table(TIERS_TABLE, "tiers")["tier"].to_pylist() == ["none", "none"]


def test_validation_contaminates_like_training(tmp_path):
    """What decides over a run is no better than what it learns from."""
    tiers = manifest(tmp_path, ROWS).read_table(TIERS_TABLE, "tiers").to_pylist()
    assert (tiers[-1]["tier"], tiers[-1]["because_of"]) == ("strong", 2)


def test_duplicates_are_counted_by_split_and_task(tmp_path):
    """Both kinds, in the same task and in another one; a sample is no duplicate of itself."""
    rows = manifest(tmp_path, ROWS).read_table(DUPLICATES, "duplicates").to_pylist()
    found = {tuple(row[name] for name in ("kind", "split", "other_split", "tasks")): row["n"] for row in rows}
    assert {key: n for key, n in found.items() if n} == {
        ("exact", "train", "test", "same"): 1,
        ("exact", "test", "train", "same"): 1,
        ("near", "train", "test", "same"): 1,
        ("near", "train", "test", "other"): 1,
        ("near", "validation", "test", "same"): 1,
        ("near", "test", "train", "same"): 1,
        ("near", "test", "train", "other"): 1,
        ("near", "test", "validation", "same"): 1,
        ("near", "test", "test", "same"): 2,
    }
    assert len(rows) == 2 * 3 * 3 * 2


def test_an_input_that_several_tasks_share_by_design_is_no_duplicate(tmp_path):
    """As in permuted tasks; in another split it is a leak."""
    shared = [(0, "train", "a", 0), (0, "train", "b", 0)]
    rows = manifest(tmp_path, shared).read_table(DUPLICATES, "duplicates").to_pylist()
    assert not any(row["n"] for row in rows)
    job = manifest(tmp_path, [*shared, (0, "test", "b", 0)])
    assert job.read_table(TIERS_TABLE, "tiers")["tier"].to_pylist() == ["confirmed"]


def test_classes_are_counted_by_task_and_split(tmp_path):
    """Every sample once."""
    rows = manifest(tmp_path, ROWS).read_table(CLASSES, "classes").to_pylist()
    assert {"task": "b", "split": "test", "label": 0, "n": 2} in rows
    assert sum(row["n"] for row in rows) == len(ROWS)
