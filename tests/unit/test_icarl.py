"""iCaRL against NumPy: the sequence of exemplars, the nearest mean, and the loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import tiny
from palimpsest.core.streams import generator
from palimpsest.methods import _memory as memory
from palimpsest.methods import icarl
from palimpsest.methods._declaration import HyperparameterError, ModelError
from tiny import FACTS, SHAPE, batch_of, context_of

PLACES = 8


def samples(labels, seed: int = 0):
    draws = generator("test", seed)
    return batch_of(draws.integers(0, 256, (len(labels), *SHAPE)), labels)


def context(stage: int, labels, replayed: int = 3, **about):
    chosen = icarl.Hyperparameters(buffer_bytes=PLACES * memory.sample_bytes(FACTS), replayed=replayed)
    return context_of(chosen, method="icarl", stage=stage, samples=samples(labels, stage), **about)


@pytest.fixture(scope="module")
def after_two():
    """Contexts of two stages, and the states after them; the model changes between the two."""
    first = context(1, [0, 1] * 6)
    one = icarl.after_task(first, icarl.init(first))
    second = replace(context(2, [2, 3, 3, 2, 2]), model=first.model)
    with torch.no_grad():
        for weight in second.model.parameters():
            weight.mul_(1.5).add_(0.05)
    return first, one, second, icarl.after_task(second, one)


def features(now, inputs) -> np.ndarray:
    found = now.features(inputs).detach().numpy().astype(np.float64)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_herding_by_hand():
    """Of 0, 1, 5 and 6 on a line (mean 3): 5 and 1 are as near, the first counts; then 5 makes the mean 3 exactly."""
    points = torch.tensor([[0.0], [1.0], [5.0], [6.0]])
    assert icarl.herd(points, 3).tolist() == [1, 2, 0]
    assert icarl.herd(points, 9).tolist() == [1, 2, 0, 3]


def test_herding_against_plain_loops():
    """The sequence is that of a search over all samples that are left, in double precision."""
    points = generator("test", 1).normal(size=(40, 6))
    chosen: list[int] = []
    for _ in range(15):
        left = [i for i in range(40) if i not in chosen]
        chosen.append(min(left, key=lambda i: np.linalg.norm(points.mean(0) - points[[*chosen, i]].mean(0))))
    assert icarl.herd(torch.from_numpy(points), 15).tolist() == chosen


def test_old_classes_keep_their_first_exemplars(after_two):
    """Eight places are four for each of two classes, then two for each of four, the first ones of the four."""
    _, one, _, two = after_two
    assert np.bincount(one["memory"]["labels"]).tolist() == [4, 4]
    assert np.bincount(two["memory"]["labels"]).tolist() == [2, 2, 2, 2]
    for label in (0, 1):
        before, after = (s["memory"]["inputs"][s["memory"]["labels"] == label] for s in (one, two))
        assert torch.equal(after, before[:2])


def test_the_nearest_mean_of_exemplars(after_two):
    """Scores are minus the squared distances to the means, normalised again; classes to come have none."""
    _, _, now, state = after_two
    inputs = samples([0] * 9, seed=9).inputs
    scores = icarl.predict(now, state, inputs, None).numpy()
    for label in range(4):
        mean = features(now, state["memory"]["inputs"][state["memory"]["labels"] == label]).mean(axis=0)
        mean /= np.linalg.norm(mean)
        expected = -((features(now, inputs) - mean) ** 2).sum(axis=1)
        assert scores[:, label] == pytest.approx(expected, abs=1e-6)
    assert np.isneginf(scores[:, 4:]).all()


def test_the_loss(after_two):
    """Sigmoid cross-entropy: labels for the stage's outputs, the model before for earlier ones, none for later ones."""
    _, one, now, _ = after_two
    batch = samples([2, 3], seed=5)
    found = icarl.loss(now, one, batch)
    drawn = memory.draw(now, one["memory"], 3)
    inputs = torch.cat([batch.inputs, one["memory"]["inputs"][drawn]])
    labels = np.concatenate([batch.labels.numpy(), one["memory"]["labels"][drawn].numpy()])
    new = now.outputs(inputs, None).detach().numpy().astype(np.float64)
    old_model = tiny.context_of(stage=1).model
    old_model.load_state_dict(one["teacher"])
    old = old_model(inputs / 255, None).detach().numpy().astype(np.float64)
    targets = np.eye(6)[labels]
    targets[:, :2] = 1 / (1 + np.exp(-old[:, :2]))
    p = 1 / (1 + np.exp(-new[:, :4]))
    terms = -(targets[:, :4] * np.log(p) + (1 - targets[:, :4]) * np.log(1 - p))
    assert found.replayed == 3
    assert found.value.item() == pytest.approx(terms.sum(axis=1).mean(), abs=1e-6)


def test_what_it_refuses():
    """A memory with less than one exemplar of each class, and tasks that share their classes."""
    enough = icarl.Hyperparameters(buffer_bytes=6 * memory.sample_bytes(FACTS), replayed=1)
    icarl.check(enough, FACTS)
    with pytest.raises(HyperparameterError, match="one sample for each of 6"):
        icarl.check(enough.model_copy(update={"buffer_bytes": enough.buffer_bytes - 1}), FACTS)
    with pytest.raises(ModelError, match="share their classes"):
        icarl.check(enough, FACTS | {"label_tells_task": False})
