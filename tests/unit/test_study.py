"""Validation of the study file: each problem with its line, what was expected and what stands there."""

from __future__ import annotations

import pytest
import yaml

import small_study
from palimpsest.core.errors import PalimpsestError, SeveralErrors, StudyError
from palimpsest.plan.study import read_study


def line_of(path, start):
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if line.strip().startswith(start))


def refuse(folder, change) -> PalimpsestError:
    with pytest.raises(PalimpsestError) as error:
        read_study(small_study.write(folder, change))
    return error.value


def test_the_small_study_is_valid(tmp_path):
    """The study that the tests change is itself accepted, with defaults filled in."""
    study, _ = read_study(small_study.write(tmp_path))
    assert study.analysis.alpha == 0.05
    assert study.references.joint == "final"


def test_an_unknown_key_is_refused(tmp_path):
    """A misspelt key is named with its line."""
    error = refuse(tmp_path, lambda c: c["training"].update(epoch=3))
    line = line_of(tmp_path / "small.yaml", "epoch:")
    assert error.what == "unknown key 'epoch'"
    assert error.where == f"{tmp_path}/small.yaml:{line} training.epoch"
    assert error.got == "int 3"


def test_a_missing_key_is_refused(tmp_path):
    """A key that is not there is named, with the line of its section."""
    error = refuse(tmp_path, lambda c: c["training"].pop("epochs"))
    assert (error.what, error.got) == ("a key is missing", "nothing")
    assert error.where.endswith(f":{line_of(tmp_path / 'small.yaml', 'training:')} training.epochs")


WRONG = {
    "text for a number": (lambda c: c["training"].update(epochs="3"), "training.epochs", "str '3'"),
    "a fraction for a count": (lambda c: c["training"].update(epochs=2.5), "training.epochs", "float 2.5"),
    "a truth for a number": (lambda c: c["training"].update(epochs=True), "training.epochs", "bool True"),
    "no epochs": (lambda c: c["training"].update(epochs=0), "training.epochs", "int 0"),
    "a negative rate": (lambda c: c["training"].update(learning_rate=-0.1), "training.learning_rate", "float -0.1"),
    "an infinite rate": (lambda c: c["training"].update(learning_rate=float("inf")), "training.learning_rate", "inf"),
    "a rate that is no number": (lambda c: c["training"].update(weight_decay=float("nan")), "weight_decay", "nan"),
    "a negative seed": (lambda c: c["design"].update(seeds=[0, -1]), "design.seeds.1", "int -1"),
    "no seed": (lambda c: c["design"].update(seeds=[]), "design.seeds", "list []"),
    "an unknown mask": (lambda c: c.update(training_mask="some"), "training_mask", "str 'some'"),
    "an unknown kind of orders": (
        lambda c: c["design"]["orders"].update(kind="any"),
        "design.orders.kind",
        "str 'any'",
    ),
    "a name with a slash": (lambda c: c["benchmark"].update(name="../x"), "benchmark.name", "str '../x'"),
    "a level above 1": (lambda c: c["analysis"].update(alpha=5.0), "analysis.alpha", "float 5.0"),
    "a section that is a list": (lambda c: c.update(design=[1]), "design", "list [1]"),
    "no methods": (lambda c: c.update(methods={}), "methods", "dict {}"),
    "zero stages per job": (lambda c: c.update(execution={"stages_per_job": 0}), "execution.stages_per_job", "int 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_value_is_refused(tmp_path, case):
    """The error names the field, its line, what would fit, what stands there and what to do."""
    change, field, got = WRONG[case]
    error = refuse(tmp_path, change)
    line = line_of(tmp_path / "small.yaml", field.split(".")[0])
    assert error.where.startswith(f"{tmp_path}/small.yaml:")
    assert int(error.where.split(":")[1].split(" ")[0]) >= line or "." not in field
    assert field in error.where
    assert got in error.got
    assert error.expected
    assert error.next


TOGETHER = {
    "seeds twice": (lambda c: c["design"].update(seeds=[3, 3]), "each seed once"),
    "current without the task": (lambda c: c.update(evaluation_mask="current"), "task_incremental"),
    "the task without current": (lambda c: c.update(protocol="task_incremental"), "evaluation_mask current"),
    "a head for each task without the task": (lambda c: c["model"].update(head="multi"), "must be told the task"),
    "an expanding head under all": (lambda c: c["model"].update(head="expanding"), "no mask can be `all`"),
    "new outputs of a head that adds them": (
        lambda c: (
            c.update(training_mask="seen", evaluation_mask="seen"),
            c["model"].update(head="expanding", reset_new_outputs=True),
        ),
        "for a shared head",
    ),
    "momentum of adam": (lambda c: c["training"].update(optimizer="adam", momentum=0.9), "momentum belongs to sgd"),
    "balanced without a count": (lambda c: c["design"]["orders"].pop("count"), "`count` is the number of orders"),
    "canonical with a count": (lambda c: c["design"]["orders"].update(kind="canonical"), "`count` is the number"),
    "explicit without orders": (lambda c: c["design"].update(orders={"kind": "explicit"}), "`explicit` lists"),
    "orders without explicit": (lambda c: c["design"]["orders"].update(explicit=[["t1"]]), "`explicit` lists"),
    "names twice": (
        lambda c: c["analysis"].update(secondary=[c["analysis"]["primary"]]),
        "each comparison needs a name of its own",
    ),
    "an effect without its SD": (
        lambda c: c["analysis"].update(expected_effect=0.1),
        "expected_effect and expected_sd",
    ),
    "an SD without its source": (
        lambda c: c["analysis"].update(expected_effect=0.1, expected_sd=0.1),
        "expected_sd needs its source",
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_values_that_do_not_go_together_are_refused(tmp_path, case):
    """Values that are valid one by one and contradict one another are refused, and the rule is told."""
    change, rule = TOGETHER[case]
    error = refuse(tmp_path, change)
    assert rule in error.expected
    assert error.where.startswith(f"{tmp_path}/small.yaml:")


def test_task_incremental_with_current_is_accepted(tmp_path):
    """The protocol that tells the task goes with the mask that needs it."""
    change = {"protocol": "task_incremental", "evaluation_mask": "current", "training_mask": "current"}
    study, _ = read_study(small_study.write(tmp_path, lambda c: c.update(change)))
    assert study.training_mask == "current"


def test_all_problems_are_told_at_once(tmp_path):
    """A file with three mistakes gives three messages."""

    def change(content):
        content["training"].update(epochs=0, batch_size=0)
        content["unknown"] = 1

    error = refuse(tmp_path, change)
    assert isinstance(error, SeveralErrors)
    assert len(error.problems) == 3


def test_a_study_is_named_as_its_file(tmp_path):
    """A study whose name is not its file's would write over the results of another one."""
    error = refuse(tmp_path, lambda c: c.update(study="other"))
    assert isinstance(error, StudyError)
    assert (error.expected, error.got) == ("'small'", "'other'")


@pytest.mark.parametrize("content", [None, [1, 2], "text", {"study": {"a": 1}}, {1: 2}])
def test_a_file_that_is_no_study_is_refused(tmp_path, content):
    """Whatever the file holds, the error is ours."""
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(PalimpsestError):
        read_study(path)
