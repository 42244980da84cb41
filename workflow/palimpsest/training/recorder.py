"""What a stage records beside its steps: probes and the stream. No byte of the run depends on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from palimpsest.core.artifact import Job
from palimpsest.data.samples import Data
from palimpsest.methods._hooks import Batch
from palimpsest.methods._method import Method
from palimpsest.plan.probing import Recording, tables_of
from palimpsest.training.checkpoint import lists_of, tensors_of
from palimpsest.training.learner import Learner
from palimpsest.training.predicting import Predictor
from palimpsest.training.prequential import Stream
from palimpsest.training.probes import Probes


class Recorder:
    """Records one stage, at the moments at which the training loop calls.

    Args:
        job: of the stage; writes the tables.
        data: the samples of the study.
        spec, stage: the run's specification, and the stage in it.
        recording: what is to be recorded.
        learner, method: as they are trained; they are left as they are.
        steps_of_epoch: mini-batches of an epoch.
        aside: gives a context; the time in it is that of recording.
    """

    def __init__(
        self,
        job: Job,
        data: Data,
        spec: dict[str, Any],
        stage: dict[str, Any],
        recording: Recording,
        learner: Learner,
        method: Method,
        steps_of_epoch: int,
        aside: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.job, self.learner, self.steps_of_epoch, self.aside = job, learner, steps_of_epoch, aside
        self.recording, self.predictor = recording, Predictor(spec, stage, learner, method)
        made = {
            "probes": lambda: Probes(data, spec, stage, recording["probes"], self.predictor),
            "prequential": lambda: Stream(spec, stage, self.predictor),
        }
        with aside():
            self.parts: dict[str, Any] = {name: made[name]() for name in tables_of(recording)}
        self.seen_before = learner.samples_seen

    @property
    def batch(self) -> int:
        """Mini-batches of the stage that the model was trained on."""
        return self.learner.epoch * self.steps_of_epoch + self.learner.batch

    def before_step(self, batch: Batch) -> None:
        """Before the model is trained on a mini-batch; before the first one the task has begun, and nothing more."""
        self.seen_before = self.learner.samples_seen
        with self.aside():
            if "probes" in self.parts and self.batch == 0:
                self.parts["probes"].take_if_due(0, self.seen_before, self.seen_before)
            if "prequential" in self.parts:
                self.parts["prequential"].predict(batch, self.batch + 1, self.seen_before + len(batch))

    def after_step(self) -> None:
        """After a step."""
        with self.aside():
            if "probes" in self.parts:
                self.parts["probes"].take_if_due(self.batch, self.seen_before, self.learner.samples_seen)

    def content(self) -> dict[str, Any]:
        """What was recorded so far, for a resume file."""
        taken = {name: tensors_of(part.taken) for name, part in self.parts.items()}
        return {"flops": self.predictor.flops, **taken}

    def restore(self, content: dict[str, Any]) -> None:
        """Go on after what a resume file holds."""
        self.predictor.flops = content["flops"]
        for name, part in self.parts.items():
            part.taken = lists_of(content[name])

    def write(self, folder: str, stage: int) -> dict[str, str]:
        """Write what was recorded beside the stage's checkpoint; returns the SHA-256 of each file by its path."""
        paths = {name: f"{folder}/stage-{stage}.{name}.parquet" for name in self.parts}
        return {
            path: self.job.write_table(path, name, self.parts[name].rows(), recorded=self.recording[name])
            for name, path in paths.items()
        }
