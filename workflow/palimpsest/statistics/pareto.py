"""The Pareto front: methods that no other one beats in everything. A front, never one blended score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# What is wanted high (1) or low (−1).
OBJECTIVES: dict[str, int] = {"average_accuracy": 1, "forgetting": -1, "training_flops": -1, "bytes": -1}


@dataclass(frozen=True)
class Candidate:
    """A method: its value of each objective (null where there is none), and why it is out of the running."""

    method: str
    values: Mapping[str, float | None]
    ruled_out: str | None = None


def pareto_front(candidates: list[Candidate]) -> dict[str, str | None]:
    """By method, null where it stands on the front, else why not.

    A method dominates another one if it is nowhere worse and somewhere better. What is ruled out or lacks a value
    neither stands on the front nor dominates.

    >>> a = Candidate("a", {"average_accuracy": 0.9, "forgetting": 0.1, "training_flops": 2.0, "bytes": 0.0})
    >>> pareto_front([a, Candidate("b", {**a.values, "forgetting": 0.2}), Candidate("c", {**a.values, "bytes": None})])
    {'a': None, 'b': 'dominated by a', 'c': 'no value of bytes'}
    """
    running = [candidate for candidate in candidates if _why_out(candidate) is None]
    reasons = {}
    for candidate in candidates:
        dominating = [other.method for other in running if _dominates(other, candidate)] if candidate in running else []
        reasons[candidate.method] = _why_out(candidate) or (
            f"dominated by {', '.join(dominating)}" if dominating else None
        )
    return reasons


def _why_out(candidate: Candidate) -> str | None:
    absent = [objective for objective in OBJECTIVES if candidate.values[objective] is None]
    return candidate.ruled_out or ("no value of " + ", ".join(absent) if absent else None)


def _dominates(one: Candidate, other: Candidate) -> bool:
    gains = [sign * (one.values[name] - other.values[name]) for name, sign in OBJECTIVES.items()]
    return min(gains) >= 0 and max(gains) > 0
