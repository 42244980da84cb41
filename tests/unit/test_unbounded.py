"""A stream whose boundaries nobody tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from palimpsest.methods import METHODS
from tiny import checkpoint, evaluate, example, new_study, override, recording_of, same_tensors, spec_of, train

STREAM = {"epochs": 1, "reset_optimizer": False}
UNBOUNDED = [
    name
    for name in METHODS.names()
    if not METHODS.load(name, "").DECLARATION.needs_task_boundaries
    and METHODS.load(name, "").DECLARATION.schedule == "sequential"
]


def hidden(*arguments, **about) -> dict:
    return spec_of(*arguments, **STREAM, **about) | {"boundaries": "hidden"}


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A folder with the samples."""
    return new_study(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_method_that_declares_no_boundaries_learns_without_them(study, name) -> None:
    """It trains, predicts within its stages and is evaluated, though nothing tells it of tasks."""
    spec = hidden(name, example(METHODS.load(name, "").Hyperparameters))
    train(study, spec, f"{name}/s0-o0", recording=recording_of(prequential=True, held_out_every=10, tasks="all"))
    evaluate(study, spec, f"{name}/s0-o0")


def test_what_uses_no_boundaries_learns_the_same(study) -> None:
    """Finetune comes to the weights to which it comes when it is told."""
    train(study, hidden(), "hidden/s0-o0")
    train(study, spec_of(**STREAM), "told/s0-o0")
    assert same_tensors(*(checkpoint(study, 3, f"{run}/s0-o0")["model"] for run in ("hidden", "told")))


def test_no_hook_is_told_of_tasks(monkeypatch, study) -> None:
    """Contexts and batches are those of one task from the first step to the last; no begin and no end is announced."""
    contexts, batches, announced, outputs = [], [], [], []

    def after_step(before, context, state, batch, loss):
        contexts.append((context.stage, context.task, context.tasks, context.seen, context.visit, context.n_steps))
        batches.append((context.step, context.stage_step, set(batch.tasks.tolist())))
        outputs.append(context.facts["tasks"])
        with pytest.raises(AssertionError, match="no samples to look up"):
            context.samples([0])
        return before(context, state, batch, loss)

    def announce(before, context, state):
        announced.append(context.stage)
        return state

    override(monkeypatch, "finetune", after_step=after_step, begin_task=announce, after_task=announce)
    train(study, hidden(), "watched/s0-o0")
    assert set(contexts) == {(1, None, (), (), 1, 0)}
    assert batches == [(step, step, {0}) for step in range(1, 13)]
    assert announced == []
    assert outputs == [[[0, 1, 2, 3, 4, 5]]] * 12
