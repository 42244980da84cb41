"""Dark experience replay: stored samples shall have the outputs that they had when they were learned.

The loss is the mean cross-entropy of the new samples plus α · 1/m Σ 1/|O| ‖h(x) − z‖², over m samples x that are drawn
from a reservoir with their stored outputs z. The paper's formula has ‖h(x) − z‖² without 1/|O|; the authors' program,
and so the α that they publish, has the mean over the outputs O, as here. z are the outputs of the forward pass in which
x was trained on first.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from palimpsest.methods import _logits as logits
from palimpsest.methods import _memory as memory
from palimpsest.methods._declaration import Declaration

REFERENCE = logits.REFERENCE
DECLARATION = Declaration(stores_raw_data=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `der`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    buffer_bytes: memory.BufferBytes
    replayed: memory.Replayed
    alpha: logits.Alpha
    logit_type: logits.LogitType = "float32"


check = logits.check
init = logits.init
loss = logits.loss
after_step = logits.after_step
