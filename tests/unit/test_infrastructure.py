"""Failures of the infrastructure, brought about for real: what a job says, what it leaves behind, how it goes on."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palimpsest.cli.attempts import Attempts
from palimpsest.core.artifact import Job
from palimpsest.core.attempts import LONGEST_OUTCOME, attempts_log, read_attempts
from palimpsest.core.hashing import hash_json
from palimpsest.plan.probing import NOTHING
from palimpsest.training.stages import train_stages
from tiny import CODE, HERE, collect, files_of, new_study, spec_of, train

RUN = "m/s0-o0"
SPEC = spec_of("replay", {"buffer_bytes": 17 * 20, "replayed": 4}, hidden=(64, 64))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    """A study in which the run was trained without disturbance."""
    study = new_study(tmp_path_factory.mktemp("undisturbed"))
    train(study, SPEC)
    return study


def attempt(study: Path, spec: dict = SPEC, limit: Callable[[], None] = lambda: None, ask=lambda: "go") -> int:
    """Train in a process of its own, under a limit that is set when all is loaded; returns its exit status."""
    child = os.fork()
    if child == 0:
        try:
            limit()
            job = Job(study, "train", CODE, "e" * 64, spec_hash=hash_json(spec), parameters={"run": RUN})
            train_stages(job, RUN, spec, [1, 2, 3], NOTHING, HERE, Attempts(study, RUN), ask, lambda line: None)
        except BaseException:  # noqa: BLE001 - the child must not come back into pytest
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcomes(study: Path) -> list[str]:
    return [attempt["outcome"] for attempt in read_attempts(study, RUN)]


def goes_on(study: Path, undisturbed: Path) -> None:
    """The next attempt ends in the same bytes, and nothing half-written is left."""
    assert attempt(study) == 0
    assert files_of(study) == files_of(undisturbed)
    assert not list(study.rglob("*.partial"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, where the system lets a test mount one."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_a_full_disk(small_disk: Path, undisturbed: Path) -> None:
    """Each attempt fails with the system's words, which are kept; when there is space again the run goes on."""
    study = new_study(small_disk / "study")
    filler = small_disk / "filler"
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    filler.write_bytes(b"x" * (free - 24 * 1024))  # room for the log, not for a checkpoint
    for _ in range(2):
        assert attempt(study) == 1
    assert outcomes(study) == ["failed: OSError: [Errno 28] No space left on device"] * 2
    assert not list(study.rglob("*.partial")), "what could not be written whole was removed"
    filler.unlink()
    goes_on(study, undisturbed)
    assert outcomes(study)[-1] == "finished"


def test_a_full_disk_leaves_room_for_the_end_of_an_attempt(small_disk: Path) -> None:
    """Not one byte can be written more, and still the log says how the attempt ended."""

    def fill() -> None:
        with Attempts(small_disk, RUN)(1), open(small_disk / "filler", "ab", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)

    for number in range(1, 5):
        with pytest.raises(OSError, match="No space left"):
            fill()
        assert outcomes(small_disk) == ["failed: OSError: [Errno 28] No space left on device"] * number


def test_a_limit_on_the_size_of_files(tmp_path: Path, undisturbed: Path) -> None:
    """A quota that the checkpoint exceeds: the stage fails, what was there stays, no half of a file does."""
    study = new_study(tmp_path)
    assert attempt(study, limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))) == 1
    assert outcomes(study) == ["failed: OSError: [Errno 27] File too large"]
    assert not (study / f"runs/{RUN}/stage-1.safetensors").exists()
    goes_on(study, undisturbed)


def test_a_limit_on_memory(tmp_path: Path, undisturbed: Path) -> None:
    """A network that does not fit below the limit: PyTorch's words stand in the log."""
    study = new_study(tmp_path)

    def limit() -> None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**22, used + 2**22))

    assert attempt(study, spec_of(hidden=(4000, 4000)), limit) == 1
    (outcome,) = outcomes(study)
    assert outcome.startswith(("failed: RuntimeError", "failed: MemoryError"))
    assert "allocate" in outcome
    goes_on(study, undisturbed)


def test_a_limit_on_processor_time(tmp_path: Path, undisturbed: Path) -> None:
    """The kernel ends the process when its time is over: the attempt counts as killed, and the next one goes on."""
    study = new_study(tmp_path)

    def limit() -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    def slowly() -> str:
        busy = time.process_time() + 0.2
        while time.process_time() < busy:
            pass
        return "save"

    assert attempt(study, limit=limit, ask=slowly) in (-signal.SIGXCPU, -signal.SIGKILL)
    assert outcomes(study)[-1] == "killed"
    goes_on(study, undisturbed)
    assert [a["resumed_at"] for a in read_attempts(study, RUN)][1] is not None, "the second attempt went on"


def test_attempts_and_their_reasons_are_telemetry(tmp_path: Path) -> None:
    """A kill, a failure and a success are three rows of the table, with the step from which the last one went on."""
    study = new_study(tmp_path)

    def killing() -> Callable[[], str]:
        asked = iter(["go", "save", "go", "die"])

        def ask() -> str:
            if (wish := next(asked)) == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            return wish

        return ask

    assert attempt(study, ask=killing()) == -signal.SIGKILL
    assert attempt(study, limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))) == 1
    assert attempt(study) == 0
    collect(study, SPEC)
    from palimpsest.core.artifact import read_plain_table

    rows = read_plain_table(study / f"telemetry/{RUN}.parquet", "telemetry").to_pylist()
    first = [(row["attempt"], row["outcome"], row["resumed_at"]) for row in rows if row["stage"] == 1]
    assert first[0] == (1, "killed", None)
    assert first[-1] == (2, "finished", 2)
    last = rows[-1]
    assert 0 <= last["probing_s"] < last["wall_clock_s"]


def test_a_torn_line_of_the_log_is_left_out(tmp_path: Path) -> None:
    """What a kill left of a line hides neither the lines before it nor those after."""
    with Attempts(tmp_path, RUN)(1):
        pass
    with open(attempts_log(tmp_path, RUN), "a") as log:
        log.write('{"event": "started", "att')
    with Attempts(tmp_path, RUN)(2):
        pass
    assert [(a["stage"], a["outcome"]) for a in read_attempts(tmp_path, RUN)] == [(1, "finished"), (2, "finished")]


def test_a_long_reason_fits_its_room(tmp_path: Path) -> None:
    """An error of any length, in any script, leaves the log readable."""
    with pytest.raises(ValueError, match="長"), Attempts(tmp_path, RUN)(1):
        raise ValueError("長" * 9999)
    (outcome,) = outcomes(tmp_path)
    assert outcome == ("failed: ValueError: " + "長" * 9999)[:LONGEST_OUTCOME]


FAILING = """
import resource, sys
from palimpsest.cli import main
from palimpsest.cli.commands import schema
def fail(*arguments, **named):
    {how}
schema.page = fail
sys.argv = ["palimpsest", "schema", "--folder", sys.argv[1], "--docs", sys.argv[1]]
main.main()
"""


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28)); return 'x' * 2**40", "memory ran out"),
        ("resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)); import torch", "memory ran out"),
        ("resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); return 'x' * 100", "the system says: File too large"),
    ],
    ids=["memory", "loading", "disk"],
)
def test_the_command_line_says_what_ran_out(tmp_path: Path, how: str, expected: str) -> None:
    """No traceback: what the system refused, and what to do."""
    script = FAILING.format(how=how)
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"palimpsest: {expected}")
    assert "next:" in done.stderr
    assert "Traceback" not in done.stderr
