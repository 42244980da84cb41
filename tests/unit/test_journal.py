"""The journal is only appended to: what was removed or edited is seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palimpsest.core.errors import LockError
from palimpsest.plan.journal import append_to_journal, journal_path, read_journal, require_continued


def line(event: str = "evaluation", **more) -> dict:
    return {"date": "2026-01-01T00:00:00+00:00", "event": event, "lock": "a" * 64, **more}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "small.journal.jsonl"
    for number in range(4):
        append_to_journal(path, line(runs=[f"m/s{number}"], programs={}))
    return path


def test_it_lies_beside_the_study():
    """Outside of the results."""
    assert journal_path(Path("config/demo.yaml")) == Path("config/demo.journal.jsonl")


def test_lines_are_read_as_they_were_written(journal):
    """Oldest first, each with the hash of the one before."""
    lines = read_journal(journal)
    assert [found["runs"] for found in lines] == [[f"m/s{number}"] for number in range(4)]
    assert lines[0]["previous"] is None
    assert len({found["previous"] for found in lines}) == 4


def test_a_study_that_has_none_has_no_lines(tmp_path):
    """Nothing was noted yet."""
    assert read_journal(tmp_path / "none.journal.jsonl") == []


EDITS = {
    "a removed first line": lambda lines: lines[1:],
    "a removed line": lambda lines: [*lines[:1], *lines[2:]],
    "another order": lambda lines: [lines[0], lines[2], lines[1], lines[3]],
    "another date": lambda lines: [*lines[:2], lines[2].replace("2026-01-01", "2025-01-01"), lines[3]],
    "another run": lambda lines: [*lines[:2], lines[2].replace("m/s2", "m/s9"), lines[3]],
    "a line twice": lambda lines: [*lines, lines[3]],
    "no JSON": lambda lines: [*lines, "{"],
    "another spelling": lambda lines: [*lines[:3], json.dumps(json.loads(lines[3]))],
    "no line of a journal": lambda lines: [*lines, '{"previous":null}'],
    "an empty line": lambda lines: [*lines, ""],
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_found(journal, edit):
    """The chain of hashes breaks at the line that follows, and the line is named; nothing more is appended."""
    journal.write_text("\n".join(EDITS[edit](journal.read_text().splitlines())) + "\n")
    with pytest.raises(LockError, match="not as it was written") as error:
        read_journal(journal)
    assert "line " in error.value.where
    with pytest.raises(LockError, match="not as it was written"):
        append_to_journal(journal, line())


def test_a_torn_last_line_does_not_count_and_is_replaced(journal):
    """A machine that stopped while the line was written had begun nothing yet."""
    journal.write_text(journal.read_text()[:-20])
    assert len(read_journal(journal)) == 3
    append_to_journal(journal, line(runs=["again"]))
    assert [found["runs"] for found in read_journal(journal)][2:] == [["m/s2"], ["again"]]


@pytest.mark.parametrize("kept", [0, 2, 3])
def test_lines_that_were_cut_off_are_missed(journal, tmp_path, kept):
    """No chain shows a removed end: the copy among the results does."""
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(journal.read_bytes())
    require_continued(journal, read_journal(journal), copy)
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:kept]))
    with pytest.raises(LockError, match="lacks lines that it had") as error:
        require_continued(journal, read_journal(journal), copy)
    assert "cp " in error.value.next


def test_it_may_have_grown_since(journal, tmp_path):
    """A line that came after the copy is no contradiction."""
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(journal.read_bytes())
    append_to_journal(journal, line("amended"))
    require_continued(journal, read_journal(journal), copy)
