"""GDumb: what is stored by hand, passes over it, and a loss that sees nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from palimpsest.methods import _memory as memory
from palimpsest.methods import gdumb
from palimpsest.methods._declaration import HyperparameterError
from tiny import FACTS, SHAPE, batch_of, context_of

STREAM = [0] * 6 + [1] * 2 + [2] * 5


def samples(labels):
    """Samples of some classes, each with its number in the stream in every byte."""
    numbers = np.arange(len(labels), dtype=np.uint8)
    return batch_of(np.repeat(numbers, int(np.prod(SHAPE))).reshape(-1, *SHAPE), labels)


def context(places: int, replayed: int = 3, labels=STREAM, **about):
    chosen = gdumb.Hyperparameters(buffer_bytes=places * memory.sample_bytes(FACTS), replayed=replayed)
    return context_of(chosen, method="gdumb", samples=samples(labels), **about)


def begun(now):
    return gdumb.begin_task(now, gdumb.init(now))


def labels_of(state) -> list[int]:
    return np.bincount(state["memory"]["labels"][: state["memory"]["stored"]].numpy(), minlength=6).tolist()


def test_quotas_and_whose_place_is_taken():
    """Six places for three classes are two for each; a fourth class leaves 1.5, and takes from the largest."""
    now = context(places=6, labels=[0] * 6 + [1] * 6 + [2] * 6)
    state = begun(now)
    assert labels_of(state) == [2, 2, 2, 0, 0, 0]
    later = replace(now, task="t3", step=99, samples=lambda i: samples([5] * 3)[torch.as_tensor(i)], n_samples=3)
    found = labels_of(gdumb.begin_task(later, state))
    # Of the new class a first and a second sample come below 1.5, the third does not; each took one of a full pair.
    assert (sorted(found[:3]), found[5]) == ([1, 1, 2], 2)


def test_the_model_begins_anew():
    """What was learned before is gone when a stage begins."""
    now = context(places=4)
    with torch.no_grad():
        for weight in now.model.parameters():
            weight.add_(1)
    begun(now)
    initial = now.initial()
    assert all(torch.equal(value, initial[name]) for name, value in now.model.state_dict().items())


def test_a_pass_takes_every_sample_once_and_the_next_is_shuffled_anew():
    """Seven samples by three: three steps, of three, three and one."""
    now = context(places=7)
    state = begun(now)
    passes = []
    for number in range(2):
        steps = [
            memory.next_of_pass(replace(now, stage_step=3 * number + step), state["memory"], 3) for step in (1, 2, 3)
        ]
        assert [len(step) for step in steps] == [3, 3, 1]
        passes.append(torch.cat(steps).tolist())
        assert sorted(passes[-1]) == list(range(7))
    assert passes[0] != passes[1]


def test_the_loss_is_that_of_stored_samples_alone():
    """Cross-entropy by NumPy of the samples whose turn it is, whatever mini-batch the stage brings."""
    now = replace(context(places=7), stage_step=2)
    state = begun(now)
    found = [gdumb.loss(now, state, batch) for batch in (samples([4]), samples([1, 2, 3]))]
    chosen = memory.next_of_pass(now, state["memory"], 3)
    outputs = now.outputs(state["memory"]["inputs"][chosen], None).detach().numpy().astype(np.float64)
    of_label = outputs[np.arange(3), state["memory"]["labels"][chosen].numpy()]
    expected = (np.log(np.exp(outputs).sum(axis=1)) - of_label).mean()
    assert found[0].replayed == 3
    assert found[0].value.item() == found[1].value.item() == pytest.approx(expected, abs=1e-6)


def test_a_memory_without_a_place_is_refused():
    """There would be nothing to learn from."""
    with pytest.raises(HyperparameterError, match="at least"):
        gdumb.check(gdumb.Hyperparameters(buffer_bytes=memory.sample_bytes(FACTS) - 1, replayed=1), FACTS)
