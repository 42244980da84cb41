"""Replay: the reservoir, its budget, and the loss over new and stored samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import tiny
from palimpsest.methods import replay
from palimpsest.methods._declaration import HyperparameterError, facts_of
from palimpsest.methods._hooks import Batch, Context, Loss
from palimpsest.models._network import new_network
from tiny import batch_of, context_of, spec_of

FACTS = facts_of({**tiny.FACTS, "shape": [2], "sample_bytes": 2}, tiny.TASKS)
MODEL = new_network(spec_of(hidden=()) | {"inputs": FACTS}, ())


NOW = context_of(model=MODEL, facts=FACTS)


def context(buffer_bytes: int, seed: int = 0, step: int = 1, replayed: int = 4, facts=FACTS) -> Context:
    chosen = replay.Hyperparameters(buffer_bytes=buffer_bytes, replayed=replayed)
    return replace(NOW, hyperparameters=chosen, facts=facts, step=step, key=(seed, "t1", "replay", "replay"))


def batch(numbers, first=True) -> Batch:
    """Samples that carry their number in the input, 256 at most in each of two bytes."""
    numbers = np.asarray(numbers)
    inputs = np.stack([numbers % 256, numbers // 256], axis=1).astype(np.uint8)
    return batch_of(inputs, numbers % 6, first=first)


def offered(now: Context, state: dict, batch: Batch) -> dict:
    """The state after a step on a batch."""
    return replay.after_step(now, state, batch, Loss(torch.zeros(())))


def stream(n: int, size: int, places: int, seed: int = 0) -> dict:
    """The reservoir after n samples in batches of `size`."""
    state = replay.init(context(3 * places, seed))
    for step, start in enumerate(range(0, n, size), start=1):
        numbers = range(start, min(start + size, n))
        state = offered(context(3 * places, seed, step), state, batch(numbers))
    return state


def stored(state: dict) -> list[int]:
    inputs = state["memory"]["inputs"][: state["memory"]["stored"]].long()
    return (inputs[:, 0] + 256 * inputs[:, 1]).tolist()


def test_what_fits_is_stored_in_its_sequence():
    """As long as there are places, every sample is stored, with its label."""
    state = stream(5, 2, places=8)
    assert stored(state) == [0, 1, 2, 3, 4]
    assert state["memory"]["labels"][:5].tolist() == [0, 1, 2, 3, 4]
    assert (state["memory"]["stored"], state["memory"]["met"]) == (5, 5)


def test_a_full_reservoir_holds_different_samples():
    """No sample is stored twice, none is made up, and each has its own label."""
    state = stream(300, 7, places=20)
    numbers = stored(state)
    assert len(set(numbers)) == 20
    assert max(numbers) < 300
    assert state["memory"]["labels"].tolist() == [number % 6 for number in numbers]
    assert (state["memory"]["stored"], state["memory"]["met"]) == (20, 300)


def test_only_first_presentations_count():
    """A second epoch neither fills the reservoir nor moves its counter."""
    state = stream(30, 10, places=5)
    before = (stored(state), state["memory"]["met"])
    state = offered(context(15, step=4), state, batch(range(30), first=False))
    assert (stored(state), state["memory"]["met"]) == before


@pytest.mark.parametrize(("n", "size"), [(40, 1), (40, 7), (40, 40)])
def test_every_sample_is_stored_with_equal_chance(n, size):
    """In 2,000 streams each of 40 samples is stored in 10 places a quarter of the time: within 4.5 binomial SDs.

    The bound holds for all 40 together with probability 0.9997; the streams are named, so the test never flickers.
    """
    counts = np.zeros(n)
    n_streams = 2000 if size == 40 else 400
    for seed in range(n_streams):
        counts[stored(stream(n, size, places=10, seed=seed))] += 1
    deviation = (counts - n_streams / 4) / np.sqrt(n_streams / 4 * 3 / 4)
    assert np.abs(deviation).max() < 4.5
    assert abs(deviation[:10].mean()) < 4.5 / np.sqrt(10)  # those that filled it are neither favoured nor flooded


def test_batches_do_not_change_the_law():
    """The share of early samples is the same when they come one by one as when they come at once."""
    one, at_once = (
        np.mean([np.mean(np.array(stored(stream(40, size, 10, seed))) < 20) for seed in range(300)]) for size in (1, 40)
    )
    assert abs(one - 0.5) < 0.04
    assert abs(at_once - 0.5) < 0.04


@pytest.mark.parametrize("buffer_bytes", [0, 1, 2, 3, 100, 2999, 3000])
def test_the_budget_is_never_exceeded(buffer_bytes):
    """Inputs and labels together take at most the bytes of the budget, and less than one sample fewer."""
    state = replay.init(context(buffer_bytes))
    used = state["memory"]["inputs"].nbytes + state["memory"]["labels"].nbytes
    assert buffer_bytes - 3 < used <= buffer_bytes
    after = stream(50, 9, places=buffer_bytes // 3)
    assert after["memory"]["inputs"].nbytes + after["memory"]["labels"].nbytes == used


@pytest.mark.parametrize(("label_bytes", "kind"), [(1, torch.uint8), (2, torch.int16)])
def test_labels_take_the_bytes_that_the_plan_says(label_bytes, kind):
    """Up to 256 outputs need one byte a label, more of them two."""
    state = replay.init(context(1000, facts=FACTS | {"label_bytes": label_bytes}))
    assert state["memory"]["labels"].dtype == kind
    assert state["memory"]["labels"].element_size() == label_bytes


def test_labels_above_127_come_back():
    """A label of 255 is stored and replayed as 255."""
    state = replay.init(context(3))
    state = offered(context(3), state, batch_of(np.zeros((1, 2)), [255]))
    assert state["memory"]["labels"].long().tolist() == [255]


@pytest.mark.parametrize("buffer_bytes", [1, 2])
def test_a_budget_that_pays_for_no_sample_is_refused(buffer_bytes):
    """Bytes that hold nothing are a mistake; 0 bytes are a choice."""
    with pytest.raises(HyperparameterError, match="at least 3 bytes"):
        replay.check(replay.Hyperparameters(buffer_bytes=buffer_bytes, replayed=1), FACTS)
    replay.check(replay.Hyperparameters(buffer_bytes=0, replayed=1), FACTS)


def test_the_loss_is_the_mean_over_new_and_stored():
    """With all six stored samples replayed beside two new ones, the loss is the mean cross-entropy of the eight."""
    state = stream(6, 6, places=6)
    now = context(18, step=9, replayed=10)
    loss = replay.loss(now, state, batch([100, 101]))
    both = batch([100, 101, *range(6)])
    expected = torch.nn.functional.cross_entropy(MODEL(both.inputs.float() / 255), both.labels)
    assert loss.replayed == 6
    torch.testing.assert_close(loss.value, expected)


def test_stored_samples_are_drawn_without_replacement(monkeypatch):
    """No stored sample stands twice in a step."""
    state = stream(20, 20, places=20)
    met = []
    monkeypatch.setattr(Context, "cross_entropy", lambda self, batch: met.append(batch.inputs) or torch.zeros(()))
    for step in range(30):
        replay.loss(context(60, step=step, replayed=12), state, batch([255]))
    drawn = [inputs[1:, 0].tolist() for inputs in met]
    assert all(len(set(numbers)) == 12 for numbers in drawn)
    assert len({tuple(numbers) for numbers in drawn}) == 30
    assert {number for numbers in drawn for number in numbers} == set(range(20))


def test_an_empty_buffer_replays_nothing():
    """Before anything is stored the loss is that of the new samples alone."""
    now = context(30)
    loss = replay.loss(now, replay.init(now), batch([3, 4]))
    assert loss.replayed == 0
