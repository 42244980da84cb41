"""What an archive may hold: the names, what a file of each kind begins with, and the parts by which sizes are told.

An archive is laid out as a project is, so that a restored one is a place to go on from:

    ro-crate-metadata.json  README.md
    config/NAME.yaml  NAME.lock.json  NAME.journal.jsonl
    program/….txt           the source files as texts: nothing that Python or Snakemake would find
    results/NAME/…
"""

from __future__ import annotations

import re
from functools import cache

from palimpsest.audit.layout import RECORDS, rule_of

METADATA, README, PROGRAM = "ro-crate-metadata.json", "README.md", "program"
LEFT_OUT = "audit/left-out.json"
"""In a study that was restored from a partial archive: `{parts: [names]}`, what is absent by declaration."""

PARTS = {
    "checkpoints": r"(runs|rewinds)/.+\.safetensors",
    "predictions": r"evaluation/.+/predictions\.parquet",
    "inputs": r"data/.+\.npy",
    "plan": r"plan/.+|telemetry/(journal\.jsonl|publication\.json)",
    "data": r"data/.+",
    "trajectories": r"(runs|rewinds)/.+",
    "matrices": r"evaluation/.+",
    "analysis": r"(metrics|aggregate|statistics)/.+",
    "telemetry": r"telemetry/.+|report/costs\.html",
    "ledger": r"audit/.+",
    "report": r"report/.+",
}
"""Parts of a study's results, each with its paths; the first one that fits counts."""
NEVER_ANALYSED = ("checkpoints", "predictions", "inputs")
"""Parts from which no table of the analysis is made."""
MAY_BE_LEFT_OUT = (*NEVER_ANALYSED, "telemetry")

_PART = re.compile(r"[A-Za-z0-9_+=-]([A-Za-z0-9_.+=-]*[A-Za-z0-9_+=-])?")
_LONGEST_PART, _LONGEST_NAME = 200, 1000
_TELEMETRY = re.compile(r"telemetry/(?!hashed/|rejected/).+\.(parquet|jsonl|json|log)")
_STUDY = re.compile(r"results/([^/]+)/(.+)")
_CONFIG = re.compile(r"config/([^/]+?)\.(yaml|lock\.json|journal\.jsonl)")
_NUMBERS_ALONE = re.compile(rb"\x93NUMPY\x01\x00..\{'descr': '[<>|=]?[biuf][0-9]+', ", re.DOTALL)
_BEGINS = {
    ".json": re.compile(rb"[{\[]"),
    ".jsonl": re.compile(rb"\{|$"),
    ".parquet": re.compile(rb"PAR1"),
    ".safetensors": re.compile(rb".{8}\{", re.DOTALL),
    ".npy": _NUMBERS_ALONE,
    ".html": re.compile(rb"<!DOCTYPE html>"),
    ".svg": re.compile(rb"<\?xml|<svg"),
    ".pdf": re.compile(rb"%PDF-"),
    **dict.fromkeys((".csv", ".tex", ".log", ".txt", ".md", ".yaml"), None),
}
"""What a file begins with, by its suffix; those without a pattern are texts."""
FIRST_BYTES = 512


@cache
def part_of(path: str) -> str:
    """The part of a study's results that a path belongs to."""
    return next(name for name, pattern in PARTS.items() if re.fullmatch(pattern, path))


def why_not_a_name(name: str) -> str | None:
    """Why an archive must not hold a file of this name; null where it may."""
    parts = name.split("/")
    if len(name) > _LONGEST_NAME or any(len(part) > _LONGEST_PART for part in parts):
        return "a name that is too long"
    if not all(_PART.fullmatch(part) for part in parts):
        return "a name that leads elsewhere, or that not every system can write"
    if not _is_of_the_layout(name):
        return "a name outside of the layout"
    return None


def why_not_of_its_kind(name: str, first_bytes: bytes) -> str | None:
    """Why a file is not what its name says, from what it begins with; null where it may be."""
    pattern = _BEGINS[suffix_of(name)]
    if pattern is not None:
        return None if pattern.match(first_bytes) else f"not what the name {suffix_of(name)} says"
    try:
        text = first_bytes.decode()
    except UnicodeDecodeError as error:
        text = "" if error.start >= len(first_bytes) - 3 else "\0"
    return "no text" if "\0" in text or text.startswith("PK\x03\x04") else None


def suffix_of(name: str) -> str:
    """The last suffix of a name, with its dot."""
    return "." + name.rpartition(".")[2]


def study_of(name: str) -> str | None:
    """The study to whose results or configuration a name belongs."""
    found = _STUDY.fullmatch(name) or _CONFIG.fullmatch(name)
    return found[1] if found else None


def _is_of_the_layout(name: str) -> bool:
    if suffix_of(name) not in _BEGINS:
        return False
    if name in (METADATA, README) or _CONFIG.fullmatch(name):
        return True
    if name.startswith(f"{PROGRAM}/"):
        return name.endswith(".txt")
    found = _STUDY.fullmatch(name)
    return found is not None and is_of_results(found[2])


def is_of_results(path: str) -> bool:
    """Whether an archive holds what lies at this path of a study's results."""
    if path.startswith(RECORDS):
        return path.endswith(".json") and rule_of(path.removeprefix(RECORDS).removesuffix(".json")) is not None
    known = rule_of(path) is not None or path in (LEFT_OUT, "report/costs.html")
    return known or _TELEMETRY.fullmatch(path) is not None
