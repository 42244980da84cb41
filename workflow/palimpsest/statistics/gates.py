"""Gates: announced conditions that a candidate must pass, every one of them."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence

from palimpsest.core.errors import StudyError

_OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_GATE = re.compile(r"(?P<comparison>[\w-]+)\.(?P<quantity>\w+) *(?P<operator>>=|<=|>|<) *(?P<number>-?\d+(\.\d+)?)")


def failed_gates(gates: Sequence[str], found: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """The gates that do not hold, in the order given; a quantity that is null or was not found fails its gate.

    Args:
        gates: `comparison.quantity ≥ number` with one of >=, <=, >, <, in the unit of the quantity.
        found: by comparison, its quantities (`mean`, `ci_low`, `ci_high` …).

    Raises:
        StudyError: a gate cannot be read.

    >>> failed_gates(["accuracy.ci_low > 0", "drop.mean <= 2"], {"accuracy": {"ci_low": 0.6}, "drop": {"mean": 4.0}})
    ['drop.mean <= 2']
    """
    return [gate for gate in gates if not _holds(gate, found)]


def _holds(gate: str, found: Mapping[str, Mapping[str, float | None]]) -> bool:
    parts = _GATE.fullmatch(gate.strip())
    if parts is None:
        raise StudyError(
            "a gate cannot be read",
            where="analysis.gates",
            expected="comparison.quantity, one of >= <= > <, a number",
            got=repr(gate),
            next="correct the study file and lock it again",
        )
    value = found.get(parts["comparison"], {}).get(parts["quantity"])
    return value is not None and _OPERATORS[parts["operator"]](value, float(parts["number"]))
