"""Progress on the terminal, as a bar for each piece of work; nothing where the output is no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from palimpsest.core.progress import Track


@contextmanager
def bars() -> Iterator[Track]:
    """A `Track` that draws on standard error as long as the context lasts."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:

        def track(items: Sequence[Any], what: str) -> Iterable[Any]:
            return progress.track(items, total=len(items), description=f"{what:<24}")

        yield track
