"""Files found by name: each value of an axis (method, benchmark, model, metric, data source) is one module."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from palimpsest.core.errors import StudyError


@dataclass(frozen=True)
class Catalog:
    """The modules of one package, each an entry named as its file.

    Args:
        package: dotted name of the package that is walked.
        noun: what an entry is called in errors ("method").
    """

    package: str
    noun: str

    def names(self) -> list[str]:
        """Names of all entries, sorted; files that begin with an underscore are not entries."""
        return list(_entries(self.package))

    def modules(self) -> list[str]:
        """Dotted module names of all entries, sorted, without importing them."""
        return [self.module_name(name) for name in self.names()]

    def module_name(self, name: str) -> str:
        """Dotted module name of an entry, without importing it."""
        return f"{self.package}.{name}"

    def load(self, name: str, where: str) -> ModuleType:
        """Import the entry.

        Raises:
            StudyError: there is no entry of that name; the message lists those that exist.
        """
        self.require(name, where)
        return importlib.import_module(self.module_name(name))

    def require(self, name: str, where: str) -> None:
        """Check that the entry exists, without importing it.

        Raises:
            StudyError: there is no entry of that name.
        """
        names = self.names()
        if name in names:
            return
        near = difflib.get_close_matches(name, names, n=1)
        raise StudyError(
            f"there is no {self.noun} named {name!r}",
            where=where,
            expected="one of " + ", ".join(names),
            got=repr(name),
            next=f"write {near[0]!r}"
            if near
            else f"choose one of them, or add {self.package.replace('.', '/')}/{name}.py",
        )


@cache
def _entries(package: str) -> tuple[str, ...]:
    # The folder is walked once in a process: metrics of thousands of runs are looked up by name.
    path = importlib.import_module(package).__path__
    return tuple(sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_")))
