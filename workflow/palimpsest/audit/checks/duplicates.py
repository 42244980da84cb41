"""No run of a method is the copy of another one: other seeds or orders never predict alike to the last bit."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc
import pyarrow.parquet as pq

from palimpsest.audit.chain import Chain
from palimpsest.audit.finding import Finding, guarded
from palimpsest.core.progress import Track

_SCORE = "label_log_probability"


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Look for predictions of the same content within each method."""
    first: dict[tuple[str, str], str] = {}
    for path, run in track(list(chain.of_runs("evaluate")), "looking for copies"):
        if not path.endswith("/predictions.parquet"):
            continue
        original = first.setdefault((run.method, chain.rows[path].content_sha256), path)
        if original != path:
            yield from guarded(
                path, "its scores cannot be read", lambda path=path, original=original: _copy(chain, path, original)
            )


def _copy(chain: Chain, path: str, original: str) -> Iterator[Finding]:
    # Without scores, or with one score for all samples, runs may be alike by themselves: one that ended at its first
    # stage, tasks of one class.
    scores = pq.ParquetFile(chain.study / path).read(columns=[_SCORE])[_SCORE]
    if len(pc.unique(scores.drop_null())) > 1:
        yield Finding(path, f"its predictions are those of another run to the last bit: {original}")
