"""What a metric's file says of the metric, for whoever prints its values."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import cache

from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import Direction, Elsewhere, Index


@dataclass(frozen=True)
class Description:
    """A metric in words.

    Args:
        name: as in the tables.
        label: in words.
        definition: formula, divisor, range, direction and remarks: the function's docstring without shapes and example.
        reference: where the formula comes from.
        direction: which values are better.
        is_accuracy: printed in percent; if not, it is a difference of accuracies, in percentage points.
        index: what its values run over.
        elsewhere: what published programs compute under this name or one that is taken for it, and what else they
            compute with the same values.
    """

    name: str
    label: str
    definition: str
    reference: str
    direction: Direction
    is_accuracy: bool
    index: Index | None
    elsewhere: tuple[Elsewhere, ...]


def describe(name: str) -> Description:
    """The description of a metric, taken from its file.

    Raises:
        StudyError: there is no such metric.

    >>> describe("backward_transfer").label
    'backward transfer'
    """
    module = METRICS.load(name, "metrics")
    metric = module.METRIC
    prose = re.split("Returns:|>>>", inspect.getdoc(getattr(module, name)))[0]
    return Description(
        name=name,
        label=metric.label or name.replace("_", " "),
        definition=" ".join(prose.replace("`", "").split()),
        reference=module.REFERENCE,
        direction=metric.direction,
        is_accuracy=metric.is_accuracy,
        index=metric.index,
        elsewhere=_elsewhere(name),
    )


@cache
def facts() -> tuple[tuple[str, Elsewhere], ...]:
    """What is known of other programs: every fact with the metric in whose file it stands."""
    modules = {name: METRICS.load(name, "metrics") for name in METRICS.names()}
    return tuple((name, fact) for name, module in modules.items() for fact in getattr(module, "ELSEWHERE", ()))


def _elsewhere(name: str) -> tuple[Elsewhere, ...]:
    own = [fact for metric, fact in facts() if metric == name]
    return (*own, *(fact for metric, fact in facts() if metric != name and fact.ours == name))
