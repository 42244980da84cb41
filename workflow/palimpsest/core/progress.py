"""How far a long piece of work is, told to whoever wants to show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Track(Protocol):
    """Gives the items of a piece of work one by one, and may show which one is being worked on."""

    def __call__(self, items: Sequence[T], what: str) -> Iterable[T]:
        """The same items, in the same order; `what` says in a few words what is done with them."""
        ...


def silently(items: Sequence[T], what: str) -> Iterable[T]:
    """Shows nothing."""
    return items
