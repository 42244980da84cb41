"""Archives from anywhere: what is not safe is refused by name before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostile_archives import HARMLESS, HOSTILE, write
from palimpsest.audit.unpack import unpack
from palimpsest.core.errors import ArchiveError
from palimpsest.core.progress import silently


def test_a_harmless_archive_is_unpacked(tmp_path: Path) -> None:
    """Every file with its content, and nothing else; the folder of the results is told."""
    write(tmp_path / "a.zip")
    study = unpack(tmp_path / "a.zip", tmp_path / "into", silently)
    assert study == tmp_path / "into/results/small"
    found = {
        str(p.relative_to(tmp_path / "into")): p.read_bytes() for p in (tmp_path / "into").rglob("*") if p.is_file()
    }
    assert found == HARMLESS


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused(tmp_path: Path, case: str) -> None:
    """With the reason; neither the folder nor anything beside it is there afterwards."""
    build, reason = HOSTILE[case]
    (tmp_path / "deep").mkdir()
    build(tmp_path / "deep/a.zip")
    with pytest.raises(ArchiveError, match="nothing was written") as error:
        unpack(tmp_path / "deep/a.zip", tmp_path / "deep/into", silently)
    assert reason in error.value.what
    assert [path.name for path in tmp_path.rglob("*")] == ["deep", "a.zip"]


@pytest.mark.parametrize("lacking", ["ro-crate-metadata.json", "config/small.yaml", "results/small/audit/root.json"])
def test_an_archive_that_lacks_what_every_one_has_is_refused(tmp_path: Path, monkeypatch, lacking: str) -> None:
    """The file is named."""
    monkeypatch.delitem(HARMLESS, lacking)
    write(tmp_path / "a.zip")
    with pytest.raises(ArchiveError, match="a file is missing") as error:
        unpack(tmp_path / "a.zip", tmp_path / "into", silently)
    assert lacking in error.value.got


@pytest.mark.parametrize("content", [b"", b"PK", b"x" * 100, b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    """Nothing, a torn one, anything else, one without a file."""
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(ArchiveError):
        unpack(tmp_path / "a.zip", tmp_path / "into", silently)
    assert not (tmp_path / "into").exists()


def test_a_damaged_file_leaves_nothing_behind(tmp_path: Path) -> None:
    """One byte of a file is flipped: its checksum does not fit, and what was unpacked before it is removed."""
    write(tmp_path / "a.zip")
    content = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(content.replace(b"rule all:", b"rule ell:"))
    with pytest.raises(ArchiveError, match="a file is damaged") as error:
        unpack(tmp_path / "a.zip", tmp_path / "into", silently)
    assert "program/Snakefile.txt" in error.value.got
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    """An archive never mixes with what is there; an empty folder is taken."""
    write(tmp_path / "a.zip")
    (tmp_path / "into").mkdir()
    (tmp_path / "into/mine").write_text("mine")
    with pytest.raises(ArchiveError, match="into an empty folder alone"):
        unpack(tmp_path / "a.zip", tmp_path / "into", silently)
    assert [path.name for path in (tmp_path / "into").iterdir()] == ["mine"]
    (tmp_path / "into/mine").unlink()
    unpack(tmp_path / "a.zip", tmp_path / "into", silently)


def test_more_than_the_disk_holds_is_refused(tmp_path: Path, monkeypatch) -> None:
    """Before the first byte is written."""
    write(tmp_path / "a.zip")
    monkeypatch.setattr("palimpsest.audit.unpack.shutil.disk_usage", lambda place: type("", (), {"free": 10}))
    with pytest.raises(ArchiveError, match="not enough space"):
        unpack(tmp_path / "a.zip", tmp_path / "into", silently)
    assert not (tmp_path / "into").exists()
