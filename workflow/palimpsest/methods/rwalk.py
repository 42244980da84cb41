"""Riemannian walk: importance is a running Fisher plus a score of what each weight did for the loss on its way.

Every `interval` steps, and at the last step of a task, for each weight: the Fisher F = α F_batch + (1 − α) F, where
F_batch is the empirical Fisher of the batch (the mean of squared gradients of log p(label), sample by sample); and the
score grows by max(0, ΔL) / (½ F Δθ² + ε), where over the interval Δθ is the way of the weight and ΔL = −Σ g Δθ_step the
fall of the loss that is due to it, g being the gradient without the penalty. After a task the score is averaged with
that of the tasks before. The loss gets λ Σ_i (F_i + s_i) (θ_i − θ*_i)², F and s each divided by its largest value, so
that they weigh alike and λ means the same for every network.
"""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.methods import _quadratic as quadratic
from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import Batch, Context, Loss, State
from palimpsest.methods._per_sample import log_probability, mean_over_samples

REFERENCE = (
    "A. Chaudhry, P. K. Dokania, T. Ajanthan, P. H. S. Torr, Riemannian walk for incremental learning: understanding "
    "forgetting and intransigence, ECCV 2018, arXiv:1801.10112"
)
DECLARATION = Declaration(needs_task_boundaries=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `rwalk`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    strength: float = Field(ge=0, le=1e30, allow_inf_nan=False, description="λ, weight of the penalty.", examples=[1.0])
    fisher_rate: float = Field(0.9, gt=0, le=1, description="α, weight of the newest batch in the running Fisher.")
    damping: float = Field(
        1e-3, gt=0, le=1e30, allow_inf_nan=False, description="ε, which bounds the score of weights that hardly moved."
    )
    interval: int = Field(10, ge=1, description="Steps between two updates of Fisher and score.")


def init(context: Context) -> State:
    """Nothing is important."""
    return {"fisher": {}, "score": {}, "importance": {}, "anchor": {}, "now": {}}


def begin_task(context: Context, state: State) -> State:
    """The path of the task begins here."""
    here = quadratic.weights(context)
    now = {
        "before": here,
        "start": {name: weight.clone() for name, weight in here.items()},
        "fall": quadratic.zeros(context),
        "score": quadratic.zeros(context),
    }
    return {**state, "now": now}


penalty = quadratic.around_last_weights


def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """Sum up what each weight did; every `interval` steps update Fisher and score."""
    now = state["now"]
    quadratic.follow(context, state, now["fall"], now["before"])
    due = context.stage_step % context.hyperparameters.interval == 0 or context.stage_step == context.n_steps
    return _updated(context, state, batch) if due else state


def after_task(context: Context, state: State) -> State:
    """Average the score with that of the tasks before; what is important now is fixed until the next task ends."""
    new, old = state["now"]["score"], state["score"]
    score = {name: (value + old[name]) / 2 if name in old else value for name, value in new.items()}
    kept = {**old, **score}
    importance = quadratic.accumulate(_normalised(state["fisher"]), _normalised(kept))
    anchor = {**state["anchor"], **quadratic.weights(context)}
    return {"fisher": state["fisher"], "score": kept, "importance": importance, "anchor": anchor, "now": {}}


def _updated(context: Context, state: State, batch: Batch) -> State:
    told, now = context.hyperparameters, state["now"]
    rate, old = told.fisher_rate, state["fisher"]
    newest = mean_over_samples(context, batch, log_probability, torch.square, batch.labels)
    fisher = {n: rate * f + (1 - rate) * old[n] if n in old else f for n, f in newest.items()}
    for name, start in now["start"].items():
        here, fall = now["before"][name], now["fall"][name]
        distance = fisher[name] * (here - start).square() / 2 + told.damping
        now["score"][name] += fall.clamp(min=0) / distance
        start.copy_(here)
        fall.zero_()
    return {**state, "fisher": {**old, **fisher}}


def _normalised(values: quadratic.Weights) -> quadratic.Weights:
    largest = max((float(value.max()) for value in values.values()), default=0.0)
    return {name: value / largest if largest > 0 else value for name, value in values.items()}
