"""DER and DER++: what is stored, and the loss, by a few lines of NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from palimpsest.core.streams import generator
from palimpsest.methods import _memory as memory
from palimpsest.methods import der, derpp
from palimpsest.methods._declaration import HyperparameterError, facts_of
from palimpsest.training.outputs import visible_outputs
from tiny import FACTS, SHAPE, TASKS, batch_of, context_of, spec_of

TOLD = facts_of(FACTS, TASKS)
SAMPLE = 16 + 1 + 6 * 4
CURRENT = visible_outputs(spec_of(), {}, "current")


def batch(n: int, seed: int = 0, labels=None):
    draws = generator("tests", "logits", seed)
    inputs = draws.integers(0, 256, (n, *SHAPE)).astype(np.uint8)
    return batch_of(inputs, draws.integers(0, 6, n) if labels is None else labels)


def context(module=der, places: int = 8, replayed: int = 3, alpha: float = 0.7, beta: float = 0.3, **about):
    """A linear model; `logit_type` and what else a context has."""
    kind = about.pop("logit_type", "float32")
    told = {"buffer_bytes": places * (SAMPLE if kind == "float32" else SAMPLE - 12), "replayed": replayed}
    told |= {"alpha": alpha, "logit_type": kind} | ({"beta": beta} if module is derpp else {})
    return context_of(module.Hyperparameters(**told), hidden=(), step=1, **about)


def linear(now, samples) -> np.ndarray:
    """Outputs of the linear model in float64."""
    weight, bias = (now.model.get_parameter(f"head.{name}").detach().double().numpy() for name in ("weight", "bias"))
    return samples.inputs.numpy().reshape(len(samples), -1) / 255 @ weight.T + bias


def cross_entropy(outputs: np.ndarray, labels) -> float:
    log_sum = np.log(np.exp(outputs).sum(axis=1))
    return float((log_sum - outputs[np.arange(len(outputs)), labels.numpy()]).mean())


def learned(now, module, state, samples):
    """The state after a step on a batch that moved all weights by 0.1."""
    found = module.loss(now, state, samples)
    with torch.no_grad():
        for parameter in now.model.parameters():
            parameter += 0.1
    return module.after_step(now, state, samples, found)


def test_outputs_are_stored_as_they_were_before_the_step():
    """What is stored comes from the forward pass of training, not from the weights after the step."""
    now, samples = context(), batch(5)
    before = linear(now, samples)
    state = learned(now, der, der.init(now), samples)
    np.testing.assert_allclose(state["memory"]["logits"][:5].numpy(), before, rtol=1e-6, atol=1e-6)
    assert np.abs(linear(now, samples) - before).min() > 0.05
    assert not state["memory"]["logits"].requires_grad


def test_a_sample_is_stored_once():
    """At a second presentation its outputs stay as they were first."""
    now, samples = context(), batch(5)
    state = learned(now, der, der.init(now), samples)
    first = state["memory"]["logits"].clone()
    again = replace(samples, first_presentation=torch.zeros(5, dtype=torch.bool))
    state = learned(replace(now, step=2), der, state, again)
    assert torch.equal(first, state["memory"]["logits"])


def test_the_loss_of_der_by_hand():
    """CE(new) + α · mean over drawn samples and outputs of (h − z)²."""
    now, stored, new = context(), batch(6), batch(4, seed=1)
    state = learned(now, der, der.init(now), stored)
    now = replace(now, step=2)
    drawn = now.stream("draw").choice(6, size=3, replace=False)
    z = state["memory"]["logits"].double().numpy()[drawn]
    expected = cross_entropy(linear(now, new), new.labels) + 0.7 * ((linear(now, stored)[drawn] - z) ** 2).mean()
    found = der.loss(now, state, new)
    assert found.value.item() == pytest.approx(expected, rel=1e-6)
    assert found.replayed == 3


def test_the_loss_of_derpp_by_hand():
    """The loss of DER + β · CE of samples that are drawn once more."""
    now, stored, new = context(derpp), batch(6), batch(4, seed=1)
    state = learned(now, derpp, derpp.init(now), stored)
    now = replace(now, step=3)
    first = now.stream("draw").choice(6, size=3, replace=False)
    second = now.stream("draw for labels").choice(6, size=3, replace=False)
    assert set(first) != set(second)
    outputs, z = linear(now, stored), state["memory"]["logits"].double().numpy()
    expected = (
        cross_entropy(linear(now, new), new.labels)
        + 0.7 * ((outputs[first] - z[first]) ** 2).mean()
        + 0.3 * cross_entropy(outputs[second], stored.labels[second])
    )
    found = derpp.loss(now, state, new)
    assert found.value.item() == pytest.approx(expected, rel=1e-6)
    assert found.replayed == 6


@pytest.mark.parametrize("module", [der, derpp])
def test_without_weights_only_new_samples_count(module):
    """α = 0 and β = 0 give the plain loss, bit for bit, and nothing is replayed."""
    now, new = context(module, alpha=0.0, beta=0.0), batch(4, seed=1)
    state = learned(now, module, module.init(now), batch(6))
    found = module.loss(now, state, new)
    assert torch.equal(found.value, now.cross_entropy(new))
    assert found.replayed == 0


def test_hidden_outputs_are_stored_as_absent_and_never_compared():
    """Under the mask `current` a sample keeps the outputs of its own task; the mean is over these two."""
    now, stored = context(mask=CURRENT, replayed=6), batch(6, labels=[0, 1, 2, 3, 4, 5])
    state = learned(now, der, der.init(now), stored)
    z = state["memory"]["logits"].double().numpy()[:6]
    assert (np.isfinite(z) == CURRENT[stored.tasks].numpy()).all()
    squares = np.where(np.isfinite(z), linear(now, stored) - np.where(np.isfinite(z), z, 0), 0) ** 2
    new = batch(1, labels=[0])
    plain = now.cross_entropy(new).item()
    found = der.loss(replace(now, step=2), state, new).value
    assert found.item() - plain == pytest.approx(0.7 * (squares.sum(axis=1) / 2).mean(), rel=1e-5)
    found.backward()
    assert all(torch.isfinite(p.grad).all() for p in now.model.parameters())


@pytest.mark.parametrize("head", ["multi", "expanding"])
def test_outputs_that_the_head_did_not_have_are_never_compared(head):
    """An output that came later, or belongs to another task, has no part in the difference or its gradient."""
    now = context(head=head, stage=1, replayed=2)
    state = learned(now, der, der.init(now), batch(2, labels=[0, 1]))
    later = context(head=head, stage=2, replayed=2)
    found = der.loss(replace(later, step=2), state, batch(2, seed=1, labels=[2, 3])).value
    found.backward()
    assert torch.isfinite(found)
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in later.model.parameters())


def test_stored_outputs_of_two_bytes():
    """With `float16` a sample costs 12 bytes less, and outputs come back within half precision."""
    now, samples = context(logit_type="float16"), batch(5)
    before = linear(now, samples)
    state = learned(now, der, der.init(now), samples)
    assert state["memory"]["logits"].dtype == torch.float16
    assert sum(v.nbytes for v in state["memory"].values() if isinstance(v, torch.Tensor)) == 8 * (SAMPLE - 12)
    np.testing.assert_allclose(state["memory"]["logits"][:5].float().numpy(), before, rtol=1e-3, atol=1e-3)


def test_outputs_count_in_the_budget():
    """Six outputs of 4 bytes, 16 bytes of input and one of label: 41 bytes a sample; 40 are refused."""
    now = context(places=3)
    assert memory.places(der.init(now)["memory"]) == 3
    with pytest.raises(HyperparameterError, match="at least 41 bytes"):
        der.check(now.hyperparameters.model_copy(update={"buffer_bytes": 40}), TOLD)
