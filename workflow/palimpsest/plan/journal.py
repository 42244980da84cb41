"""The journal of a study: `config/NAME.journal.jsonl`, the memory of what was looked at under which plan.

It lies outside of the results and is only appended to, so that neither a new lock nor removed results make it forget.
Each line names the hash of the one before it. A line has `date`, `event` and `lock`, the hash of the plan:

============ =========================================================================================================
`event`      noted
============ =========================================================================================================
`locked`     by `palimpsest lock`: the plan was frozen
`amended`    by `palimpsest lock --amend`
`found`      by the main process of a workflow: `runs` had been evaluated already, and the journal knew of none
`evaluation` by the main process, before it evaluates `runs` on test data, with the hashes of the `programs` in use
`analysis`   by the main process, before it analyses results by another plan or other `programs` than noted last
============ =========================================================================================================
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from palimpsest.core.errors import LockError
from palimpsest.core.exclusive import hold
from palimpsest.core.hashing import canonical_json, hash_bytes

Line = dict[str, Any]


def journal_path(study_file: Path) -> Path:
    """`config/NAME.journal.jsonl` for `config/NAME.yaml`."""
    return study_file.with_name(f"{study_file.stem}.journal.jsonl")


def read_journal(path: Path) -> list[Line]:
    """The lines of a journal, oldest first; none where there is no file.

    A last line without its end was torn when the machine stopped, before anything followed from it: it does not count.

    Raises:
        LockError: a line was edited or removed.
    """
    return parse_journal(path.read_bytes(), path) if path.is_file() else []


def parse_journal(content: bytes, path: Path) -> list[Line]:
    """The lines of a journal with this content; raises as `read_journal`."""
    lines, previous = [], None
    for number, text in enumerate(content.split(b"\n")[:-1], start=1):
        line = _parse(text)
        if line is None or line.get("previous") != previous:
            raise LockError(
                "the journal is not as it was written",
                where=f"{path}, line {number}",
                expected=f"a line that follows the one with the hash {previous}" if previous else "a first line",
                got="no line of a journal" if line is None else f"one that follows {line.get('previous')}",
                next="restore the file from version control: it is only ever appended to",
            )
        lines.append(line)
        previous = hash_bytes(text)
    return lines


def append_to_journal(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line and flush it to disk; raises as `read_journal`.

    Args:
        path: the journal; made where there is none.
        line: `date`, `event`, `lock` and what else belongs to the event.
    """
    with hold(path, lambda: None) as file:
        content = path.read_bytes()
        parse_journal(content, path)
        *whole, torn = content.split(b"\n")
        file.truncate(len(content) - len(torn))
        previous = hash_bytes(whole[-1]) if whole else None
        file.buffer.write(canonical_json({**line, "previous": previous}) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def require_continued(path: Path, lines: Sequence[Line], kept: Path) -> None:
    """Compare a journal with the copy that the last workflow left among the results.

    Raises:
        LockError: lines of the copy are not in the journal: it was cut, replaced or removed.
    """
    earlier = read_journal(kept)
    if list(lines[: len(earlier)]) != earlier:
        raise LockError(
            "the journal lacks lines that it had",
            where=str(path),
            expected=f"the {len(earlier)} lines of {kept}, and perhaps more",
            got=f"{len(lines)} lines" if lines else "no journal",
            next=f"restore it from version control, or from that copy: cp {kept} {path}",
        )


def of_workflows(lines: Sequence[Line]) -> list[Line]:
    """The lines that say that results were made: evaluations and later analyses."""
    return [line for line in lines if line["event"] in ("evaluation", "analysis")]


def evaluations(lines: Sequence[Line]) -> list[Line]:
    """The lines that say that runs were evaluated on test data."""
    return [line for line in lines if line["event"] == "evaluation"]


def _parse(text: bytes) -> Line | None:
    try:
        line = json.loads(text)
        known = isinstance(line, dict) and {"date", "event", "lock", "previous"} <= line.keys()
        return line if known and canonical_json(line) == text else None
    except (ValueError, RecursionError):
        return None
