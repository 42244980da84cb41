"""Where everything of a study lies: which rule makes an artifact, and the order of the chain from plan to report."""

from __future__ import annotations

import re
from functools import cache

RULES = {
    "plan_code": r"plan/code/.+\.json",
    "plan": r"plan/[^/]+",
    "data": r"data/(?!manifest/).+",
    "manifest": r"data/manifest/[^/]+\.parquet",
    "train": r"runs/[^/]+/[^/]+/stage-\d+\.[^/]+",
    "rewind": r"rewinds/[^/]+/[^/]+/stage-\d+\.[^/]+",
    "collect": r"runs/[^/]+/[^/]+/[^/.][^/]*\.parquet",
    "evaluate": r"evaluation/[^/]+/[^/]+/.+",
    "metrics": r"metrics/[^/]+/[^/]+\.parquet",
    "ledger": r"audit/ledger/(?!_)[^/]+\.parquet",
    "aggregate": r"aggregate/[^/]+",
    "statistics": r"statistics/[^/]+",
    "audit": r"audit/ledger/_study\.parquet|audit/root\.json",
    "report": r"report/(?!costs\.html$).+",
}
"""The rules in the order of the chain, each with the paths that it writes."""

RECORDS = "audit/records/"
_PATTERNS = {rule: re.compile(pattern) for rule, pattern in RULES.items()}
_PLACE = {rule: place for place, rule in enumerate(RULES)}
_RUN = re.compile(r"(?:runs|rewinds|evaluation)/([^/]+/[^/]+)/.*|metrics/([^/]+/[^/]+)\.parquet/?")
_STAGE = re.compile(r"(?:runs|rewinds)/[^/]+/[^/]+/stage-(\d+)\..+")
# What the ledger does not list and no check asks after: what times say, locks, and how far an unfinished run is.
_ALONGSIDE = re.compile(
    r"telemetry/.+|report/costs\.html|audit/left-out\.json|(?:runs/[^/]+/[^/]+/)?\.lock|runs/[^/]+/[^/]+/\.(?:accepted/stage-\d+\.json|resume/[^/]+)"
)
_FIRST_OF_ITS_JOB = "predictions.parquet"


@cache
def rule_of(path: str) -> str | None:
    """The rule whose artifact lies there; none where it is no place of an artifact."""
    return next((rule for rule, pattern in _PATTERNS.items() if pattern.fullmatch(path)), None)


def is_alongside(path: str) -> bool:
    """Whether a file belongs to a study without being one of its artifacts."""
    return _ALONGSIDE.fullmatch(path) is not None


def run_of(path: str) -> str | None:
    """The run, METHOD/UNIT, that an artifact belongs to; none for those of the whole study."""
    match = _RUN.fullmatch(path)
    return (match[1] or match[2]) if match else None


def stage_of(path: str) -> int | None:
    """The stage that an artifact of a run was written by; none for what belongs to the whole run."""
    match = _STAGE.fullmatch(path)
    return int(match[1]) if match else None


def program_of(path: str) -> str | None:
    """The recorded program that writes an artifact there, `plan/code/….json`; none for the programs themselves."""
    rule = rule_of(path)
    if rule is None or rule == "plan_code":
        return None
    method = (run_of(path) or "").split("/")[0]
    trained = f"plan/code/{method}.json"
    by_method = {"train": trained, "rewind": trained, "evaluate": f"plan/code/evaluate/{method}.json"}
    return by_method.get(rule, f"plan/code/rules/{rule}.json")


def place(path: str) -> tuple[int, str, int, bool, str]:
    """Where an artifact stands in the chain: parents come before their children. Records stand with their artifacts.

    >>> sorted(["report/index.html", "runs/a/u/stage-10.json", "runs/a/u/stage-9.json", "plan/lock.json"], key=place)
    ['plan/lock.json', 'runs/a/u/stage-9.json', 'runs/a/u/stage-10.json', 'report/index.html']
    """
    path = path.removeprefix(RECORDS).removesuffix(".json") if path.startswith(RECORDS) else path
    rule = rule_of(path) or rule_of(f"{path}/stage-0.json")  # a whole run stands where its stages do
    at = _PLACE[rule] if rule is not None else len(_PLACE)
    stage = stage_of(path)
    return (at, run_of(f"{path}/") or "", -1 if stage is None else stage, not path.endswith(_FIRST_OF_ITS_JOB), path)
