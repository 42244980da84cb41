"""PackNet, HAT and progressive networks: by hand on small layers, and nothing forgotten in real runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from palimpsest.cli.describe import Catalogs
from palimpsest.core.artifact import read_plain_table
from palimpsest.core.errors import StudyError
from palimpsest.methods import hat, packnet, pnn
from palimpsest.methods._hooks import Loss, Structure
from palimpsest.methods._isolation import weight_layers
from palimpsest.models._initial import set_initial_weights
from palimpsest.models._network import new_network
from palimpsest.plan.lock import make_lock
from palimpsest.plan.study import read_study
from small_study import write
from tiny import (
    batch_of,
    checkpoint,
    context_of,
    evaluate,
    fresh_model,
    new_study,
    record,
    same_tensors,
    spec_of,
    step_rows,
    train,
)

ABOUT = {
    "packnet": {"prune_fraction": 0.5, "retrain_fraction": 0.5},
    "hat": {"strength": 0.75, "s_max": 50.0, "gates": "binary"},
    "pnn": {},
}
OPTIMIZERS = {
    "sgd": {},
    "momentum and decay": {"momentum": 0.9, "weight_decay": 0.01, "reset_optimizer": False},
    "adam": {"optimizer": "adam", "weight_decay": 0.01, "learning_rate": 0.01, "reset_optimizer": False},
}
NO_LOSS = Loss(torch.zeros(()))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return new_study(tmp_path_factory.mktemp("isolation"), n_test=20)


def incremental(name: str, **about):
    about = {"protocol": "task_incremental", "mask": "current", "head": "multi", **about}
    return spec_of(name, ABOUT.get(name, {}), **about)


def predictions(study, run: str, task: str) -> dict[int, list]:
    """By stage, what is predicted of the samples of a task, with the label's log-probability to the last bit."""
    rows = read_plain_table(study / f"evaluation/{run}/predictions.parquet", "predictions").to_pylist()
    columns = ("predicted_in_task", "label_log_probability_in_task")
    stages = {row["stage"] for row in rows}
    return {k: [[r[c] for c in columns] for r in rows if (r["stage"], r["task"]) == (k, task)] for k in stages}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ABOUT)
def test_nothing_is_forgotten(study, name, optimizer):
    """Every prediction on a learned task, and its probability, is the same after each later stage, bit for bit."""
    run = f"{name}-{optimizer.replace(' ', '-')}/s0-o0"
    spec = incremental(name, hidden=(12, 10), epochs=6, **OPTIMIZERS[optimizer])
    train(study, spec, run)
    evaluate(study, spec, run)
    for number, task in enumerate(spec["order"], start=1):
        found = predictions(study, run, task)
        assert all(found[stage] == found[number] for stage in range(number, 4)), task


@pytest.mark.parametrize("name", ABOUT)
def test_every_task_is_learned(study, name):
    """Two classes of each task are told apart right after their stage, above 80 % of 40 samples."""
    spec = incremental(name, hidden=(40, 30), epochs=20, batch_size=2)
    train(study, spec, f"{name}-learns/s0-o0")
    evaluate(study, spec, f"{name}-learns/s0-o0")
    rows = read_plain_table(study / f"evaluation/{name}-learns/s0-o0/matrix.parquet", "matrix").to_pylist()
    accuracies = [row["n_correct"] / row["n_total"] for row in rows if row["trained_task"] == row["task"]]
    assert min(accuracies) > 0.8


@pytest.mark.parametrize("name", ABOUT)
def test_a_task_that_comes_back_is_learned_again_and_hurts_no_other(study, name):
    """In the order t1, t2, t1 the predictions on t2 stay as they were after stage 2."""
    run, spec = f"{name}-again/s0-o0", incremental(name, order=("t1", "t2", "t1"), epochs=4)
    train(study, spec, run)
    evaluate(study, spec, run)
    found = predictions(study, run, "t2")
    assert found[3] == found[2]


@pytest.mark.parametrize("name", ABOUT)
@pytest.mark.parametrize("change", [{"protocol": "class_incremental"}, {"head": "shared"}])
def test_a_study_that_does_not_tell_the_task_is_refused(tmp_path, name, change):
    """Under the protocol class_incremental, or with outputs that tasks share, the method is refused by name."""

    def edit(content):
        content["methods"][name] = {"hyperparameters": ABOUT[name]}
        if "protocol" not in change:
            content |= {"protocol": "task_incremental", "training_mask": "current", "evaluation_mask": "current"}
            content["analysis"]["primary"].pop("protocol", None)

    study, file = read_study(write(tmp_path, edit))
    with pytest.raises(StudyError, match=r"must be told the task|cannot work with the study's model") as error:
        make_lock(study, file, Catalogs())
    assert name in str(error.value)


# PackNet


def packed(weights, owner, **about):
    """A context and state of stage 2 with one layer of four weights."""
    now = context_of(
        packnet.Hyperparameters(**ABOUT["packnet"]), method="packnet", hidden=(2,), stage=2, head="multi", **about
    )
    layer = now.model.backbone.hidden1
    layer.weight = torch.nn.Parameter(torch.tensor(weights))
    name = "backbone.hidden1.weight"
    state = {"owner": {name: torch.tensor(owner, dtype=torch.int16)}, "part_of_task": {"0": 1}, "pruned": False}
    return now, packnet.begin_task(now, state), name


def test_the_smallest_free_weights_are_given_free():
    """Of the free 0.3, −0.1, 0.2 and −0.4 half, the smallest by magnitude, becomes 0; 9.0 of task 1 is not counted."""
    now, state, name = packed([[0.3, -0.1, 0.2], [-0.4, 0.05, 9.0]], [[0, 0, 0], [0, 1, 1]])
    state = packnet.prune(now, state)
    assert state["owner"][name].tolist() == [[2, 0, 0], [2, 1, 1]]
    torch.testing.assert_close(now.model.backbone.hidden1.weight, torch.tensor([[0.3, 0.0, 0.0], [-0.4, 0.05, 9.0]]))


def test_equal_magnitudes_do_not_change_the_share():
    """Four equal weights: two are given free, the first ones."""
    now, state, name = packed([[0.5, 0.5], [0.5, 0.5]], [[0, 0], [0, 0]])
    assert packnet.prune(now, state)["owner"][name].tolist() == [[0, 0], [2, 2]]


def test_gradients_reach_what_the_stage_may_change():
    """Before the pruning all free weights, after it those of the stage; never those of an earlier task."""
    now, state, name = packed([[1.0, 2.0], [3.0, 4.0]], [[0, 0], [1, 0]])
    gradients = {name: torch.ones(2, 2), "head.t2.bias": torch.ones(2)}
    before = packnet.project(now, state, gradients)
    assert before[name].tolist() == [[1, 1], [0, 1]]
    assert before["head.t2.bias"].tolist() == [1, 1]
    after = packnet.project(now, packnet.prune(now, state), gradients)
    assert after[name].tolist() == [[0, 1], [0, 1]]


def test_a_sample_is_predicted_with_the_weights_of_its_task_and_earlier_ones():
    """Part 1 sees the weights of task 1; part 2 sees both; free weights are 0 for either."""
    now, state, name = packed([[1.0, 2.0], [3.0, 4.0]], [[2, 1], [0, 2]])
    state = {**state, "pruned": True}
    assert packnet.weights_of(now, state, 1)[name].tolist() == [[0, 2], [0, 0]]
    assert packnet.weights_of(now, state, 2)[name].tolist() == [[1, 2], [0, 4]]


def test_pruning_comes_before_the_last_share_of_the_steps():
    """Of 24 steps half follow the pruning: it comes after step 12, once."""
    now, state, _ = packed([[1.0, 2.0], [3.0, 4.0]], [[0, 0], [0, 0]])
    empty = batch_of(np.zeros((1, 4, 4)), [2])
    pruned = [
        packnet.after_step(replace(now, stage_step=s, n_steps=24), state, empty, NO_LOSS)["pruned"] for s in (11, 12)
    ]
    assert pruned == [False, True]


def test_packnet_without_pruning_is_plain_training_in_one_stage(study):
    """Nothing given free: the first stage ends in the weights of finetune, bit for bit."""
    spec = incremental("packnet") | {"hyperparameters": {"prune_fraction": 0.0, "retrain_fraction": 0.0}}
    train(study, spec, "packnet-plain/s0-o0", [1])
    train(study, incremental("finetune"), "packnet-finetune/s0-o0", [1])
    ends = [checkpoint(study, 1, f"packnet-{name}/s0-o0")["model"] for name in ("plain", "finetune")]
    assert same_tensors(*ends)


# HAT


def gated(stage: int = 2, **about):
    spec = spec_of(hidden=(2, 2), head="multi")
    model = hat.network(
        Structure(None, ((0,), (1,)), 3, None, lambda module, name: set_initial_weights(module, 0, name)),
        new_network(spec, ("t1", "t2")),
    )
    chosen = hat.Hyperparameters(strength=2.0, s_max=4.0, gates="soft")
    return context_of(chosen, method="hat", stage=stage, head="multi", model=model, **about)


def test_the_slope_rises_over_an_epoch():
    """From 1/4 to 4 in five steps: 0.25, 1.1875, 2.125, 3.0625, 4, and again in the next epoch."""
    now = gated()
    slopes = [hat.slope(replace(now, epoch_steps=5, stage_step=step)) for step in range(1, 8)]
    assert slopes == pytest.approx([0.25, 1.1875, 2.125, 3.0625, 4, 0.25, 1.1875])


def test_gates_multiply_what_follows_each_relu():
    """Outputs of two layers of two units, each unit times σ(s e), by NumPy."""
    now = gated()
    x = np.linspace(0, 1, 16, dtype=np.float32).reshape(1, 4, 4)
    weights = {name: value.detach().numpy() for name, value in now.model.named_parameters()}
    h = x.reshape(1, 16)
    now.model.slope = 3.0
    for name in ("hidden1", "hidden2"):
        h = np.maximum(h @ weights[f"backbone.{name}.weight"].T + weights[f"backbone.{name}.bias"], 0)
        h = h / (1 + np.exp(-3.0 * weights[f"gates.{name}.weight"][1]))
    expected = h @ weights["head.t2.weight"].T + weights["head.t2.bias"]
    found = now.model(torch.from_numpy(x), torch.tensor([1]))
    np.testing.assert_allclose(found[0, 2:4].detach(), expected[0], rtol=1e-5)
    assert torch.isneginf(found[0, [0, 1, 4, 5]]).all()


def test_used_units_protect_their_weights():
    """1 − min(a_i, a_j): with used (1, 0) and (0.5, 1) the second layer's factors are 1−min = 0.5, 1; 0, 1."""
    now = gated()
    state = {"used": {"hidden1": torch.tensor([1.0, 0.0]), "hidden2": torch.tensor([0.5, 1.0])}, "kept": {}}
    factors = dict(hat.protection(now, state))
    assert factors["backbone.hidden1.weight"].tolist() == [[0.0], [1.0]]
    assert factors["backbone.hidden1.bias"].tolist() == [0.0, 1.0]
    assert factors["backbone.hidden2.weight"].tolist() == [[0.5, 1.0], [0.0, 1.0]]
    assert factors["backbone.hidden2.bias"].tolist() == [0.5, 0.0]


def test_sparsity_counts_new_units_only():
    """(0.5·0 + 0.5·1 + 0.5·0.5 + 0.5·0) / (0 + 1 + 0.5 + 0) = 0.75 / 1.5, where all gates are 1/2."""
    now = gated()
    for gate in now.model.gates.values():
        gate.weight.data.zero_()
    used = {"hidden1": torch.tensor([1.0, 0.0]), "hidden2": torch.tensor([0.5, 1.0])}
    assert hat.sparsity(now, {"used": used}).item() == pytest.approx(0.5)


def test_the_gradient_of_an_embedding_is_compensated():
    """s = 4, s_max = 4, e = 0.5: factor (cosh 2 + 1) / (cosh 0.5 + 1)."""
    now = replace(gated(), epoch_steps=2, stage_step=2)
    for gate in now.model.gates.values():
        gate.weight.data.fill_(0.5)
    gradients = {"gates.hidden1.weight": torch.ones(3, 2)}
    state = {"used": {"hidden1": torch.zeros(2), "hidden2": torch.zeros(2)}, "kept": {}}
    found = hat.project(now, state, gradients)["gates.hidden1.weight"]
    expected = (math.cosh(2) + 1) / (math.cosh(0.5) + 1)
    torch.testing.assert_close(found, torch.full((3, 2), expected))


def test_units_are_used_by_any_task_that_used_them():
    """max(used, σ(s_max e)): of 0.9 and σ(0) the larger, of 0.2 and σ(4·10) = 1 the larger."""
    now = gated()
    now.model.gates["hidden1"].weight.data = torch.tensor([[9.0, 9.0], [0.0, 10.0], [9.0, 9.0]])
    state = {"used": {"hidden1": torch.tensor([0.9, 0.2]), "hidden2": torch.zeros(2)}, "kept": {}}
    assert hat.after_task(now, state)["used"]["hidden1"].tolist() == pytest.approx([0.9, 1.0])


def test_soft_gates_forget_little(study):
    """With s_max = 400, as in the paper, accuracy on the first task falls by less than 10 points over two more."""
    spec = incremental("hat", hidden=(40, 30), epochs=20, batch_size=2)
    spec["hyperparameters"] = {"strength": 0.75, "s_max": 400.0, "gates": "soft"}
    train(study, spec, "hat-soft/s0-o0")
    evaluate(study, spec, "hat-soft/s0-o0")
    rows = read_plain_table(study / "evaluation/hat-soft/s0-o0/matrix.parquet", "matrix").to_pylist()
    first = {row["stage"]: row["n_correct"] / row["n_total"] for row in rows if row["task"] == "t1"}
    assert first[1] > 0.8
    assert first[3] > first[1] - 0.1


# Progressive networks


def columns(n: int, hidden=(3, 2)):
    """A network of n columns, each trained on the task of its number."""
    spec = spec_of(hidden=hidden, head="multi")
    stages = tuple((k,) for k in range(n))
    structure = Structure(
        None,
        stages,
        3,
        lambda name: new_network(spec, (), name),
        lambda module, name: set_initial_weights(module, 0, name),
    )
    return pnn.network(structure, new_network(spec, ()))


def test_a_column_is_fed_by_all_earlier_ones():
    """Outputs of the third column, by NumPy: W h + b + Σ_j U_j h_j before each ReLU but the first layer's."""
    network = columns(3)
    x = np.linspace(0, 1, 16, dtype=np.float32).reshape(1, 4, 4)
    w = {name: value.detach().numpy() for name, value in network.named_parameters()}
    into = []
    for k in range(3):
        of = f"columns.{k}"
        first = np.maximum(
            x.reshape(1, 16) @ w[f"{of}.backbone.hidden1.weight"].T + w[f"{of}.backbone.hidden1.bias"], 0
        )
        second = first @ w[f"{of}.backbone.hidden2.weight"].T + w[f"{of}.backbone.hidden2.bias"]
        second += sum(into[j][0] @ w[f"{of}.laterals.{j}.hidden2.weight"].T for j in range(k))
        into.append((first, np.maximum(second, 0)))
    expected = into[2][1] @ w["columns.2.head.t3.weight"].T + w["columns.2.head.t3.bias"]
    expected += sum(into[j][1] @ w[f"columns.2.laterals.{j}.head_t3.weight"].T for j in range(2))
    found = network(torch.from_numpy(x), torch.tensor([2]))
    np.testing.assert_allclose(found[0, 4:].detach(), expected[0], rtol=1e-5)


def test_each_sample_is_answered_by_the_column_of_its_task():
    """A batch of three tasks gives the rows of three batches of one task each."""
    network, x = columns(3), torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(0))
    tasks = torch.tensor([2, 0, 1])
    one_by_one = torch.cat([network(x[i : i + 1], tasks[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(network(x, tasks), one_by_one)


def test_only_the_last_column_is_trained():
    """Parameters of earlier columns take no gradient."""
    trained = {name.split(".")[1] for name, p in columns(3).named_parameters() if p.requires_grad}
    assert trained == {"2"}


def test_parameters_grow_as_the_paper_says():
    """Columns of the same size and laterals to every layer but the first: counted by hand for three columns."""
    of_column = 16 * 3 + 3 + 3 * 2 + 2 + 2 * 2 + 2
    laterals = 3 * 2 + 2 * 2
    assert sum(p.numel() for p in columns(3).parameters()) == 3 * of_column + (0 + 1 + 2) * laterals


def test_one_task_is_plain_training(study):
    """The first column ends in the weights of finetune with a layer for each task."""
    train(study, incremental("pnn"), "pnn-plain/s0-o0", [1])
    train(study, incremental("finetune"), "pnn-finetune/s0-o0", [1])
    column = checkpoint(study, 1, "pnn-plain/s0-o0")["model"]
    plain = checkpoint(study, 1, "pnn-finetune/s0-o0")["model"]
    assert same_tensors(
        {name.removeprefix("columns.0."): value for name, value in column.items()},
        {name: plain[name] for name in (key.removeprefix("columns.0.") for key in column)},
    )
    assert step_rows(study, 1, "pnn-plain/s0-o0") == step_rows(study, 1, "pnn-finetune/s0-o0")


def test_growth_is_counted(study):
    """The record of each stage has the parameters that are there then."""
    spec = incremental("pnn")
    train(study, spec, "pnn-counted/s0-o0")
    counted = [record(study, stage, "pnn-counted/s0-o0")["counted"]["parameters"] for stage in (1, 2, 3)]
    assert counted == [sum(p.numel() for p in fresh_model(spec, stage).parameters()) for stage in range(3)]
    assert counted[0] < counted[1] < counted[2]


def test_layers_are_in_their_order():
    """What is protected and fed goes layer by layer as the inputs do."""
    assert list(weight_layers(new_network(spec_of(hidden=(3, 2, 4)), ()).backbone)) == ["hidden1", "hidden2", "hidden3"]
