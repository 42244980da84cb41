"""EWC's estimators, SI, MAS, RWalk and LwF on a linear model, against formulas in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from palimpsest.core.streams import generator
from palimpsest.methods import _quadratic as quadratic
from palimpsest.methods import ewc, lwf, mas, rwalk, si
from palimpsest.methods._hooks import Loss
from palimpsest.training.outputs import visible_outputs
from tiny import N_OUTPUTS, SHAPE, TASKS, batch_of, context_of, fresh_model, spec_of

N = 6
DRAWS = generator("tests", "importance")
X = DRAWS.integers(0, 256, (N, *SHAPE)).astype(np.uint8)
Y = DRAWS.integers(0, 2, N)
FLAT = (X.reshape(N, -1) / 255).astype(np.float64)


def linear(hyperparameters=None, **about):
    """A context with a linear model of 6 outputs on six samples of the first task."""
    return context_of(hyperparameters, hidden=(), samples=batch_of(X, Y), **about)


def numbers(context) -> tuple[np.ndarray, np.ndarray]:
    head = context.model.head
    return head.weight.detach().double().numpy().copy(), head.bias.detach().double().numpy().copy()


def probabilities(context) -> np.ndarray:
    weight, bias = numbers(context)
    z = FLAT @ weight.T + bias
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def log_gradient(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """∂ log p(label | x) / ∂ weight of a linear model, `[sample, output, input]`: (one-hot − p) xᵀ."""
    return (np.eye(N_OUTPUTS)[labels] - p)[:, :, None] * FLAT[:, None, :]


# EWC


def test_the_empirical_fisher_by_hand():
    """Mean over samples of ((one-hot − p) xᵀ)², with the samples' labels."""
    now = linear(ewc.Hyperparameters(strength=1.0, fisher_samples=N, fisher="empirical"))
    expected = (log_gradient(probabilities(now), Y) ** 2).mean(axis=0)
    np.testing.assert_allclose(ewc.fisher_information(now)["head.weight"], expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("masked", [False, True])
def test_the_exact_fisher_by_hand(masked):
    """Mean over samples of Σ_y p(y) ((one-hot(y) − p) xᵀ)², over the outputs that the mask shows."""
    mask = visible_outputs(spec_of(), {}, "current") if masked else None
    now = linear(ewc.Hyperparameters(strength=1.0, fisher_samples=N, fisher="exact"), mask=mask)
    p = probabilities(now)
    if masked:
        p[:, 2:] = 0
        p /= p.sum(axis=1, keepdims=True)
    expected = sum(
        (p[:, y, None, None] * log_gradient(p, np.full(N, y)) ** 2).mean(axis=0) for y in range(2 if masked else 6)
    )
    np.testing.assert_allclose(ewc.fisher_information(now)["head.weight"], expected, rtol=1e-4, atol=1e-7)


def test_sampled_labels_come_to_the_exact_fisher():
    """The mean of 400 sampled estimates is within 10 % of the exact one in the sum over all weights."""
    exact = ewc.fisher_information(linear(ewc.Hyperparameters(strength=1.0, fisher_samples=N, fisher="exact")))
    now = linear(ewc.Hyperparameters(strength=1.0, fisher_samples=N))
    sampled = [ewc.fisher_information(replace(now, step=k))["head.weight"].sum() for k in range(400)]
    assert np.mean(sampled) == pytest.approx(float(exact["head.weight"].sum()), rel=0.1)


def test_the_online_variant_keeps_one_anchor():
    """γ = 0.5: after two tasks F = 0.5 F_1 + F_2, and the anchor is the last weights."""
    told = ewc.Hyperparameters(strength=1.0, fisher_samples=N, fisher="empirical", variant="online", decay=0.5)
    now = linear(told)
    first = ewc.after_task(now, ewc.init(now))
    with torch.no_grad():
        now.model.head.weight.mul_(2)
    second = ewc.after_task(now, first)
    f1, f2 = first["tasks"]["all"]["fisher"]["head.weight"], ewc.fisher_information(now)["head.weight"]
    torch.testing.assert_close(second["tasks"]["all"]["fisher"]["head.weight"], 0.5 * f1 + f2)
    assert torch.equal(second["tasks"]["all"]["weights"]["head.weight"], now.model.head.weight)


def test_decay_stands_in_the_online_penalty_too():
    """λ/2 γ F: λ = 3, γ = 0.5, F = 2 and a distance of 0.1 on 102 weights: 3/2 · 0.5 · 102 · 2 · 0.01 = 1.53."""
    now = linear(ewc.Hyperparameters(strength=3.0, fisher_samples=1, variant="online", decay=0.5))
    here = quadratic.weights(now)
    state = {"fisher": {n: torch.full_like(w, 2.0) for n, w in here.items()}}
    state["weights"] = {n: w - 0.1 for n, w in here.items()}
    assert ewc.penalty(now, {"tasks": {"all": state}}, batch_of(X, Y)).item() == pytest.approx(1.53, rel=1e-5)


def test_hidden_labels_cost_nothing():
    """The exact Fisher takes gradients for the two labels that the mask shows, not for all six."""
    mask = visible_outputs(spec_of(), {}, "current")
    assert ewc._possible_labels(linear(mask=mask), batch_of(X, Y)) == [0, 1]
    assert ewc._possible_labels(linear(), batch_of(X, Y)) == list(range(6))


# the shared penalty


def test_the_penalty_by_hand():
    """Ω = 2 and 0.5, distances 0.1 and −0.2 on 96 weights and 6 biases: 102 (2 · 0.01 + 0.5 · 0.04) = 4.08."""
    now = linear()
    here = quadratic.weights(now)
    pairs = [
        ({n: torch.full_like(w, omega) for n, w in here.items()}, {n: w - shift for n, w in here.items()})
        for omega, shift in ((2.0, 0.1), (0.5, -0.2))
    ]
    assert quadratic.penalty(now, *pairs).item() == pytest.approx(4.08, rel=1e-5)


def test_accumulated_importance_keeps_what_only_one_side_has():
    """Weights that came later begin at their own importance; those that are gone keep theirs, decayed."""
    old, new = {"a": torch.tensor(4.0), "b": torch.tensor(8.0)}, {"b": torch.tensor(1.0), "c": torch.tensor(2.0)}
    found = quadratic.accumulate(old, new, decay=0.5)
    assert {name: value.item() for name, value in found.items()} == {"a": 2.0, "b": 5.0, "c": 2.0}


# Paths: SI and RWalk, followed by NumPy with plain gradient descent


def descend(method, now, state, n_steps, rate=0.1, own=lambda weight: 0.0):
    """Steps of gradient descent through the hooks; the weights and mean-loss gradients that NumPy finds at each."""
    path, batch = [], batch_of(X, Y)
    for step in range(1, n_steps + 1):
        at = replace(now, stage_step=step, step=step)
        weight, _ = numbers(now)
        gradient = -log_gradient(probabilities(now), Y).mean(axis=0)
        now.model.zero_grad()
        penalty = method.penalty(at, state, batch)
        loss = at.cross_entropy(batch) + (0 if penalty is None else penalty)
        loss.backward()
        with torch.no_grad():
            for parameter in now.model.parameters():
                parameter -= rate * parameter.grad
        state = method.after_step(at, state, batch, Loss(loss.detach()))
        path.append((weight, gradient, numbers(now)[0]))
    return state, path


def test_the_path_integral_by_hand():
    """ω = −Σ g Δθ and Ω = ω / (Δ² + ξ) over five steps, for every weight."""
    now = linear(si.Hyperparameters(strength=0.5, damping=0.1), method="si")
    state, path = descend(si, now, si.begin_task(now, si.init(now)), 5)
    omega = -sum(g * (after - before) for before, g, after in path)
    expected = np.maximum(omega / ((path[-1][2] - path[0][0]) ** 2 + 0.1), 0)
    found = si.after_task(now, state)["importance"]["head.weight"]
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-7)


def test_the_penalty_has_no_part_in_the_path():
    """In the second task the gradient of the penalty is taken out: ω is that of the loss alone, and Ω adds up."""
    now = linear(si.Hyperparameters(strength=5.0, damping=0.1), method="si")
    state, _ = descend(si, now, si.begin_task(now, si.init(now)), 5)
    state = si.after_task(now, state)
    first = state["importance"]["head.weight"].double().numpy().copy()
    state, path = descend(si, now, si.begin_task(now, state), 5)
    omega = -sum(g * (after - before) for before, g, after in path)
    expected = np.maximum(first + omega / ((path[-1][2] - path[0][0]) ** 2 + 0.1), 0)
    assert any(np.abs(after - before).max() > 1e-4 for before, _, after in path)
    np.testing.assert_allclose(si.after_task(now, state)["importance"]["head.weight"], expected, rtol=1e-3, atol=1e-6)


def test_no_importance_is_negative():
    """A weight along whose path the loss rose gets an importance of 0, not a penalty that draws it away."""
    now = linear(si.Hyperparameters(strength=1.0), method="si")
    state = si.begin_task(now, si.init(now))
    for path in state["path"].values():
        path -= 1
    assert all((value == 0).all() for value in si.after_task(now, state)["importance"].values())


def test_the_walk_by_hand():
    """Fisher and score after two intervals of two steps, α = 0.6, ε = 10⁻⁶, and their normalised sum, by NumPy."""
    now = linear(rwalk.Hyperparameters(strength=1.0, fisher_rate=0.6, interval=2, damping=1e-6), method="rwalk")
    state, path = descend(rwalk, now, rwalk.begin_task(now, rwalk.init(now)), 4)
    after_each = [p for _, _, p in path]

    def fisher_at(weight_after, bias_after):
        z = FLAT @ weight_after.T + bias_after
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return (log_gradient(p, Y) ** 2).mean(axis=0)

    # The bias moves too; it is followed by the same steps in a model of its own.
    again = linear(method="rwalk")
    biases = []
    for _ in range(4):
        again.model.zero_grad()
        again.cross_entropy(batch_of(X, Y)).backward()
        with torch.no_grad():
            for parameter in again.model.parameters():
                parameter -= 0.1 * parameter.grad
        biases.append(numbers(again)[1])
    fisher, score, start = None, 0.0, path[0][0]
    for end in (1, 3):
        newest = fisher_at(after_each[end], biases[end])
        fisher = newest if fisher is None else 0.6 * newest + 0.4 * fisher
        fall = -sum(g * (after - before) for before, g, after in path[end - 1 : end + 1])
        score = score + np.maximum(fall, 0) / (0.5 * fisher * (after_each[end] - start) ** 2 + 1e-6)
        start = after_each[end]
    np.testing.assert_allclose(state["fisher"]["head.weight"], fisher, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(state["now"]["score"]["head.weight"], score, rtol=2e-3)
    done = rwalk.after_task(now, state)
    largest = {k: max(float(v.max()) for v in done[k].values()) for k in ("fisher", "score")}
    expected = fisher / largest["fisher"] + score / largest["score"]
    np.testing.assert_allclose(done["importance"]["head.weight"], expected, rtol=2e-3)


def test_the_score_is_averaged_with_the_one_before():
    """½ (old + new) for weights that were there; others keep what they have."""
    now = linear(rwalk.Hyperparameters(strength=1.0), method="rwalk")
    zeros = quadratic.zeros(now)
    state = {
        "fisher": {n: z + 1 for n, z in zeros.items()},
        "score": {"head.weight": zeros["head.weight"] + 4},
        "importance": {},
        "anchor": {},
        "now": {"score": {n: z + 2 for n, z in zeros.items()}},
    }
    score = rwalk.after_task(now, state)["score"]
    assert score["head.weight"].unique().tolist() == [3]
    assert score["head.bias"].unique().tolist() == [2]


# MAS


@pytest.mark.parametrize("masked", [False, True])
def test_sensitivity_by_hand(masked):
    """Mean over samples of |2 f xᵀ| for a linear f, over the outputs that the mask shows."""
    mask = visible_outputs(spec_of(), {}, "current") if masked else None
    now = linear(mas.Hyperparameters(strength=1.0, samples=N), method="mas", mask=mask)
    weight, bias = numbers(now)
    f = FLAT @ weight.T + bias
    if masked:
        f[:, 2:] = 0
    expected = np.abs(2 * f[:, :, None] * FLAT[:, None, :]).mean(axis=0)
    found = mas.after_task(now, mas.init(now))["importance"]["head.weight"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


def test_sensitivity_adds_up_over_tasks():
    """γ = 1: twice the same task has twice the importance; γ = 0 forgets the first."""
    for decay, factor in ((1.0, 2.0), (0.0, 1.0)):
        now = linear(mas.Hyperparameters(strength=1.0, samples=N, decay=decay), method="mas")
        once = mas.after_task(now, mas.init(now))
        twice = mas.after_task(now, once)["importance"]["head.weight"]
        torch.testing.assert_close(twice, factor * once["importance"]["head.weight"])


# LwF


def divergence(new: np.ndarray, old: np.ndarray, temperature: float) -> float:
    def softmax(z):
        e = np.exp(z / temperature - (z / temperature).max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    p, q = softmax(old), softmax(new)
    return float((p * np.log(p / q)).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("kind", "head"), [("all", "shared"), ("seen", "shared"), ("current", "shared"), ("current", "multi")]
)
def test_distillation_by_hand(kind, head):
    """Stage 3: one softmax over the four old outputs; under `current` one for each of the two old tasks, added up."""
    order = ("t1", "t2", "t3")
    spec = spec_of(order=order, head=head)
    mask = visible_outputs(spec, spec["stages"][2], kind)
    told = lwf.Hyperparameters(strength=3.0, temperature=2.0)
    now = context_of(told, hidden=(), stage=3, head=head, mask=mask, method="lwf")
    state = lwf.after_task(now, lwf.init(now))
    heads = {"": now.model.head} if head == "shared" else dict(now.model.head.items())
    before = {name: (h.weight.detach().double().numpy(), h.bias.detach().double().numpy()) for name, h in heads.items()}
    with torch.no_grad():
        for number, layer in enumerate(heads.values()):
            layer.weight.add_(torch.linspace(-1, 1, layer.weight.numel()).reshape(layer.weight.shape) * (number + 1))
    after = {name: (h.weight.detach().double().numpy(), h.bias.detach().double().numpy()) for name, h in heads.items()}

    def outputs(weights, task):
        weight, bias = weights[""] if head == "shared" else weights[task]
        z = FLAT @ weight.T + bias
        return z[:, TASKS[task]] if head == "shared" else z

    tasks = ("t1", "t2")
    if kind == "current":
        expected = sum(divergence(outputs(after, t), outputs(before, t), 2.0) for t in tasks)
    else:
        new, old = (np.hstack([outputs(w, t) for t in tasks]) for w in (after, before))
        expected = divergence(new, old, 2.0)
    batch = batch_of(X, Y + 4)
    plain = now.cross_entropy(batch).item()
    assert lwf.loss(now, state, batch).value.item() == pytest.approx(plain + 3.0 * expected, rel=1e-5)


def test_distillation_passes_the_batch_once():
    """However many tasks came before, a step computes features once, and once by the model before."""
    spec = spec_of(head="multi")
    mask = visible_outputs(spec, spec["stages"][2], "current")
    now = context_of(lwf.Hyperparameters(strength=1.0), stage=3, head="multi", mask=mask, method="lwf")
    state = lwf.after_task(now, lwf.init(now))
    passes = []
    now.model.backbone.register_forward_hook(lambda *_: passes.append(now.model.training))
    lwf.loss(now, state, batch_of(X, Y + 4))
    assert passes == [True, False]


def test_nothing_is_distilled_at_the_start():
    """Before a step the model is the one before: the divergence is 0."""
    now = context_of(lwf.Hyperparameters(strength=3.0), hidden=(), stage=2, method="lwf")
    batch = batch_of(X, Y + 2)
    loss = lwf.loss(now, lwf.after_task(now, lwf.init(now)), batch)
    assert loss.value.item() == pytest.approx(now.cross_entropy(batch).item(), abs=1e-6)


def test_distillation_works_with_columns():
    """LwF asks a progressive network, too, for the outputs of several tasks at once."""
    order = ("t1", "t2", "t3")
    spec = spec_of("lwf+pnn", {"lwf": {"strength": 1.0}}, order=order, head="multi", protocol="task_incremental")
    network = fresh_model(spec)
    inputs, tasks = torch.rand(4, *SHAPE), torch.tensor([[0, 0, 0, 0], [2, 2, 2, 2]])
    found = network(inputs, tasks)
    assert all(torch.equal(found[group], network(inputs, tasks[group])) for group in (0, 1))
