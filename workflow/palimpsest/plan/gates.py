"""The grammar of gates: `comparison.quantity`, one of ≥ ≤ > < (or >= <=), a number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from palimpsest.core.errors import StudyError

Kind = Literal["difference", "probability", "count", "statistic", "ratio", "bytes"]

QUANTITIES: dict[str, Kind] = {
    **dict.fromkeys(("mean", "sd", "standard_error", "ci_low", "ci_high"), "difference"),
    **dict.fromkeys(("mean_bound_low", "mean_bound_high"), "difference"),
    **dict.fromkeys(("worst_task_change", "worst_task_ci_low", "worst_task_ci_high"), "difference"),
    **dict.fromkeys(("p", "p_adjusted", "p_equivalence", "p_equivalence_adjusted", "p_wilcoxon"), "probability"),
    **dict.fromkeys(("n", "n_failed_a", "n_failed_b", "n_orders", "orders_agreeing", "df"), "count"),
    "t": "statistic",
    "training_flops_ratio": "ratio",
    "method_bytes_difference": "bytes",
}
"""What a gate may be about: columns of the table `comparisons`, and what A costs beside B."""

# Numbers that can be reached; a difference beyond them was meant in percentage points.
_RANGES: dict[Kind, tuple[float, float]] = {"difference": (-1.0, 1.0), "probability": (0.0, 1.0)}
_SAME = {"≥": ">=", "≤": "<="}
_GATE = re.compile(
    r"(?P<comparison>[\w.+-]+)\.(?P<quantity>\w+) *(?P<operator>>=|<=|≥|≤|>|<) *"
    r"(?P<number>[-+]?\d+(\.\d+)?([eE][-+]?\d+)?)"
)


@dataclass(frozen=True)
class Gate:
    """One announced condition.

    Args:
        comparison, quantity: what is looked at; differences are fractions.
        operator: one of `>=`, `<=`, `>`, `<`.
        threshold: with what it is compared.
        hard: the verdict needs it.
        mark: why it is exploratory for good, where it is.
    """

    comparison: str
    quantity: str
    operator: str
    threshold: float
    hard: bool = True
    mark: str | None = None

    @property
    def text(self) -> str:
        """The gate in one spelling, whatever the plan's.

        >>> read_gate("ours.ci_low≥0.010", "here").text
        'ours.ci_low >= 0.01'
        """
        return f"{self.comparison}.{self.quantity} {self.operator} {self.threshold:.12g}"


def read_gate(text: str, where: str, hard: bool = True) -> Gate:
    """A gate from its text.

    Args:
        text: as the plan has it.
        where: its place, for errors.
        hard: whether the verdict needs it.

    Raises:
        StudyError: it cannot be read.

    >>> read_gate("replay.v2.mean > -1e-2", "here")
    Gate(comparison='replay.v2', quantity='mean', operator='>', threshold=-0.01, hard=True, mark=None)
    """
    parts = _GATE.fullmatch(text.strip())
    if parts is None:
        raise StudyError(
            "a gate cannot be read",
            where=where,
            expected="comparison.quantity, one of >= <= > <, a number",
            got=repr(text),
            next="write it as in: replay-against-finetune.ci_low > 0",
        )
    operator = _SAME.get(parts["operator"], parts["operator"])
    return Gate(parts["comparison"], parts["quantity"], operator, float(parts["number"]), hard)


def require_gate(gate: Gate, comparisons: list[str], where: str) -> None:
    """Check that a gate can be decided.

    Raises:
        StudyError: there is no such comparison or quantity, or the quantity cannot reach the number.
    """
    if gate.comparison not in comparisons:
        raise StudyError(
            "a gate names a comparison that the plan does not have, or has as exploratory",
            where=where,
            expected="one of " + ", ".join(comparisons),
            got=repr(gate.comparison),
            next="correct the name, or announce the comparison",
        )
    if gate.quantity not in QUANTITIES:
        raise StudyError(
            "a gate names a quantity that comparisons do not have",
            where=where,
            expected="one of " + ", ".join(QUANTITIES),
            got=repr(gate.quantity),
            next="correct the name",
        )
    low, high = _RANGES.get(QUANTITIES[gate.quantity], (-float("inf"), float("inf")))
    if not low <= gate.threshold <= high:
        raise StudyError(
            "a gate has a number that its quantity cannot reach",
            where=where,
            expected=f"{gate.quantity} is a fraction: a number from {low:g} to {high:g}",
            got=f"{gate.threshold:g}",
            next="two percentage points are written 0.02",
        )
