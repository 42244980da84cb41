"""What does not start, and how it says so."""

from __future__ import annotations

import pytest


def _refused(project, *expected: str, arguments: tuple[str, ...] = ()) -> None:
    done = project.snakemake(*arguments)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Traceback" not in output
    missing = [text for text in expected if text not in output]
    assert not missing, f"{missing} not in:\n{output}"
    assert not project.study.exists()


def test_a_study_that_differs_from_its_lock_names_each_field_with_both_values(clone, tmp_path) -> None:
    """Nothing runs on a plan that was changed silently."""
    project = clone(tmp_path / "project")
    project.edit("config/small.yaml", "learning_rate: 0.05", "learning_rate: 0.1")
    project.edit("config/small.yaml", "seeds: [3, 8]", "seeds: [3, 9]")
    _refused(
        project,
        "differs from its lock in 2 fields",
        "training.learning_rate = 0.05",
        "training.learning_rate = 0.1",
        "design.seeds = [3, 8]",
        "design.seeds = [3, 9]",
        "palimpsest lock",
    )


def test_a_study_without_a_lock_is_refused(clone, tmp_path) -> None:
    """The plan is frozen before the first run."""
    project = clone(tmp_path / "project")
    (project.root / "config/small.lock.json").unlink()
    _refused(project, "the study has no lock", "palimpsest lock config/small.yaml")


def test_a_lock_that_was_edited_by_hand_is_refused(clone, tmp_path) -> None:
    """The hash covers the whole plan."""
    project = clone(tmp_path / "project")
    project.edit("config/small.lock.json", '"threads": 1', '"threads": 2')
    _refused(project, "the lock is not as it was written")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "protocol: class_incremental",
            "protocol: class_incremental\ncolour: red",
            ("unknown key 'colour'", "small.yaml:"),
        ),
        ("batch_size: 10", "batch_size: ten", ("training.batch_size", "integer", "str 'ten'")),
        ("test: 20}", "test: 20}\n  seed: 1", ("stands twice",)),
    ],
)
def test_an_invalid_study_file_is_refused_with_its_line(clone, tmp_path, old, new, expected) -> None:
    """Unknown keys, wrong types and repeated keys: what, where, expected, got, next."""
    project = clone(tmp_path / "project")
    project.edit("config/small.yaml", old, new)
    _refused(project, *expected, "where:", "expected:", "got:", "next:")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--config", "seeds=1"), "overridden on the command line"),
        (("--configfile", "config/small.yaml", "config/demo.yaml"), "more than one study file"),
    ],
)
def test_a_plan_is_not_changed_from_the_command_line(clone, tmp_path, arguments, expected) -> None:
    """What a study does stands in one file, which its lock covers whole."""
    _refused(clone(tmp_path / "project"), expected, arguments=arguments)
