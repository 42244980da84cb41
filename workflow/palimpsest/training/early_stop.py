"""A declared early stop: after each epoch of a stage, on validation samples of the tasks that it trains on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from palimpsest.data.samples import Data
from palimpsest.methods._method import Method
from palimpsest.training.learner import Learner
from palimpsest.training.predicting import Predictor
from palimpsest.training.probes import HeldOut, held_out


class EarlyStop:
    """The rule at work in one stage. It predicts in evaluation mode and leaves the run as it is.

    Args:
        data: the samples of the study.
        spec, stage: the run's specification, and the stage in it.
        learner, method: as they are trained.

    Attributes:
        values: what was measured after each epoch.
        flops: of all that was predicted for it.
    """

    def __init__(
        self, data: Data, spec: dict[str, Any], stage: dict[str, Any], learner: Learner, method: Method
    ) -> None:
        self.rule, self.protocol = spec["training"].get("early_stop"), spec["protocol"]
        self.size, self.learner = spec["numerics"]["evaluation_batch_size"], learner
        self.predictor = Predictor(spec, stage, learner, method)
        section = {"split": "validation", "samples": None}
        self.held_out: list[HeldOut] = (
            list(held_out(data, spec, stage["tasks"], section).values()) if self.rule is not None else []
        )
        self.values: list[float] = []

    @property
    def flops(self) -> int:
        """FLOPs of all predictions."""
        return self.predictor.flops

    def after_epoch(self) -> str | None:
        """Measure, and say why the stage stops here, or null."""
        if self.rule is None:
            return None
        self.values.append(self._measure())
        waited, best, at = waiting(self.values, self.rule)
        if waited < self.rule["patience"]:
            return None
        moved = "fallen" if self.rule["on"] == "loss" else "risen"
        return (
            f"early_stop: validation {self.rule['on']} has not {moved} by more than {self.rule['min_delta']:g} for "
            f"{waited} epochs (best {best:.6g} after epoch {at}); stopped after epoch {len(self.values)}, "
            f"step {self.learner.step}"
        )

    def content(self) -> dict[str, Any]:
        """What was measured so far, for a resume file."""
        return {"values": list(self.values), "flops": self.flops}

    def restore(self, content: dict[str, Any]) -> None:
        """Go on after what a resume file holds."""
        self.values, self.predictor.flops = content["values"], content["flops"]

    def _measure(self) -> float:
        found = [
            samples.predict(self.predictor, self.size)[self.protocol].counts(samples.labels)
            for samples in self.held_out
        ]
        n_correct, n_total, loss_sum = (math.fsum(column) for column in zip(*found, strict=True))
        return (n_correct if self.rule["on"] == "accuracy" else loss_sum) / n_total


def waiting(values: Sequence[float], rule: dict[str, Any]) -> tuple[int, float, int]:
    """Epochs since the last improvement, the best value and the epoch of it, from 1. NaN is no improvement.

    >>> waiting([0.9, 0.5, 0.45, 0.46], {"on": "loss", "min_delta": 0.1})
    (2, 0.5, 2)
    >>> waiting([0.5, 0.6, 0.6], {"on": "accuracy", "min_delta": 0.0})
    (1, 0.6, 2)
    """
    sign = -1.0 if rule["on"] == "loss" else 1.0
    best, at = -math.inf, 0
    for epoch, value in enumerate(values, start=1):
        if sign * value > best + rule["min_delta"]:
            best, at = sign * value, epoch
    return len(values) - at, sign * best, at
