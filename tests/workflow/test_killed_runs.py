"""A run that is killed each time it is started, in a stream that is watched; and the same stream unwatched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from palimpsest.core.attempts import attempts_log, read_attempts
from project import Project, copy_program

DOOMED, RETRIES = "replay/s1-o1", 2
WATCHED = ("probes", "prequential")


class Killer(threading.Thread):
    """Kills each process that begins to train the doomed run, as soon as the run's log names it."""

    def __init__(self, study: Path) -> None:
        super().__init__(daemon=True)
        self.study, self.killed, self.over = study, set[int](), threading.Event()

    def run(self) -> None:
        """Look at the log until told that it is over."""
        while not self.over.wait(0.01):
            log = attempts_log(self.study, DOOMED)
            text = log.read_text() if log.is_file() else ""
            for process in {int(number) for number in re.findall(r'"process": (\d+)', text)} - self.killed:
                os.kill(process, signal.SIGKILL)
                self.killed.add(process)


@dataclass
class Story:
    """What happened to the watched stream: the first try, in which the run was killed, and the second without it."""

    project: Project
    killed: set[int]
    first: subprocess.CompletedProcess[str]
    status: str
    abandoned: subprocess.CompletedProcess[str]
    second: subprocess.CompletedProcess[str]

    def table(self, path: str) -> pd.DataFrame:
        """A table of the study."""
        return pd.read_parquet(self.project.study / path)


def _locked(root: Path) -> Project:
    project = Project(copy_program(root), "stream")
    shutil.copy(Path(__file__).with_name("stream.yaml"), root / "config/stream.yaml")
    return project


def _lock(project: Project) -> None:
    locked = project.run("palimpsest", "lock", "config/stream.yaml")
    assert locked.returncode == 0, locked.stderr


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The watched stream, one run of which is killed until it is given up."""
    project = _locked(tmp_path_factory.mktemp("stream"))
    _lock(project)
    killer = Killer(project.study)
    killer.start()
    first = project.snakemake()
    killer.over.set()
    killer.join()
    status = project.run("palimpsest", "status", "stream").stdout
    abandoned = project.run("palimpsest", "abandon", DOOMED, "--study", "stream", "--reason", "node 7 is broken")
    return Story(project, killer.killed, first, status, abandoned, project.snakemake())


def test_a_killed_run_is_tried_again_as_often_as_the_plan_says(story: Story) -> None:
    """One attempt and two retries, each killed by a signal; the workflow then fails, and status names the run."""
    assert story.first.returncode != 0
    attempts = read_attempts(story.project.study, DOOMED)
    assert [(a["stage"], a["outcome"]) for a in attempts] == [(1, "killed")] * (1 + RETRIES)
    assert len(story.killed) == 1 + RETRIES, "each attempt was a process of its own"
    assert f"{DOOMED}: failed in stage 1: killed, attempts: {1 + RETRIES}" in story.status


def test_an_abandoned_run_lets_the_study_end(story: Story) -> None:
    """The same command ends, without another attempt; tables, comparison and report count one failed run."""
    assert story.abandoned.returncode == 0, story.abandoned.stderr
    assert story.second.returncode == 0, story.second.stdout + story.second.stderr
    assert len(read_attempts(story.project.study, DOOMED)) == 1 + RETRIES
    (failure,) = story.table("aggregate/failures.parquet").to_dict("records")
    assert (failure["run"], failure["stage"]) == (DOOMED, 1)
    assert failure["reason"] == "infrastructure: node 7 is broken"
    summary = story.table("aggregate/summary.parquet").query("metric == 'average_accuracy'")
    counts = {row.method: (row.n, row.n_failed) for row in summary.itertuples()}
    assert counts == {"finetune": (3, 0), "replay": (2, 1)}
    (comparison,) = story.table("statistics/comparisons.parquet").to_dict("records")
    assert (comparison["n"], comparison["n_failed_a"], comparison["n_failed_b"]) == (2, 1, 0)
    page = (story.project.study / "report/index.html").read_text()
    assert "infrastructure: node 7 is broken" in page
    assert "failed runs: 1 of replay, 0 of finetune" in page


def test_a_watched_stream_reaches_the_tables(story: Story) -> None:
    """Probes and the stream's record lie beside the run, and what they say stands in the aggregate tables."""
    stream = story.table("runs/finetune/s0-o0/prequential.parquet")
    assert (len(stream), stream.n_total.sum()) == (12, 120), "each of 3 · 2 · 20 samples was predicted once"
    probes = story.table("runs/finetune/s0-o0/probes.parquet")
    assert set(range(0, 121, 20)) <= set(probes.samples_seen)
    metrics = story.table("aggregate/metrics.parquet")
    metrics = metrics[metrics.run == "finetune/s0-o0"]
    (accuracy,) = metrics.query("metric == 'prequential_accuracy' and protocol == 'class_incremental'").value
    assert accuracy == pytest.approx(stream.n_correct.sum() / stream.n_total.sum())
    assert metrics.query("metric == 'forgetting_at_peak'").value.notna().all()
    assert {0, 20, 120} <= set(story.table("aggregate/curves.parquet").samples_seen)


def test_what_needs_boundaries_is_null_with_the_reason(story: Story) -> None:
    """No task of a stream ends: forgetting is undefined, and says why."""
    metrics = story.table("aggregate/metrics.parquet")
    for name in ("forgetting", "backward_transfer", "b_shot", "learning_accuracy"):
        rows = metrics[(metrics.metric == name) & (metrics.run == "finetune/s0-o0")]
        assert len(rows), name
        assert rows.value.isna().all(), name
        assert set(rows.missing) == {"the stream has no boundaries between tasks"}, name


def test_runs_are_the_same_bytes_unwatched(story: Story, tmp_path: Path) -> None:
    """Without probes and without the record of the stream, every checkpoint and every step is the same."""
    project = _locked(tmp_path / "unwatched")
    project.edit("config/stream.yaml", "probes: {first_batches: 2, held_out_every: 20, tasks: all}\n", "")
    project.edit("config/stream.yaml", "prequential: true\n", "")
    _lock(project)
    wanted = [f"results/stream/runs/{method}/s0-o0/stage-3.json" for method in ("finetune", "replay")]
    done = project.run(*project.command()[:3], *wanted, "--configfile", "config/stream.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    watched, unwatched = story.project.hashes(), project.hashes()
    runs = [name for name in unwatched if name.endswith((".safetensors", ".steps.parquet"))]
    assert len(runs) == 2 * 3 * 2
    assert {name for name in runs if watched[name] != unwatched[name]} == set()
    assert not [name for name in unwatched if any(kind in name for kind in WATCHED)]
    assert [name for name in watched if any(kind in name for kind in WATCHED)]
