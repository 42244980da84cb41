"""Synaptic intelligence: the importance of a weight is its share in the fall of the loss along the path of training.

Within a task ω_i = −Σ_steps g_i Δθ_i is summed, with g the gradient of the loss without the penalty at the weights
before the step, and Δθ the step. After the task Ω_i grows by ω_i / ((θ_i − θ_i^start)² + ξ). The loss gets
c Σ_i Ω_i (θ_i − θ*_i)²; θ* are the weights after the last task. An Ω_i below 0 counts as 0, as in the authors' program;
it would draw the weight away from θ*_i.
"""

from __future__ import annotations

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


penalty = quadratic.around_last_weights


def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """ω_i falls by g_i Δθ_i."""
    quadratic.follow(context, state, state["path"], state["before"])
    return state


def after_task(context: Context, state: State) -> State:
    """Ω_i grows by ω_i / ((θ_i − θ_i^start)² + ξ)."""
    here, damping = quadratic.weights(context), context.hyperparameters.damping
    new = {n: path / ((here[n] - state["start"][n]).square() + damping) for n, path in state["path"].items()}
    importance = {n: value.clamp(min=0) for n, value in quadratic.accumulate(state["importance"], new).items()}
    return {"importance": importance, "anchor": {**state["anchor"], **here}, "path": {}, "before": {}, "start": {}}
