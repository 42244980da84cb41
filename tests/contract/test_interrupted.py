"""Every method, killed by SIGKILL again and again at any instant, ends in the bytes of a run that nothing disturbed.

The process that trains kills itself: after a random step, in the middle of writing a file (half of it is on the disk),
or before a file takes its place; once its parent kills it at a random moment. It writes a resume file after every step,
so that most of its writing is of those; checkpoints, tables and records are hit too. New methods are picked up.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from palimpsest.core.streams import generator
from palimpsest.methods import METHODS
from tiny import new_study, run_of, train

NAMES = [*METHODS.names(), "replay+ewc", "ewc+replay"]
RUN = "m/s0-o0"
INSTANTS = ("step", "write", "rename", "moment")


class Killer:
    """Kills its own process at the n-th instant of a kind; until then it counts."""

    def __init__(self, kind: str, at: int) -> None:
        self.kind, self.left = kind, at

    def ask(self) -> str:
        """After every step: write a resume file."""
        self._instant("step")
        return "save"

    def fsync(self, file: int) -> None:
        """Instead of bringing a file to the disk: half of it is there."""
        if self.kind == "write" and self.left == 1:
            os.ftruncate(file, os.fstat(file).st_size // 2)
        self._instant("write")

    def replace(self, source: object, target: object) -> None:
        """Instead of a rename: the file is whole, and still under its temporary name."""
        self._instant("rename")
        os.rename(source, target)

    def _instant(self, kind: str) -> None:
        if kind == self.kind:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def _attempt(study: Path, spec: dict, kind: str, number: int) -> bool:
    """Train in a child that kills itself, or is killed after `number` milliseconds; returns whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            killer = Killer(kind, number)
            os.fsync, os.replace = killer.fsync, killer.replace
            train(study, spec, ask=killer.ask)
        except BaseException:  # noqa: BLE001 - the child must not come back into pytest
            os._exit(1)
        os._exit(0)
    if kind == "moment":
        time.sleep(number / 1000)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), "it failed, and was not killed"
    return code != 0


def _files(study: Path) -> dict[str, bytes]:
    """Every file of the study but locks."""
    paths = [path for path in sorted(study.rglob("*")) if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(study)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", NAMES)
def test_killed_at_any_instant_ends_in_the_same_bytes(tmp_path: Path, name: str) -> None:
    """Four kills, each of another kind, then the same command to its end: every file and every record is the same."""
    spec = run_of(name)
    undisturbed = new_study(tmp_path / "undisturbed", per_class={"t2": 4})
    train(undisturbed, spec)
    study = new_study(tmp_path / "study", per_class={"t2": 4})
    draws = generator("tests", "instants", name)
    n_kills = sum(_attempt(study, spec, kind, int(draws.integers(1, 10))) for kind in INSTANTS)
    assert n_kills >= (3 if name != "random_init" else 2)
    assert not _attempt(study, spec, "never", 0)
    made, expected = _files(study), _files(undisturbed)
    assert {path for path in made | expected if made.get(path) != expected.get(path)} == set()
