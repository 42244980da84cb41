"""What a run came to, from the records of its stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def outcome_of(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of the table `outcome`: `{status, stage, step, reason}`.

    The first stage that ended counts, wherever it stands: those of a reference may be independent of one another. A run
    without one is complete; its reason tells which of its stages stopped early as the plan declares, and is null where
    none did.

    Args:
        records: of all stages, in order.

    >>> first = {"status": "complete", "stage": 1, "step": 9, "reason": "early_stop: …", "ended_in": None}
    >>> outcome_of([first, {**first, "stage": 2, "step": 20, "reason": None}])["reason"]
    'early_stop: stage 1 of 2'
    """
    end = next((record for record in records if record["status"] == "ended"), records[-1])
    row = {"status": end["status"], "stage": end["ended_in"] or end["stage"], "step": end["step"]}
    if end["status"] == "ended":
        return row | {"reason": end["reason"]}
    stopped = [str(record["stage"]) for record in records if record["reason"] is not None]
    told = f"early_stop: stage {', '.join(stopped)} of {len(records)}" if stopped else None
    return row | {"reason": told}
