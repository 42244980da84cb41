"""The demo study, run whole: it shows what is known of class-incremental Split MNIST."""

from __future__ import annotations

import json
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


def test_the_report_says_that_it_is_a_demonstration(demo: Path) -> None:
    """At its head, before anything else."""
    page = (demo / "report/index.html").read_text()
    assert "<strong>Demonstration.</strong>" in page[: page.index("Verdict")]


def test_the_numbers_are_the_recorded_ones(demo: Path) -> None:
    """Every cell of every matrix is what README and the golden file were written from, on this kind of machine."""
    golden = json.loads((Path(__file__).parent / "demo.json").read_text())
    kind = json.loads((demo / "runs/finetune/s0-o0/stage-1.json").read_text())["machine"]
    if kind != golden["machine"]:
        pytest.skip(f"the golden values are of another kind of machine, {golden['machine']}, not {kind}")
    assert n_correct(demo) == golden["n_correct"]


def n_correct(study: Path) -> dict[str, list[int]]:
    """Correct test samples of every cell of every run, in the order of protocol, stage and task."""
    paths = sorted(study.glob("evaluation/*/*/matrix.parquet"))
    return {"/".join(p.parts[-3:-1]): pq.read_table(p)["n_correct"].to_pylist() for p in paths}
