"""Which commit holds the files of a recorded program, where the installed one lies in a repository."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cache
from typing import Any

from palimpsest.core.code import PACKAGE, files_of_modules


def commits(files: Mapping[str, str]) -> dict[str, Any]:
    """What the repository knows of a program's files.

    Args:
        files: hash by module, as the program was recorded.

    Returns:
        `{commit, states}`: the commit that is checked out if it holds all of them unchanged, else null; and of each
        file `as recorded`, `other` (another version is installed) or `absent`.
    """
    here = files_of_modules(files)
    states = {
        name: "absent" if here[name] is None else "as recorded" if here[name] == digest else "other"
        for name, digest in files.items()
    }
    same = all(state == "as recorded" for state in states.values())
    return {"commit": _clean_commit() if same else None, "states": states}


@cache
def _clean_commit() -> str | None:
    """The commit that is checked out, where no file of the package differs from it; null outside of a repository."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", str(PACKAGE))
    return commit if commit and changed == "" else None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=PACKAGE, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
