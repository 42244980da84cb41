"""Archives that are not what they seem, each with what the refusal says: made by hand, byte by byte where needed."""

from __future__ import annotations

import io
import pickle  # noqa: TID251 - what no archive may hold
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

HARMLESS = {
    "ro-crate-metadata.json": b"{}",
    "README.md": b"# small",
    "config/small.journal.jsonl": b"",
    "config/small.lock.json": b"{}",
    "config/small.yaml": b"study: small",
    "program/Snakefile.txt": b"rule all:",
    "results/small/audit/root.json": b"{}",
    "results/small/plan/lock.json": b"{}",
}
NPY = b"\x93NUMPY\x01\x00\x46\x00{'descr': '%s', 'fortran_order': False, 'shape': (1,), }"
Build = Callable[[Path], None]


def write(
    path: Path, *more: tuple[str | zipfile.ZipInfo, bytes], kind: int = zipfile.ZIP_STORED, **files: bytes
) -> None:
    """An archive of the harmless files and others, in the order in which they are given."""
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in [*(HARMLESS | files).items(), *more]:
            entry = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name)
            entry.compress_type = kind
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a name twice is what some of these are about
                archive.writestr(entry, content)


def named(name: str, content: bytes = b"{}") -> Build:
    """One more file of some name."""
    return lambda path: write(path, (name, content))


def of_kind(mode: int, name: str = "results/small/plan/link.json") -> Build:
    """One more entry that is no plain file."""
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, mode << 16
    return lambda path: write(path, (entry, b"/etc/passwd"))


def patched(old: bytes, new: bytes, which: int = 0) -> Build:
    """Bytes of a harmless archive replaced, at the occurrence `which`."""

    def build(path: Path) -> None:
        write(path)
        content = path.read_bytes()
        place = -1
        for _ in range(which + 1):
            place = content.index(old, place + 1)
        path.write_bytes(content[:place] + new + content[place + len(old) :])

    return build


def flagged(flag: int) -> Build:
    """The first entry with a flag set, before it and in the directory."""

    def build(path: Path) -> None:
        write(path)
        content = bytearray(path.read_bytes())
        for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            place = content.index(signature) + offset
            content[place : place + 2] = struct.pack("<H", struct.unpack("<H", content[place : place + 2])[0] | flag)
        path.write_bytes(content)

    return build


def around(before: bytes = b"", behind: bytes = b"") -> Build:
    """Something before the first entry, or behind the directory."""

    def build(path: Path) -> None:
        write(path)
        path.write_bytes(before + path.read_bytes() + behind)

    return build


def overlapping(path: Path) -> None:
    """Two names in the directory for one file: a small archive that would unpack to any size."""
    write(path)
    content = path.read_bytes()
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    first = content[start : content.index(b"PK\x01\x02", start + 1)]
    second = first.replace(b"ro-crate-metadata.json", b"program/aaaaaaaaaa.txt")
    body = content[:start] + content[start:end] + second
    fields = list(struct.unpack("<4s4H2LH", content[end:]))
    fields[3] += 1
    fields[4] += 1
    fields[5] += len(second)
    path.write_bytes(body + struct.pack("<4s4H2LH", *fields))


def larger_than_stored(path: Path) -> None:
    """A file that takes two bytes, and is said to become two billion."""
    write(path)
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02") + 24
    content[place : place + 4] = struct.pack("<L", 2**31)
    path.write_bytes(content)


def too_many(path: Path) -> None:
    """A directory that says it has 65,534 entries and 4 GB."""
    write(path)
    content = path.read_bytes()
    end = content.index(b"PK\x05\x06")
    path.write_bytes(content[:end] + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65534, 65534, 2**32 - 2, 0, 0))


def too_many_64(path: Path) -> None:
    """As many entries as a directory of 64 bits can count, where that directory says it is."""
    write(path)
    content = path.read_bytes()
    end = content.index(b"PK\x05\x06")
    start = content.index(b"PK\x01\x02")
    numbers = (b"PK\x06\x06", 44, 45, 45, 0, 0, 2**40, 2**40, end - start, start)
    big = struct.pack("<4sQ2H2L4Q", *numbers) + struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
    path.write_bytes(content[:end] + big + content[end:])


def nested(path: Path) -> None:
    """An archive in the archive, under the name of a text."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a", b"x" * 10)
    write(path, ("program/inner.txt", inner.getvalue()))


def second_name(path: Path) -> None:
    """A name in Unicode behind the harmless one: some programs unpack to that."""
    entry = zipfile.ZipInfo("results/small/plan/more.json")
    other = b"../../evil.py"
    entry.extra = struct.pack("<HHBL", 0x7075, 5 + len(other), 1, 0) + other
    write(path, (entry, b"{}"))


def with_comment(path: Path) -> None:
    """A comment behind the directory, in which anything could hide."""
    write(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"a comment"


PICKLE = pickle.dumps({"a": print})
HOSTILE: dict[str, tuple[Build, str]] = {
    "a path that leads out": (named("../evil.json"), "leads elsewhere"),
    "a path that leads out of the study": (named("results/small/plan/../../../../evil.json"), "leads elsewhere"),
    "an absolute name": (named("/etc/cron.d/evil.json"), "leads elsewhere"),
    "a drive": (named("C:/evil.json"), "leads elsewhere"),
    "backslashes": (named("results\\small\\evil.json"), "leads elsewhere"),
    "a name in other letters": (named("results/small/plan/ａ.json"), "a second name"),
    "a name with a control character": (named("results/small/plan/a\x07.json"), "leads elsewhere"),
    "a name with an end in it": (patched(b"README.md", b"READM\0.md", 1), "leads elsewhere"),
    "a hidden file": (named("results/small/plan/.bashrc.json"), "leads elsewhere"),
    "a name that ends with a dot": (named("results/small/plan/a.json."), "leads elsewhere"),
    "an empty part": (named("results//small/plan/a.json"), "leads elsewhere"),
    "a name that is too long": (named(f"results/small/plan/{'a' * 300}.json"), "too long"),
    "a symbolic link": (of_kind(stat.S_IFLNK | 0o777), "a link or a device"),
    "a device": (of_kind(stat.S_IFCHR | 0o666), "a link or a device"),
    "a pipe": (of_kind(stat.S_IFIFO | 0o666), "a link or a device"),
    "a link that ends as a folder": (of_kind(stat.S_IFLNK | 0o777, "results/small/plan/"), "a link or a device"),
    "a name twice": (named("README.md", b"# other"), "two files of one name"),
    "a name twice in other letters": (named("results/small/plan/Lock.json"), "two files of one name"),
    "folders of one name in other letters": (
        lambda path: write(path, ("program/a/x.txt", b"x"), ("program/A/y.txt", b"x")),
        "two files of one name",
    ),
    "a file where a folder is": (
        lambda path: write(path, ("program/a.txt", b"x"), ("program/a.txt/b.txt", b"x")),
        "two files of one name",
    ),
    "a folder without a file": (named("results/small/statistics/", b""), "in which nothing lies"),
    "a folder with content": (named("results/small/plan/", b"x"), "folder with content"),
    "something compressed": (lambda path: write(path, kind=zipfile.ZIP_DEFLATED), "compressed"),
    "a bomb": (
        lambda path: write(path, kind=zipfile.ZIP_DEFLATED, **{"program/a.txt": b"0" * 10**7}),
        "compressed",
    ),
    "a size that is not the declared one": (larger_than_stored, "compressed"),
    "another size before the file": (
        patched(struct.pack("<LL", 2, 2), struct.pack("<LL", 3, 3)),
        "something else of a",
    ),
    "another name before the file": (patched(b"README.md", b"readme.md"), "says something else of a file"),
    "files that overlap": (overlapping, "overlap"),
    "an encrypted file": (flagged(0x1), "encrypted"),
    "sizes behind the file": (flagged(0x8), "size comes after"),
    "a program before the archive": (around(before=b"#!/bin/sh\nrm -rf ~\n"), "its directory is not where it says"),
    "something behind the archive": (around(behind=b"x"), "does not end as a zip file"),
    "a comment": (with_comment, "does not end as a zip file"),
    "more entries than there are": (too_many, "not where it says"),
    "more entries than a study has": (too_many_64, "more entries than a study"),
    "another archive": (nested, "no text"),
    "a second name": (second_name, "a second name"),
    "a pickle by name": (named("results/small/plan/a.pkl", PICKLE), "outside of the layout"),
    "a pickle as a checkpoint of PyTorch": (named("runs/a.pt", PICKLE), "outside of the layout"),
    "a pickle in a text": (named("program/a.txt", PICKLE), "no text"),
    "a pickle as a table": (named("results/small/aggregate/a.parquet", PICKLE), "not what the name .parquet says"),
    "a pickle as a checkpoint": (
        named("results/small/runs/m/s0/stage-1.safetensors", PICKLE),
        "not what the name .safetensors says",
    ),
    "a pickle in an array": (
        named("results/small/data/inputs.npy", NPY % b"|O" + PICKLE),
        "not what the name .npy says",
    ),
    "an array of records": (
        named("results/small/data/inputs.npy", NPY % b"[('a', '|O')]"),
        "not what the name .npy says",
    ),
    "code that would be imported": (named("program/palimpsest/__init__.py", b"import os"), "outside of the layout"),
    "code in the folder of results": (named("results/small/plan/conftest.py", b"import os"), "outside of the layout"),
    "code that Python runs when it starts": (named("sitecustomize.py", b"import os"), "outside of the layout"),
    "a workflow": (named("Snakefile", b"rule all:"), "outside of the layout"),
    "a library": (named("program/a.so", b"\x7fELF"), "outside of the layout"),
    "a file beside the layout": (named("config/other.toml", b"a = 1"), "outside of the layout"),
    "a second study": (named("results/other/plan/lock.json"), "not the archive of one study"),
    "an executable profile": (named("config/profile.yaml", b"cores: 1"), "not the archive of one study"),
}
