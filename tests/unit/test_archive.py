"""A study in one file: the same bytes each time, valid for others, safe to restore, and enough to analyse it again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import finished_study
from crate_validator import validate
from palimpsest.audit.verify import verify_study
from palimpsest.cli import main as cli
from palimpsest.core.artifact import Job
from project import copy_program

WITHOUT_TRAINING = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "safetensors", "mlxtend", "snakemake", "rocrate"):
            raise ModuleNotFoundError(f"{name} is not to be imported", name=name.split(".")[0])
sys.meta_path.insert(0, Refuse())
from palimpsest.cli.main import main
main()
"""
"""The command line in an environment like that of the analysis: what it lacks cannot be imported."""
ALL_PARTS = "checkpoints,predictions,inputs,telemetry"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The results of a small study that was really trained."""
    return finished_study.finish(tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def archived(finished: Path, tmp_path_factory) -> Path:
    """The archive of it."""
    return archive(finished, tmp_path_factory.mktemp("archived"))


def palimpsest(*arguments) -> int:
    """Exit code of the command, in this process."""
    before, sys.argv = sys.argv, ["palimpsest", *map(str, arguments)]
    try:
        with pytest.raises(SystemExit) as end:
            cli.main()
    finally:
        sys.argv = before
    return int(end.value.code or 0)


def archive(study: Path, out: Path, *options) -> Path:
    """Archive a study whose study file lies beside the folder of all results; returns the file."""
    assert palimpsest("archive", study, "--config", study.parents[1], "--out", out, *options) == 0
    (made,) = out.glob("*.crate.zip")
    return made


def elsewhere(*arguments, program: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command without PyTorch and Snakemake, of this program or of a copy of it."""
    path = str(program / "workflow") if program else os.environ.get("PYTHONPATH", "")
    command = [sys.executable, "-c", WITHOUT_TRAINING, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def root_of(study: Path) -> str:
    return json.loads((study / "audit/root.json").read_bytes())["root"]


def test_hidden_files_beside_the_program_are_no_part_of_it(tmp_path, monkeypatch) -> None:
    """An environment, its lock and its log may lie in `envs/`; the pinned versions alone belong to the program."""
    (tmp_path / "envs").mkdir()
    for name in ("requirements.lock", ".venv-requirements.lock"):
        (tmp_path / "envs" / name).write_text("")
    monkeypatch.setattr("palimpsest.audit.archive.PROJECT", tmp_path)
    from palimpsest.audit.archive import _program

    assert [member.name for member in _program()] == ["program/envs/requirements.lock.txt"]


def test_archiving_twice_gives_the_same_bytes(finished: Path, archived: Path, tmp_path: Path) -> None:
    """Nothing compressed, one date, and times of change, which differ in a copy, are not asked."""
    study = tmp_path / "results/small"
    shutil.copytree(finished.parents[1], tmp_path, dirs_exist_ok=True, copy_function=shutil.copyfile)
    again = archive(study, tmp_path / "out")
    assert again.name == archived.name == f"small-{root_of(finished)[:12]}.crate.zip"
    assert again.read_bytes() == archived.read_bytes()
    entries = zipfile.ZipFile(archived).infolist()
    assert {(e.compress_type, e.date_time) for e in entries} == {(zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0))}


def test_what_belongs_to_a_study_is_in_its_archive(finished: Path, archived: Path) -> None:
    """Plan, lock, journal, program as texts, environment, ledger, trajectories, failures, report; no lock files."""
    names = zipfile.ZipFile(archived).namelist()
    expected = {
        *(f"config/small.{suffix}" for suffix in ("yaml", "lock.json", "journal.jsonl")),
        *("program/Snakefile.txt", "program/envs/requirements.lock.txt", "program/envs/analysis.lock.txt"),
        *("program/workflow/palimpsest/training/loop.py.txt", "program/workflow/rules/train.smk.txt"),
        *("results/small/runs/replay/s0-o0/stage-1.safetensors", "results/small/aggregate/failures.parquet"),
        *("results/small/audit/ledger/replay.parquet", "results/small/telemetry/journal.jsonl"),
        *("results/small/report/index.html", "results/small/report/costs.html"),
    }
    assert expected <= set(names)
    assert not [name for name in names if ".lock" in name.rpartition("/")[2] and not name.endswith((".json", ".txt"))]
    assert not [name for name in names if name.endswith((".py", ".smk", ".pyc"))]


def test_sizes_are_told_beforehand(finished: Path, tmp_path: Path, capsys) -> None:
    """By part, with what is left out; a dry run writes nothing."""
    options = ("--config", finished.parents[1], "--out", tmp_path, "--dry-run", "--without", "checkpoints")
    assert palimpsest("archive", finished, *options) == 0
    told = capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    predictions = sum(path.stat().st_size for path in finished.glob("evaluation/*/*/predictions.parquet"))
    assert f"{predictions:,} bytes" in next(line for line in told.splitlines() if line.startswith("predictions"))
    assert not [line for line in told.splitlines() if line.startswith("checkpoints")]
    assert "-without-checkpoints.crate.zip" in told


def test_the_validator_of_crates_finds_nothing(archived: Path, tmp_path: Path) -> None:
    """By the profile Workflow Run Crate and those that it builds on, without the network."""
    done = validate(archived, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "is a valid workflow-run-crate" in done.stdout


def test_a_restored_study_verifies_and_is_the_same(finished: Path, archived: Path, tmp_path: Path) -> None:
    """In an empty folder, without PyTorch: every file, nothing to remark, and it archives to the same bytes."""
    done = elsewhere("restore", archived, "--into", tmp_path / "here", "--root", root_of(finished))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything follows from its parents" in done.stdout
    assert "remark" not in done.stdout
    study = tmp_path / "here/results/small"
    assert palimpsest("archive", study, "--out", tmp_path / "out") == 0
    assert (tmp_path / "out" / archived.name).read_bytes() == archived.read_bytes()


def test_an_archive_can_be_verified_as_it_is(archived: Path, capsys) -> None:
    """It is unpacked for as long as it is looked at; --deep trains a stage by the installed program."""
    assert palimpsest("verify", archived, "--deep", "--sample", 1, "--seed", 3) == 0
    told = capsys.readouterr().out
    assert f"{archived}: everything follows from its parents" in told
    assert "stages were trained and evaluated again" in told


def test_a_partial_archive_says_what_is_absent(finished: Path, tmp_path: Path) -> None:
    """By declaration: remarks, and everything else is still made again; without the declaration it is missing."""
    study = tmp_path / "here/results/small"
    made = archive(finished, tmp_path / "out", "--without", ALL_PARTS)
    assert made.name.endswith("-without-checkpoints-inputs-predictions-telemetry.crate.zip")
    done = elsewhere("restore", made, "--into", tmp_path / "here")
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("checkpoints", "predictions", "inputs"):
        assert f"{part} are absent by declaration" in done.stdout
    assert "could not be made again" not in done.stdout
    assert not list(study.rglob("*.safetensors"))
    (study / "audit/left-out.json").unlink()
    assert {finding.reason for finding in verify_study(study) if not finding.is_remark} == {"it is missing"}


def test_a_partial_study_is_analysed_again(finished: Path, tmp_path: Path) -> None:
    """Without checkpoints, predictions, PyTorch and Snakemake: the same rows, and a report."""
    made = archive(finished, tmp_path / "out", "--without", ALL_PARTS)
    assert elsewhere("restore", made, "--into", tmp_path / "here").returncode == 0
    done = elsewhere("analyse", tmp_path / "here/results/small", "--into", tmp_path / "again")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every table of metrics, aggregates and statistics has the rows that it had" in done.stdout
    assert (tmp_path / "again/report/index.html").is_file()


def test_the_same_analysis_of_a_whole_study_has_the_same_root(archived: Path, finished: Path, tmp_path: Path) -> None:
    """To the last byte of every artifact in the ledger; the restored study stays as it was."""
    assert elsewhere("restore", archived, "--into", tmp_path / "here").returncode == 0
    done = elsewhere("analyse", tmp_path / "here/results/small", "--into", tmp_path / "again")
    assert done.returncode == 0, done.stdout + done.stderr
    assert root_of(tmp_path / "again") == root_of(finished)
    assert verify_study(tmp_path / "here/results/small") == []
    refused = elsewhere("analyse", tmp_path / "here/results/small", "--into", tmp_path / "again")
    assert "in an empty folder alone" in refused.stderr


def test_another_definition_gives_other_numbers_and_confirms_nothing(archived: Path, tmp_path: Path) -> None:
    """A metric edited after the results were seen: recomputed without training, marked, named against the archive."""
    program = copy_program(tmp_path / "program")
    metric = program / "workflow/palimpsest/metrics/average_accuracy.py"
    text = metric.read_text()
    assert text.count("return ") == 1
    metric.write_text(text.replace("return ", "return 0.5 * "))
    verified = elsewhere("verify", archived, program=program)
    assert "they differ in palimpsest.metrics.average_accuracy" in verified.stdout
    assert elsewhere("restore", archived, "--into", tmp_path / "here").returncode == 0
    done = elsewhere("analyse", tmp_path / "here/results/small", "--into", tmp_path / "again", program=program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "other rows than before: metrics/replay/s0-o0.parquet" in done.stdout
    before, after = (
        {row["comparison"]: row for row in pq.read_table(study / "statistics/comparisons.parquet").to_pylist()}
        for study in (tmp_path / "here/results/small", tmp_path / "again")
    )
    assert after["p"]["mean"] == pytest.approx(before["p"]["mean"] / 2)
    assert "the program was changed after results existed (metric/average_accuracy)" in after["p"]["reason"]
    assert "metric/" not in (after["f"]["reason"] or "")


def rewritten(archived: Path, target: Path, name: str, content: bytes) -> Path:
    """The archive with other content of one file."""
    with zipfile.ZipFile(archived) as source, zipfile.ZipFile(target, "w") as sink:
        for entry in source.infolist():
            sink.writestr(entry, content if entry.filename == name else source.read(entry))
    return target


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("results/small/aggregate/failures.parquet", b"PAR1", "aggregate/failures.parquet: its bytes are not those"),
        ("config/small.lock.json", b"{}", "config/small.lock.json: it is not the plan of the results"),
        ("config/small.journal.jsonl", b"", "config/small.journal.jsonl: the journal is not as it was written"),
        ("program/workflow/palimpsest/training/loop.py.txt", b"x = 1", "palimpsest.training.loop"),
        ("program/workflow/palimpsest/training/loop.py.txt", b"((((", "palimpsest.training.loop"),
    ],
)
def test_a_file_exchanged_in_the_archive_is_named(archived: Path, tmp_path: Path, capsys, name, content, told) -> None:
    """Results, plan and journal are wrong; another text of the program is a remark, and is never run."""
    forged = rewritten(archived, tmp_path / archived.name, name, content)
    code = palimpsest("restore", forged, "--into", tmp_path / "here")
    assert told in capsys.readouterr().out
    assert code == (0 if name.startswith("program/") else 1)


def test_an_archive_under_another_root_is_named(archived: Path, tmp_path: Path, capsys) -> None:
    """The head of the root in the file's name is that of the ledger, or the name is one of another study."""
    other = shutil.copy(archived, tmp_path / "small-000000000000.crate.zip")
    assert palimpsest("restore", other, "--into", tmp_path / "here") == 1
    assert "shows another root than its ledger has" in capsys.readouterr().out
    nameless = shutil.copy(archived, tmp_path / "download.zip")
    assert palimpsest("restore", nameless, "--into", tmp_path / "there") == 0
    assert "shows no root to compare with" in capsys.readouterr().out


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Path:
    """A copy of the study that a test may change."""
    shutil.copytree(finished.parents[1], tmp_path / "project")
    return tmp_path / "project/results/small"


REFUSED = {
    "an artifact that changed": (lambda s: append(s / "plan/units.parquet"), "is not the one that was written"),
    "an artifact that is missing": (lambda s: (s / "plan/units.parquet").unlink(), "an artifact is missing"),
    "a file that is no part of it": (lambda s: (s / "aggregate/mine.csv").write_text("a"), "a file has no record"),
    "another lock": (lambda s: (s.parents[1] / "small.lock.json").write_text("{}"), "not the one of the results"),
    "no journal": (lambda s: (s.parents[1] / "small.journal.jsonl").unlink(), "lacks lines that it had"),
    "no root": (lambda s: (s / "audit/root.json").unlink(), "archived when it is finished"),
    "another program": (lambda s: other_program(s), "is not the one that made these results"),
}


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def other_program(study: Path) -> None:
    recorded = json.loads((study / "plan/code/replay.json").read_bytes())
    recorded["files"]["palimpsest.methods.replay"] = "0" * 64
    Job(study, "plan_code", "c", "e").write_json("plan/code/replay.json", recorded, "program")


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_whole_is_not_archived(study: Path, tmp_path: Path, capsys, case: str) -> None:
    """The reason is told, and no file is left behind, not even half of one."""
    change, reason = REFUSED[case]
    change(study)
    assert palimpsest("archive", study, "--config", study.parents[1], "--out", tmp_path / "out") == 1
    assert reason in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*"))


def test_a_part_that_there_is_not_cannot_be_left_out(finished: Path, tmp_path: Path, capsys) -> None:
    """The plan, say: an archive without it would be none."""
    options = ("--config", finished.parents[1], "--out", tmp_path, "--without", "plan")
    assert palimpsest("archive", finished, *options) == 1
    assert "no such part" in capsys.readouterr().err


def test_a_study_with_failed_runs(tmp_path: Path) -> None:
    """Every trained run ends in the first stage: they are archived as what they are, and verify elsewhere."""

    def diverge(content) -> None:
        content["training"]["learning_rate"] = 1e30

    study = finished_study.finish(tmp_path, diverge)
    made = archive(study, tmp_path / "out")
    done = elsewhere("restore", made, "--into", tmp_path / "here")
    assert done.returncode == 0, done.stdout + done.stderr
    failures = pq.read_table(tmp_path / "here/results/small/aggregate/failures.parquet").to_pylist()
    assert {row["run"] for row in failures} >= {"replay/s0-o0", "finetune/s1-o1"}
