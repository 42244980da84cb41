"""A plan that is amended after its results: only the analysis runs again, and what was added stays exploratory."""

from __future__ import annotations

import json

import pyarrow.parquet as pq

LATE = "    - {name: late, a: replay+ewc, b: finetune, metric: learning_accuracy}\n"


def _times(project) -> dict[str, int]:
    """When what training and evaluation make was written."""
    paths = [p for folder in ("runs", "evaluation", "data") for p in sorted((project.study / folder).rglob("*.*"))]
    return {str(path.relative_to(project.study)): path.stat().st_mtime_ns for path in paths}


def test_a_comparison_added_after_the_results(copy_of_finished) -> None:
    """It is analysed without training or evaluating anything, marked in table and report, and noted in the journal."""
    project = copy_of_finished
    before = _times(project)
    study = project.root / "config/small.yaml"
    study.write_text(study.read_text() + LATE)
    refused = project.snakemake()
    assert "differs from its lock" in refused.stdout + refused.stderr
    amended = project.run("palimpsest", "lock", "config/small.yaml", "--amend", "a reviewer asked for it")
    assert amended.returncode == 0, amended.stderr
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    assert _times(project) == before
    rows = {
        row["comparison"]: row for row in pq.read_table(project.study / "statistics/comparisons.parquet").to_pylist()
    }
    assert (rows["late"]["role"], rows["late"]["confirmatory"]) == ("exploratory", False)
    assert rows["late"]["reason"] == "exploratory for good: added by amendment 1, after results existed"
    assert rows["replay-against-finetune"]["confirmatory"]
    page = (project.study / "report/index.html").read_text()
    assert "exploratory for good: added by amendment 1, after results existed" in page
    assert "after results existed.</b> a reviewer asked for it" in page
    journal = (project.root / "config/small.journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in journal] == ["locked", "evaluation", "amended", "analysis"]
    assert "Nothing to be done" in project.snakemake().stderr


def test_the_evaluated_runs_are_in_the_journal(finished) -> None:
    """All of them, with the hash of the plan, from before they were evaluated."""
    lines = [json.loads(line) for line in (finished.root / "config/small.journal.jsonl").read_text().splitlines()]
    runs = {"/".join(path.parts[-3:-1]) for path in finished.study.glob("evaluation/*/*/matrix.parquet")}
    assert set(lines[1]["runs"]) == runs
    assert lines[1]["lock"] == json.loads((finished.root / "config/small.lock.json").read_bytes())["hash"]
    first = min(path.stat().st_mtime for path in finished.study.glob("evaluation/*/*/predictions.parquet"))
    assert (finished.study / "telemetry/journal.jsonl").stat().st_mtime < first


def test_a_removed_journal_stops_the_workflow(copy_of_finished) -> None:
    """It says where the copy lies; the hook that writes the journal cannot be left out."""
    project = copy_of_finished
    no_hooks = project.snakemake("--no-hooks")
    assert "the journal of the study would be passed over" in no_hooks.stdout + no_hooks.stderr
    (project.root / "config/small.journal.jsonl").unlink()
    done = project.snakemake()
    assert done.returncode != 0
    assert "the journal lacks lines that it had" in done.stdout + done.stderr
    assert "telemetry/journal.jsonl" in done.stdout + done.stderr
