"""Which samples are stored: rings, class-balancing and greedy balancing, by hand and against plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from palimpsest.methods import _memory as memory
from palimpsest.methods import _storage as storage
from palimpsest.methods import replay
from palimpsest.methods._declaration import HyperparameterError
from palimpsest.methods._hooks import Batch
from tiny import FACTS, TASKS, batch_of, context_of

TOLD = FACTS | {"shape": [2], "tasks": list(TASKS.values())}
NOW = context_of(facts=TOLD)
SHARED = TOLD | {"label_tells_task": False, "tasks": [[0, 1], [0, 1]], "n_outputs": 2}
"""Two tasks with the same two classes."""


def batch(labels, tasks=None, start: int = 0, first: bool = True) -> Batch:
    """Samples that carry their number in the stream in their input."""
    numbers = start + np.arange(len(labels))
    return batch_of(np.stack([numbers % 256, numbers // 256], axis=1), labels, tasks, first)


def stored(kept: dict) -> list[int]:
    inputs = kept["inputs"][: kept["stored"]].long()
    return (inputs[:, 0] + 256 * inputs[:, 1]).tolist()


def after(rule: str, labels, places: int, *, size: int = 7, seed: int = 0, facts=TOLD, tasks=None) -> dict:
    """The memory after a stream of samples in batches of `size`."""
    kept = memory.empty(places * memory.sample_bytes(facts), facts)
    labels = np.asarray(labels)
    for step, start in enumerate(range(0, len(labels), size), start=1):
        now = replace(NOW, facts=facts, step=step, key=(seed, "t1", "storage"))
        part = slice(start, start + size)
        of_part = batch(labels[part], None if tasks is None else np.asarray(tasks)[part], start)
        kept = storage.offer(rule, now, kept, of_part)
    return kept


def counts(kept: dict) -> list[int]:
    return np.bincount(kept["labels"][: kept["stored"]].numpy(), minlength=6).tolist()


def test_a_ring_keeps_the_last_of_each_class():
    """Twelve places for six classes: of 0 0 0 1 0 2 the last two of class 0 stay, in the places of the oldest."""
    kept = after("ring", [0, 0, 0, 1, 0, 2], places=12, size=4)
    assert stored(kept) == [2, 4, 3, 5]
    assert kept["met"] == {"0:0": 4, "0:1": 1, "1:2": 1}


def test_a_ring_of_tasks_keeps_the_last_of_each_task():
    """Six places for three tasks: two samples of each, whatever their class."""
    assert stored(after("ring_of_tasks", [0, 0, 1, 2, 3, 3, 4], places=6, size=3)) == [2, 1, 5, 4, 6]


@pytest.mark.parametrize("size", [1, 3, 50])
def test_rings_are_those_of_queues(size):
    """The samples are those of a queue of fixed length for each class of each task, whatever the batches."""
    draws = np.random.Generator(np.random.Philox(0))
    labels, tasks = draws.integers(0, 2, 90), np.sort(draws.integers(0, 2, 90))
    kept = after("ring", labels, places=13, size=size, facts=SHARED, tasks=tasks)
    queues = {(t, c): [n for n in range(90) if (tasks[n], labels[n]) == (t, c)][-3:] for t in (0, 1) for c in (0, 1)}
    assert sorted(stored(kept)) == sorted(number for queue in queues.values() for number in queue)
    numbers = stored(kept)
    assert kept["labels"][: len(numbers)].tolist() == labels[numbers].tolist()
    assert kept["tasks"][: len(numbers)].tolist() == tasks[numbers].tolist()


def class_balancing_by_lists(labels, places: int, numbers: np.ndarray) -> list[int]:
    """The paper's algorithm on a list of sample numbers, one sample at a time."""
    held, came, full = [], dict.fromkeys(range(6), 0), set()
    for sample, label in enumerate(labels):
        came[label] += 1
        if len(held) < places:
            held.append(sample)
            continue
        of_class = {c: [p for p, s in enumerate(held) if labels[s] == c] for c in range(6)}
        most = max(map(len, of_class.values()))
        largest = [c for c in range(6) if len(of_class[c]) == most]
        full |= set(largest)
        if label not in full:
            where = sorted(p for c in largest for p in of_class[c])
        elif numbers[sample, 0] <= len(of_class[label]) / came[label]:
            where = of_class[label]
        else:
            continue
        held[where[int(numbers[sample, 1] * len(where))]] = sample
    return held


def test_class_balancing_is_that_of_lists():
    """The same samples in the same places as by the paper's algorithm, on a very uneven stream."""
    draws = np.random.Generator(np.random.Philox(1))
    labels = draws.choice(6, p=[0.5, 0.3, 0.1, 0.05, 0.04, 0.01], size=400)
    kept = after("class_balanced", labels, places=30, size=1)
    streams = (replace(NOW, step=step, key=(0, "t1", "storage")).stream("store") for step in range(1, 401))
    numbers = np.concatenate([stream.random((1, 2)) for stream in streams])
    assert stored(kept) == class_balancing_by_lists(labels, 30, numbers)


def test_class_balancing_keeps_rare_classes_whole():
    """Of 300, 100 and 5 samples of three classes in a row, 30 places hold all five rare ones; the others share."""
    found = counts(after("class_balanced", [0] * 300 + [1] * 100 + [2] * 5, places=30))
    assert found[2] == 5
    assert sorted(found[:2]) == [12, 13]


def test_class_balancing_is_fair_within_a_class():
    """Each of 40 samples of one class is stored in 10 places a quarter of the time: within 4.5 binomial SDs."""
    found = np.zeros(40)
    for seed in range(400):
        found[stored(after("class_balanced", [0] * 40, places=10, seed=seed))] += 1
    assert np.abs((found - 100) / np.sqrt(75)).max() < 4.5


def test_greedy_balancing_by_hand():
    """Four places: three of class 0; then 1 takes the last place, and one of 0's, and then has its share of two."""
    assert counts(after("greedy", [0, 0, 0], places=4))[:2] == [3, 0]
    assert counts(after("greedy", [0, 0, 0, 1], places=4))[:2] == [3, 1]
    assert counts(after("greedy", [0, 0, 0, 1, 1], places=4))[:2] == [2, 2]
    kept = after("greedy", [0, 0, 0, 1, 1, 1], places=4)
    assert counts(kept)[:2] == [2, 2]
    assert 5 not in stored(kept)


def test_greedy_balancing_leaves_places_for_other_classes():
    """A class that has its share is not stored, though there is room."""
    assert stored(after("greedy", [0, 1, 1, 1], places=4)) == [0, 1, 2]


def test_a_new_class_is_always_stored():
    """With more classes than places the newest class has a place, that of one of the largest."""
    kept = after("greedy", [0, 1, 2, 3, 4, 5], places=2)
    assert counts(kept)[5] == 1
    assert sum(counts(kept)) == 2


@pytest.mark.parametrize("rule", storage.RULES)
@pytest.mark.parametrize("places", [1, 2, 5, 17, 1000])
def test_the_memory_is_in_order(rule, places):
    """Whatever is stored is a sample of the stream with its own label, none twice, within the places."""
    draws = np.random.Generator(np.random.Philox(2))
    labels = draws.integers(0, 6, 120)
    places = max(places, storage.n_groups(rule, TOLD))
    kept = after(rule, labels, places)
    numbers = stored(kept)
    assert len(set(numbers)) == len(numbers) <= places
    assert kept["labels"][: len(numbers)].tolist() == labels[numbers].tolist()
    assert memory.places(kept) == places


@pytest.mark.parametrize("rule", storage.RULES)
def test_only_first_presentations_are_offered(rule):
    """Samples that come again change nothing."""
    kept = after(rule, [0, 1, 2, 3, 4, 5] * 4, places=12)
    before = stored(kept), {name: value for name, value in kept.items() if not isinstance(value, torch.Tensor)}
    kept = storage.offer(rule, NOW, kept, batch([0, 1, 2, 3, 4, 5], first=False, start=100))
    assert before == (stored(kept), {name: v for name, v in kept.items() if not isinstance(v, torch.Tensor)})


@pytest.mark.parametrize("rule", storage.RULES)
def test_no_places_store_nothing(rule):
    """A memory of 0 bytes stays as it is."""
    assert after(rule, [0, 1, 2], places=0)["stored"] == 0


def test_what_else_is_kept_follows_its_sample():
    """A value that comes with each sample lies in the place of that sample."""
    extra = {"number": ((), torch.float32)}
    kept = memory.empty(20 * memory.sample_bytes(TOLD, extra), TOLD, extra)
    for step in range(1, 30):
        of_step = batch([step % 6] * 5, start=5 * step)
        numbers = of_step.inputs[:, 0].float() + 256 * of_step.inputs[:, 1]
        kept = storage.offer("reservoir", replace(NOW, step=step), kept, of_step, number=numbers)
    assert kept["number"].long().tolist() == stored(kept)


def test_rings_need_a_place_for_each_class():
    """Six classes need six samples of three bytes; less is refused, with the number that would do."""
    told = replay.Hyperparameters(buffer_bytes=17, replayed=1, storage="ring")
    with pytest.raises(HyperparameterError, match=r"at least 18 bytes, the size of one sample for each of 6"):
        replay.check(told, TOLD)
    replay.check(told.model_copy(update={"buffer_bytes": 18}), TOLD)
    replay.check(told.model_copy(update={"buffer_bytes": 0}), TOLD)
