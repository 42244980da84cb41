"""Metrics follow from matrices, aggregates from metrics, statistics from aggregates, the report from all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from palimpsest.audit.chain import Chain
from palimpsest.audit.contents import NEVER_ANALYSED, part_of
from palimpsest.audit.finding import Finding
from palimpsest.audit.history import marks_of
from palimpsest.audit.layout import rule_of
from palimpsest.audit.rehearsal import Rehearsal
from palimpsest.core.progress import Track
from palimpsest.plan.grid import Run


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Carry out the stages of the analysis again, and compare what they make."""
    if chain.plan is None:
        return
    for rehearsed in (_plan, _manifest, _metrics, _aggregate, _statistics, _report):
        yield from rehearsed(chain, track)


def _plan(chain: Chain, track: Track) -> Iterator[Finding]:
    from palimpsest.plan.tables import write_plan

    rehearsal = Rehearsal(chain, "plan")
    wrong_lock = [] if chain.is_sound("plan/lock.json") else ["plan/lock.json"]
    paths = [path for path in chain.artifacts("plan") if path != "plan/lock.json"]
    yield from rehearsal.compare(paths, wrong_lock, lambda job: write_plan(job, chain.study / "plan/lock.json"))
    yield from rehearsal.remarks()


def _manifest(chain: Chain, track: Track) -> Iterator[Finding]:
    from palimpsest.core.manifest import INPUTS, write_manifest

    if part_of(INPUTS) in chain.left_out:
        return
    yield from _whole(chain, track, "manifest", write_manifest)


def _metrics(chain: Chain, track: Track) -> Iterator[Finding]:
    from palimpsest.metrics._run import Reader, write_metrics

    rehearsal, grid = Rehearsal(chain, "metrics"), chain.grid
    readers: list[Reader] = []

    def write(job, run: Run) -> None:
        readers[:] = readers or [Reader(job)]
        job.parents |= {"plan/units.parquet": chain.rows["plan/units.parquet"].sha256}
        about = (grid.schedule(run.method), grid.references_of(run), grid.protocols, grid.boundaries)
        write_metrics(job, run.run, *about, readers[0])

    for run in track(list(chain.runs.values()), "computing metrics"):
        path = f"metrics/{run.run}.parquet"
        if chain.is_sound(path):
            yield from rehearsal.compare([path], chain.damaged_parents(path), lambda job, run=run: write(job, run))
    yield from rehearsal.remarks()


def _aggregate(chain: Chain, track: Track) -> Iterator[Finding]:
    from palimpsest.aggregate.study import write_aggregates

    yield from _whole(chain, track, "aggregate", lambda job: write_aggregates(job, chain.grid.methods))


def _statistics(chain: Chain, track: Track) -> Iterator[Finding]:
    from palimpsest.statistics.study import write_statistics

    analysis = json.loads(chain.grid.analysis)
    marks, remarks = marks_of(chain)
    yield from remarks
    yield from _whole(chain, track, "statistics", lambda job: write_statistics(job, analysis, marks))


def _report(chain: Chain, track: Track) -> Iterator[Finding]:
    from palimpsest.report.build import build

    yield from _whole(chain, track, "report", build)


def _whole(chain: Chain, track: Track, rule: str, work) -> Iterator[Finding]:
    """A stage that works once, on all of the study."""
    rehearsal = Rehearsal(chain, rule)
    read = [path for path in sorted(chain.damaged) if part_of(path) not in NEVER_ANALYSED]
    before = [path for path in read if rule == "aggregate" and rule_of(path) in _READ_BY_AGGREGATE]
    paths = chain.artifacts(rule)
    damaged = sorted({parent for path in paths for parent in chain.damaged_parents(path)} | set(before))
    for _ in track([rule], f"making {rule} again"):
        yield from rehearsal.compare(paths, damaged, work)
    yield from rehearsal.remarks()


_READ_BY_AGGREGATE = ("train", "collect", "evaluate", "metrics")
