"""Hashes of programs: what a rule runs, without comments and docstrings.

Snakemake does not see edits of imported modules. So the hash of a rule's program is computed when the Snakefile is
parsed and written to `plan/code/`, an input of the rule's jobs; each job computes the hash of its own program again
and refuses to run another one.
"""

from __future__ import annotations

import ast
import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from palimpsest.core.errors import CodeChangedError
from palimpsest.core.hashing import hash_bytes, hash_json

PACKAGE = Path(__file__).resolve().parents[1]
DATA_SUFFIXES = {".j2", ".css"}
ENVIRONMENT_LOCK = PACKAGE.parents[1] / "envs" / "requirements.lock"


def program(entry: str, modules: Iterable[str] = ()) -> dict[str, Any]:
    """What a rule runs: hash and files of the static import closure of its entry point.

    Args:
        entry: dotted name of the module that the rule starts ("palimpsest.cli.stages.train").
        modules: further modules that it finds by name (the run's method, benchmark, model), with their closures.

    Returns:
        `{code, files: {module: hash}, environment}`; `code` is the hash over the files. Data files that lie beside
        a module of the closure (templates) belong to it.
    """
    files: dict[str, str] = {}
    waiting = [entry, *modules]
    while waiting:
        module = waiting.pop()
        path = _path(module)
        if path is None or module in files:
            continue
        files[module], imported = _read(path)
        files.update(_data_files(path.parent))
        waiting += imported
        waiting += [module.rsplit(".", 1)[0]] if "." in module else []
    return {"code": hash_json(files), "files": files, "environment": environment_hash()}


def require(recorded: dict[str, Any], entry: str, modules: Iterable[str] = ()) -> None:
    """Refuse to run a program other than the recorded one.

    Raises:
        CodeChangedError: names every file that differs.
    """
    _read.cache_clear()
    current = program(entry, modules)
    if current["code"] == recorded["code"] and current["environment"] == recorded["environment"]:
        return
    names = sorted(current["files"].keys() | recorded["files"].keys())
    changed = [name for name in names if current["files"].get(name) != recorded["files"].get(name)]
    raise CodeChangedError(
        "the program changed after this workflow run began",
        where=", ".join(changed) or str(ENVIRONMENT_LOCK.name),
        expected=f"code {recorded['code'][:12]}, environment {recorded['environment'][:12]}",
        got=f"code {current['code'][:12]}, environment {current['environment'][:12]}",
        next="start snakemake again: it reruns what depends on the edited files",
    )


def files_of_modules(names: Iterable[str]) -> dict[str, str | None]:
    """Hash of each named file of a program as it is on disk now, null where there is none; names as `program` gives."""
    found: dict[str, str | None] = {}
    for name in names:
        data = PACKAGE.parent / name
        path = data if data.suffix in DATA_SUFFIXES else _path(name)
        there = path is not None and path.is_file()
        found[name] = None if not there else hash_bytes(data.read_bytes()) if path == data else _read(path)[0]
    return found


@cache
def environment_hash() -> str:
    """Hash of the locked packages (comments left out) and of the Python version."""
    lines = [line.split("#")[0].strip() for line in ENVIRONMENT_LOCK.read_text().splitlines()]
    return hash_json({"python": platform.python_version(), "packages": [line for line in lines if line]})


def hash_source(content: bytes) -> str:
    """Hash of a module's text, without comments and docstrings; the module is parsed and never run.

    Raises:
        SyntaxError, ValueError: it is no text of a module.
    """
    return _hash_tree(ast.parse(content))


@cache
def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(path.read_bytes(), filename=str(path))
    imported = tuple(name for node in ast.walk(tree) for name in _imports(node))
    return _hash_tree(tree), imported


def _hash_tree(tree: ast.Module) -> str:
    return hash_bytes(ast.unparse(_without_docstrings(tree)).encode())


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_text(statement)] or [ast.Pass()]
    return tree


def _is_text(statement: ast.AST) -> bool:
    """A docstring of whatever it stands under: a text alone does nothing."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name.startswith("palimpsest")]
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("palimpsest"):
        # `from package import name` may name a module or something inside one: `_path` sorts them out.
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def _path(module: str) -> Path | None:
    place = PACKAGE.parent.joinpath(*module.split("."))
    candidates = [place / "__init__.py", place.with_suffix(".py")]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _data_files(folder: Path) -> dict[str, str]:
    paths = [path for path in sorted(folder.iterdir()) if path.suffix in DATA_SUFFIXES]
    return {str(path.relative_to(PACKAGE.parent)): hash_bytes(path.read_bytes()) for path in paths}
