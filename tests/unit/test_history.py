"""What a workflow and the command `lock` note in the journal, and what git says of a lock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import small_study
from palimpsest.cli import main as cli
from palimpsest.cli.history import History, publication, require_hooks
from palimpsest.core.artifact import Job
from palimpsest.core.errors import LockError, StudyError
from palimpsest.plan.grid import Grid
from palimpsest.plan.journal import read_journal
from palimpsest.plan.lock import read_lock
from palimpsest.report.history import read_history, standing

PREDICTIONS = "results/small/evaluation/replay/s0-o0/predictions.parquet"


def palimpsest(monkeypatch, capsys, *arguments) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["palimpsest", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0), *capsys.readouterr()


class Study:
    """A locked study in a folder, as the main process of its workflow sees it."""

    def __init__(self, folder: Path, monkeypatch, capsys) -> None:
        self.folder, self.tools = folder, (monkeypatch, capsys)
        self.file, self.results = small_study.write(folder), folder / "results/small"
        assert self.lock()[0] == 0

    def lock(self, *options) -> tuple[int, str, str]:
        return palimpsest(*self.tools, "lock", self.file, "--results", self.folder / "results", *options)

    def history(self) -> History:
        plan = read_lock(self.folder / "small.lock.json")
        return History(self.file, self.results, plan, Grid(plan).programs())

    def evaluate(self) -> None:
        """One workflow that evaluates one run."""
        self.history().note([PREDICTIONS])
        Job(self.results, "evaluate", "c", "e").write_bytes(PREDICTIONS.removeprefix("results/small/"), b"x", "p")

    def write(self, change) -> None:
        small_study.write(self.folder, change)

    def events(self) -> list[str]:
        return [line["event"] for line in read_journal(self.folder / "small.journal.jsonl")]

    def marks(self) -> dict:
        return json.loads(self.history().marks())


@pytest.fixture
def study(tmp_path, monkeypatch, capsys) -> Study:
    return Study(tmp_path, monkeypatch, capsys)


def with_late(content) -> None:
    content["analysis"]["secondary"] = [{"name": "late", "a": "replay", "b": "finetune", "metric": "forgetting"}]


def test_locking_and_evaluating_are_noted(study):
    """With the hash of the plan, the runs, the programs; a workflow that makes nothing new adds nothing."""
    study.evaluate()
    locked, evaluated = read_journal(study.folder / "small.journal.jsonl")
    assert locked["event"] == "locked"
    assert (evaluated["event"], evaluated["runs"]) == ("evaluation", ["replay/s0-o0"])
    assert evaluated["lock"] == locked["lock"] == read_lock(study.folder / "small.lock.json")["hash"]
    assert evaluated["programs"]["train/replay"]
    study.history().note(["results/small/report/index.html"])
    assert study.events() == ["locked", "evaluation"]


def test_amending_after_results(study):
    """The amendment is in the lock with date and reason, in the journal, and what it adds is exploratory for good."""
    study.evaluate()
    study.write(with_late)
    code, out, _ = study.lock("--amend", "a reviewer asked")
    assert code == 0
    assert "late: exploratory for good: added by amendment 1, after results existed" in out
    plan = read_lock(study.folder / "small.lock.json")
    (made,) = plan["amendments"]
    assert (made["reason"], made["after_results"], made["date"][:2]) == ("a reviewer asked", True, "20")
    study.history().note(["results/small/statistics/comparisons.parquet"])
    assert study.events() == ["locked", "evaluation", "amended", "analysis"]
    assert study.marks()["late"] == ["late"]
    study.evaluate()
    assert study.marks()["late"] == ["late"]


def test_amending_before_results(study):
    """What was added is as good as what was there."""
    study.write(with_late)
    assert study.lock("--amend", "forgotten")[0] == 0
    study.evaluate()
    assert study.marks() == {"comparisons": {}, "late": [], "gates": {}, "claims": {}}
    assert study.lock()[1].endswith("is there already and fits\n")


def test_an_amendment_needs_a_reason_and_a_difference(study):
    """Neither an empty reason nor an unchanged study makes one."""
    assert "needs a reason" in study.lock("--amend", "  ")[2]
    assert "nothing to amend" in study.lock("--amend", "no reason")[2]
    assert "amendments" not in read_lock(study.folder / "small.lock.json")


def test_a_lock_made_anew_over_what_the_journal_knows_is_refused(study):
    """Results and lock removed, the late comparison written into the plan: the journal remembers."""
    study.evaluate()
    (study.folder / "small.lock.json").unlink()
    (study.results / "evaluation/replay/s0-o0/predictions.parquet").unlink()
    study.write(with_late)
    code, _, err = study.lock()
    assert code == 1
    assert "the study has results of another plan already" in err
    assert "small.journal.jsonl" in err
    study.write(None)
    assert study.lock()[0] == 0, "the same plan may be locked again"


def test_a_lock_that_was_exchanged_by_hand_marks_everything(study, tmp_path_factory, monkeypatch, capsys):
    """Where no command could refuse it, the journal knows another plan."""
    study.evaluate()
    elsewhere = Study(tmp_path_factory.mktemp("elsewhere"), monkeypatch, capsys)
    (elsewhere.folder / "small.lock.json").unlink()
    elsewhere.write(with_late)
    elsewhere.lock()
    study.write(with_late)
    (study.folder / "small.lock.json").write_bytes((elsewhere.folder / "small.lock.json").read_bytes())
    assert study.marks()["comparisons"].keys() == {"p", "late"}


@pytest.mark.parametrize("left", [0, 1])
def test_a_journal_that_lost_lines_stops_the_workflow(study, left):
    """The copy among the results is longer: nothing starts and nothing is amended before it is restored."""
    study.evaluate()
    journal = study.folder / "small.journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:left]))
    if not left:
        journal.unlink()
    with pytest.raises(LockError, match="lacks lines that it had"):
        study.history()
    study.write(with_late)
    assert "lacks lines that it had" in study.lock("--amend", "x")[2]


def test_results_beside_no_journal_mark_everything_and_that_is_noted(study):
    """Journal and copy are gone: the workflow begins another one with what it found, and never forgets it."""
    study.evaluate()
    (study.folder / "small.journal.jsonl").unlink()
    (study.results / "telemetry/journal.jsonl").unlink()
    assert "does not know" in study.marks()["comparisons"]["p"]
    study.history().note(["results/small/report/index.html"])
    assert study.events() == ["found", "analysis"]
    study.evaluate()
    assert study.events() == ["found", "analysis", "evaluation"]
    assert "does not know" in study.marks()["comparisons"]["p"]


def test_hooks_are_not_to_be_left_out():
    """Without them nobody would write the journal."""
    with pytest.raises(StudyError, match="passed over"):
        require_hooks(["snakemake", "--no-hooks"])
    require_hooks(["snakemake"])


def git(folder: Path, *arguments) -> None:
    names = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True)


def test_git_says_whether_a_lock_is_published(study, tmp_path_factory):
    """No repository, never committed, committed, published; an amended lock has a commit of its own."""
    folder, lock = study.folder, study.folder / "small.lock.json"
    first = read_lock(lock)["hash"]
    assert publication(lock, [first]) == {first: {}}
    git(folder, "init")
    assert publication(lock, [first]) == {first: {}}
    git(folder, "add", "small.lock.json")
    git(folder, "commit", "-m", "lock")
    found = publication(lock, [first])[first]
    assert (len(found["commit"]), found["branches"]) == (40, [])
    remote = tmp_path_factory.mktemp("remote")
    git(remote, "init", "--bare")
    git(folder, "remote", "add", "origin", remote)
    git(folder, "push", "origin", "main")
    assert publication(lock, [first])[first] == {**found, "branches": ["origin/main"]}
    study.write(with_late)
    study.lock("--amend", "x")
    amended = read_lock(lock)["hash"]
    assert publication(lock, [first, amended]) == {first: {**found, "branches": ["origin/main"]}, amended: {}}


COMMIT = {"commit": "c" * 40, "committed": "2026-01-02T00:00:00+00:00", "branches": []}


@pytest.mark.parametrize(
    ("commit", "first", "expected"),
    [
        ({}, None, "not independently time-stamped: no commit of it is known"),
        (
            COMMIT,
            None,
            "not independently time-stamped: commit cccccccccccc of 2026-01-02 00:00 UTC was never published",
        ),
        (
            {**COMMIT, "branches": ["origin/main"]},
            "2026-01-03T00:00:00+00:00",
            "commit cccccccccccc of 2026-01-02 00:00 UTC is published in origin/main, where its date can be checked",
        ),
        (
            {**COMMIT, "branches": ["origin/main"]},
            "2026-01-01T00:00:00+00:00",
            "not independently time-stamped before the first evaluation: commit cccccccccccc of 2026-01-02 00:00 UTC "
            "is published in origin/main, but came later",
        ),
    ],
)
def test_the_standing_of_a_lock_in_words(commit, first, expected):
    """Only a published commit that came first is evidence."""
    assert standing(commit, first) == expected


def test_the_report_reads_the_copies(study):
    """Dates of the lock and of the first evaluation, amendments with their changes, other plans that were locked."""
    study.evaluate()
    study.write(with_late)
    study.lock("--amend", "a reviewer asked")
    history = study.history()
    history.keep()
    found = read_history(study.results, history.plan)
    assert (found["first_evaluation"] or "")[:2] == found["versions"][0]["locked"][:2] == "20"
    (made,) = found["amendments"]
    assert made["late"]
    assert made["changes"][0]["field"] == "analysis.secondary.late"
    assert made["changes"][0]["old"] is None
    assert "a = replay; b = finetune; metric = forgetting" in made["changes"][0]["new"]
    assert found["others"] == []
