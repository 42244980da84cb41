"""Every stated file is there with the stated bytes, every record repeats the ledger, and no file is there besides."""

from __future__ import annotations

import re
from collections.abc import Iterator

from palimpsest.audit.chain import Chain, Row
from palimpsest.audit.contents import LEFT_OUT, part_of
from palimpsest.audit.finding import Finding
from palimpsest.audit.layout import RECORDS, is_alongside
from palimpsest.core.hashing import canonical_json, hash_file
from palimpsest.core.progress import Track

_RUN_FOLDER = re.compile(r"(?:runs|evaluation|metrics)/([^/]+/[^/]+?)(?:\.parquet|/.+)")


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Hash every file and compare."""
    paths = chain.artifacts()
    chain.damaged |= {path for path in paths if (chain.study / path).is_symlink()}
    for path in track([path for path in paths if path not in chain.damaged], "hashing files"):
        for finding in _file(chain, chain.rows[path]):
            chain.damaged.add(path)
            yield finding
    for path in track(paths, "comparing records"):
        yield from _record(chain, chain.rows[path])
    yield from _strays(chain)


def _file(chain: Chain, row: Row) -> Iterator[Finding]:
    stated_in = "the ledger" if row.path in chain.listed else "its record"
    if row.path not in chain.files and part_of(row.path) in chain.left_out:
        yield Finding(row.path, f"{part_of(row.path)} are absent by declaration, {LEFT_OUT}", is_remark=True)
        return
    if row.path not in chain.files:
        yield Finding(row.path, "it is missing", f"a file, as {stated_in} says", "no such file")
        return
    place = chain.study / row.path
    digest = hash_file(place)
    if digest != row.sha256:
        yield Finding(row.path, f"its bytes are not those that {stated_in} states", row.sha256, digest)
    elif place.stat().st_size != row.bytes:
        size = str(place.stat().st_size)
        yield Finding(row.path, f"its size is not the one that {stated_in} states", str(row.bytes), size)


def _record(chain: Chain, row: Row) -> Iterator[Finding]:
    path = f"{RECORDS}{row.path}.json"
    if row.path not in chain.listed:
        return
    if path not in chain.files:
        yield Finding(path, "the record of an artifact is missing", "a file that repeats the ledger", "no such file")
        return
    stated = {name: getattr(row, name) for name in Row._fields if name != "parents_text"}
    expected = canonical_json({**stated, "parents": row.parents})
    if (chain.study / path).read_bytes() != expected:
        yield Finding(
            path,
            "the record of an artifact is not what the ledger says: one of the two was changed since",
        )


def _strays(chain: Chain) -> Iterator[Finding]:
    """Files that are neither stated nor known to lie beside the artifacts; those of one foreign run together."""
    runs: dict[str, list[str]] = {}
    for path in sorted(chain.files - chain.rows.keys()):
        if is_alongside(path):
            continue
        artifact = path.removeprefix(RECORDS).removesuffix(".json") if path.startswith(RECORDS) else path
        run = _RUN_FOLDER.fullmatch(artifact)
        if run and chain.plan is not None and run[1] not in chain.runs:
            runs.setdefault(run[1], []).append(path)
        elif artifact not in chain.rows:
            yield Finding(path, "it is no part of the study: neither the ledger nor the layout knows it")
    for run, paths in runs.items():
        got = f"{len(paths)} files, such as {paths[0]}"
        yield Finding(f"runs/{run}", "a run that is not in the plan", "the runs of plan/lock.json alone", got)
