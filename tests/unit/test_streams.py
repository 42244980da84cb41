"""Named random streams."""

from __future__ import annotations

import numpy as np

from palimpsest.core.streams import generator


def test_a_name_and_key_give_the_same_numbers_for_ever():
    """The first numbers of two streams are those that were written down when the streams were made."""
    assert generator("batches", 0, "t1", 1, 0).permutation(8).tolist() == PERMUTATION
    assert generator("init", 0, "head.weight").random(2).tolist() == UNIFORM


def test_any_part_of_the_key_changes_the_numbers():
    """Streams that differ in the name or in one part of the key share no number."""
    keys = [
        ("init", 0, "a"),
        ("init", 1, "a"),
        ("init", 0, "b"),
        ("method", 0, "a"),
        ("init", 0, "a", 0),
        ("init", "0", "a"),
    ]
    drawn = np.array([generator(*key).random(50) for key in keys])
    assert len(np.unique(drawn)) == drawn.size


def test_parts_of_the_key_do_not_run_together():
    """("a", "bc") and ("ab", "c") are different keys."""
    assert generator("s", "a", "bc").random() != generator("s", "ab", "c").random()


def test_drawing_from_one_stream_leaves_another_alone():
    """Numbers of a stream do not depend on how many were drawn from another one before."""
    untouched = generator("method", 0).random(5)
    generator("batches", 0).random(1000)
    np.testing.assert_array_equal(generator("method", 0).random(5), untouched)


def test_streams_are_uncorrelated():
    """Streams of neighbouring seeds are uncorrelated: |r| of 4,000 pairs stays below 4 standard errors."""
    drawn = np.array([generator("init", seed, "w").standard_normal(4000) for seed in range(6)])
    correlation = np.corrcoef(drawn)[np.triu_indices(6, 1)]
    assert np.abs(correlation).max() < 4 / np.sqrt(4000)


PERMUTATION = [5, 2, 3, 1, 6, 7, 4, 0]
UNIFORM = [0.05021893073827388, 0.5078934339491769]
