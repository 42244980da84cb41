"""What every method with a budget of bytes promises: the memory never takes more, and nothing is kept beside it."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import torch

from palimpsest.methods import METHODS
from tiny import SHAPE, example, leaves, new_study, override, spec_of, train

BUDGETED = [name for name in METHODS.names() if "buffer_bytes" in METHODS.load(name, "").Hyperparameters.model_fields]


def variants(name: str) -> list[dict[str, Any]]:
    """The example of a method, and with each value that a hyperparameter of few values may have."""
    model = METHODS.load(name, "").Hyperparameters
    choices = {field: get_args(about.annotation) for field, about in model.model_fields.items()}
    return [
        {**example(model), field: value}
        for field, values in choices.items()
        for value in values
        if isinstance(value, str)
    ] or [example(model)]


CASES = [(name, chosen) for name in BUDGETED for chosen in variants(name)]
NAMED = [f"{name}-{'-'.join(v for v in chosen.values() if isinstance(v, str))}".strip("-") for name, chosen in CASES]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Tasks of 22, 2 and 44 training samples."""
    return new_study(tmp_path_factory.mktemp("tiny"), per_class={"t1": 11, "t2": 1, "t3": 22})


def bytes_of(state: Any) -> int:
    return sum(value.nbytes for _, value in leaves(state) if isinstance(value, torch.Tensor))


@pytest.mark.parametrize(("name", "chosen"), CASES, ids=NAMED)
@pytest.mark.parametrize("buffer_bytes", [300, 700, 5000])
def test_the_budget_is_kept_at_every_step(request, study, monkeypatch, name, chosen, buffer_bytes):
    """After every hook the memory takes at most the budget, always the same, and no input is kept anywhere else."""
    met = set()

    def watched(before, context, state, *others):
        state = before(context, state, *others)
        met.add(bytes_of(state["memory"]))
        beside = [v for key, value in state.items() if key != "memory" for _, v in leaves(value)]
        assert not [v for v in beside if isinstance(v, torch.Tensor) and tuple(v.shape[1:]) == SHAPE]
        return state

    override(monkeypatch, name, begin_task=watched, after_step=watched, after_task=watched)
    declared = METHODS.load(name, "").DECLARATION
    told = spec_of(name, {**chosen, "buffer_bytes": buffer_bytes}, stage_schedule=declared.schedule)
    train(study, told, f"{request.node.callspec.id}/s0-o0")
    (used,) = met
    assert used <= buffer_bytes
    assert used > 0
