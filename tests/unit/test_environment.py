"""`envs/run` says what it lacks; it is run in a copy, with a made-up Python first on the path."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bash", "dirname", "cat", "sha256sum", "grep", "flock", "rm", "tail", "env")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of envs/ without an environment, and a folder of tools without any Python."""
    (tmp_path / "envs").mkdir()
    for name in ("run", "requirements.lock"):
        shutil.copy(ROOT / "envs" / name, tmp_path / "envs" / name)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return tmp_path


def _run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [copy / "envs/run", *arguments],
        env={"PATH": str(copy / "bin"), "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )


def _fake_python(copy: Path, script: str) -> None:
    place = copy / "bin" / "python3"
    place.write_text(f"#!{shutil.which('bash')}\n{script}\n")
    place.chmod(0o755)


def test_without_python_it_names_the_package(copy: Path) -> None:
    """No Python 3.11 or newer: one line, exit code 1."""
    done = _run(copy, "true")
    assert done.returncode == 1
    assert "no Python 3.11 or newer found; on Debian install the package python3" in done.stderr


def test_without_venv_it_names_the_package(copy: Path) -> None:
    """A Python that cannot import venv and ensurepip, as Debian ships it."""
    _fake_python(copy, 'case "$*" in *ensurepip*) exit 1;; esac')
    done = _run(copy, "true")
    assert done.returncode == 1
    assert "install the package python3-venv" in done.stderr


def test_a_failed_installation_leaves_no_environment_that_looks_fresh(copy: Path) -> None:
    """The log is shown, and the next call tries again."""
    _fake_python(copy, 'case "$*" in *"-m venv"*) echo disk full >&2; exit 1;; esac')
    for _ in range(2):
        done = _run(copy, "true")
        assert done.returncode == 1
        assert "disk full" in done.stderr
        assert "the environment could not be made" in done.stderr


def test_an_unknown_environment_is_refused(copy: Path) -> None:
    """Only environments that have a lock file exist."""
    done = _run(copy, "--env", "moon", "true")
    assert done.returncode == 2
    assert "usage" in done.stderr
