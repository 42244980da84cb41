"""The lock: what it covers, and how it refuses."""

from __future__ import annotations

import json

import pytest

import small_study
from palimpsest.cli.describe import Catalogs
from palimpsest.core.errors import LockError, PalimpsestError, StudyError
from palimpsest.core.hashing import hash_json
from palimpsest.plan.grid import Grid
from palimpsest.plan.lock import differences, lock_path, make_lock, open_lock, read_lock
from palimpsest.plan.study import read_study


def lock(folder, change=None):
    path = small_study.write(folder, change)
    study, file = read_study(path)
    lock_path(path).write_text(json.dumps(make_lock(study, file, Catalogs())))
    return path


def reopen(folder, change):
    path = small_study.write(folder, change)
    return open_lock(read_study(path)[0], path)


def refuse(folder, change) -> PalimpsestError:
    with pytest.raises(PalimpsestError) as error:
        small_study.plan_of(folder, change)
    return error.value


def test_a_study_that_agrees_with_its_lock_opens(tmp_path):
    """The grid is that of the lock."""
    lock(tmp_path)
    assert len(reopen(tmp_path, None).runs) == 2 * 2 + 2 + 2 + 2


def test_execution_is_outside_the_lock(tmp_path):
    """How the work is cut into jobs may change after locking."""
    lock(tmp_path)
    reopen(tmp_path, lambda c: c.update(execution={"stages_per_job": 1, "retries": 5}))


def test_every_difference_is_named_with_both_values(tmp_path):
    """Two changed fields stand in the error, each with the locked value and the new one."""
    lock(tmp_path)

    def change(content):
        content["training"]["learning_rate"] = 0.1
        content["methods"]["ewc"] = {"hyperparameters": {"strength": 1.0, "fisher_samples": 5}}

    with pytest.raises(LockError, match="differs from its lock in 2 fields") as error:
        reopen(tmp_path, change)
    assert error.value.expected == "methods.ewc = (absent)\ntraining.learning_rate = 0.05"
    assert error.value.got.splitlines()[1] == "training.learning_rate = 0.1"
    assert '"strength": 1.0' in error.value.got.splitlines()[0]


def test_a_default_that_is_written_out_is_no_difference(tmp_path):
    """What the lock covers is the resolved study, not its text."""
    lock(tmp_path)
    reopen(tmp_path, lambda c: c["analysis"].update(alpha=0.05, correction="holm"))


@pytest.mark.parametrize(
    ("locked", "now", "found"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1}}, []),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, [("a.b", 1, 3)]),
        ({"a": [1, 2]}, {"a": [2, 1]}, [("a", [1, 2], [2, 1])]),
        ({"a": 1}, {"b": 2}, [("a", 1, None), ("b", None, 2)]),
        ({"a": {"b": 1}}, {"a": 1}, [("a", {"b": 1}, 1)]),
        ({"a": 0}, {"a": None}, [("a", 0, None)]),
    ],
)
def test_differences(locked, now, found):
    """Each field that differs once, with both values, in the order of the names."""
    assert list(differences(locked, now)) == found


def test_a_missing_lock_is_refused(tmp_path):
    """A study without a lock does not start; the error names the command that makes one."""
    path = small_study.write(tmp_path)
    with pytest.raises(LockError, match="no lock") as error:
        open_lock(read_study(path)[0], path)
    assert error.value.next.startswith(f"envs/run palimpsest lock {path}")


@pytest.mark.parametrize(
    "edit",
    [
        lambda plan: plan["orders"].update(o1=["t1", "t2", "t3"]),
        lambda plan: plan["units"].pop(),
        lambda plan: plan["study"]["analysis"].update(alpha=0.1),
        lambda plan: plan.update(hash="0" * 64),
        lambda plan: plan.update(more=1),
        lambda plan: plan.update(format=2),
    ],
)
def test_an_edited_lock_is_refused(tmp_path, edit):
    """An order, a unit, a level, the hash, a new key: whatever was edited, the hash does not fit."""
    path = lock_path(lock(tmp_path))
    plan = json.loads(path.read_bytes())
    edit(plan)
    path.write_text(json.dumps(plan))
    with pytest.raises(LockError, match="not as it was written"):
        read_lock(path)


def test_another_format_is_refused(tmp_path):
    """A lock of another format is refused even with a hash that fits."""
    path = lock_path(lock(tmp_path))
    plan = json.loads(path.read_bytes()) | {"format": 2}
    covered = {key: value for key, value in plan.items() if key not in ("hash", "amendments")}
    path.write_text(json.dumps(plan | {"hash": hash_json(covered)}))
    with pytest.raises(LockError, match="not as it was written"):
        read_lock(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", "{}", '{"hash": "x", "a": NaN}'])
def test_a_lock_that_is_none_is_refused(tmp_path, text):
    """Whatever lies in the lock's place, the error is ours."""
    path = tmp_path / "small.lock.json"
    path.write_text(text)
    with pytest.raises(LockError):
        read_lock(path)


def test_locking_twice_gives_the_same_plan(tmp_path):
    """The plan is a function of the study and the program."""
    assert small_study.plan_of(tmp_path) == small_study.plan_of(tmp_path)


def test_every_default_is_spelled_out(tmp_path):
    """The lock holds the defaults of the study, the benchmark and the methods."""
    plan = small_study.plan_of(tmp_path)
    assert plan["study"]["training"]["momentum"] == 0.0
    assert plan["benchmark"]["options"]["class_order"] == "natural"
    expected = {"buffer_bytes": 7850, "replayed": 5, "storage": "reservoir"}
    assert plan["methods"]["replay"]["hyperparameters"] == expected
    assert plan["methods"]["replay"]["stores_raw_data"] is True


def test_units_and_runs_are_listed(tmp_path):
    """Two seeds paired with two orders; methods run on the units, references on the seeds."""
    plan = small_study.plan_of(tmp_path)
    assert [unit["unit"] for unit in plan["units"]] == ["s0-o0", "s1-o1", "s0", "s1"]
    assert [run["run"] for run in plan["runs"]] == [
        *("finetune/s0-o0", "finetune/s1-o1", "replay/s0-o0", "replay/s1-o1"),
        *("random_init/s0", "random_init/s1", "isolated/s0", "isolated/s1", "joint/s0", "joint/s1"),
    ]


def test_full_crossing_gives_every_pair(tmp_path):
    """Two seeds crossed with three orders are six units."""

    def change(content):
        content["design"] = {"crossing": "full", "seeds": [4, 2], "orders": {"kind": "balanced", "count": 3}}

    units = [unit["unit"] for unit in small_study.plan_of(tmp_path, change)["units"]]
    assert units == ["s4-o0", "s4-o1", "s4-o2", "s2-o0", "s2-o1", "s2-o2", "s4", "s2"]


def test_joint_per_stage_runs_on_each_unit(tmp_path):
    """`joint: per_stage` follows the orders, so it runs once for each unit, with all stages."""
    plan = small_study.plan_of(tmp_path, lambda c: c.update(references={"joint": "per_stage"}))
    assert [run["run"] for run in plan["runs"] if run["method"] == "joint"] == ["joint/s0-o0", "joint/s1-o1"]


def test_a_reference_switched_off_is_not_run(tmp_path):
    """Without references only the methods run."""
    off = {"random_init": False, "isolated": False, "joint": None}
    assert len(small_study.plan_of(tmp_path, lambda c: c.update(references=off))["runs"]) == 4


def test_a_method_that_does_not_exist_is_refused(tmp_path):
    """The error lists the methods and names the one that was probably meant."""
    error = refuse(tmp_path, lambda c: c["methods"].update(replai={}))
    assert error.what == "there is no method named 'replai'"
    assert error.next == "write 'replay'"
    assert "finetune" in error.expected
    assert error.where.endswith("methods.replai")


@pytest.mark.parametrize("buffer_bytes", [1, 784])
def test_a_buffer_that_holds_no_sample_is_refused(tmp_path, buffer_bytes):
    """Bytes that pay for no sample are a mistake, found when the study is locked, with its line."""
    error = refuse(tmp_path, lambda c: c["methods"]["replay"]["hyperparameters"].update(buffer_bytes=buffer_bytes))
    assert error.expected == "0 for no buffer, or at least 785 bytes, the size of one sample"
    assert error.where.endswith("methods.replay.hyperparameters.buffer_bytes")
    assert error.got == str(buffer_bytes)


@pytest.mark.parametrize("buffer_bytes", [0, 785])
def test_no_buffer_and_a_buffer_of_one_sample_are_accepted(tmp_path, buffer_bytes):
    """The bounds themselves are fine."""
    small_study.plan_of(tmp_path, lambda c: c["methods"]["replay"]["hyperparameters"].update(buffer_bytes=buffer_bytes))


REFUSED = {
    "an unknown hyperparameter": (
        lambda c: c["methods"]["replay"]["hyperparameters"].update(sizes=1),
        "unknown key 'sizes'",
    ),
    "a missing hyperparameter": (
        lambda c: c["methods"]["replay"]["hyperparameters"].pop("replayed"),
        "a key is missing",
    ),
    "a hyperparameter of no method": (
        lambda c: c["methods"].update({"replay+ewc": {"hyperparameters": {"gem": {}}}}),
        "hyperparameters of a method that is no part of the composition",
    ),
    "a method composed with itself": (lambda c: c["methods"].update({"ewc+ewc": {}}), "cannot be composed"),
    "a reference as a method": (lambda c: c["methods"].update(upper={"method": "joint"}), "is a reference"),
    "a method called as a reference": (
        lambda c: c["methods"].update(joint={"method": "ewc"}),
        "called as a reference is",
    ),
    "an unknown model": (lambda c: c["model"].update(name="cnn"), "there is no model named 'cnn'"),
    "an unknown benchmark": (lambda c: c["benchmark"].update(name="splits"), "there is no benchmark named 'splits'"),
    "an unknown option": (lambda c: c["model"]["options"].update(depth=3), "unknown key 'depth'"),
    "an unknown data set": (
        lambda c: c["benchmark"]["options"].update(dataset="mnits"),
        "no data source named 'mnits'",
    ),
    "an unknown side": (
        lambda c: c["analysis"]["primary"].update(a="gem"),
        "names a method that the study does not run",
    ),
    "one method twice": (
        lambda c: c["analysis"]["primary"].update(a="finetune"),
        "a comparison of a method with itself",
    ),
    "seeds without orders": (lambda c: c["design"].update(seeds=[0, 1, 2]), "as many seeds as orders"),
    "too many orders": (lambda c: c["design"]["orders"].update(count=7), "too many orders"),
    "one unit": (
        lambda c: c["design"].update(seeds=[0], orders={"kind": "canonical"}),
        "the test cannot reach its level",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_study_that_cannot_be_run_is_refused(tmp_path, case):
    """Locking finds what validation of the file alone cannot, and says where in the file."""
    change, what = REFUSED[case]
    error = refuse(tmp_path, change)
    assert what in error.what
    assert str(tmp_path / "small.yaml") in error.where
    assert isinstance(error, StudyError) or error.problems


def test_power_is_locked(tmp_path):
    """Two units, an effect of one SD: power 0.093 by the noncentral t; far below 0.8, so marked underpowered."""
    about = {"expected_effect": 0.1, "expected_sd": 0.1, "expected_sd_source": "a guess"}
    power = small_study.plan_of(tmp_path, lambda c: c["analysis"].update(about))["power"]
    assert power["underpowered"]
    assert power["n"] == 2
    assert 0.05 < power["power"] < 0.2


def test_a_study_without_an_expectation_has_no_power(tmp_path):
    """Nothing is computed from a guess that nobody made."""
    assert small_study.plan_of(tmp_path)["power"] is None


def permuted(**options):
    """Makes the small study one of permuted digits."""
    few = {"train": 10, "validation": 0, "test": 4}
    about = {"dataset": "mnist5k", "n_tasks": 3, "samples_per_class": few, **options}
    return lambda content: content.update(benchmark={"name": "permuted", "seed": 0, "options": about})


def test_tasks_that_share_their_outputs_make_a_domain_incremental_study(tmp_path):
    """Every task has all ten classes; predictions are read in one way; all metrics of a sequence can be compared."""

    def change(content):
        permuted()(content)
        content["protocol"] = "domain_incremental"
        content["analysis"]["primary"]["metric"] = "forward_transfer_random_init"

    plan = small_study.plan_of(tmp_path, change)
    assert {facts["n_test"] for facts in plan["tasks"].values()} == {40}
    assert Grid(plan).protocols == ["domain_incremental"]


@pytest.mark.parametrize(
    ("protocol", "outputs", "fitting"),
    [
        ("class_incremental", "shared", "domain_incremental or task_incremental"),
        ("domain_incremental", "own", "class_incremental or task_incremental"),
    ],
)
def test_a_protocol_that_does_not_fit_the_outputs_is_refused(tmp_path, protocol, outputs, fitting):
    """Class-incremental tasks have outputs of their own, domain-incremental ones share them."""

    def change(content):
        permuted(outputs=outputs)(content)
        content["protocol"] = protocol

    error = refuse(tmp_path, change)
    assert (error.what, error.got) == ("the protocol does not fit the outputs of the tasks", protocol)
    assert error.expected.startswith(fitting)


@pytest.mark.parametrize("mask", ["seen", "current"])
def test_a_mask_that_hides_nothing_is_refused(tmp_path, mask):
    """Where every output belongs to every task, masks of tasks say nothing."""

    def change(content):
        permuted()(content)
        content.update(protocol="domain_incremental", training_mask=mask)

    assert "both masks are `all`" in str(refuse(tmp_path, change))


def test_a_domain_incremental_comparison_has_no_choice_within_the_task(tmp_path):
    """It would be the same choice."""

    def change(content):
        permuted()(content)
        content["protocol"] = "domain_incremental"
        content["analysis"]["primary"]["protocol"] = "task_incremental"

    assert refuse(tmp_path, change).expected == "domain_incremental"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"name": "convnet", "options": {"channels": [2, 2, 2, 2, 2]}}, "5 poolings need larger images than [28, 28]"),
    ],
)
def test_a_model_that_cannot_take_the_inputs_is_refused(tmp_path, model, said):
    """The error stands at the model's options, before anything is trained."""
    error = refuse(tmp_path, lambda c: c.update(model=model))
    assert error.got == said
    assert "model.options" in error.where
