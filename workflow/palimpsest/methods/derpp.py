"""DER++: dark experience replay, and the labels of stored samples beside their outputs.

The loss is that of `der` plus β times the mean cross-entropy of other stored samples, from a draw of its own, which may
have samples in common with the first one.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from palimpsest.methods import _logits as logits
from palimpsest.methods import _memory as memory
from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import Batch, Context, Loss, State

REFERENCE = logits.REFERENCE
DECLARATION = Declaration(stores_raw_data=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `derpp`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    buffer_bytes: memory.BufferBytes
    replayed: memory.Replayed
    alpha: logits.Alpha
    beta: float = Field(
        ge=0,
        le=1e30,
        allow_inf_nan=False,
        description="β, weight of the cross-entropy of the stored samples.",
        examples=[0.5],
    )
    logit_type: logits.LogitType = "float32"


check = logits.check
init = logits.init
after_step = logits.after_step


def loss(context: Context, state: State, batch: Batch) -> Loss:
    """The loss of `der`, and β times the cross-entropy of stored samples."""
    found, kept, chosen = logits.loss(context, state, batch), state["memory"], context.hyperparameters
    drawn = memory.draw(context, kept, chosen.replayed, "draw for labels")
    if chosen.beta == 0 or len(drawn) == 0:
        return found
    of_labels = chosen.beta * context.cross_entropy(memory.take(context, kept, drawn))
    return replace(found, value=found.value + of_labels, replayed=found.replayed + len(drawn))
