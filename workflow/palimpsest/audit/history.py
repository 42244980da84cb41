"""What of a study is exploratory for good, made out again from its lock, its journal and its recorded programs."""

from __future__ import annotations

from typing import Any

from palimpsest.audit.chain import Chain
from palimpsest.audit.finding import UNREADABLE, Finding, describe
from palimpsest.core.artifact import read_lineage
from palimpsest.plan.journal import read_journal
from palimpsest.plan.marks import Marks, marks, no_marks, workflow_programs

JOURNAL = "telemetry/journal.jsonl"
_COMPARISONS = "statistics/comparisons.parquet"


def marks_of(chain: Chain) -> tuple[Marks, list[Finding]]:
    """The marks, and what is to be said of where they come from.

    Where they cannot be made out, those that the statistics state are taken.
    """
    if JOURNAL not in chain.files:
        reason = "it is not there: what is exploratory for good is taken from the statistics themselves"
        return _stated(chain), [Finding(JOURNAL, reason, is_remark=True)]
    try:
        return _made_out(chain)
    except UNREADABLE as error:
        reason = "what is exploratory for good cannot be made out from it"
        return _stated(chain), [Finding(JOURNAL, reason, got=describe(error))]


def _made_out(chain: Chain) -> tuple[Marks, list[Finding]]:
    names = {path: path.removeprefix("plan/code/").removesuffix(".json") for path in chain.artifacts("plan_code")}
    programs = {name: (chain.study / path).read_text() for path, name in names.items() if chain.is_sound(path)}
    lines = read_journal(chain.study / JOURNAL)
    known = any(line["event"] in ("evaluation", "found") for line in lines)
    reason = "it knows of no evaluation on test data, and there are results of one"
    findings = [] if known else [Finding(JOURNAL, reason)]
    return marks(chain.plan, lines, workflow_programs(chain.plan, programs), not known), findings


def _stated(chain: Chain) -> dict[str, Any]:
    lineage = read_lineage(chain.study / _COMPARISONS) if chain.is_sound(_COMPARISONS) else {}
    return lineage.get("parameters", {}).get("marks", no_marks())
