"""The root stands for the ledger that is there, in the report and wherever it was published."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow.parquet as pq

from palimpsest.audit.chain import Chain
from palimpsest.audit.finding import Finding, guarded
from palimpsest.audit.ledger import ROOT, shard_path
from palimpsest.audit.merkle import merkle_root
from palimpsest.core.artifact import hash_content
from palimpsest.core.progress import Track

REPORT = "report/index.html"
_SHOWN = re.compile(r'id="audit-root">([0-9a-f]{64})<')


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Compute the Merkle root again from the rows of every shard."""
    for _ in track([ROOT], "computing the root"):
        yield from guarded(ROOT, "the root cannot be read", lambda: _root(chain))


def _root(chain: Chain) -> Iterator[Finding]:
    stated = chain.read_json(ROOT)
    shards = {}
    for path in [shard_path(name) for name in ["_study", *(chain.plan or {}).get("methods", [])]]:
        if path in chain.files:
            shard = pq.ParquetFile(chain.study / path).read().replace_schema_metadata(None)
            shards[path] = hash_content("ledger", shard)
    for path in sorted(shards.keys() | stated["shards"].keys()):
        if shards.get(path) != stated["shards"].get(path):
            reason = f"it is not the shard that {ROOT} stands for"
            yield Finding(path, reason, str(stated["shards"].get(path)), str(shards.get(path)))
    root = merkle_root(shards)
    if root != stated["root"]:
        yield Finding(ROOT, "the root is not that of the ledger", root, stated["root"])
    if chain.published_root is not None and chain.published_root != root:
        reason = "the root of the ledger is not the published one: this is not the study that was published"
        yield Finding(ROOT, reason, chain.published_root, root)
    yield from _shown(chain, root)


def _shown(chain: Chain, root: str) -> Iterator[Finding]:
    if REPORT in chain.files:
        shown = _SHOWN.findall((chain.study / REPORT).read_text(errors="replace"))
        if shown != [root]:
            yield Finding(REPORT, "it shows another root than that of the ledger", root, ", ".join(shown) or "none")


def root_of(chain: Chain) -> str:
    """The root that the study states."""
    return chain.read_json(ROOT)["root"]
