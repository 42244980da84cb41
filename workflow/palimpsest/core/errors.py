"""Errors that say what, where, expected, got, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence


class PalimpsestError(ValueError):
    """A problem that the user can act on; the command line prints it without a traceback and exits with 1.

    Args:
        what: one line, what is wrong.
        where: the file, field, run or artifact.
        expected: what would have been accepted.
        got: what was found instead.
        next: the command or the edit that helps.
    """

    def __init__(self, what: str, *, where: str, expected: str, got: str, next: str) -> None:
        self.what, self.where, self.expected, self.got, self.next = what, where, expected, got, next
        super().__init__(what)

    def __str__(self) -> str:
        fields = [("where", self.where), ("expected", self.expected), ("got", self.got), ("next", self.next)]
        return "\n".join([self.what, *(f"  {name + ':':<10}{_indent(text)}" for name, text in fields)])


class StudyError(PalimpsestError):
    """The study file says something that cannot be run."""


class LockError(PalimpsestError):
    """The study and its lock do not agree, or there is no lock."""


class CodeChangedError(PalimpsestError):
    """The program on disk is not the one that the plan recorded."""


class ArtifactError(PalimpsestError):
    """A result is missing, damaged or not the one that was written."""


class ArchiveError(PalimpsestError):
    """An archive cannot be made, or is not one that is safe to unpack."""


class DataError(PalimpsestError):
    """Raw data is missing or is not what its source declares."""


class MatrixError(PalimpsestError):
    """An accuracy matrix is not what metrics are defined on."""


class EnvironmentLacksError(PalimpsestError):
    """A command needs packages that this environment does not have."""


class SeveralErrors(PalimpsestError):
    """Several independent problems, reported together."""

    def __init__(self, problems: Sequence[PalimpsestError]) -> None:
        assert problems, "an error list holds at least one problem"
        self.problems = list(problems)
        first = problems[0]
        super().__init__(first.what, where=first.where, expected=first.expected, got=first.got, next=first.next)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def _indent(text: str) -> str:
    return text.replace("\n", "\n" + " " * 12)


class StoppedError(Exception):
    """Training was asked to stop: its resume file is written, and the same command goes on from there."""
