"""Heads, networks that grow, and outputs that begin anew."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from palimpsest.core.artifact import read_plain_table
from palimpsest.models._network import ExpandingHead, MultiHead, new_network
from tiny import TASKS, checkpoint, evaluate, fresh_model, new_study, override, same_tensors, spec_of, train

FEATURES = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return new_study(tmp_path_factory.mktemp("network"))


def incremental(**about):
    return spec_of(protocol="task_incremental", mask="current", **about)


def test_an_expanding_head_has_the_outputs_of_tasks_that_came():
    """After t2 and t1 the outputs 0 to 3 are those of two layers, in their places; 4 and 5 are −∞."""
    head = ExpandingHead(2, {"t2": [2, 3], "t1": [0, 1]}, 6)
    found = head(FEATURES)
    torch.testing.assert_close(found[:, [2, 3]], FEATURES @ head["t2"].weight.T + head["t2"].bias)
    torch.testing.assert_close(found[:, [0, 1]], FEATURES @ head["t1"].weight.T + head["t1"].bias)
    assert torch.isneginf(found[:, 4:]).all()


def test_an_expanding_head_before_any_task_has_no_output():
    """The untrained network of a study with such a head can say nothing."""
    assert torch.isneginf(ExpandingHead(2, {}, 3)(FEATURES)).all()


def test_an_output_that_is_there_gets_no_second_layer():
    """A task with known labels adds nothing; one with some new ones adds those."""
    head = ExpandingHead(2, {"a": [0, 1], "b": [1, 0], "c": [1, 2]}, 3)
    assert {task: layer.out_features for task, layer in head.items()} == {"a": 2, "c": 1}


def test_a_multi_head_gives_each_sample_the_outputs_of_its_task():
    """Three samples of three tasks see two outputs each, by the layer of their task; labels may be shared."""
    head = MultiHead(2, {"t1": [0, 1], "t2": [2, 0], "t3": [1, 2]}, 3)
    found = head(FEATURES, torch.tensor([2, 0, 1]))
    for row, (task, outputs, hidden) in enumerate((("t3", [1, 2], 0), ("t1", [0, 1], 2), ("t2", [2, 0], 1))):
        torch.testing.assert_close(found[row, outputs], head[task](FEATURES[row]))
        assert torch.isneginf(found[row, hidden])


def test_a_multi_head_must_be_told_the_task():
    """It does not guess."""
    with pytest.raises(AssertionError, match="needs the task of each sample"):
        MultiHead(2, {"t1": [0]}, 1)(FEATURES)


@pytest.mark.parametrize("head", ["expanding", "multi"])
def test_backbone_and_known_layers_begin_as_in_any_other_network(head):
    """Initial weights are named by the parameter: the backbone's do not depend on the head, nor a layer's on others."""
    few, many = (new_network(incremental(head=head), seen) for seen in (["t1"], ["t1", "t2"]))
    shared = new_network(incremental(), ["t1"])
    assert same_tensors(few.backbone.state_dict(), shared.backbone.state_dict())
    assert torch.equal(few.head["t1"].weight, many.head["t1"].weight)


@pytest.mark.parametrize(("head", "mask"), [("expanding", "seen"), ("expanding", "current"), ("multi", "current")])
@pytest.mark.parametrize("method", ["finetune", "replay", "ewc"])
def test_methods_learn_with_every_head(study, head, mask, method):
    """Three tasks are learned above chance right after their stage, whatever makes the outputs."""
    about = {"replay": {"buffer_bytes": 340, "replayed": 4}, "ewc": {"strength": 1.0, "fisher_samples": 8}}
    protocol = "task_incremental" if mask == "current" else "class_incremental"
    spec = spec_of(method, about.get(method), head=head, mask=mask, protocol=protocol, epochs=30)
    run = f"{method}-{head}-{mask}/s0-o0"
    train(study, spec, run)
    evaluate(study, spec, run)
    rows = read_plain_table(study / f"evaluation/{run}/matrix.parquet", "matrix").to_pylist()
    rows = [row for row in rows if row["protocol"] == protocol]
    diagonal = [row["n_correct"] / row["n_total"] for row in rows if row["trained_task"] == row["task"]]
    assert len(diagonal) == 3
    assert np.mean(diagonal) > 0.8
    expected = 9 if head == "multi" else 6  # what an expanding head does not have yet is not measured
    assert len(rows) == expected


def test_a_layer_that_is_not_used_is_not_trained(study):
    """With one layer for each task, stage 2 leaves that of task 1, weight decay or not."""
    spec = incremental(head="multi", weight_decay=0.1)
    train(study, spec, "unused/s0-o0")
    first, second = (checkpoint(study, stage, "unused/s0-o0")["model"] for stage in (1, 2))
    assert torch.equal(first["head.t1.weight"], second["head.t1.weight"])
    assert not torch.equal(first["head.t2.weight"], second["head.t2.weight"])


def test_new_outputs_begin_anew(study):
    """With `reset_new_outputs` and no step, outputs of task 2 have other weights than task 1 left them with."""
    spec = spec_of(learning_rate=1e-30) | {"model": {**spec_of()["model"], "reset_new_outputs": True}}
    train(study, spec, "reset/s0-o0", [1, 2])
    first, second = (checkpoint(study, stage, "reset/s0-o0")["model"]["head.weight"] for stage in (1, 2))
    same = (first == second).all(dim=1).tolist()
    assert same == [True, True, False, False, True, True]
    assert second.abs().max() <= 8**-0.5


def test_a_repeated_task_is_not_new(study):
    """Outputs of a task that comes back keep what they learned."""
    spec = spec_of(order=("t1", "t2", "t1"), learning_rate=1e-30)
    spec["model"] = {**spec["model"], "reset_new_outputs": True}
    train(study, spec, "again/s0-o0")
    second, third = (checkpoint(study, stage, "again/s0-o0")["model"]["head.weight"] for stage in (2, 3))
    assert torch.equal(second, third)


class Grown(torch.nn.Module):
    """A network with one more layer for each task, added to its outputs."""

    def __init__(self, network, structure):
        super().__init__()
        self.network = network
        tasks = [task for stage in structure.stages for task in stage]
        self.added = torch.nn.ModuleDict({f"of{task}": torch.nn.Linear(16, 6) for task in tasks})
        structure.set_initial_weights(self.added, "added")

    def forward(self, inputs, tasks=None):
        return self.network(inputs, tasks) + sum(layer(inputs.flatten(1)) for layer in self.added.values())


def grow(before, structure, network):
    return Grown(network, structure)


def test_a_network_that_grows_keeps_what_it_has(study, monkeypatch):
    """New parameters have their named initial values, old ones the parent's; momentum goes with the parameter."""
    override(monkeypatch, "finetune", network=grow)
    spec = spec_of(momentum=0.9, reset_optimizer=False, learning_rate=1e-30)
    train(study, spec, "grown/s0-o0", [1, 2])
    first, second = (checkpoint(study, stage, "grown/s0-o0") for stage in (1, 2))
    assert second["model"].keys() - first["model"].keys() == {"added.of1.weight", "added.of1.bias"}
    assert same_tensors(first["model"], {key: second["model"][key] for key in first["model"]})
    assert second["optimizer"]["state"].keys() == second["model"].keys()
    assert same_tensors(
        fresh_model(spec).state_dict(),
        {key.removeprefix("network."): value for key, value in second["model"].items() if key.startswith("network.")},
    )


def test_a_network_that_grows_is_exact_over_stages(study, monkeypatch):
    """One job for all stages and one for each end in the same bytes, for a network that grows with momentum kept."""
    override(monkeypatch, "finetune", network=grow)
    spec = spec_of(momentum=0.9, reset_optimizer=False)
    train(study, spec, "at-once/s0-o0")
    for stage in (1, 2, 3):
        train(study, spec, "one-by-one/s0-o0", [stage])
    ends = [checkpoint(study, 3, f"{run}/s0-o0") for run in ("at-once", "one-by-one")]
    assert same_tensors(ends[0]["model"], ends[1]["model"])


def test_a_network_cannot_lose_parameters(study, monkeypatch):
    """A parameter that the parent had and this stage has not is an error, not a loss without a word."""

    def shrink(before, structure, network):
        return Grown(network, structure) if len(structure.stages) == 1 else network

    override(monkeypatch, "finetune", network=shrink)
    with pytest.raises(AssertionError, match="lost"):
        train(study, spec_of(), "shrunk/s0-o0")


def test_what_a_run_met_before_is_told_sample_by_sample(study, monkeypatch):
    """In a union of tasks only the samples of the new one are met for the first time, and only in the first epoch."""
    met = []
    override(
        monkeypatch,
        "finetune",
        after_step=lambda before, context, state, batch, loss: (
            met.append((context.stage, context.stage_step, batch)) or before(context, state, batch, loss)
        ),
    )
    train(study, spec_of(stage_schedule="cumulative"), "union/s0-o0")
    for stage, step, batch in met:
        first_epoch = step <= -(-22 * stage // 7)
        new = batch.tasks == stage - 1
        assert batch.first_presentation.tolist() == [bool(n) and first_epoch for n in new]
    assert sum(int(batch.first_presentation.sum()) for *_, batch in met) == 66
    assert len(TASKS) == 3
