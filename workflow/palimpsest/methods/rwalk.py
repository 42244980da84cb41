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
SMALLEST = 1e-8
"""ε of the score."""


class Hyperparameters(BaseModel):
    """Hyperparameters of `rwalk`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    strength: float = Field(ge=0, le=1e30, allow_inf_nan=False, description="λ, weight of the penalty.", examples=[1.0])
    fisher_rate: float = Field(0.9, gt=0, le=1, description="α, weight of the newest batch in the running Fisher.")
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


def penalty(context: Context, state: State, batch: Batch) -> torch.Tensor | None:
    """λ Σ_i (F_i + s_i) (θ_i − θ*_i)²."""
    if not state["importance"] or context.hyperparameters.strength == 0:
        return None
    return context.hyperparameters.strength * quadratic.penalty(context, (state["importance"], state["anchor"]))


def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """Sum up what each weight did; every `interval` steps update Fisher and score."""
    told, now = context.hyperparameters, state["now"]
    gradients = quadratic.own_gradients(context, state["importance"], state["anchor"], now["before"], told.strength)
    here = quadratic.weights(context)
    fall = {n: now["fall"][n] - gradients[n] * (here[n] - now["before"][n]) for n in gradients}
    state = {**state, "now": {**now, "fall": fall, "before": here}}
    due = context.stage_step % told.interval == 0 or context.stage_step == context.n_steps
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
    rate, now = context.hyperparameters.fisher_rate, state["now"]
    newest = mean_over_samples(context, batch, log_probability, torch.square, batch.labels)
    fisher = {n: rate * f + (1 - rate) * state["fisher"][n] if n in state["fisher"] else f for n, f in newest.items()}
    way = {name: (weight - now["start"][name]).square() for name, weight in now["before"].items()}
    score = {
        name: value + now["fall"][name].clamp(min=0) / (fisher[name] * way[name] / 2 + SMALLEST)
        for name, value in now["score"].items()
    }
    start = {name: weight.clone() for name, weight in now["before"].items()}
    now = {**now, "score": score, "start": start, "fall": quadratic.zeros(context)}
    return {**state, "fisher": {**state["fisher"], **fisher}, "now": now}


def _normalised(values: quadratic.Weights) -> quadratic.Weights:
    largest = max((float(value.max()) for value in values.values()), default=0.0)
    return {name: value / largest if largest > 0 else value for name, value in values.items()}
