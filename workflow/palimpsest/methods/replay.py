"""Experience replay: a reservoir of past samples; each step trains on new and on stored ones together.

With n new samples and m drawn from the reservoir without replacement, the loss is the mean cross-entropy over the
n + m. After the step, each new sample at its first presentation enters the reservoir by Vitter's algorithm R: sample
number i of the stream takes a place with probability C / i, so that all samples so far are stored with equal chance.
"""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.methods._declaration import Declaration, Facts, HyperparameterError
from palimpsest.methods._hooks import Batch, Context, Loss, State

REFERENCE = (
    "A. Chaudhry et al., On tiny episodic memories in continual learning, arXiv:1902.10486 (2019), with reservoir "
    "sampling; J. S. Vitter, Random sampling with a reservoir, ACM TOMS 11 (1985) 37-57"
)
DECLARATION = Declaration(stores_raw_data=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `replay`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    buffer_bytes: int = Field(
        ge=0,
        description="Memory for stored samples, in bytes: each costs its input as stored and its label. 0 stores none.",
        examples=[157000],
    )
    replayed: int = Field(
        ge=1, description="Stored samples added to each step, as far as there are so many.", examples=[10]
    )


def capacity(hyperparameters: Hyperparameters, facts: Facts) -> int:
    """Number of samples that the budget holds."""
    return hyperparameters.buffer_bytes // (facts["sample_bytes"] + facts["label_bytes"])


def check(hyperparameters: Hyperparameters, facts: Facts) -> None:
    """Refuse a budget that pays for no sample.

    Raises:
        HyperparameterError: the buffer has more than 0 bytes and holds nothing.
    """
    if hyperparameters.buffer_bytes and not capacity(hyperparameters, facts):
        cost = facts["sample_bytes"] + facts["label_bytes"]
        raise HyperparameterError("buffer_bytes", f"0 for no buffer, or at least {cost} bytes, the size of one sample")


def init(context: Context) -> State:
    """An empty reservoir."""
    places = capacity(context.hyperparameters, context.facts)
    label_type = torch.uint8 if context.facts["label_bytes"] == 1 else torch.int16
    return {
        "inputs": torch.zeros((places, *context.facts["shape"]), dtype=torch.uint8),
        "labels": torch.zeros(places, dtype=label_type),
        "stored": 0,
        "seen": 0,
    }


def loss(context: Context, state: State, batch: Batch) -> Loss:
    """Mean cross-entropy over the new samples and those drawn from the reservoir."""
    count = min(context.hyperparameters.replayed, state["stored"])
    if count == 0:
        return Loss(context.cross_entropy(batch.inputs, batch.labels))
    drawn = torch.from_numpy(context.stream("draw").choice(state["stored"], size=count, replace=False))
    inputs = torch.cat([batch.inputs, state["inputs"][drawn]])
    labels = torch.cat([batch.labels, state["labels"][drawn].long()])
    return Loss(context.cross_entropy(inputs, labels), replayed=count)


def after_step(context: Context, state: State, batch: Batch) -> State:
    """Offer the new samples to the reservoir, each once."""
    places = len(state["labels"])
    if not batch.first_presentation or places == 0:
        return state
    stored, seen = state["stored"], state["seen"]
    # One number for each sample, whether it is needed or not: draws do not depend on what happened before.
    numbers = context.stream("store").integers(0, seen + 1 + torch.arange(len(batch)).numpy())
    for index, number in enumerate(numbers.tolist()):
        place = stored if stored < places else number
        if place < places:
            state["inputs"][place] = batch.inputs[index]
            state["labels"][place] = batch.labels[index]
        stored = min(stored + 1, places)
    return {**state, "stored": stored, "seen": seen + len(batch)}
