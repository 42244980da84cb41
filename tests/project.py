"""A copy of the program in a folder of its own, run by real Snakemake."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATED = ("report/index.html", "report/costs.html")
COPIED = ("Snakefile", "workflow", "envs/requirements.lock", "config")


def copy_program(root: Path) -> Path:
    """Copy what the workflow needs of the project into a folder; returns the folder."""
    for name in COPIED:
        source, target = ROOT / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            left = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.journal.jsonl")
            shutil.copytree(source, target, ignore=left)
        else:
            shutil.copy(source, target)
    return root


@dataclass
class Project:
    """A copy of the program that a test may edit, and the folder in which its workflow runs."""

    root: Path
    name: str = "small"

    @property
    def study(self) -> Path:
        """Results of the study."""
        return self.root / "results" / self.name

    def environment(self, **more: str) -> dict[str, str]:
        """The environment in which the copy, and not the original, is imported."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "SNAKEMAKE"))}
        return {**inherited, "PATH": path, "PYTHONPATH": str(self.root / "workflow"), **more}

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the copy to its end."""
        return subprocess.run(
            command, cwd=self.root, env=self.environment(**environment), capture_output=True, text=True, check=False
        )

    def snakemake(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the workflow on the study to its end."""
        return self.run(*self.command(*arguments), **environment)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the workflow on the study as a process group of its own."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def command(self, *arguments: str) -> list[str]:
        """The command line of the workflow."""
        profile = ["--profile", str(self.root / "workflow/profiles/default")]
        return ["snakemake", *profile, "--configfile", f"config/{self.name}.yaml", *arguments]

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace text that stands once in a file of the copy."""
        place = self.root / path
        text = place.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        place.write_text(text.replace(old, new))

    def hashes(self) -> dict[str, str]:
        """SHA-256 of every result but telemetry, pages with dates and times, and lock files, by path."""
        files = [path for path in sorted(self.study.rglob("*")) if path.is_file() and path.name != ".lock"]
        named = {str(path.relative_to(self.study)): path for path in files}
        return {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in named.items()
            if not name.startswith("telemetry/") and not any(page in name for page in DATED)
        }
