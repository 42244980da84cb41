"""Which samples are for training, validation and test."""

from __future__ import annotations

import numpy as np
import pytest

from palimpsest.data.splits import SPLITS, stratified

LABELS = np.repeat([0, 1, 2], [20, 30, 40])
PER_CLASS = {"train": 9, "validation": 3, "test": 5}


def test_every_class_has_the_same_share():
    """Each split holds the asked number of samples of every class, however many there are."""
    for split, members in stratified(LABELS, 0, PER_CLASS, 0, "d").items():
        assert np.bincount(LABELS[members]).tolist() == [PER_CLASS[split]] * 3


def test_splits_are_disjoint():
    """No sample stands in two splits, or twice in one."""
    members = np.concatenate(list(stratified(LABELS, 0, PER_CLASS, 0, "d").values()))
    assert len(np.unique(members)) == len(members) == 51


def test_indices_ascend():
    """The indices of a split are sorted."""
    assert all((np.diff(members) > 0).all() for members in stratified(LABELS, 0, PER_CLASS, 0, "d").values())


def test_the_split_is_a_function_of_seed_and_data_set():
    """The same seed gives the same split; another seed or data set gives another one."""
    first, same, other_seed, other_set = (
        np.concatenate([stratified(LABELS, 0, PER_CLASS, seed, name)[split] for split in SPLITS])
        for seed, name in ((0, "d"), (0, "d"), (1, "d"), (0, "e"))
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other_seed)
    assert not np.array_equal(first, other_set)


def test_one_class_does_not_move_another():
    """More samples of one class leave the split of the other classes as it was."""
    longer = np.concatenate([LABELS, [2] * 10])
    before, after = stratified(LABELS, 0, PER_CLASS, 0, "d"), stratified(longer, 0, PER_CLASS, 0, "d")
    for split in SPLITS:
        assert np.array_equal(before[split][before[split] < 50], after[split][after[split] < 50])


def test_no_validation_samples_is_possible():
    """A split may be empty."""
    assert len(stratified(LABELS, 0, PER_CLASS | {"validation": 0}, 0, "d")["validation"]) == 0


def test_more_samples_than_a_class_has_is_an_error():
    """A class that is too small is named."""
    with pytest.raises(AssertionError, match="class 0 of d has 20 samples, 33 are asked for"):
        stratified(LABELS, 0, PER_CLASS | {"train": 25}, 0, "d")


@pytest.mark.parametrize("n_own_test", [0, 45])
def test_all_are_those_that_the_others_leave(n_own_test):
    """With `all` for training every sample belongs to a split, and the other splits are as large as they were asked."""
    labels = np.concatenate([LABELS, np.repeat([0, 1, 2], [15, 15, 15])])
    drawn = stratified(labels, n_own_test, PER_CLASS | {"train": "all"}, 0, "d")
    n_left_over = 30 if n_own_test else 0
    assert len(np.concatenate(list(drawn.values()))) == len(labels) - n_left_over
    assert np.bincount(labels[drawn["validation"]]).tolist() == [3] * 3
    assert np.bincount(labels[drawn["test"]]).tolist() == [5] * 3


def test_own_test_samples_are_for_test_and_for_nothing_else():
    """Of a data set with test samples of its own, at its end, these alone are for test."""
    labels = np.concatenate([LABELS, LABELS])
    drawn = stratified(labels, len(LABELS), {"train": "all", "validation": 2, "test": "all"}, 0, "d")
    assert drawn["test"].tolist() == list(range(len(LABELS), 2 * len(LABELS)))
    assert np.sort(np.concatenate([drawn["train"], drawn["validation"]])).tolist() == list(range(len(LABELS)))
