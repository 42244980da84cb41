"""Synaptic intelligence: the importance of a weight is its share in the fall of the loss along the path of training.

Within a task ω_i = −Σ_steps g_i Δθ_i is summed, with g the gradient of the loss without the penalty at the weights
before the step, and Δθ the step. After the task Ω_i grows by ω_i / ((θ_i − θ_i^start)² + ξ). The loss gets
c Σ_i Ω_i (θ_i − θ*_i)²; θ* are the weights after the last task. Sums ω below 0 stay as they are, as in the paper.
"""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.methods import _quadratic as quadratic
from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import Batch, Context, Loss, State

REFERENCE = "F. Zenke, B. Poole, S. Ganguli, Continual learning through synaptic intelligence, ICML 2017"
DECLARATION = Declaration(needs_task_boundaries=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `si`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    strength: float = Field(ge=0, le=1e30, allow_inf_nan=False, description="c, weight of the penalty.", examples=[0.1])
    damping: float = Field(
        0.1,
        gt=0,
        le=1e30,
        allow_inf_nan=False,
        description="ξ, which bounds the importance of weights that stayed.",
    )


def init(context: Context) -> State:
    """Nothing is important."""
    return {"importance": {}, "anchor": {}, "path": {}, "before": {}, "start": {}}


def begin_task(context: Context, state: State) -> State:
    """The path of the task begins here."""
    here = quadratic.weights(context)
    return {**state, "path": quadratic.zeros(context), "before": here, "start": {n: w.clone() for n, w in here.items()}}


def penalty(context: Context, state: State, batch: Batch) -> torch.Tensor | None:
    """c Σ_i Ω_i (θ_i − θ*_i)²."""
    if not state["importance"] or context.hyperparameters.strength == 0:
        return None
    return context.hyperparameters.strength * quadratic.penalty(context, (state["importance"], state["anchor"]))


def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """ω_i falls by g_i Δθ_i."""
    strength = context.hyperparameters.strength
    gradients = quadratic.own_gradients(context, state["importance"], state["anchor"], state["before"], strength)
    here = quadratic.weights(context)
    path = {n: state["path"][n] - gradients[n] * (here[n] - state["before"][n]) for n in gradients}
    return {**state, "path": path, "before": here}


def after_task(context: Context, state: State) -> State:
    """Ω_i grows by ω_i / ((θ_i − θ_i^start)² + ξ)."""
    here, damping = quadratic.weights(context), context.hyperparameters.damping
    new = {n: path / ((here[n] - state["start"][n]).square() + damping) for n, path in state["path"].items()}
    importance = quadratic.accumulate(state["importance"], new)
    return {"importance": importance, "anchor": {**state["anchor"], **here}, "path": {}, "before": {}, "start": {}}
