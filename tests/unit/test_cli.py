"""The command line: what the user sees when something is wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import palimpsest
import small_study
from palimpsest.cli import main as cli
from palimpsest.cli.commands.schema import page
from palimpsest.core.artifact import Job
from palimpsest.plan.document import json_schema

ROOT = Path(palimpsest.__file__).parents[2]
FIELDS = ("where:", "expected:", "got:", "next:")


def run(monkeypatch, capsys, *arguments) -> tuple[int, str, str]:
    """Exit code, output and errors of the command, in this process."""
    monkeypatch.setattr(sys, "argv", ["palimpsest", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


BAD = {
    "not yaml": "a: [",
    "empty": "",
    "a list": "- 1\n",
    "a key twice": "study: small\nstudy: small\n",
    "no section": "study: small\n",
    "a tag": "study: !!python/object:os.system {}\n",
    "an alias of itself": "study: &a [*a]\n",
    "no text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_study_file_is_told_and_not_traced(monkeypatch, capsys, tmp_path, case):
    """Exit code 1, the five fields on stderr, nothing on stdout, no traceback, no lock."""
    path = tmp_path / "small.yaml"
    text = BAD[case]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    code, out, err = run(monkeypatch, capsys, "lock", path)
    assert (code, out) == (1, "")
    assert err.startswith("palimpsest: ")
    assert all(field in err for field in FIELDS)
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == [path]


CHANGES = {
    "an unknown key": lambda c: c.update(extra=1),
    "a wrong type": lambda c: c["training"].update(epochs="many"),
    "an unknown method": lambda c: c["methods"].update(gem={}),
    "a layer without units": lambda c: c["model"]["options"].update(hidden=[0]),
    "a buffer that holds nothing": lambda c: c["methods"]["replay"]["hyperparameters"].update(buffer_bytes=1),
    "an unknown task": lambda c: c["design"].update(orders={"kind": "explicit", "explicit": [["t1"], ["t2"]]}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_study_that_cannot_be_run_is_told(monkeypatch, capsys, tmp_path, case):
    """Exit code 1 and the five fields, with the file and the line."""
    path = small_study.write(tmp_path, CHANGES[case])
    code, _, err = run(monkeypatch, capsys, "lock", path)
    assert code == 1
    assert all(field in err for field in FIELDS)
    assert f"{path}:" in err
    assert not (tmp_path / "small.lock.json").exists()


def test_the_installed_command_ends_without_a_traceback(tmp_path):
    """The same from a shell: exit code 1, the message, no traceback."""
    path = tmp_path / "small.yaml"
    path.write_text("study: small\n")
    program = "from palimpsest.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "lock", str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "a key is missing" in done.stderr
    assert "Traceback" not in done.stderr


def test_locking_writes_the_lock(monkeypatch, capsys, tmp_path):
    """The lock is written beside the study; balance and number of runs are printed."""
    path = small_study.write(tmp_path)
    code, out, _ = run(monkeypatch, capsys, "lock", path)
    assert code == 0
    assert "2 orders of 3 tasks" in out
    assert "10 runs of 5 methods and references" in out
    assert json.loads((tmp_path / "small.lock.json").read_bytes())["format"] == 1


def test_locking_again_leaves_the_lock(monkeypatch, capsys, tmp_path):
    """A lock that fits is left as it is, to the byte."""
    path = small_study.write(tmp_path)
    run(monkeypatch, capsys, "lock", path)
    before = (tmp_path / "small.lock.json").read_bytes()
    code, out, _ = run(monkeypatch, capsys, "lock", path)
    assert (code, "is there already and fits" in out) == (0, True)
    assert (tmp_path / "small.lock.json").read_bytes() == before


def test_a_changed_study_is_not_locked_over(monkeypatch, capsys, tmp_path):
    """A study that differs from its lock is refused, and the lock stays."""
    path = small_study.write(tmp_path)
    run(monkeypatch, capsys, "lock", path)
    before = (tmp_path / "small.lock.json").read_bytes()
    small_study.write(tmp_path, lambda c: c["training"].update(epochs=2))
    code, _, err = run(monkeypatch, capsys, "lock", path)
    assert code == 1
    assert "training.epochs = 1" in err
    assert "training.epochs = 2" in err
    assert (tmp_path / "small.lock.json").read_bytes() == before


def test_a_crossed_plan_counts_as_its_fewer_seeds_or_orders(monkeypatch, capsys, tmp_path):
    """Where seeds and orders are crossed, the power is that of the worst case: as many pairs as orders."""
    about = {"expected_effect": 0.1, "expected_sd": 0.02, "expected_sd_source": "a guess"}

    def change(content):
        content["analysis"].update(about)
        content["design"].update(crossing="full")

    path = small_study.write(tmp_path, change)
    out = run(monkeypatch, capsys, "lock", path)[1]
    assert "over 4 units, which may count as only 2" in out
    assert json.loads((tmp_path / "small.lock.json").read_bytes())["power"]["n_independent"] == 2


def test_underpowered_is_said(monkeypatch, capsys, tmp_path):
    """A plan whose power is below 0.8 is called underpowered when it is locked."""
    about = {"expected_effect": 0.1, "expected_sd": 0.1, "expected_sd_source": "a guess"}
    path = small_study.write(tmp_path, lambda c: c["analysis"].update(about))
    assert "UNDERPOWERED" in run(monkeypatch, capsys, "lock", path)[1]


def test_the_demo_agrees_with_its_lock(monkeypatch, capsys, tmp_path):
    """The default study is locked as it stands."""
    for name in ("demo.yaml", "demo.lock.json"):
        shutil.copy(ROOT / "config" / name, tmp_path / name)
    code, out, _ = run(monkeypatch, capsys, "lock", tmp_path / "demo.yaml")
    assert (code, "is there already and fits" in out) == (0, True)


def test_the_explanation_of_the_study_file_is_up_to_date():
    """config/README.md and the JSON Schema are what `palimpsest schema` writes."""
    assert (ROOT / "config" / "README.md").read_text() == page()
    assert (ROOT / "config" / "study.schema.json").read_text() == json_schema()


def test_status_of_nothing_is_told(monkeypatch, capsys, tmp_path):
    """A study that has not begun has no status: exit code 1 and the command that begins it."""
    code, _, err = run(monkeypatch, capsys, "status", "--results", tmp_path)
    assert code == 1
    assert "envs/run snakemake" in err


def test_status_shows_every_method(monkeypatch, capsys, tmp_path):
    """A study that has begun: the number of runs, every method, and that no workflow works on it."""
    Job(tmp_path / "small", "plan", "c", "e").write_json("plan/lock.json", small_study.plan_of(tmp_path), kind="lock")
    code, out, _ = run(monkeypatch, capsys, "status", "small", "--results", tmp_path)
    assert code == 0
    assert "small: 10 runs" in out
    assert all(name in out for name in ("finetune", "replay", "random_init", "isolated", "joint"))
    assert "no workflow is working on it" in out


def test_a_stage_refuses_another_program(monkeypatch, capsys, tmp_path):
    """A stage whose recorded program is another one does not run: exit code 1, and the changed file is named."""
    from palimpsest.core import code as programs

    recorded = programs.program("palimpsest.cli.stages.plan")
    recorded["files"] = recorded["files"] | {"palimpsest.plan.tables": "0" * 64}
    study = tmp_path / "study"
    Job(study, "plan_code", "c", "e").write_json("plan/code/rules/plan.json", recorded | {"code": "0" * 64}, "program")
    code, _, err = run(
        monkeypatch,
        capsys,
        "stage",
        "plan",
        "--study",
        study,
        "--code",
        "plan/code/rules/plan.json",
        "--lock",
        "absent",
    )
    assert code == 1
    assert "palimpsest.plan.tables" in err
    assert not (study / "plan" / "lock.json").exists()


def test_an_unknown_command_is_a_usage_error(monkeypatch, capsys):
    """A misspelt command ends with 2 and no traceback."""
    code, _, err = run(monkeypatch, capsys, "lokc")
    assert code == 2
    assert "Traceback" not in err
