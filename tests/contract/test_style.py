"""Lint and format of the whole project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALLOWED_LINTS = {"Specify a conda environment or container for each rule.:"}
"""The environment is `envs/run`, for all rules alike."""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("snakefmt", "--check", "Snakefile", "workflow/rules"),
    ],
    ids=["ruff check", "ruff format", "snakefmt"],
)
def test_lint_and_format(command: tuple[str, ...]) -> None:
    """The checkers find nothing."""
    done = _run(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_snakemake_lint() -> None:
    """Snakemake's own lint finds nothing but that no rule has a conda environment."""
    done = _run("snakemake", "--lint")
    found = {line.strip(" *") for line in (done.stdout + done.stderr).splitlines() if line.startswith("    * ")}
    assert found == ALLOWED_LINTS, done.stdout + done.stderr
