"""The small study, in copies of the program that a test may edit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from project import Project, copy_program


@pytest.fixture(scope="session")
def clone() -> Callable[[Path], Project]:
    """Makes copies of the project with a locked small study."""

    def make(root: Path) -> Project:
        project = Project(copy_program(root))
        shutil.copy(Path(__file__).with_name("small.yaml"), root / "config" / "small.yaml")
        locked = project.run("palimpsest", "lock", "config/small.yaml")
        assert locked.returncode == 0, locked.stderr
        return project

    return make


@pytest.fixture(scope="session")
def finished(clone: Callable[[Path], Project], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The small study, run once without disturbance; tests must not change it."""
    project = clone(tmp_path_factory.mktemp("finished"))
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    return project


@pytest.fixture
def copy_of_finished(finished: Project, tmp_path: Path) -> Project:
    """The finished study, results and Snakemake's notes included, in a folder that a test may change."""
    root = tmp_path / "project"
    shutil.copytree(finished.root, root, copy_function=shutil.copy2)
    return Project(root)
