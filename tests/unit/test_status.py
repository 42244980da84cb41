"""How far a study is, read from fabricated folders."""

from __future__ import annotations

import json

import pytest

import small_study
from palimpsest.core.exclusive import hold, is_held
from palimpsest.plan.grid import Grid
from palimpsest.plan.status import Cell, cells, seconds_left

RUN = "replay/s0-o0"


@pytest.fixture(scope="module")
def grid(tmp_path_factory) -> Grid:
    return Grid(small_study.plan_of(tmp_path_factory.mktemp("plan")))


def put(folder, name, text=""):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def stages(folder, *numbers, **record):
    for number in numbers:
        content = {"status": "complete", "stage": number, "ended_in": None, "reason": None} | record
        put(folder, f"runs/{RUN}/stage-{number}.json", json.dumps(content))


def attempts(folder, *lines):
    put(folder, f"telemetry/{RUN}.attempts.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def started(stage, attempt="a"):
    return {"event": "started", "stage": stage, "attempt": attempt}


def finished(stage, seconds, attempt="a"):
    return {"event": "ended", "stage": stage, "attempt": attempt, "outcome": "finished", "wall_clock_s": seconds}


def state(folder, grid) -> Cell:
    return next(cell for cell in cells(folder, grid) if cell.run == RUN)


def test_an_empty_folder_waits(tmp_path, grid):
    """Before the first job every run of the plan waits."""
    found = cells(tmp_path, grid)
    assert [cell.run for cell in found] == list(grid.runs)
    assert {cell.state for cell in found} == {"waiting"}


def test_some_stages_wait_for_the_others(tmp_path, grid):
    """A run with two of three stages, and no failure, waits."""
    stages(tmp_path, 1, 2)
    cell = state(tmp_path, grid)
    assert (cell.state, cell.stages_done, cell.stages) == ("waiting", 2, 3)


def test_all_stages_are_trained(tmp_path, grid):
    """A run with all stages and without metrics is trained."""
    stages(tmp_path, 1, 2, 3)
    assert state(tmp_path, grid).state == "trained"


def test_metrics_are_done(tmp_path, grid):
    """A run with its metrics is done."""
    stages(tmp_path, 1, 2, 3)
    put(tmp_path, f"metrics/{RUN}.parquet")
    assert state(tmp_path, grid).state == "done"


def test_an_outcome_is_ended(tmp_path, grid):
    """A run that diverged has ended, with stage and reason, even with its metrics."""
    stages(tmp_path, 1)
    stages(tmp_path, 2, 3, status="ended", ended_in=2, reason="numerical: the loss is nan at step 9")
    put(tmp_path, f"metrics/{RUN}.parquet")
    cell = state(tmp_path, grid)
    assert (cell.state, cell.reason) == ("ended", "stage 2: numerical: the loss is nan at step 9")


def test_a_held_lock_is_running(tmp_path, grid):
    """A run whose lock a process holds is running; when it lets go, it is not."""
    file = hold(tmp_path / f"runs/{RUN}/.lock", lambda: None)
    try:
        assert state(tmp_path, grid).state == "running"
    finally:
        file.close()
    assert state(tmp_path, grid).state == "waiting"


def test_a_failed_attempt_is_failed(tmp_path, grid):
    """The last attempt broke off with an exception: failed, with its text."""
    attempts(tmp_path, started(1), {"event": "ended", "stage": 1, "attempt": "a", "outcome": "failed: OSError: full"})
    cell = state(tmp_path, grid)
    assert (cell.state, cell.reason) == ("failed", "stage 1: failed: OSError: full, attempts: 1")


def test_an_attempt_without_an_end_was_killed(tmp_path, grid):
    """The last attempt began and never ended, and nobody holds the lock: killed, with the attempts at that stage."""
    stages(tmp_path, 1)
    attempts(tmp_path, started(1), finished(1, 2.0), started(2, "b"), started(2, "c"))
    assert state(tmp_path, grid).reason == "stage 2: killed, attempts: 2"


def test_a_later_success_clears_a_failure(tmp_path, grid):
    """A run that was killed once and went on is not failed."""
    stages(tmp_path, 1)
    attempts(tmp_path, started(1), started(1, "b"), finished(1, 2.0, "b"))
    assert state(tmp_path, grid).state == "waiting"


def cell(run, done, seconds, timed, stages=3):
    return Cell(run, "waiting", done, stages, None, seconds, timed)


def test_time_left_before_the_first_stage_is_unknown():
    """Nothing was timed: null, not 0."""
    assert seconds_left([cell("a/s0", 0, 0.0, 0)]) is None


def test_time_left_by_the_mean_of_each_method():
    """Method a took 2 s a stage and has 3 stages left, b took 10 s and has 1; c has none yet and is taken at 6 s."""
    found = [cell("a/s0", 3, 6.0, 3), cell("a/s1", 0, 0.0, 0), cell("b/s0", 2, 30.0, 3), cell("c/s0", 2, 0.0, 0)]
    assert seconds_left(found) == pytest.approx(3 * 2 + 1 * 10 + 1 * 6)


def test_nothing_left_is_zero():
    """All stages are there."""
    assert seconds_left([cell("a/s0", 3, 6.0, 3)]) == 0


def test_a_lock_that_is_taken_calls_back(tmp_path):
    """A second taker is told before it waits, and may refuse; a file that nobody holds is not held."""

    def refuse():
        raise RuntimeError("taken")

    with hold(tmp_path / "lock", refuse):
        assert is_held(tmp_path / "lock")
        with pytest.raises(RuntimeError, match="taken"):
            hold(tmp_path / "lock", refuse)
    assert not is_held(tmp_path / "lock")
    assert not is_held(tmp_path / "absent")
