"""Memory aware synapses: a weight is important where the learned function is sensitive to it; labels play no part.

After a task Ω_i = γ Ω_i + 1/n Σ_x |∂ ‖f(x)‖² / ∂θ_i| over n of its training samples, sample by sample, where f(x) are
the outputs before softmax that the training mask shows. The loss gets λ Σ_i Ω_i (θ_i − θ*_i)²; θ* are the weights after
the last task. With γ = 1 importance adds up over tasks.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.methods import _quadratic as quadratic
from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import Context, State
from palimpsest.methods._per_sample import draw_samples, mean_over_samples

REFERENCE = (
    "R. Aljundi, F. Babiloni, M. Elhoseiny, M. Rohrbach, T. Tuytelaars, Memory aware synapses: learning what (not) to "
    "forget, ECCV 2018, arXiv:1711.09601"
)
DECLARATION = Declaration(needs_task_boundaries=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `mas`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    strength: float = Field(ge=0, le=1e30, allow_inf_nan=False, description="λ, weight of the penalty.", examples=[1.0])
    samples: Annotated[int, Field(ge=1)] | Literal["all"] = Field(
        description="Training samples of each task over which importance is estimated.", examples=[200]
    )
    decay: float = Field(1.0, ge=0, le=1, description="γ, what is left of earlier importance after each task.")


def init(context: Context) -> State:
    """Nothing is important."""
    return {"importance": {}, "anchor": {}}


penalty = quadratic.around_last_weights


def after_task(context: Context, state: State) -> State:
    """Add the importance for the task just learned."""
    chosen = draw_samples(context, context.hyperparameters.samples, context.stream("importance"))
    new = mean_over_samples(context, chosen, _squared_norm, torch.abs)
    importance = quadratic.accumulate(state["importance"], new, context.hyperparameters.decay)
    return {"importance": importance, "anchor": {**state["anchor"], **quadratic.weights(context)}}


def _squared_norm(outputs: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isfinite(outputs), outputs, 0).square().sum()
