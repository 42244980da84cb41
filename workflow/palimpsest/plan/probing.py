"""When a stage is probed: after which of its mini-batches, counted from 0 on over its epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Recording = dict[str, Any]
"""What a run records beside its steps, `{probes, prequential}`: the study's section of the name (or null), and a bool.
It changes no other byte of the run, and so is no part of its specification."""
NOTHING: Recording = {"probes": None, "prequential": False}
RECORDED = tuple(NOTHING)
"""Tables that a stage has beside its steps, if it was to record them."""


def tables_of(recording: Recording) -> list[str]:
    """Names of the tables that a run records beside its steps."""
    return [name for name in RECORDED if recording[name]]


def is_due(probes: Mapping[str, Any], batch: int, before: int, seen: int) -> bool:
    """Whether a probe is due.

    Args:
        probes: the study's section.
        batch: mini-batches of the stage that the model was trained on.
        before, seen: samples that the run had seen before the last of them, and with it.

    >>> section = {"first_batches": 2, "log": True, "every": 10, "held_out_every": None}
    >>> [batch for batch in range(22) if is_due(section, batch, 0, 0)]
    [0, 1, 2, 4, 8, 10, 16, 20]
    >>> section = {"first_batches": None, "log": False, "every": None, "held_out_every": 25}
    >>> [seen for seen in range(0, 110, 10) if is_due(section, 0, max(seen - 10, 0), seen)]
    [0, 30, 50, 80, 100]
    """
    first, every, interval = probes["first_batches"], probes["every"], probes["held_out_every"]
    return (
        (first is not None and batch <= first)
        or (probes["log"] and batch & (batch - 1) == 0)
        or (every is not None and batch % every == 0)
        or (interval is not None and (seen == 0 or seen // interval > before // interval))
    )


def probed_batches(probes: Mapping[str, Any], n_batches: int) -> list[int]:
    """Numbers of mini-batches, up to `n_batches`, after which every stage is probed that has so many."""
    of_every_stage = {**probes, "held_out_every": None}
    return [batch for batch in range(n_batches + 1) if is_due(of_every_stage, batch, 0, 0)]
