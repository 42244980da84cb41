"""How far a finding carries: confirmed over several orders and seeds, on a single one, or explored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNDECIDED = (None, "inconclusive", "not shown better", "not shown worse")


def evidence_level(row: Mapping[str, Any], n_orders: int, n_seeds: int) -> str:
    """The evidence level of a comparison's verdict.

    `confirmed on several orders and seeds`, `confirmed on a single order` (or `seed`, or `order and seed`),
    `exploratory, …` likewise where the verdict is not confirmatory, and `open` where there is nothing to confirm.

    Args:
        row: of the table `comparisons`.
        n_orders, n_seeds: of the complete pairs.

    >>> evidence_level({"verdict": "better", "confirmatory": True}, n_orders=1, n_seeds=5)
    'confirmed on a single order'
    """
    if row["verdict"] in UNDECIDED:
        return "open"
    single = [name for name, n in (("order", n_orders), ("seed", n_seeds)) if n < 2]
    scope = f"on a single {' and '.join(single)}" if single else "on several orders and seeds"
    return f"confirmed {scope}" if row["confirmatory"] else f"exploratory, {scope}"
