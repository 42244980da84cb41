"""Where the program that made the study is not the installed one: a remark, since the results may still follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palimpsest.audit.chain import Chain
from palimpsest.audit.finding import Finding, guarded
from palimpsest.core.progress import Track


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Compare the recorded programs with the installed one, file by file."""
    if chain.plan is None:
        return
    for _ in track(["programs"], "comparing programs"):
        yield from guarded("plan/code", "the installed program cannot be compared", lambda: _programs(chain))


def _programs(chain: Chain) -> Iterator[Finding]:
    others, files, environments = [], set(), []
    for path in chain.artifacts("plan_code"):
        if not chain.is_sound(path) or path not in chain.installed:
            continue
        recorded, here = chain.read_json(path), chain.installed[path]
        if recorded["code"] != here["code"]:
            others.append(path)
            files |= _differing(recorded["files"], here["files"])
        if recorded["environment"] != here["environment"]:
            environments.append(path)
    if others:
        reason = f"{len(others)} programs are other versions than the installed ones"
        yield Finding(others[0], reason, got=f"they differ in {', '.join(sorted(files))}", is_remark=True)
    if environments:
        reason = f"{len(environments)} programs ran with other packages, or another Python, than are locked here"
        yield Finding(environments[0], reason, is_remark=True)


def _differing(recorded: dict[str, Any], installed: dict[str, Any]) -> set[str]:
    return {name for name in recorded.keys() | installed.keys() if recorded.get(name) != installed.get(name)}
