"""Elastic weight consolidation: the Fisher against a plain loop, the penalty by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from palimpsest.core.streams import generator
from palimpsest.methods import ewc
from palimpsest.methods._hooks import Batch, Context
from palimpsest.training.outputs import visible_outputs
from tiny import SHAPE, batch_of, context_of, spec_of

N_SAMPLES = 120


def context(
    n_fisher: int | str, mask: torch.Tensor | None = None, hidden=(5,), strength: float = 3.0, stage=1
) -> Context:
    """A context over 120 random samples of the first task."""
    draws = generator("tests", "ewc")
    inputs = draws.integers(0, 256, (N_SAMPLES, *SHAPE)).astype(np.uint8)
    samples = batch_of(inputs, draws.integers(0, 2, N_SAMPLES))
    chosen = ewc.Hyperparameters(strength=strength, fisher_samples=n_fisher)
    return context_of(chosen, method="ewc", hidden=hidden, samples=samples, mask=mask, stage=stage)


def fisher_by_a_loop(now: Context) -> dict[str, torch.Tensor]:
    """One forward and backward pass for each sample, with the label drawn by inversion of the distribution."""
    draws = now.stream("fisher")
    asked = now.hyperparameters.fisher_samples
    count = now.n_samples if asked == "all" else min(asked, now.n_samples)
    indices = draws.choice(now.n_samples, size=count, replace=False)
    uniform = draws.random(count)
    chosen = now.samples(indices)
    total = {name: torch.zeros_like(p) for name, p in now.model.named_parameters()}
    for position in range(count):
        outputs = now.model(chosen.inputs[position : position + 1].float() / 255)
        if now.mask is not None:
            outputs = outputs.masked_fill(~now.mask[chosen.tasks[position]][None], -torch.inf)
        log_probabilities = torch.log_softmax(outputs, dim=1)[0]
        cumulative = log_probabilities.detach().double().exp().cumsum(0).numpy()
        drawn = int(np.searchsorted(cumulative, uniform[position] * cumulative[-1], side="right"))
        now.model.zero_grad()
        log_probabilities[drawn].backward()
        for name, parameter in now.model.named_parameters():
            total[name] += parameter.grad**2
    now.model.zero_grad()
    return {name: value / count for name, value in total.items()}


def current() -> torch.Tensor:
    return visible_outputs(spec_of(), {}, "current")


@pytest.mark.parametrize("n_fisher", [1, 50, 51, 1000, "all"])
@pytest.mark.parametrize("masked", [False, True])
def test_the_fisher_is_that_of_a_plain_loop(n_fisher, masked):
    """The mean of squared gradients, sample by sample, for one sample, full chunks and all samples there are."""
    now = context(n_fisher, current() if masked else None)
    found, expected = ewc.fisher_information(now), fisher_by_a_loop(now)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-7)


def test_the_fisher_is_not_the_square_of_a_mean():
    """The estimate is several times the squared gradient of the batch mean."""
    now = context(100)
    now.cross_entropy(now.samples(np.arange(100))).backward()
    squared = sum(float(p.grad.square().sum()) for p in now.model.parameters())
    assert sum(float(value.sum()) for value in ewc.fisher_information(now).values()) > 3 * squared


def test_hidden_outputs_have_no_importance():
    """Outputs that the training mask hides have a Fisher of exactly 0."""
    found = ewc.fisher_information(context(50, current()))["head.weight"]
    assert (found[:2] > 0).any()
    assert (found[2:] == 0).all()


def test_the_fisher_leaves_the_model_alone():
    """Weights, gradients and mode of the model are as they were."""
    now = context(20)
    before = {name: p.clone() for name, p in now.model.named_parameters()}
    ewc.after_task(now, {"tasks": {}})
    assert all(torch.equal(before[name], p) and p.grad is None for name, p in now.model.named_parameters())
    assert now.model.training


def test_labels_are_drawn_by_inversion():
    """A number u takes the first label whose cumulative probability exceeds u; labels of probability 0 never."""
    probabilities = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0]] * 4, dtype=torch.float64)
    uniform = torch.tensor([0.0, 0.2499, 0.25, 1 - 2**-53], dtype=torch.float64)
    assert torch.vmap(ewc._draw_label)(probabilities, uniform).tolist() == [1, 1, 3, 3]


def remembered(now: Context, fisher: float, shift: float) -> dict:
    """A task whose weights lie `shift` below the model's, with the same importance everywhere."""
    return {
        "fisher": {name: torch.full_like(p, fisher) for name, p in now.model.named_parameters()},
        "weights": {name: p.detach() - shift for name, p in now.model.named_parameters()},
    }


def test_penalty_and_gradient_by_hand():
    """λ/2 Σ_t Σ_i F (θ − θ*)²: 102 weights, F = 2 and 0.5, distances 0.1 and −0.2, λ = 3.

    3/2 · 102 · (2 · 0.01 + 0.5 · 0.04) = 6.12; the gradient of each weight is 3 · (2 · 0.1 − 0.5 · 0.2) = 0.3.
    """
    now = context(1, hidden=())
    state = {"tasks": {"1": remembered(now, 2.0, 0.1), "2": remembered(now, 0.5, -0.2)}}
    penalty = ewc.penalty(now, state, batch())
    penalty.backward()
    assert penalty.item() == pytest.approx(6.12, rel=1e-6)
    for parameter in now.model.parameters():
        torch.testing.assert_close(parameter.grad, torch.full_like(parameter, 0.3), rtol=1e-5, atol=1e-6)


def test_no_penalty_before_the_first_task_ended():
    """Nothing is remembered yet: no penalty."""
    now = context(1)
    assert ewc.penalty(now, ewc.init(now), batch()) is None


def test_no_penalty_without_strength():
    """A strength of 0 adds nothing to the loss, not even a zero."""
    now = context(1, strength=0.0)
    assert ewc.penalty(now, {"tasks": {"1": remembered(now, 1.0, 1.0)}}, batch()) is None


def test_each_task_is_remembered():
    """After two tasks there are two sets of weights and importances, the first as it was."""
    now = context(5)
    first = ewc.after_task(now, ewc.init(now))
    with torch.no_grad():
        now.model.head.weight.add_(1)
    second = ewc.after_task(replace(now, stage=2), first)
    assert list(second["tasks"]) == ["1", "2"]
    moved = second["tasks"]["2"]["weights"]["head.weight"] - second["tasks"]["1"]["weights"]["head.weight"]
    torch.testing.assert_close(moved, torch.ones_like(moved))


def batch() -> Batch:
    return batch_of(np.zeros((1, *SHAPE)), [0])
