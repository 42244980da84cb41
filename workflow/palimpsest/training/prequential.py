"""The stream: each mini-batch is predicted before it is trained on, as far as its samples come for the first time."""

from __future__ import annotations

import math
from typing import Any

from palimpsest.core.tables import TABLES
from palimpsest.methods._hooks import Batch
from palimpsest.training.predicting import Predictor


class Stream:
    """What was predicted of the mini-batches of one stage, under the study's own protocol.

    Args:
        spec, stage: the run's specification, and the stage in it.
        predictor: predicts with the run's model.
    """

    def __init__(self, spec: dict[str, Any], stage: dict[str, Any], predictor: Predictor) -> None:
        self.stage, self.protocol, self.predictor = stage["stage"], spec["protocol"], predictor
        self.taken: dict[str, list[Any]] = {name: [] for name in COLUMNS}

    def predict(self, batch: Batch, number: int, samples_seen: int) -> None:
        """Predict the new samples of a mini-batch, if it has any.

        Args:
            batch: about to be trained on.
            number: of the mini-batch in its stage, from 1.
            samples_seen: that the run will have seen with it.
        """
        new = batch[batch.first_presentation]
        if not len(new):
            return
        choice = self.predictor(new.inputs, new.labels, new.tasks)[self.protocol]
        for name, value in zip(COLUMNS, (number, samples_seen, *choice.counts(new.labels.numpy())), strict=True):
            self.taken[name].append(value)

    def rows(self) -> dict[str, list[Any]]:
        """Columns of the table `prequential`."""
        losses = [None if math.isnan(loss) else loss for loss in self.taken["loss_sum"]]
        return {"stage": [self.stage] * len(losses), **self.taken, "loss_sum": losses}


COLUMNS = tuple(name for name in TABLES["prequential"].schema.names if name != "stage")
