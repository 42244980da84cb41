"""The grid: what each run is told, and how its stages are cut into jobs."""

from __future__ import annotations

import json

import pytest

import small_study
from palimpsest.core.errors import StudyError
from palimpsest.core.hashing import hash_json
from palimpsest.plan import grid
from palimpsest.plan.grid import Batch, Block, Grid, complete_spec


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return small_study.plan_of(tmp_path_factory.mktemp("plan"))


def batch_of(grid: Grid, method: str) -> Batch:
    """The first batch of a method's runs."""
    return next(batch for batch in grid.batches(100) if batch.method == method)


BLOCKS = {
    ("finetune", "all"): [((1, 2, 3), ())],
    ("finetune", 1): [((1,), ()), ((2,), (1,)), ((3,), (2,))],
    ("finetune", 2): [((1, 2), ()), ((3,), (2,))],
    ("isolated", 1): [((1,), ()), ((2,), ()), ((3,), ())],
    ("joint", "all"): [((3,), ())],
    ("joint", 1): [((3,), ())],
    ("random_init", 2): [((0,), ())],
}


def test_a_job_with_more_runs_than_an_argument_can_name_is_refused(plan, monkeypatch):
    """The error says how many runs would fit."""
    monkeypatch.setattr(grid, "LONGEST_ARGUMENT", 100)
    with pytest.raises(StudyError, match="more runs than its command line can name") as error:
        Grid(plan).batches(2)
    assert error.value.next == "write at most 1"
    assert Grid(plan).batches(1)


@pytest.mark.parametrize(("method", "size"), BLOCKS)
def test_blocks_of_stages(plan, method, size):
    """All stages in one job, one each, or two at a time; a block names the stage that its own descend from."""
    blocks = batch_of(Grid(plan), method).blocks(size)
    assert [(block.stages, block.parents) for block in blocks] == BLOCKS[method, size]


@pytest.mark.parametrize("size", ["all", 1, 2, 3, 10])
def test_every_stage_is_in_one_block(plan, size):
    """No stage is left out and none is trained by two jobs."""
    for batch in Grid(plan).batches(1):
        assert [stage for block in batch.blocks(size) for stage in block.stages] == batch.stage_numbers


def test_names_of_blocks():
    """A block is named by its stages."""
    assert (Block((3,), ()).name, Block((1, 2, 3), ()).name) == ("stage_3", "stage_1_to_3")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_run_is_in_one_batch(plan, size):
    """No run is left out, none stands in two batches, a batch is of one method and no larger than asked for."""
    grid = Grid(plan)
    batches = grid.batches(size)
    assert [run.run for batch in batches for run in batch.runs] == list(grid.runs)
    assert all({run.method for run in batch.runs} == {batch.method} for batch in batches)
    assert max(len(batch.runs) for batch in batches) == min(size, 2)
    assert len({batch.name for batch in batches}) == len(batches)


def test_a_batch_tells_its_units(plan):
    """From what a method's runs share and the units of a batch, a job makes the specifications that the lock lists."""
    grid = Grid(plan)
    for batch in grid.batches(2):
        shared = json.loads(grid.shared(batch.method))
        made = [complete_spec(shared, unit) for unit in json.loads(batch.units)]
        assert [hash_json(spec) for spec in made] == [run.spec_hash for run in batch.runs]


def test_paths_of_a_batch(plan):
    """A pattern is filled for each run and stage."""
    batch = batch_of(Grid(plan), "replay")
    assert batch.paths("runs/{run}/stage-{stage}.json", [1, 3]) == [
        *("runs/replay/s0-o0/stage-1.json", "runs/replay/s0-o0/stage-3.json"),
        *("runs/replay/s1-o1/stage-1.json", "runs/replay/s1-o1/stage-3.json"),
    ]


def test_references_of_a_run(plan):
    """A method's references are those of its seed; a reference has none."""
    grid = Grid(plan)
    assert grid.references(batch_of(grid, "replay"))["replay/s1-o1"] == {
        "random_init": "random_init/s1", "isolated": "isolated/s1", "joint": "joint/s1",
    }  # fmt: skip
    assert grid.references(batch_of(grid, "joint")) == {}


def test_the_reference_of_the_own_unit_comes_first(tmp_path):
    """Joint training per stage belongs to the unit; the other references to the seed."""
    grid = Grid(small_study.plan_of(tmp_path, lambda c: c.update(references={"joint": "per_stage"})))
    references = grid.references(batch_of(grid, "replay"))["replay/s1-o1"]
    assert (references["joint"], references["isolated"]) == ("joint/s1-o1", "isolated/s1")


def test_reference_runs_of_a_batch_are_listed_once(tmp_path):
    """Three orders of one seed share their references."""
    change = {"crossing": "full", "seeds": [0], "orders": {"kind": "balanced", "count": 3}}
    grid = Grid(small_study.plan_of(tmp_path, lambda c: c.update(design=change)))
    assert grid.reference_runs(batch_of(grid, "replay")) == ["isolated/s0", "joint/s0", "random_init/s0"]


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
    assert grid.runs["replay/s1-o1"].spec["order"] == order


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
    for run in Grid(plan).runs.values():
        assert json.loads(json.dumps(run.spec)) == run.spec


def test_a_run_of_the_grid_is_told_the_same_as_its_job(plan):
    """To the type of every number and the order of every name: what the two write must be the same bytes."""
    found = Grid(plan)
    for run in found.runs.values():
        (unit,) = (unit for unit in plan["units"] if unit["unit"] == run.unit)
        assert repr(run.spec) == repr(complete_spec(json.loads(found.shared(run.method)), unit))


def test_every_rule_has_a_program(plan):
    """A program for each method's training and evaluation and for each rule; only its own method's file is in it."""
    programs = {name: json.loads(text) for name, text in Grid(plan).programs().items()}
    assert {"replay", "evaluate/replay", "rules/metrics", "rules/report", "random_init"} <= programs.keys()
    assert "palimpsest.methods.replay" in programs["replay"]["files"]
    assert "palimpsest.methods.replay" not in programs["finetune"]["files"]
    assert "palimpsest.training.loop" in programs["finetune"]["files"]
    assert not [name for name in programs["rules/metrics"]["files"] if name.startswith("palimpsest.training")]
