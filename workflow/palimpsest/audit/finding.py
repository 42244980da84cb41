"""What a verification found: an artifact, and why it does not follow from its parents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

UNREADABLE = (
    ValueError,  # and PalimpsestError, ArrowInvalid, broken JSON
    OSError,
    LookupError,
    TypeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
    pa.ArrowException,
)
"""What reading a file that anyone may have made can raise; each becomes a finding about that file."""


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be.

    Args:
        artifact: path in the study.
        reason: one line, why it does not follow.
        expected: what follows from its parents, or from who states it.
        got: what lies there.
        is_remark: worth knowing, and nothing wrong by itself.
    """

    artifact: str
    reason: str
    expected: str = ""
    got: str = ""
    is_remark: bool = False

    def __str__(self) -> str:
        fields = [("expected", self.expected), ("got", self.got)]
        return "\n".join(
            [f"{self.artifact}: {self.reason}", *(f"  {name + ':':<10}{text}" for name, text in fields if text)]
        )


def guarded(artifact: str, reason: str, work: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """The findings of some work on an artifact; that it cannot be done at all is one too."""
    try:
        return list(work())
    except UNREADABLE as error:
        return [Finding(artifact, reason, got=describe(error))]


def describe(error: BaseException) -> str:
    """An error in one line: where it says so itself, what, where and got."""
    where, got = getattr(error, "where", None), getattr(error, "got", None)
    if where is not None:
        return f"{error.args[0]} ({where}): {got}".replace("\n", "; ")
    first = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {first[:300]}"
