"""The grid: what each run is told, and how its stages are cut into jobs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import small_study
from palimpsest.plan.grid import Block, Grid, Run, spec_of


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return small_study.plan_of(tmp_path_factory.mktemp("plan"))


def named(run: str) -> SimpleNamespace:
    method, unit = run.split("/")
    return SimpleNamespace(method=method, unit=unit)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("all", {(1, 2, 3): ["finetune", "replay", "isolated"], (0,): ["random_init"], (3,): ["joint"]}),
        (
            1,
            {
                (1,): ["finetune", "replay", "isolated"],
                (2,): ["finetune", "replay", "isolated"],
                (3,): ["finetune", "replay", "isolated", "joint"],
                (0,): ["random_init"],
            },
        ),
        (
            2,
            {
                (1, 2): ["finetune", "replay", "isolated"],
                (3,): ["finetune", "replay", "isolated", "joint"],
                (0,): ["random_init"],
            },
        ),
    ],
)
def test_blocks_of_stages(plan, size, expected):
    """All stages in one job, one each, or two at a time: each block with the methods that have it."""
    blocks = Grid(plan).blocks(size)
    assert {block.stages: methods for block, methods in blocks.items()} == expected


@pytest.mark.parametrize("size", ["all", 1, 2, 3, 10])
def test_every_stage_of_every_method_is_in_one_block(plan, size):
    """No stage is left out and none is trained by two rules."""
    grid = Grid(plan)
    for method in grid.methods:
        stages = [stage for block, methods in grid.blocks(size).items() if method in methods for stage in block.stages]
        assert sorted(stages) == next(run.stage_numbers for run in grid.runs.values() if run.method == method)


def test_names_of_blocks():
    """A block is named by its stages."""
    assert (Block((3,)).name, Block((1, 2, 3)).name) == ("stage_3", "stage_1_to_3")


def test_parents_of_a_block(plan):
    """A block needs the last stage before it where its stages descend from it, and nothing inside of it."""
    grid = Grid(plan)
    assert grid.parents(named("finetune/s0-o0"), Block((1, 2, 3))) == []
    assert grid.parents(named("finetune/s0-o0"), Block((3,))) == [2]
    assert grid.parents(named("isolated/s0"), Block((3,))) == []
    assert grid.parents(named("joint/s0"), Block((3,))) == []


def test_references_of_a_run(plan):
    """A method's references are those of its seed; a reference has none."""
    grid = Grid(plan)
    assert grid.references(named("replay/s1-o1")) == {
        "random_init": "random_init/s1", "isolated": "isolated/s1", "joint": "joint/s1",
    }  # fmt: skip
    assert grid.references(named("joint/s1")) == {}


def test_the_reference_of_the_own_unit_comes_first(tmp_path):
    """Joint training per stage belongs to the unit; the other references to the seed."""
    grid = Grid(small_study.plan_of(tmp_path, lambda c: c.update(references={"joint": "per_stage"})))
    references = grid.references(named("replay/s1-o1"))
    assert (references["joint"], references["isolated"]) == ("joint/s1-o1", "isolated/s1")


def test_the_hash_of_the_lock_is_that_of_the_grid(plan):
    """The specification that a run is told has the hash that the lock lists."""
    grid = Grid(plan)
    assert {run["run"]: run["spec_hash"] for run in plan["runs"]} == {r.run: r.spec_hash for r in grid.runs.values()}


def test_a_run_is_told_its_order(plan):
    """The stages of a run follow the order of its unit; shared references follow the canonical order."""
    grid = Grid(plan)
    order = plan["orders"]["o1"]
    assert [stage["task"] for stage in grid.runs["replay/s1-o1"].spec["stages"]] == order
    assert [stage["task"] for stage in grid.runs["isolated/s1"].spec["stages"]] == ["t1", "t2", "t3"]
    assert json.loads(grid.spec(named("replay/s1-o1")))["order"] == order


def hashes(folder, change=None) -> dict[str, str]:
    return {run["run"]: run["spec_hash"] for run in small_study.plan_of(folder, change)["runs"]}


UNTOUCHED = {
    "another level": lambda c: c["analysis"].update(alpha=0.01),
    "another title": lambda c: c.update(title="Other"),
    "another method": lambda c: c["methods"].update(ewc={"hyperparameters": {"strength": 1.0, "fisher_samples": 5}}),
    "other jobs": lambda c: c.update(execution={"stages_per_job": 1}),
    "one more unit": lambda c: c["design"].update(seeds=[0, 1, 2], orders={"kind": "balanced", "count": 3}),
}


@pytest.mark.parametrize("case", UNTOUCHED)
def test_what_fixes_no_byte_is_outside_the_specification(tmp_path, case):
    """Adding a unit, a method or an analysis redefines no run."""
    before, after = hashes(tmp_path), hashes(tmp_path, UNTOUCHED[case])
    assert {run: after[run] for run in before} == before


TOUCHED = {
    "another rate": lambda c: c["training"].update(learning_rate=0.1),
    "more threads": lambda c: c.update(numerics={"threads": 2}),
    "another evaluation batch": lambda c: c.update(numerics={"evaluation_batch_size": 100}),
    "another mask": lambda c: c.update(training_mask="seen"),
    "another split": lambda c: c["benchmark"].update(seed=1),
    "more samples": lambda c: c["benchmark"]["options"]["samples_per_class"].update(train=11),
    "another model": lambda c: c["model"]["options"].update(hidden=[9]),
}


@pytest.mark.parametrize("case", TOUCHED)
def test_what_fixes_the_bytes_is_in_the_specification(tmp_path, case):
    """Training, numerics, masks, data and model redefine every run."""
    before, after = hashes(tmp_path), hashes(tmp_path, TOUCHED[case])
    assert not set(before.values()) & set(after.values())


def test_hyperparameters_touch_their_own_method(tmp_path):
    """Another buffer redefines the runs of replay and no other."""
    after = hashes(tmp_path, lambda c: c["methods"]["replay"]["hyperparameters"].update(replayed=6))
    before = hashes(tmp_path)
    assert {run for run in before if before[run] != after[run]} == {"replay/s0-o0", "replay/s1-o1"}


def test_comparisons_get_their_protocol(plan):
    """A comparison without a protocol has that of the study."""
    assert json.loads(Grid(plan).analysis)["primary"]["protocol"] == "class_incremental"


def test_a_method_under_another_key(tmp_path):
    """One method may stand under two keys with other hyperparameters; what runs is named by the file."""

    def change(content):
        content["methods"]["small"] = {"method": "replay", "hyperparameters": {"buffer_bytes": 785, "replayed": 1}}

    grid = Grid(small_study.plan_of(tmp_path, change))
    assert grid.runs["small/s0-o0"].spec["method"] == "replay"
    assert grid.modules("small") == ["palimpsest.methods.replay", "palimpsest.models.mlp"]


def test_both_files_of_a_composition_are_its_program(tmp_path):
    """A composition runs the files of both of its parts."""
    both = {"ewc": {"strength": 1.0, "fisher_samples": 2}, "replay": {"buffer_bytes": 785, "replayed": 1}}
    change = {"replay+ewc": {"hyperparameters": both}}
    grid = Grid(small_study.plan_of(tmp_path, lambda c: c["methods"].update(change)))
    assert grid.modules("replay+ewc")[:2] == ["palimpsest.methods.replay", "palimpsest.methods.ewc"]


def test_a_spec_is_plain(plan):
    """A specification survives JSON, as it travels to a job on the command line."""
    spec = spec_of(plan, "replay", plan["units"][0])
    assert json.loads(json.dumps(spec)) == spec
    assert isinstance(next(iter(Grid(plan).runs.values())), Run)
