"""The demo study, run whole: it shows what is known of class-incremental Split MNIST."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import mean

import pyarrow.parquet as pq
import pytest

from project import Project, copy_program

EXPECTED_PERCENT = {"finetune": (17, 22), "replay": (70, 88), "joint": (88, 94)}
"""Average accuracy, class-incremental: what a trial of the same setting gave, with room for other random numbers."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the demo study from a copy of the program."""
    project = Project(copy_program(tmp_path_factory.mktemp("demo")), "demo")
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    return project.study


@pytest.fixture(scope="module")
def accuracy(demo: Path) -> dict[str, dict[str, float]]:
    """Average accuracy in percent by method and seed, class-incremental."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for row in pq.read_table(demo / "aggregate/metrics.parquet").to_pylist():
        if row["metric"] == "average_accuracy" and row["protocol"] == "class_incremental":
            method, unit = row["run"].split("/")
            found[method][unit.split("-")[0]] = 100 * row["value"]
    return found


@pytest.mark.parametrize("method", EXPECTED_PERCENT)
def test_accuracy_is_as_known(accuracy, method: str) -> None:
    """The mean over units lies where the field expects it."""
    low, high = EXPECTED_PERCENT[method]
    assert low <= mean(accuracy[method].values()) <= high


def test_ewc_does_not_help_without_task_identity(accuracy) -> None:
    """EWC stays within three percentage points of plain training."""
    assert abs(mean(accuracy["ewc"].values()) - mean(accuracy["finetune"].values())) <= 3


def test_joint_training_is_above_replay_in_every_unit(accuracy) -> None:
    """The reference is an upper one."""
    assert all(accuracy["joint"][seed] > accuracy["replay"][seed] for seed in accuracy["replay"])


def test_the_verdict_is_that_replay_is_better(demo: Path) -> None:
    """The primary comparison decides."""
    (primary,) = [
        row for row in pq.read_table(demo / "statistics/comparisons.parquet").to_pylist() if row["role"] == "primary"
    ]
    assert primary["verdict"] == "better"
    assert primary["confirmatory"]
    assert primary["n"] == 5


def test_the_report_stands_alone(demo: Path) -> None:
    """One file that says it is a demonstration."""
    page = (demo / "report/index.html").read_text()
    assert "demonstration" in page
    assert 'src="http' not in page
