"""What README promises of commands and of the example method."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from palimpsest.cli.main import COMMANDS, STAGES

ROOT = Path(__file__).resolve().parents[2]


def test_every_command_that_is_named_exists() -> None:
    """In README, CONTRIBUTING, the generated pages, the report's templates and the texts of errors."""
    known = {*COMMANDS.names(), "stage", "…"}
    pages = [
        *ROOT.glob("*.md"),
        ROOT / "config/README.md",
        *ROOT.glob("workflow/**/*.j2"),
        *ROOT.glob("workflow/**/*.py"),
    ]
    for page in pages:
        named = set(re.findall(r"(?:envs/run |`|: )palimpsest ([a-z]+)", page.read_text()))
        if page.name not in {"DECISIONS.md"}:
            assert named <= known, f"{page}: {named - known}"
    assert STAGES.names()


def test_the_example_method_passes_the_contract_tests(tmp_path: Path) -> None:
    """The code in README is pasted as a file of its own, and the tests over all methods pick it up."""
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    for name in ("workflow", "tests", "envs/requirements.lock", "pyproject.toml"):
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, target, **({"ignore": shutil.ignore_patterns("__pycache__")} if source.is_dir() else {}))
    (tmp_path / "workflow/palimpsest/methods/l2.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/test_methods.py", "-k", "l2"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "workflow"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
