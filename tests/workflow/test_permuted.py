"""A domain-incremental study through the whole workflow."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from project import Project, copy_program


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the study of permuted digits."""
    project = Project(copy_program(tmp_path_factory.mktemp("permuted")), "permuted")
    shutil.copy(Path(__file__).with_name("permuted.yaml"), project.root / "config/permuted.yaml")
    locked = project.run("palimpsest", "lock", "config/permuted.yaml")
    assert locked.returncode == 0, locked.stderr
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    return project.study


def test_the_digits_of_a_task_are_learned_under_its_own_permutation(study: Path) -> None:
    """After the first task its digits are told apart, and those of the other tasks no better than by chance.

    Without the permutations all tasks would be the same; with another one in the test, the first would be lost too.
    """
    matrix = pq.read_table(study / "evaluation/finetune/s0-o0/matrix.parquet").to_pandas()
    assert set(matrix.protocol) == {"domain_incremental"}
    first = matrix[matrix.stage == 1]
    accuracy = first.n_correct / first.n_total
    assert (accuracy[first.task == first.trained_task] > 0.6).all(), first
    assert (accuracy[first.task != first.trained_task] < 0.35).all(), first


def test_forward_transfer_is_measured_and_reported(study: Path) -> None:
    """No cell is 0 by construction: transfer to tasks to come has a value, and the report names the protocol."""
    metrics = pq.read_table(study / "aggregate/metrics.parquet").to_pandas()
    transfer = metrics[(metrics.metric == "forward_transfer_random_init") & metrics.run.str.startswith("finetune")]
    assert len(transfer) == 2
    assert transfer.value.notna().all()
    page = (study / "report/index.html").read_text()
    assert "under the domain-incremental protocol" in page
    assert "in-task" not in page
