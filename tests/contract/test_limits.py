"""Where methods must meet: without strength or memory, with one task, and where they hold on with all their might."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import tiny
from palimpsest.methods import METHODS
from palimpsest.methods._declaration import ModelError, facts_of
from palimpsest.methods._method import check_benchmark, load_method
from palimpsest.plan.grid import REFERENCES
from tiny import checkpoint, evaluate, example, fresh_model, new_study, record, same_tensors, spec_of, train

FIELDS = {name: METHODS.load(name, "").Hyperparameters.model_fields for name in METHODS.names()}
DECLARED = {name: METHODS.load(name, "").DECLARATION for name in METHODS.names()}
PLAIN = [name for name in FIELDS if not DECLARED[name].needs_task_identity]
WITH_STRENGTH = [name for name in PLAIN if "strength" in FIELDS[name]]
WITH_PENALTY = [name for name in WITH_STRENGTH if hasattr(METHODS.load(name, ""), "penalty")]
WITH_BUFFER = [name for name in PLAIN if "buffer_bytes" in FIELDS[name] and DECLARED[name].pairing == "init+batches"]
WITHOUT_MEMORY = [name for name in WITH_BUFFER if not hasattr(METHODS.load(name, ""), "predict")]
OF_ONE_TASK = sorted({*WITH_PENALTY, *WITHOUT_MEMORY, "lwf"} & set(FIELDS))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return new_study(tmp_path_factory.mktemp("limits"))


def end_of(study, name: str, change: dict, stage: int = 3, tag: str = "", **about):
    """Weights after a stage of a run with the examples of the method's file, some of them changed."""
    told = example(METHODS.load(name, "").Hyperparameters) | change
    run = f"{name}-{tag or '-'.join(map(str, change.values()))}/s0-o0"
    train(study, spec_of(name, told, stage_schedule=DECLARED[name].schedule, **about), run)
    return checkpoint(study, stage, run)["model"]


@pytest.fixture(scope="module")
def plain(study):
    train(study, spec_of("finetune"), "plain/s0-o0")
    return {stage: checkpoint(study, stage, "plain/s0-o0")["model"] for stage in (1, 2, 3)}


@pytest.mark.parametrize("name", WITH_STRENGTH)
def test_no_strength_is_plain_training(study, plain, name):
    """With a strength of 0 a run ends in the weights of finetune, bit for bit."""
    assert same_tensors(end_of(study, name, {"strength": 0.0}), plain[3])


@pytest.mark.parametrize("name", WITHOUT_MEMORY)
def test_no_memory_is_plain_training(study, plain, name):
    """With a memory of 0 bytes a run ends in the weights of finetune, bit for bit."""
    assert same_tensors(end_of(study, name, {"buffer_bytes": 0}), plain[3])


@pytest.mark.parametrize("name", WITH_PENALTY)
def test_one_task_is_plain_training(study, plain, name):
    """In the first stage there is nothing to keep: the weights are those of finetune, bit for bit."""
    assert same_tensors(end_of(study, name, {}, stage=1, tag="one"), plain[1])


def largest_importance(study, name: str, stage: int = 1) -> float:
    """The largest curvature of the penalty at strength 1, from the state after the first stage."""
    told = example(METHODS.load(name, "").Hyperparameters) | {"strength": 1.0}
    train(study, spec_of(name, told), f"{name}-curvature/s0-o0", [1])
    state = checkpoint(study, stage, f"{name}-curvature/s0-o0")["method"][name]
    importance = state["importance"] if "importance" in state else state["tasks"]["1"]["fisher"]
    factor = 1 if name == "ewc" else 2  # EWC's penalty has λ/2
    return factor * max(float(value.max()) for value in importance.values())


@pytest.mark.parametrize("name", WITH_PENALTY)
def test_a_large_strength_within_the_stable_step_nearly_freezes(study, plain, name):
    """With lr · λ · F_max = 0.9 important weights move far less in stage 2 than in plain training."""
    strength = 0.9 / (0.1 * largest_importance(study, name))
    told = example(METHODS.load(name, "").Hyperparameters) | {"strength": strength}
    train(study, spec_of(name, told), f"{name}-strong/s0-o0", [1, 2])
    first, second = (checkpoint(study, stage, f"{name}-strong/s0-o0") for stage in (1, 2))
    state = first["method"][name]
    importance = state["importance"] if "importance" in state else state["tasks"]["1"]["fisher"]

    def way(before, after):
        return sum(float((importance[n].clamp(min=0) * (after[n] - before[n]).square()).sum()) for n in importance)

    assert way(first["model"], second["model"]) < 0.5 * way(plain[1], plain[2])


@pytest.mark.parametrize("name", WITH_PENALTY)
def test_a_strength_beyond_the_stable_step_ends_the_run_as_numerical(study, name):
    """With lr · λ · F_max = 10⁴ the run diverges in stage 2, and says so."""
    strength = 1e4 / (0.1 * largest_importance(study, name))
    told = example(METHODS.load(name, "").Hyperparameters) | {"strength": strength}
    train(study, spec_of(name, told, epochs=8), f"{name}-diverges/s0-o0")
    found = record(study, 3, f"{name}-diverges/s0-o0")
    assert (found["status"], found["ended_in"]) == ("ended", 2)
    assert found["reason"].startswith("numerical")


def test_cumulative_meets_every_sample(study):
    """The last stage of `cumulative` makes as many steps as all tasks need together."""
    train(study, spec_of("cumulative", stage_schedule="cumulative"), "cumulative/s0-o0")
    steps = [record(study, stage, "cumulative/s0-o0")["counted"]["steps"] for stage in (1, 2, 3)]
    assert steps == [2 * -(-22 * n // 7) for n in (1, 2, 3)]


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in REFERENCES])
def test_every_method_begins_with_the_same_weights(name):
    """Initial weights of the study's own network do not depend on the method."""
    about = {"protocol": "task_incremental", "mask": "current", "head": "multi"}
    told = example(METHODS.load(name, "").Hyperparameters)
    own = fresh_model(spec_of(name, told, **about), 0).state_dict()
    shared = fresh_model(spec_of("finetune", **about), 0).state_dict()
    names = {key: next((k for k in own if k == key or k.endswith(f"columns.0.{key}")), None) for key in shared}
    found = {key: own[name] for key, name in names.items() if name is not None}
    assert len(found) >= 4
    assert all(np.array_equal(found[key], shared[key]) for key in found)


WALKS_LAYERS = {"hat", "pnn"}
IMAGES = {
    ("convnet", (28, 28)): {"channels": [2], "hidden": [8]},
    ("convnet", (32, 32, 3)): {"channels": [2], "hidden": [8]},
    ("resnet18_reduced", (28, 28)): {"width": 2},
    ("resnet18_reduced", (32, 32, 3)): {"width": 2},
}


@pytest.fixture(scope="module", params=IMAGES, ids=lambda told: f"{told[0]}-{'x'.join(map(str, told[1]))}")
def of_images(request, tmp_path_factory):
    """A study of images, a network for them, and what the runs are told of the inputs."""
    model, shape = request.param
    facts = {**tiny.FACTS, "shape": list(shape), "sample_bytes": int(np.prod(shape))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "SHAPE", shape)
        study = new_study(tmp_path_factory.mktemp(model), dict.fromkeys(tiny.TASKS, 4), n_test=1)
    return study, {"name": model, "options": IMAGES[request.param]}, facts


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in REFERENCES])
def test_every_method_trains_networks_for_images(of_images, name):
    """Two stages of a step each end with finite weights that moved; HAT and PNN refuse a residual network."""
    study, model, facts = of_images
    about = {"mask": "current", "protocol": "task_incremental", "head": "multi"}
    told = example(METHODS.load(name, "").Hyperparameters)
    if "buffer_bytes" in told:
        told["buffer_bytes"] = 12 * (facts["sample_bytes"] + 64)
    about = about if DECLARED[name].needs_task_identity else {}
    spec = spec_of(name, told, stage_schedule=DECLARED[name].schedule, batch_size=8, epochs=1, **about)
    spec = {**spec, "inputs": facts, "model": {**spec["model"], **model}}
    known = {**facts_of(facts, tiny.TASKS), "model": {**spec["model"], "layered": model["name"] != "resnet18_reduced"}}
    if name in WALKS_LAYERS and model["name"] == "resnet18_reduced":
        with pytest.raises(ModelError):
            check_benchmark(load_method(name, told, ""), known)
        return
    check_benchmark(load_method(name, told, ""), known)
    run = f"{name}/s0-o0"
    train(study, spec, run, [1, 2])
    first, second = (checkpoint(study, stage, run)["model"] for stage in (1, 2))
    assert all(bool(value.isfinite().all()) for value in second.values())
    assert not same_tensors(first, second)


@pytest.fixture(scope="module")
def final_accuracy(study):
    """Of a method with these hyperparameters: the share of all test samples that is right after the last stage."""

    def measure(name: str, **told) -> float:
        spec = spec_of(name, told, stage_schedule=DECLARED[name].schedule, epochs=30)
        train(study, spec, f"{name}-whole/s0-o0")
        evaluate(study, spec, f"{name}-whole/s0-o0")
        rows = pq.read_table(study / f"evaluation/{name}-whole/s0-o0/matrix.parquet").to_pandas()
        last = rows[(rows.stage == 3) & (rows.protocol == "class_incremental")]
        return last.n_correct.sum() / last.n_total.sum()

    return measure


def test_a_memory_of_all_data_comes_near_to_cumulative_training(final_accuracy):
    """Replay of everything stored at each step ends where training on all data so far does, far above finetune."""
    cumulative, plain = final_accuracy("cumulative"), final_accuracy("finetune")
    replayed = final_accuracy("replay", buffer_bytes=66 * 18, replayed=44)
    assert plain < cumulative - 0.3
    assert abs(replayed - cumulative) <= 0.1
