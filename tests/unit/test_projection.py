"""GEM and A-GEM: the quadratic program against a generic solver, the projected gradients by hand, the memories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from palimpsest.core.streams import generator
from palimpsest.methods import _memory as memory
from palimpsest.methods import agem, gem
from palimpsest.methods._declaration import HyperparameterError, facts_of
from palimpsest.methods._hooks import Loss
from tiny import FACTS, SHAPE, TASKS, batch_of, context_of

SAMPLE = 17
TOLD = facts_of(FACTS, TASKS)


def cases(n: int):
    """Random programs: G, g and γ, some with equal, opposite or empty rows, some whose constraints all hold."""
    draws = generator("tests", "quadratic programs")
    for number in range(n):
        tasks, parameters = int(draws.integers(1, 9)), int(draws.integers(8, 40))
        rows, wanted = draws.standard_normal((tasks, parameters)), draws.standard_normal(parameters)
        if number % 5 == 1 and tasks > 1:
            rows[-1] = rows[0]
        if number % 5 == 2 and tasks > 1:
            rows[-1] = -rows[0]
        if number % 5 == 3:
            rows[0] = 0
        if number % 5 == 4:
            rows *= np.where(rows @ wanted < 0, -1, 1)[:, None]
        yield rows, wanted, float(draws.choice([0.0, 0.5, 1.0]))


def by_a_generic_solver(rows: np.ndarray, wanted: np.ndarray, margin: float) -> np.ndarray:
    """The dual program by L-BFGS-B, which knows bounds and gradients and nothing of least squares."""
    square, linear = rows @ rows.T, rows @ wanted
    found = minimize(
        lambda v: (v @ square @ v / 2 + linear @ v, square @ v + linear),
        np.full(len(rows), margin),
        jac=True,
        method="L-BFGS-B",
        bounds=[(margin, None)] * len(rows),
        options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 5000, "maxfun": 50000},
    )
    return found.x


def test_the_program_is_solved_as_by_a_generic_solver():
    """In 1,000 random cases, satisfied constraints and dependent rows included, the projected gradients agree.

    What is compared is g + Gᵀ v: v itself is not unique where rows depend on one another.
    """
    satisfied = 0
    for rows, wanted, margin in cases(1000):
        found = gem.dual(torch.from_numpy(rows), torch.from_numpy(wanted), margin)
        expected = by_a_generic_solver(rows, wanted, margin)
        np.testing.assert_allclose(wanted + rows.T @ found, wanted + rows.T @ expected, rtol=0, atol=1e-6)
        satisfied += bool((rows @ wanted >= 0).all())
    assert satisfied >= 200


def test_the_conditions_of_the_optimum_hold():
    """v ≥ γ, the slope G (g + Gᵀ v) ≥ 0, and one of both with equality: to 1e-9."""
    for rows, wanted, margin in cases(200):
        found = gem.dual(torch.from_numpy(rows), torch.from_numpy(wanted), margin)
        slope = rows @ (wanted + rows.T @ found)
        assert (found >= margin).all()
        assert slope.min() >= -1e-9
        assert np.abs((found - margin) * slope).max() <= 1e-9


def batch(labels, seed: int = 0):
    draws = generator("tests", "projection", seed)
    return batch_of(draws.integers(0, 256, (len(labels), *SHAPE)).astype(np.uint8), labels)


def context(module, places: int = 9, stage: int = 3, **about):
    """A linear model in the third of three stages."""
    own = {"margin": about.pop("margin", 0.0)} if module is gem else {"replayed": about.pop("replayed", 100)}
    told = module.Hyperparameters(buffer_bytes=places * SAMPLE, **own)
    return context_of(told, hidden=(), stage=stage, **about)


def stored(now, *batches):
    """State of GEM after steps on batches."""
    state = gem.init(replace(now, hyperparameters=gem.Hyperparameters(buffer_bytes=now.hyperparameters.buffer_bytes)))
    for of_step in batches:
        state = gem.after_step(now, state, of_step, Loss(torch.zeros(())))
    return state


def gradient_of(now, samples) -> np.ndarray:
    """Gradient of the linear model's mean cross-entropy, weights first: (p − y) xᵀ / n and (p − y) / n."""
    x = samples.inputs.numpy().reshape(len(samples), -1) / 255
    weight, bias = (now.model.get_parameter(f"head.{name}").detach().double().numpy() for name in ("weight", "bias"))
    outputs = x @ weight.T + bias
    p = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    delta = (p - np.eye(6)[samples.labels.numpy()]) / len(samples)
    return np.concatenate([(delta.T @ x).ravel(), delta.sum(axis=0)])


def as_gradients(values: np.ndarray) -> dict[str, torch.Tensor]:
    flat = torch.from_numpy(values.astype(np.float32))
    return {"head.weight": flat[:96].view(6, 16), "head.bias": flat[96:]}


def flat(gradients) -> np.ndarray:
    return torch.cat([gradients["head.weight"].flatten(), gradients["head.bias"]]).double().numpy()


FIRST, SECOND = batch([0, 1, 0], seed=1), batch([2, 3, 3], seed=2)


def test_one_violated_constraint_by_hand():
    """With γ = 0 and one violated constraint GEM gives g − (g·r / r·r) r, and A-GEM the same from all samples."""
    now = context(gem, stage=2)
    state = stored(now, FIRST)
    r = gradient_of(now, FIRST)
    g = -r + generator("tests", "noise").standard_normal(len(r)) * 0.01
    expected = g - (g @ r) / (r @ r) * r
    np.testing.assert_allclose(flat(gem.project(now, state, as_gradients(g))), expected, rtol=0, atol=1e-6)
    of_agem = agem.project(context(agem, stage=2), state, as_gradients(g))
    np.testing.assert_allclose(flat(of_agem), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_two_tasks_have_a_constraint_each(margin):
    """The gradients of the two earlier tasks' memories are the rows, and the generic solver finds the same."""
    now = context(gem, margin=margin)
    state = stored(now, FIRST, SECOND, batch([4, 5]))
    rows = np.stack([gradient_of(now, FIRST), gradient_of(now, SECOND)])
    g = -rows.sum(axis=0)
    expected = g + rows.T @ by_a_generic_solver(rows, g, margin)
    np.testing.assert_allclose(flat(gem.project(now, state, as_gradients(g))), expected, rtol=0, atol=1e-6)


def test_agem_uses_the_mean_over_the_drawn_samples():
    """With two samples drawn of six the reference is their mean gradient."""
    now = context(agem, replayed=2)
    state = stored(now, FIRST, SECOND)
    drawn = now.stream("draw").choice(6, size=2, replace=False)
    r = gradient_of(now, (FIRST + SECOND)[torch.from_numpy(drawn)])
    g = -r + 0.01
    expected = g - (g @ r) / (r @ r) * r
    np.testing.assert_allclose(flat(agem.project(now, state, as_gradients(g))), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("module", [gem, agem])
def test_a_gradient_that_harms_no_task_stays(module):
    """It is not even copied; nor is any gradient while there are no earlier tasks, the current one's memory or not."""
    now = context(module, stage=2)
    g = as_gradients(gradient_of(now, FIRST))
    assert module.project(now, stored(now, FIRST), g) is g
    harmful = as_gradients(-gradient_of(now, SECOND))
    assert module.project(now, stored(now, SECOND), harmful) is harmful


def test_the_last_samples_of_each_task_are_stored():
    """Nine places for three tasks: the last three of each."""
    state = stored(context(gem), batch([0, 1, 0, 1, 0]), batch([2, 2]))
    labels = state["memory"]["labels"][: state["memory"]["stored"]].tolist()
    assert sorted(labels) == [0, 0, 1, 2, 2]


def test_outputs_of_earlier_tasks_take_part():
    """With a head for each task the projection moves the earlier task's layer, which the step's loss did not reach."""
    now = context_of(gem.Hyperparameters(buffer_bytes=9 * SAMPLE), stage=2, head="multi")
    state = stored(now, FIRST)
    shared = {name: p for name, p in now.model.named_parameters() if name.startswith("backbone")}
    found = torch.autograd.grad(now.cross_entropy(FIRST), list(shared.values()))
    harmful = {name: -gradient for name, gradient in zip(shared, found, strict=True)}
    projected = gem.project(now, state, harmful)
    assert projected["head.t1.weight"].abs().max() > 0
    assert projected["head.t3.weight"].abs().max() == 0


def test_a_gradient_that_is_no_number_ends_the_run():
    """Weights that are infinite give gradients that are not finite, and so an outcome instead of an error."""
    now = context(gem, stage=2)
    state = stored(now, FIRST)
    with torch.no_grad():
        now.model.get_parameter("head.bias")[2] = torch.inf
    found = gem.project(now, state, as_gradients(np.ones(102)))
    assert all(torch.isnan(g).all() for g in found.values())


def test_agem_draws_from_the_whole_task_when_it_ends():
    """Three places for a task: three different samples of it; at another visit they are replaced."""
    task = batch([0, 1] * 10, seed=3)
    now = context(agem, stage=1, samples=task)
    state = agem.after_task(now, agem.init(now))
    kept = state["memory"]["inputs"][:3].clone()
    assert state["memory"]["stored"] == 3
    assert len({sample.numpy().tobytes() for sample in kept}) == 3
    again = agem.after_task(replace(now, visit=2), state)
    assert again["memory"]["stored"] == 3
    assert not torch.equal(again["memory"]["inputs"][:3], kept)


@pytest.mark.parametrize("module", [gem, agem])
def test_each_task_needs_a_place(module):
    """Three tasks need three samples of 17 bytes; less is refused with the number that would do."""
    now = context(module)
    with pytest.raises(HyperparameterError, match="at least 51 bytes, the size of one sample for each of 3"):
        module.check(now.hyperparameters.model_copy(update={"buffer_bytes": 50}), TOLD)
    module.check(now.hyperparameters.model_copy(update={"buffer_bytes": 51}), TOLD)
    assert memory.places(module.init(now)["memory"]) == 9
