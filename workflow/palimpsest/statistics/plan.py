"""The analysis plan: which comparisons were announced, and by which rules they are decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from palimpsest.core.errors import StudyError

Alternative = Literal["two-sided", "greater", "less"]
Role = Literal["primary", "secondary", "exploratory"]
# What can be carried out; a plan that asks for something else is refused rather than analysed in another way.
RULES = {"test": "paired_t", "correction": "holm", "failed_runs": "bounds"}


@dataclass(frozen=True)
class Comparison:
    """One announced comparison of two methods, A − B.

    Args:
        name: what it is called in tables and gates.
        role: `primary`, `secondary` or `exploratory`.
        a, b: labels of the methods.
        metric, index, protocol: which value of each run is compared.
        alternative: of A − B, in the metric's own direction.
        mark: why it is exploratory for good, whatever its role.
    """

    name: str
    role: Role
    a: str
    b: str
    metric: str
    index: int | None
    protocol: str
    alternative: Alternative
    mark: str | None = None


@dataclass(frozen=True)
class Analysis:
    """The analysis plan.

    Args:
        alpha: error rate of the primary comparison, and of the family of the secondary ones.
        equivalence_margin: δ, a fraction; None where no equivalence was announced.
        comparisons: the primary one first, the exploratory ones last.
    """

    alpha: float
    equivalence_margin: float | None
    comparisons: tuple[Comparison, ...]

    @property
    def n_secondary(self) -> int:
        """Size of the family of secondary comparisons, as announced."""
        return sum(comparison.role == "secondary" for comparison in self.comparisons)


def read_analysis(content: Mapping[str, Any], marks: Mapping[str, Any]) -> Analysis:
    """The plan from plain content, as the lock holds it.

    Args:
        content: the section of the study.
        marks: what of it is exploratory for good (`plan.marks`). A comparison that was added when results existed has
            the role `exploratory`, whichever it was given.

    Raises:
        StudyError: the plan asks for a rule that is not carried out here, or is not well formed.
    """
    for field, rule in RULES.items():
        _require(content[field] == rule, field, repr(rule), repr(content[field]))
    alpha, margin = content["alpha"], content["equivalence_margin"]
    _require(0 < alpha < 1, "alpha", "a number between 0 and 1", str(alpha))
    _require(margin is None or 0 < margin <= 1, "equivalence_margin", "a fraction above 0, or null", str(margin))
    announced = [("primary", content["primary"])]
    announced += [("secondary", comparison) for comparison in content["secondary"]]
    announced += [("exploratory", comparison) for comparison in content.get("exploratory", [])]
    late, reasons = marks["late"], marks["comparisons"]
    made = [
        Comparison(role="exploratory" if about["name"] in late else role, **about, mark=reasons.get(about["name"]))
        for role, about in announced
    ]
    comparisons = tuple(sorted(made, key=lambda comparison: comparison.role == "exploratory"))
    names = [comparison.name for comparison in comparisons]
    _require(len(set(names)) == len(names), "name", "another name for each comparison", ", ".join(names))
    for comparison in comparisons:
        known = comparison.alternative in get_args(Alternative)
        _require(known, f"{comparison.name}.alternative", " or ".join(get_args(Alternative)), comparison.alternative)
    return Analysis(alpha, margin, comparisons)


def _require(condition: bool, field: str, expected: str, got: str) -> None:
    if not condition:
        raise StudyError(
            "the analysis plan cannot be carried out",
            where=f"analysis.{field}",
            expected=expected,
            got=got,
            next="correct the study file and lock it again",
        )
