"""Unpack an archive from anywhere: every entry is looked at before the first one is written, and nothing is executed.

An archive as `palimpsest archive` writes it has the simplest form that a zip file can have, and nothing else is taken:
stored entries one after the other from the first byte on, plain files with harmless names of the layout, the directory
behind them, nothing before, between or after. So no entry can be larger than the file itself, stand for two, or hide.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from palimpsest.audit.contents import FIRST_BYTES, METADATA, study_of, why_not_a_name, why_not_of_its_kind
from palimpsest.core.errors import ArchiveError
from palimpsest.core.progress import Track

MOST_ENTRIES, LARGEST_DIRECTORY = 2_000_000, 512 * 2**20
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_LOCAL = struct.Struct("<4s5H3L2H")
_SIZES_64 = 0x0001
_ENCRYPTED, _SIZES_FOLLOW = 0x0001 | 0x0040 | 0x2000, 0x0008
_CHUNK = 2**20


@dataclass(frozen=True)
class Entry:
    """One entry of an archive that was found to be safe: its name, where its content begins, and how long it is.

    The name of a folder ends with a slash; it holds nothing, and stands for no more than that files lie in it.
    """

    name: str
    start: int
    size: int
    crc: int

    @property
    def is_folder(self) -> bool:
        """Whether nothing is to be written for it."""
        return self.name.endswith("/")


def unpack(archive: Path, into: Path, track: Track) -> Path:
    """Unpack an archive into a new or empty folder; returns the folder of the study's results.

    Args:
        archive: the file.
        into: the folder; it is there as a whole in the end, or as it was.
        track: shows how far the work is.

    Raises:
        ArchiveError: the archive is not one that is safe to unpack, is damaged, or the folder is not empty.
    """
    _require_empty(into)
    with open(archive, "rb") as file:
        entries = inspect(archive, file, track)
        _require_space(archive, into, sum(entry.size for entry in entries))
        partial = into.with_name(f".{into.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        try:
            _write_all(archive, file, entries, partial, track)
            if into.exists():
                into.rmdir()
            os.replace(partial, into)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    (study,) = {study_of(entry.name) for entry in entries} - {None}
    return into / "results" / study


def inspect(archive: Path, file: IO[bytes], track: Track) -> list[Entry]:
    """The entries of an archive, each of them found to be safe; nothing is written.

    Raises:
        ArchiveError: names the entry and what is wrong with it.
    """
    directory = _directory(archive, file)
    try:
        infos = zipfile.ZipFile(file).infolist()
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, struct.error, ValueError, OSError) as error:
        raise _refused(archive, "its directory cannot be read", str(error)) from None
    entries, place = [], 0
    for info in infos:
        reason = _why_not(info)
        if reason:
            raise _refused(archive, f"it holds {reason}", repr(info.orig_filename[:200]))
        entries.append(_entry(archive, file, info, place))
        place = entries[-1].start + entries[-1].size
    if place != directory:
        raise _refused(archive, "there is something between its last file and its directory", f"byte {place}")
    _require_names(archive, [entry.name for entry in entries])
    files = [entry for entry in entries if not entry.is_folder]
    for entry in track(files, "looking at files"):
        file.seek(entry.start)
        reason = why_not_of_its_kind(entry.name, file.read(min(FIRST_BYTES, entry.size)))
        if reason:
            raise _refused(archive, f"it holds a file that is {reason}", repr(entry.name))
    return files


def _directory(archive: Path, file: IO[bytes]) -> int:
    """Where the directory begins, after its end was found at the end of the file, and its size to be bearable."""
    size = file.seek(0, os.SEEK_END)
    end = _read(file, size - _END.size, _END)
    if end is None or end[0] != b"PK\x05\x06" or end[7]:
        raise _refused(archive, "it does not end as a zip file without a comment does", f"{size} bytes")
    _, disk, first_disk, on_disk, total, length, start, _ = end
    behind = size - _END.size
    locator = _read(file, behind - _LOCATOR.size, _LOCATOR)
    if locator is not None and locator[0] == b"PK\x06\x07":
        end_64 = _read(file, locator[2], _END_64)
        if end_64 is None or end_64[0] != b"PK\x06\x06" or locator[2] + _END_64.size != behind - _LOCATOR.size:
            raise _refused(archive, "the end of its directory is not where it says", f"byte {locator[2]}")
        behind = locator[2]
        *_, disk, first_disk, on_disk, total, length, start = end_64
    if disk or first_disk or on_disk != total or start + length != behind:
        raise _refused(
            archive, "its directory is not where it says, or is one of several", f"bytes {start} to {behind}"
        )
    if total > MOST_ENTRIES or length > LARGEST_DIRECTORY:
        raise _refused(archive, "it has more entries than a study", f"{total} entries, a directory of {length} bytes")
    return start


def _why_not(info: zipfile.ZipInfo) -> str | None:
    """What is wrong with an entry as the directory describes it; null where nothing is."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.flag_bits & _ENCRYPTED:
        return "an encrypted entry"
    if kind not in (0, stat.S_IFDIR if info.is_dir() else stat.S_IFREG):
        return "a link or a device"
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        return "a compressed entry, whose size is not what it takes"
    if info.flag_bits & _SIZES_FOLLOW:
        return "an entry whose size comes after it"
    if info.filename != info.orig_filename or (info.is_dir() and info.file_size):
        return "a name that leads elsewhere, or a folder with content"
    if not info.orig_filename.isascii() or any(kind != _SIZES_64 for kind in _extras(info.extra)):
        return "an entry with a second name"
    if info.comment:
        return "an entry with a comment"
    return None if info.is_dir() else why_not_a_name(info.filename)


def _extras(extra: bytes) -> Iterator[int]:
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        yield kind
        extra = extra[4 + length :]


def _entry(archive: Path, file: IO[bytes], info: zipfile.ZipInfo, place: int) -> Entry:
    """The entry, after what stands before its content was found to say the same as the directory, in its place."""
    name = info.filename.encode()
    local = _read(file, info.header_offset, _LOCAL)
    found = file.read(len(name)) if local is not None else b""
    if info.header_offset != place:
        raise _refused(archive, "two of its files overlap, or something is hidden between them", repr(info.filename))
    if local is None or local[0] != b"PK\x03\x04":
        raise _refused(archive, "it has no file where it says", repr(info.filename))
    _, _, flags, method, _, _, crc, stored, size, name_length, extra_length = local
    extra = file.read(extra_length)
    sizes = _sizes_64(extra) if 0xFFFFFFFF in (stored, size) else (stored, size)
    start = info.header_offset + _LOCAL.size + name_length + extra_length
    same = (found, name_length, flags, method, crc) == (name, len(name), info.flag_bits, info.compress_type, info.CRC)
    if not same or sizes != (info.file_size, info.file_size) or any(kind != _SIZES_64 for kind in _extras(extra)):
        raise _refused(
            archive, "its directory says something else of a file than stands before it", repr(info.filename)
        )
    return Entry(info.filename, start, info.file_size, info.CRC)


def _sizes_64(extra: bytes) -> tuple[int, int] | None:
    if len(extra) != 20 or struct.unpack("<HH", extra[:4]) != (_SIZES_64, 16):
        return None
    size, stored = struct.unpack("<QQ", extra[4:])
    return (stored, size)


def _require_names(archive: Path, names: list[str]) -> None:
    """No name twice, whatever the case of its letters, and no file where another one needs a folder."""
    files = [name for name in names if not name.endswith("/")]
    folders = {folder for name in files for folder in _folders(name)}
    for name in names:
        if name.endswith("/") and name[:-1] not in folders:
            raise _refused(archive, "it holds a folder in which nothing lies", repr(name))
    seen: dict[str, str] = {}
    for name in [*files, *sorted(folders), *(f"{name}." for name in names if name.endswith("/"))]:
        if name.casefold() in seen:
            raise _refused(archive, "it holds two files of one name", f"{seen[name.casefold()]!r} and {name!r}")
        seen[name.casefold()] = name
    _require_one_study(archive, files)


def _folders(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _require_one_study(archive: Path, names: list[str]) -> None:
    studies = {study_of(name) for name in names} - {None}
    if len(studies) != 1:
        raise _refused(archive, "it is not the archive of one study", f"{len(studies)} studies")
    (study,) = studies
    needed = [METADATA, f"results/{study}/plan/lock.json", f"results/{study}/audit/root.json"]
    needed += [f"config/{study}.{suffix}" for suffix in ("yaml", "lock.json", "journal.jsonl")]
    for name in needed:
        if name not in names:
            raise _refused(archive, "a file is missing that every archive has", repr(name))


def _write_all(archive: Path, file: IO[bytes], entries: list[Entry], folder: Path, track: Track) -> None:
    # One time for all, that of the archive: Snakemake must not take a parent for newer than its child.
    when = os.fstat(file.fileno()).st_mtime
    for entry in track(entries, "unpacking"):
        place = folder / entry.name
        place.parent.mkdir(parents=True, exist_ok=True)
        file.seek(entry.start)
        with open(place, "xb") as sink:
            crc = _copy(file, sink, entry.size)
        if crc != entry.crc:
            raise _refused(archive, "a file is damaged", repr(entry.name))
        os.utime(place, (when, when))


def _copy(source: IO[bytes], sink: IO[bytes], size: int) -> int:
    crc = 0
    while size and (piece := source.read(min(size, _CHUNK))):
        crc, size = zlib.crc32(piece, crc), size - len(piece)
        sink.write(piece)
    return crc if not size else -1


def _read(file: IO[bytes], place: int, form: struct.Struct) -> tuple | None:
    if place < 0:
        return None
    file.seek(place)
    content = file.read(form.size)
    return form.unpack(content) if len(content) == form.size else None


def _require_empty(into: Path) -> None:
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise ArchiveError(
            "an archive is unpacked into an empty folder alone",
            where=str(into),
            expected="a folder that is empty, or not there",
            got="a folder that holds something" if into.is_dir() else "a file",
            next="name another one by --into",
        )


def _require_space(archive: Path, into: Path, size: int) -> None:
    place = next(folder for folder in (into, *into.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(place).free
    if size > free:
        raise ArchiveError(
            "there is not enough space to unpack the archive",
            where=f"{archive} into {into}",
            expected=f"{size} bytes",
            got=f"{free} bytes",
            next="make room, or unpack elsewhere",
        )


def _refused(archive: Path, what: str, got: str) -> ArchiveError:
    return ArchiveError(
        f"the archive is refused, and nothing was written: {what}",
        where=str(archive),
        expected="an archive as palimpsest archive writes it",
        got=got,
        next="get it again from where it was published; do not unpack it by other programs",
    )
