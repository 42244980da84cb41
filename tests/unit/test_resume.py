"""Training that is stopped or killed at any instant ends in the same bytes as training that was not."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from palimpsest.core.artifact import write_atomically
from palimpsest.core.errors import StoppedError
from palimpsest.core.streams import generator
from palimpsest.methods import METHODS
from tiny import Script, files_of, new_study, run_of, spec_of, train

RUN = "m/s0-o0"
REPLAY = {"buffer_bytes": 17 * 20, "replayed": 4}
EWC = {"strength": 5.0, "fisher_samples": 8}
ADAM = {"optimizer": "adam", "learning_rate": 0.01, "schedule": "cosine", "reset_optimizer": False}
MOMENTUM = {"momentum": 0.9, "schedule": "cosine", "reset_optimizer": False}
CASES = {
    "finetune, momentum and cosine": spec_of("finetune", {}, **MOMENTUM),
    "finetune, Adam": spec_of("finetune", {}, **ADAM),
    "replay": spec_of("replay", REPLAY),
    "ewc": spec_of("ewc", EWC, **MOMENTUM),
    "replay+ewc, Adam": spec_of("replay+ewc", {"replay": REPLAY, "ewc": EWC}, **ADAM),
    "isolated": spec_of("isolated", stage_schedule="isolated"),
    "joint": spec_of("joint", stage_schedule="joint"),
}
NEVER_STEPS = {"random_init"}
CASES |= {name: run_of(name) for name in METHODS.names() if name not in {*CASES, *NEVER_STEPS}}


@pytest.fixture(scope="module", params=CASES, ids=lambda name: name.replace(" ", "-"))
def case(request, tmp_path_factory) -> tuple[dict, Path]:
    """A specification, and a study in which it was trained without disturbance."""
    study = new_study(tmp_path_factory.mktemp("undisturbed"))
    train(study, CASES[request.param])
    return CASES[request.param], study


def test_stopped_and_gone_on_ends_in_the_same_bytes(case, tmp_path) -> None:
    """After a stop at the first step, in the middle of an epoch and at the end of one, every file is the same."""
    spec, undisturbed = case
    study = new_study(tmp_path)
    for step in (1, 4, 2, 7, 1):
        with pytest.raises(StoppedError, match="start again to go on"):
            train(study, spec, ask=Script(stop=step))
    train(study, spec)
    assert files_of(study) == files_of(undisturbed)


def test_what_came_after_the_resume_file_is_repeated(case, tmp_path) -> None:
    """Killed five steps after the resume file was written: the steps since then are made again, none twice."""
    spec, undisturbed = case
    study = new_study(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train(study, spec, ask=Script(save=2, die=7))
    lines: list[str] = []
    train(study, spec, say=lines.append)
    assert "stage 1: resumed after step 2" in lines[0] or any("resumed after step 2" in line for line in lines)
    assert files_of(study) == files_of(undisturbed)
    assert not list(study.rglob(".resume")), "a finished stage leaves no resume file"


@pytest.fixture
def stopped(tmp_path) -> tuple[Path, Path]:
    """A study whose run was stopped after three steps, and its resume file."""
    study = new_study(tmp_path / "study")
    with pytest.raises(StoppedError):
        train(study, CASES["replay"], ask=Script(stop=3))
    (file,) = (study / f"runs/{RUN}/.resume").iterdir()
    return study, file


def test_a_torn_resume_file_is_set_aside(stopped) -> None:
    """Half a file is not loaded; training begins the stage anew and says so."""
    study, file = stopped
    file.write_bytes(file.read_bytes()[:1000])
    _set_aside(study, file, "torn or was changed")


def test_a_changed_resume_file_is_set_aside(stopped) -> None:
    """One flipped bit in the weights."""
    study, file = stopped
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    _set_aside(study, file, "torn or was changed")


def test_a_file_of_something_else_is_set_aside(stopped) -> None:
    """Bytes that are no checkpoint, under the hash that they have."""
    from palimpsest.core.hashing import hash_bytes

    study, file = stopped
    file.unlink()
    other = file.with_name(f"stage-1.{hash_bytes(b'x' * 99)}.safetensors")
    write_atomically(other, b"x" * 99)
    _set_aside(study, other, "no resume file")


@pytest.mark.parametrize("change", ["program", "specification", "data"])
def test_a_stale_resume_file_is_set_aside(stopped, tmp_path, change: str) -> None:
    """A resume file of another program, specification or data is not loaded."""
    study, file = stopped
    spec, code, target = CASES["replay"], "c" * 64, study
    if change == "program":
        code = "d" * 64
    if change == "specification":
        spec = spec | {"seed": 5}
    if change == "data":
        target = new_study(tmp_path / "other", per_class={"t3": 12})
        shutil.copytree(study / "runs", target / "runs")
        file = target / file.relative_to(study)
    lines: list[str] = []
    train(target, spec, code=code, say=lines.append)
    assert any("set aside" in line and "belongs to another" in line for line in lines)
    assert not any("resumed" in line for line in lines)


def _set_aside(study: Path, file: Path, reason: str) -> None:
    lines: list[str] = []
    train(study, CASES["replay"], say=lines.append)
    assert any("set aside" in line and reason in line for line in lines), lines
    assert not any("resumed" in line for line in lines)
    assert (study / "telemetry/rejected" / RUN / file.name).is_file()
    fresh = new_study(study.parent / "fresh")
    train(fresh, CASES["replay"])
    assert files_of(study) == files_of(fresh)


TRAINER = """
import sys
from pathlib import Path
import test_resume, tiny
from palimpsest.cli.pace import Pace
pace = Pace(0.0)
def ask():
    print("step", flush=True)
    return pace()
tiny.train(Path(sys.argv[1]), test_resume.LONG[sys.argv[2]], ask=ask)
"""
LONG = {
    name: spec | {"training": spec["training"] | {"epochs": 25}}
    for name, spec in CASES.items()
    if name in ("finetune, Adam", "replay", "replay+ewc, Adam")
}
KILLS = 3


@pytest.mark.parametrize("name", LONG)
def test_killed_at_random_instants_ends_in_the_same_bytes(name: str, tmp_path) -> None:
    """kill -9 at random moments, while it trains or writes a resume file after every step; once SIGTERM instead."""
    undisturbed = new_study(tmp_path / "undisturbed")
    train(undisturbed, LONG[name])
    study = new_study(tmp_path / "study")
    delays = generator("tests", "kills", name).random(KILLS) * 0.4
    for number, delay in enumerate(delays):
        trainer = _start(study, name)
        assert trainer.stdout.readline() == "step\n", "it was killed before it trained, or had finished"
        time.sleep(delay)
        trainer.send_signal(signal.SIGTERM if number == 0 else signal.SIGKILL)
        trainer.communicate()
        assert trainer.returncode != 0, "it finished before it was killed: train longer"
    last = _start(study, name)
    last.communicate()
    assert last.returncode == 0
    assert files_of(study) == files_of(undisturbed)


def _start(study: Path, name: str) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    path = [str(here), str(here.parent), str(here.parents[1] / "workflow")]
    script = f"import sys; sys.path[:0] = {path!r}\n{TRAINER}"
    return subprocess.Popen(
        [sys.executable, "-c", script, study, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
