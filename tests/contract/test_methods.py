"""What every method promises: the file is enough to be tested here."""

from __future__ import annotations

import dataclasses
import difflib
import random  # noqa: TID251 - only to see that nobody draws from it

import numpy as np
import pytest
import torch

from palimpsest.methods import METHODS
from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import HOOKS
from palimpsest.methods._method import load_method, memory_bytes
from palimpsest.plan.grid import REFERENCES
from palimpsest.training.checkpoint import decode, encode
from tiny import (
    SHAPE,
    checkpoint,
    evaluate,
    files_of,
    leaves,
    new_study,
    record,
    recording_of,
    run_of,
    same_tensors,
    step_rows,
    train,
)

NAMES = METHODS.names()
COMPOSITIONS = ["replay+ewc", "ewc+replay", "derpp+si", "replay+gem", "icarl+si"]


def stores_samples(name: str) -> bool:
    """Whether a method keeps samples of its own choice: one that trains on earlier tasks again stores all of them."""
    declared = [METHODS.load(part, "").DECLARATION for part in name.split("+")]
    return any(d.stores_raw_data and d.schedule == "sequential" for d in declared)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Tasks of 22, 2 and 44 training samples: with batches of 7, last batches of one, of two and of two samples."""
    return new_study(tmp_path_factory.mktemp("tiny"), per_class={"t1": 11, "t2": 1, "t3": 22})


@pytest.fixture(scope="module", params=[*NAMES, *COMPOSITIONS])
def trained(request, study):
    """A method that was trained on three tasks: name, study and its last stage."""
    told = run_of(request.param)
    states = [torch.get_rng_state(), np.random.get_state(), random.getstate()]  # noqa: NPY002 - see above
    train(study, told, f"{request.param}/s0-o0")
    after = [torch.get_rng_state(), np.random.get_state(), random.getstate()]  # noqa: NPY002
    return request.param, study, told["stages"][-1]["stage"], (states, after)


@pytest.mark.parametrize("name", NAMES)
def test_a_method_declares_itself(name):
    """The file has a reference, a declaration and hyperparameters that refuse unknown names and never change."""
    module = METHODS.load(name, "")
    assert len(module.REFERENCE) > 20
    assert isinstance(module.DECLARATION, Declaration)
    config = module.Hyperparameters.model_config
    assert (config.get("extra"), config.get("strict"), config.get("frozen")) == ("forbid", True, True)
    assert module.__doc__


@pytest.mark.parametrize("name", NAMES)
def test_every_hyperparameter_is_explained(name):
    """Each field has a description, and an example where it has no default."""
    for field, about in METHODS.load(name, "").Hyperparameters.model_fields.items():
        assert about.description, field
        assert about.examples or not about.is_required(), field


@pytest.mark.parametrize("name", NAMES)
def test_no_hook_is_misspelt(name):
    """A misspelt hook would never be called: no public function of the file is nearly named as a hook is."""
    module = METHODS.load(name, "")
    own = {k for k, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__}
    assert not [k for k in own - set(HOOKS) if difflib.get_close_matches(k.lower(), HOOKS, n=1, cutoff=0.75)]


def test_references_are_methods():
    """The references that the plan knows are files, and the only ones whose schedule is not a sequence."""
    schedules = {name: METHODS.load(name, "").DECLARATION.schedule for name in NAMES}
    assert {name for name, schedule in schedules.items() if schedule not in ("sequential", "cumulative")} == set(
        REFERENCES
    )


def test_the_run_completes(trained):
    """Three tasks of very different sizes, with last batches of one sample, are trained to the end."""
    name, study, last, _ = trained
    assert record(study, last, f"{name}/s0-o0")["status"] == "complete"


def test_every_loss_is_finite(trained):
    """Loss, gradient norm and FLOPs of every step are recorded, and are numbers."""
    name, study, last, _ = trained
    rows = step_rows(study, last, f"{name}/s0-o0")
    assert rows or name == "random_init"
    for row in rows:
        assert np.isfinite([row["loss"], row["gradient_norm"]]).all()
        assert row["flops"] > 0


def test_nothing_is_drawn_from_a_global_generator(trained):
    """The global generators of torch, numpy and Python are as they were before the training."""
    before, after = trained[3]
    assert torch.equal(before[0], after[0])
    assert before[1][1].tolist() == after[1][1].tolist()
    assert before[1][2:] == after[1][2:]
    assert before[2] == after[2]


def test_the_state_survives_a_checkpoint(trained, tmp_path):
    """The method's state is a nested dict of tensors and plain values, and comes back with every type and bit."""
    name, study, last, _ = trained
    state = checkpoint(study, last, f"{name}/s0-o0")["method"]
    assert state.keys() == set(name.split("+"))
    (tmp_path / "c").write_bytes(encode(state, {}))
    back = dict(leaves(decode(tmp_path / "c")))
    for path, value in leaves(state):
        assert type(back[path]) is type(value), path
        equal = torch.equal(back[path], value) if isinstance(value, torch.Tensor) else back[path] == value
        assert equal, path
        assert isinstance(value, torch.Tensor | int | float | str | bool | None), path
        assert not (isinstance(value, torch.Tensor) and value.requires_grad), path


def test_two_runs_have_the_same_bytes(trained, tmp_path):
    """The same run in another folder, one stage at a time, writes the same files."""
    name, study, _, _ = trained
    other = new_study(tmp_path, per_class={"t1": 11, "t2": 1, "t3": 22})
    told = run_of(name)
    for stage in told["stages"]:
        train(other, told, f"{name}/s0-o0", [stage["stage"]])
    assert files_of(other, f"{name}/s0-o0") == files_of(study, f"{name}/s0-o0")


def test_probes_and_the_stream_leave_no_trace(trained, tmp_path):
    """The run has the same bytes when it is probed at every step, on all tasks, and each batch is predicted first."""
    name, study, _, _ = trained
    other = new_study(tmp_path, per_class={"t1": 11, "t2": 1, "t3": 22})
    every = recording_of(prequential=True, first_batches=None, every=1, tasks="all")
    train(other, run_of(name), f"{name}/s0-o0", recording=every)
    plain, probed = (files_of(folder, f"{name}/s0-o0") for folder in (study, other))
    endings = (".safetensors", ".steps.parquet")
    assert {k: v for k, v in probed.items() if k.endswith(endings)} == {
        k: v for k, v in plain.items() if k.endswith(endings)
    }


def test_the_run_can_be_evaluated(trained):
    """Every complete stage is evaluated on every task."""
    name, study, _, _ = trained
    evaluate(study, run_of(name), f"{name}/s0-o0")


@pytest.mark.parametrize("name", [n for n in [*NAMES, *COMPOSITIONS] if n not in REFERENCES])
@pytest.mark.parametrize("order", [("t3", "t2", "t1"), ("t2", "t3", "t2", "t1", "t3")], ids=["reversed", "repeated"])
def test_any_order_of_the_tasks(study, name, order):
    """A method runs in the reversed order, and where tasks come back."""
    run = f"{name}-{len(order)}/s0-o1"
    train(study, run_of(name, order=order), run)
    assert record(study, len(order), run)["status"] == "complete"


@pytest.mark.parametrize("name", [n for n in [*NAMES, *COMPOSITIONS] if n not in REFERENCES])
def test_the_outputs_of_the_current_task_alone(study, name):
    """A method runs under the mask `current`, and hidden outputs of the head keep their initial weights."""
    run = f"{name}-current/s0-o0"
    told = run_of(name, mask="current", protocol="task_incremental", order=("t1", "t2", "t3"))
    train(study, told, run)
    first, second = (checkpoint(study, stage, run)["model"] for stage in (1, 2))
    if "replay" not in name and "head.weight" in first:
        assert torch.equal(first["head.weight"][4:], second["head.weight"][4:])
    assert record(study, 3, run)["status"] == "complete"


@pytest.mark.parametrize("name", [n for n in NAMES if METHODS.load(n, "").DECLARATION.pairing == "init+batches"])
def test_the_seed_decides(study, name):
    """Another seed comes to other weights."""
    train(study, run_of(name, seed=1), f"{name}-seed/s1-o0")
    train(study, run_of(name), f"{name}-seed/s0-o0")
    last = run_of(name)["stages"][-1]["stage"]
    ends = [checkpoint(study, last, f"{name}-seed/s{seed}-o0")["model"] for seed in (0, 1)]
    assert not same_tensors(*ends)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_declared_of_raw_data_is_true(study, name):
    """A method that declares to store no raw data has no tensor of inputs in its state."""
    declared = METHODS.load(name, "").DECLARATION
    run = f"{name}-declared/s0-o0"
    train(study, run_of(name), run)
    state = checkpoint(study, run_of(name)["stages"][-1]["stage"], run)["method"]
    tensors = [v for _, v in leaves(state) if isinstance(v, torch.Tensor) and v.dtype == torch.uint8 and v.numel()]
    stores = any(tuple(v.shape[1:]) == SHAPE for v in tensors)
    assert declared.stores_raw_data or not stores


@pytest.mark.parametrize("name", [n for n in [*NAMES, *COMPOSITIONS] if stores_samples(n)])
def test_stored_samples_stay_within_what_is_declared(study, name):
    """Under a budget of just what its file declares to need, a method that stores samples runs to its end.

    The budget is asked for after every step, and takes all that is no copy of weights.
    """
    told = run_of(name)
    need = memory_bytes(load_method(told["method"], told["hyperparameters"], ""), told["inputs"])
    assert need > 0, "a hyperparameter `buffer_bytes`, or a function `memory_need`, says what it stores"
    train(study, told | {"budgets": {"memory_bytes": need}}, f"{name}-budget/s0-o0")
    last = record(study, told["stages"][-1]["stage"], f"{name}-budget/s0-o0")
    assert last["status"] == "complete", last["reason"]
    assert 0 < last["counted"]["memory_bytes"] <= need


def test_declarations_of_parts_add_up():
    """A composition stores and needs what any of its parts does."""
    from palimpsest.methods._method import declaration, load_method

    composed = declaration(load_method("replay+ewc", run_of("replay+ewc")["hyperparameters"], ""))
    assert dataclasses.asdict(composed) == {
        "stores_raw_data": True,
        "needs_task_boundaries": True,
        "needs_task_identity": False,
        "grows": False,
        "pairing": "init+batches",
        "schedule": "sequential",
    }
