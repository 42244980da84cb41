"""What the runs of a unit share, and what the loop computes, on the tiny benchmark."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from palimpsest.core.streams import generator
from palimpsest.models._initial import set_initial_weights
from tiny import (
    Recorder,
    checkpoint,
    evaluate,
    fresh_model,
    leaves,
    new_study,
    override,
    record,
    same_tensors,
    spec_of,
    step_rows,
    train,
)

METHODS = {
    "finetune": {},
    "replay": {"buffer_bytes": 17 * 20, "replayed": 4},
    "ewc": {"strength": 5.0, "fisher_samples": 8},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with the samples; every test uses run names of its own."""
    return new_study(tmp_path_factory.mktemp("tiny"))


def record_run(monkeypatch, study, name, run, **about) -> Recorder:
    with monkeypatch.context() as patch:
        recorder = Recorder(patch, name)
        train(study, spec_of(name, METHODS[name], **about), run)
    return recorder


def test_methods_of_a_unit_share_weights_and_batches(monkeypatch, study):
    """Finetune, replay and EWC begin with the same weights and see the same mini-batches in the same sequence."""
    finetune, *others = (record_run(monkeypatch, study, name, f"shared-{name}/s0-o0") for name in METHODS)
    assert len(finetune.batches) == 3 * 2 * 4  # tasks, epochs, batches of 7 among 22
    for other in others:
        assert same_tensors(other.weights, finetune.weights)
        assert other.batches == finetune.batches


def test_methods_of_a_unit_learn_different_things(monkeypatch, study):
    """The methods that share weights and batches do not share the weights that they come to."""
    for name in METHODS:
        train(study, spec_of(name, METHODS[name]), f"differ-{name}/s0-o0")
    ends = [checkpoint(study, 3, f"differ-{name}/s0-o0")["model"] for name in METHODS]
    assert not any(same_tensors(ends[a], ends[b]) for a, b in ((0, 1), (0, 2), (1, 2)))


def test_a_method_that_draws_more_changes_nothing(monkeypatch, study):
    """Finetune that draws a thousand numbers after each step ends in the same weights as one that draws none."""

    def greedy(before, context, state, batch, loss):
        context.stream("greedy").random(1000)
        return before(context, state, batch, loss)

    train(study, spec_of(), "plain/s0-o0")
    with monkeypatch.context() as patch:
        override(patch, "finetune", after_step=greedy)
        train(study, spec_of(), "greedy/s0-o0")
    assert same_tensors(checkpoint(study, 3, "plain/s0-o0")["model"], checkpoint(study, 3, "greedy/s0-o0")["model"])


def test_orders_of_a_seed_share_weights_and_batches(monkeypatch, study):
    """Two orders of one seed begin with the same weights, and each task has the same mini-batches in both."""
    first = record_run(monkeypatch, study, "finetune", "order/s0-o0")
    second = record_run(monkeypatch, study, "finetune", "order/s0-o1", order=("t3", "t1", "t2"))
    assert same_tensors(first.weights, second.weights)
    assert [batch[0] for batch in first.batches] != [batch[0] for batch in second.batches]
    for task in ("t1", "t2", "t3"):
        assert first.of_task(task) == second.of_task(task)


def test_another_seed_has_other_weights_and_batches(monkeypatch, study):
    """The seed decides weights and mini-batches."""
    first = record_run(monkeypatch, study, "finetune", "seed/s0-o0")
    second = record_run(monkeypatch, study, "finetune", "seed/s1-o0", seed=1)
    assert not same_tensors(first.weights, second.weights)
    assert not set(first.batches) & set(second.batches)


def test_epochs_are_shuffled_anew(monkeypatch, study):
    """The two epochs of a task hold the same samples in another sequence, each sample once."""
    batches = record_run(monkeypatch, study, "finetune", "epochs/s0-o0").of_task("t1")
    first, second = (b"".join(batch[2] for batch in part) for part in (batches[:4], batches[4:]))
    samples = [sorted(part[i : i + 16] for i in range(0, len(part), 16)) for part in (first, second)]
    assert samples[0] == samples[1]
    assert first != second


def test_a_task_that_comes_back_has_new_batches(monkeypatch, study):
    """The second visit of a task draws its mini-batches anew."""
    recorder = record_run(monkeypatch, study, "finetune", "again/s0-o0", order=("t1", "t2", "t1"))
    batches = recorder.of_task("t1")
    assert {batch[1] for batch in batches} == {1, 2}
    assert [batch[2] for batch in batches if batch[1] == 1] != [batch[2] for batch in batches if batch[1] == 2]


@pytest.mark.parametrize(
    ("name", "hyperparameters"),
    [
        ("replay", {"buffer_bytes": 0, "replayed": 4}),
        ("ewc", {"strength": 0.0, "fisher_samples": 8}),
        ("replay+ewc", {"replay": {"buffer_bytes": 0, "replayed": 4}, "ewc": {"strength": 0.0, "fisher_samples": 8}}),
    ],
)
def test_a_method_switched_off_is_finetune(study, name, hyperparameters):
    """Replay without memory, EWC without strength and both composed end in finetune's weights, bit for bit."""
    train(study, spec_of(), "off-finetune/s0-o0")
    train(study, spec_of(name, hyperparameters), f"off-{name}/s0-o0")
    assert same_tensors(
        checkpoint(study, 3, f"off-{name}/s0-o0")["model"], checkpoint(study, 3, "off-finetune/s0-o0")["model"]
    )


def by_hand(spec, inputs_of, labels_of, optimizer):
    """The same training written down plainly, without a checkpoint in between; gives the weights."""
    model = fresh_model(spec)
    training = spec["training"]
    made = optimizer(model)
    for task in spec["order"]:
        n = len(labels_of[task])
        steps = training["epochs"] * -(-n // training["batch_size"])
        number = 0
        for epoch in range(training["epochs"]):
            shuffled = generator("batches", spec["seed"], task, 1, epoch).permutation(n)
            for start in range(0, n, training["batch_size"]):
                indices = shuffled[start : start + training["batch_size"]]
                if training["schedule"] == "cosine":
                    factor = (1 + np.cos(np.pi * number / steps)) / 2
                    made.param_groups[0]["lr"] = training["learning_rate"] * factor
                loss = torch.nn.functional.cross_entropy(
                    model(inputs_of[task][indices] / 255), labels_of[task][indices]
                )
                made.zero_grad()
                loss.backward()
                made.step()
                number += 1
    return model.state_dict()


OPTIMIZERS = {
    "sgd": ({}, lambda m: torch.optim.SGD(m.parameters(), lr=0.1)),
    "momentum": ({"momentum": 0.9}, lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)),
    "decay": ({"weight_decay": 0.01}, lambda m: torch.optim.SGD(m.parameters(), lr=0.1, weight_decay=0.01)),
    "adam": ({"optimizer": "adam"}, lambda m: torch.optim.Adam(m.parameters(), lr=0.1)),
}


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_training_over_stages_is_training_without_a_break(study, kind, schedule):
    """With `reset_optimizer: false`, three stages with checkpoints between them come to the weights of one plain loop.

    The learning rate starts afresh in each stage; the cosine of the plain loop is computed from its formula, so it is
    compared to rounding, all else bit for bit.
    """
    from palimpsest.core.artifact import Job
    from palimpsest.data.samples import read_samples
    from palimpsest.training.stage import _Samples

    section, optimizer = OPTIMIZERS[kind]
    spec = spec_of(reset_optimizer=False, schedule=schedule, **section)
    run = f"break-{kind}-{schedule}/s0-o0"
    for number in (1, 2, 3):
        train(study, spec, run, [number])
    data = {stage["task"]: _Samples(read_samples(Job(study, "t", "", "")), spec, stage) for stage in spec["stages"]}
    read = {task: samples(np.arange(len(samples))) for task, samples in data.items()}
    inputs, labels = ({task: getattr(batch, of) for task, batch in read.items()} for of in ("inputs", "labels"))
    plain = by_hand(spec, {task: values.float() for task, values in inputs.items()}, labels, optimizer)
    trained = checkpoint(study, 3, run)["model"]
    if schedule == "constant":
        assert same_tensors(trained, plain)
    for name, value in plain.items():
        torch.testing.assert_close(trained[name], value, rtol=1e-4, atol=1e-5)


def test_a_fresh_optimizer_for_each_stage(study):
    """With `reset_optimizer: true` momentum does not cross the boundary of a task: the weights differ."""
    for reset in (True, False):
        train(study, spec_of(momentum=0.9, reset_optimizer=reset), f"reset-{reset}/s0-o0")
    ends = [checkpoint(study, 2, f"reset-{reset}/s0-o0")["model"] for reset in (True, False)]
    assert not same_tensors(*ends)


@pytest.mark.parametrize("reset", [True, False])
def test_the_learning_rate_starts_afresh_in_each_stage(study, reset):
    """Cosine: each stage starts at the study's rate and falls to what the formula gives before its last step."""
    spec = spec_of(reset_optimizer=reset, schedule="cosine")
    train(study, spec, f"rate-{reset}/s0-o0")
    for stage in (1, 2, 3):
        rates = [row["learning_rate"] for row in step_rows(study, stage, f"rate-{reset}/s0-o0")]
        assert rates == pytest.approx([0.1 * (1 + np.cos(np.pi * n / 8)) / 2 for n in range(8)])


def test_steps_are_recorded_one_by_one(study):
    """Steps count on over the stages, samples seen grow by the batch, and the first loss is that of chance."""
    spec = spec_of()
    train(study, spec, "steps/s0-o0")
    rows = [row for stage in (1, 2, 3) for row in step_rows(study, stage, "steps/s0-o0")]
    assert [row["step"] for row in rows] == list(range(1, 25))
    assert [row["samples_seen"] for row in rows] == np.cumsum([7, 7, 7, 1] * 6).tolist()
    assert rows[0]["loss"] == pytest.approx(np.log(6), abs=0.5)
    assert {row["replayed"] for row in rows} == {0}
    assert record(study, 3, "steps/s0-o0")["step"] == 24


def test_replayed_samples_are_counted(study):
    """As many samples are replayed as the study asks for, as far as there are so many."""
    train(study, spec_of("replay", {"buffer_bytes": 17 * 9, "replayed": 12}), "replayed/s0-o0")
    rows = step_rows(study, 1, "replayed/s0-o0")
    assert [row["replayed"] for row in rows] == [0, 7, 9, 9, 9, 9, 9, 9]


def step_flops(n, widths, n_extra=0):
    """FLOPs of a step on n samples: a forward pass of 2·in·out for each, twice that backwards, without the gradient of
    the input of the first layer.
    """
    layers = [a * b for a, b in itertools.pairwise(widths)]
    return 2 * (n + n_extra) * (3 * sum(layers) - layers[0])


@pytest.mark.parametrize("hidden", [(), (8,), (8, 5)])
def test_flops_of_a_step_are_those_worked_by_hand(study, hidden):
    """Matrix products forwards and backwards, for full batches and the last one of one sample."""
    run = f"flops-{len(hidden)}/s0-o0"
    train(study, spec_of(hidden=hidden), run, [1])
    widths = [16, *hidden, 6]
    expected = [step_flops(n, widths) for n in (7, 7, 7, 1)] * 2
    assert [row["flops"] for row in step_rows(study, 1, run)] == expected
    assert record(study, 1, run)["counted"]["flops_steps"] == sum(expected)


def test_replayed_samples_cost_flops(study):
    """A step on new and stored samples costs what all of them cost."""
    train(study, spec_of("replay", METHODS["replay"]), "flops-replay/s0-o0", [1])
    expected = [step_flops(n, [16, 8, 6], extra) for n, extra in ((7, 0), (7, 4), (7, 4), (1, 4), (7, 4))]
    assert [row["flops"] for row in step_rows(study, 1, "flops-replay/s0-o0")][:5] == expected


def test_flops_are_told_apart(study):
    """Forwards and backwards, and of both together the share of replayed samples: as worked by hand."""
    train(study, spec_of("replay", METHODS["replay"]), "flops-apart/s0-o0", [1, 2])
    rows, counted = step_rows(study, 2, "flops-apart/s0-o0"), record(study, 2, "flops-apart/s0-o0")["counted"]
    assert {row["replayed"] for row in rows} == {4}
    widths, samples = [16, 8, 6], 2 * (7 + 7 + 7 + 1) + 8 * 4
    assert counted["flops_forward"] == 2 * samples * (16 * 8 + 8 * 6)
    assert counted["flops_forward"] + counted["flops_backward"] == step_flops(samples, widths)
    assert counted["flops_replayed"] == step_flops(8 * 4, widths)
    assert counted["flops_steps"] == step_flops(samples, widths)


def test_what_a_hook_multiplies_is_told_apart(monkeypatch, study):
    """Work at the beginning of a task, in a projection, after each step and after the task: each under its own name."""

    def with_work(*shape):
        def hook(before, *arguments):
            torch.ones(shape[0], shape[1]) @ torch.ones(shape[1], shape[2])
            return before(*arguments)

        return hook

    hooks = {"begin_task": (2, 3, 4), "project": (3, 3, 3), "after_step": (5, 2, 1), "after_task": (7, 1, 1)}
    override(monkeypatch, "finetune", **{name: with_work(*shape) for name, shape in hooks.items()})
    train(study, spec_of(), "flops-hooks/s0-o0", [1])
    counted = record(study, 1, "flops-hooks/s0-o0")["counted"]
    once = {name: 2 * a * b * c for name, (a, b, c) in hooks.items()}
    assert counted["flops_begin_task"] == once["begin_task"]
    assert counted["flops_after_task"] == once["after_task"]
    assert (counted["flops_project"], counted["flops_after_step"]) == (8 * once["project"], 8 * once["after_step"])
    of_loss = counted["flops_forward"] + counted["flops_backward"]
    assert counted["flops_steps"] == of_loss + counted["flops_project"] + counted["flops_after_step"]


def test_a_penalty_with_a_matrix_product_costs_flops(monkeypatch, study):
    """What a penalty multiplies is counted with the step, forwards and backwards."""

    def penalty(before, context, state, batch):
        weight = context.model.head.weight
        return (weight @ torch.ones(8, 3)).sum()

    override(monkeypatch, "finetune", penalty=penalty)
    train(study, spec_of(), "flops-penalty/s0-o0", [1])
    first = step_rows(study, 1, "flops-penalty/s0-o0")[0]["flops"]
    assert first == step_flops(7, [16, 8, 6]) + 2 * (2 * 6 * 8 * 3)


def test_a_projection_costs_flops(monkeypatch, study):
    """What a projection of gradients multiplies is counted with the step."""

    def project(before, context, state, gradients):
        torch.ones(3, 5) @ torch.ones(5, 2)
        return gradients

    override(monkeypatch, "finetune", project=project)
    train(study, spec_of(), "flops-project/s0-o0", [1])
    assert step_rows(study, 1, "flops-project/s0-o0")[0]["flops"] == step_flops(7, [16, 8, 6]) + 2 * 3 * 5 * 2


def test_a_projection_meets_only_gradients_that_exist(monkeypatch, study):
    """A parameter that the loss does not reach has no gradient to project, in training as in counting."""

    def loss(before, context, state, batch):
        outputs = context.model.head(torch.ones(len(batch), 8))
        return type(before(context, state, batch))(torch.nn.functional.cross_entropy(outputs, batch.labels))

    def project(before, context, state, gradients):
        assert set(gradients) == {"head.weight", "head.bias"}
        return {name: gradient * 2 for name, gradient in gradients.items()}

    override(monkeypatch, "finetune", loss=loss, project=project)
    train(study, spec_of(), "unreached/s0-o0", [1])


def test_counting_flops_leaves_training_alone(monkeypatch, study):
    """A loop that counts no FLOPs comes to the same weights."""
    train(study, spec_of("replay", METHODS["replay"]), "counted/s0-o0")
    monkeypatch.setattr("palimpsest.training.flops.StepCounter.count", lambda *a: {"forward": 0, "backward": 0})
    train(study, spec_of("replay", METHODS["replay"]), "uncounted/s0-o0")
    ends = [checkpoint(study, 3, f"{run}/s0-o0") for run in ("counted", "uncounted")]
    assert same_tensors(ends[0]["model"], ends[1]["model"])
    counted, uncounted = (dict(leaves(end["method"]["replay"]["memory"])) for end in ends)
    assert counted.keys() == uncounted.keys()
    assert all(torch.equal(torch.as_tensor(counted[path]), torch.as_tensor(uncounted[path])) for path in counted)


def test_the_work_after_a_task_is_counted(study):
    """EWC's Fisher over 8 samples: one forward and backward pass for each, in which its label is drawn too."""
    train(study, spec_of("ewc", METHODS["ewc"]), "flops-fisher/s0-o0", [1])
    assert record(study, 1, "flops-fisher/s0-o0")["counted"]["flops_after_task"] == step_flops(8, [16, 8, 6])


def test_what_a_method_keeps_is_counted_in_bytes(study):
    """Replay of 20 samples keeps 20 inputs and labels; EWC keeps Fisher and weights for each task."""
    train(study, spec_of("replay", METHODS["replay"]), "bytes-replay/s0-o0", [1])
    train(study, spec_of("ewc", METHODS["ewc"]), "bytes-ewc/s0-o0", [1, 2])
    parameters = 16 * 8 + 8 + 8 * 6 + 6
    assert record(study, 1, "bytes-replay/s0-o0")["counted"]["method_bytes"] == 20 * 17
    assert record(study, 2, "bytes-ewc/s0-o0")["counted"]["method_bytes"] == 2 * 2 * parameters * 4
    assert record(study, 1, "bytes-ewc/s0-o0")["counted"]["parameters"] == parameters


@pytest.mark.parametrize("mask", ["all", "seen", "current"])
def test_outputs_hidden_by_the_mask_are_not_trained(study, mask):
    """After the first task, outputs that its training mask hides still have their initial weights."""
    protocol = "task_incremental" if mask == "current" else "class_incremental"
    spec = spec_of(mask=mask, protocol=protocol)
    train(study, spec, f"mask-{mask}/s0-o0", [1])
    trained = checkpoint(study, 1, f"mask-{mask}/s0-o0")["model"]["head.weight"]
    moved = (trained != fresh_model(spec).state_dict()["head.weight"]).any(dim=1).tolist()
    assert moved == ([True] * 6 if mask == "all" else [True, True, False, False, False, False])


def test_each_parameter_has_a_stream_of_its_own():
    """A wider head leaves the hidden layer's initial weights as they were."""
    narrow, wide = (fresh_model(spec_of() | {"inputs": {"shape": [4, 4], "n_outputs": n}}) for n in (6, 9))
    assert same_tensors(*({"w": model.state_dict()["backbone.hidden1.weight"]} for model in (narrow, wide)))


def test_a_layer_without_declared_initial_values_is_refused():
    """A model with a kind of layer for which no initial values are declared is never trained from torch's own."""
    with pytest.raises(TypeError, match="no initial values are declared for 0, a Bilinear"):
        set_initial_weights(torch.nn.Sequential(torch.nn.Bilinear(2, 2, 2)), 0)


def test_training_learns(study):
    """The tiny benchmark can be learned: joint training gets nearly all test samples right."""
    spec = spec_of(stage_schedule="joint", learning_rate=0.3, epochs=30)
    train(study, spec, "learn/s0")
    evaluate(study, spec, "learn/s0")
    from palimpsest.core.artifact import read_plain_table

    rows = read_plain_table(study / "evaluation/learn/s0/matrix.parquet", "matrix").to_pylist()
    last = [row for row in rows if row["stage"] == 3 and row["protocol"] == "class_incremental"]
    assert sum(row["n_correct"] for row in last) >= 27
    assert sum(row["n_total"] for row in last) == 30
