"""The same plan gives the same bytes, however the work is cut into jobs."""

from __future__ import annotations

import re
from pathlib import Path

DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
"""When the plan was locked and first evaluated: all that may differ on the page."""


def test_two_runs_from_scratch_are_equal_byte_for_byte(finished, clone, tmp_path: Path) -> None:
    """Other number of cores, other threads in the environment, other cut into jobs: every hash is the same."""
    other = clone(tmp_path / "other")
    other.edit("config/small.yaml", "execution: {runs_per_job: 2}", "execution: {stages_per_job: 1}")
    done = other.snakemake("--cores", "1", OMP_NUM_THREADS="2", ATEN_CPU_CAPABILITY="avx512")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "train_stage_2" in done.stdout + done.stderr, "each stage had a job of its own"
    first, second = finished.hashes(), other.hashes()
    assert len(first) > 100
    assert {
        name: (first.get(name), second.get(name)) for name in first | second if first.get(name) != second.get(name)
    } == {}
    pages = [re.sub(DATE, "", (p.study / "report/index.html").read_text()) for p in (finished, other)]
    assert pages[0] == pages[1]


def test_a_second_run_does_nothing(copy_of_finished) -> None:
    """What is up to date is left alone."""
    again = copy_of_finished.snakemake()
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout + again.stderr
