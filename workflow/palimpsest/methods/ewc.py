"""Elastic weight consolidation: a quadratic penalty on weights that the tasks before need, by their Fisher information.

With `variant: per_task` the penalty is λ/2 Σ_t Σ_i F_{t,i} (θ_i − θ*_{t,i})²: θ*_t are the weights after task t, F_t is
the diagonal of the Fisher information there. With `variant: online` it is λ/2 Σ_i γ F_i (θ_i − θ*_i)², with θ* the
weights after the last task and F = γ F + F_t after each; γ stands in both places, as in Progress & Compress.

F_{t,i} is the mean over n training samples x of the task, drawn without replacement, of (∂ log p(y | x) / ∂θ_i)²,
squared sample by sample (never the square of a mean over a batch). The estimator says which y: `sampled`, one drawn
from the model's own p(y | x); `exact`, all of them, weighted by p(y | x); `empirical`, the sample's label.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.methods import _quadratic as quadratic
from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import Batch, Context, State
from palimpsest.methods._per_sample import draw_samples, log_probability, mean_over_samples

REFERENCE = (
    "J. Kirkpatrick et al., Overcoming catastrophic forgetting in neural networks, PNAS 114 (2017) 3521-3526, "
    "doi:10.1073/pnas.1611835114; online: J. Schwarz et al., Progress & compress, ICML 2018, arXiv:1805.06370"
)
DECLARATION = Declaration(needs_task_boundaries=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `ewc`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    strength: float = Field(
        ge=0, le=1e30, allow_inf_nan=False, description="λ, weight of the penalty.", examples=[30.0]
    )
    fisher_samples: Annotated[int, Field(ge=1)] | Literal["all"] = Field(
        description="Training samples of each task over which the Fisher is estimated.", examples=[200]
    )
    fisher: Literal["sampled", "exact", "empirical"] = Field(
        "sampled",
        description="Labels of the Fisher: drawn from the model, all of them by probability, or the true ones.",
    )
    variant: Literal["per_task", "online"] = Field(
        "per_task", description="A penalty for each task, or one around the last weights."
    )
    decay: float = Field(1.0, ge=0, le=1, description="γ of the online variant: what is left of earlier Fishers.")


def init(context: Context) -> State:
    """No task is remembered."""
    return {"tasks": {}}


def penalty(context: Context, state: State, batch: Batch) -> torch.Tensor | None:
    """λ/2 Σ_t Σ_i F_{t,i} (θ_i − θ*_{t,i})²."""
    told = context.hyperparameters
    strength = told.strength / 2 * (told.decay if told.variant == "online" else 1)
    if not state["tasks"] or strength == 0:
        return None
    remembered = [(task["fisher"], task["weights"]) for task in state["tasks"].values()]
    return strength * quadratic.penalty(context, *remembered)


def after_task(context: Context, state: State) -> State:
    """Remember the weights and their importance for the task just learned."""
    fisher, here = fisher_information(context), quadratic.weights(context)
    if context.hyperparameters.variant == "per_task":
        return {"tasks": {**state["tasks"], str(context.stage): {"fisher": fisher, "weights": here}}}
    before = state["tasks"].get("all", {"fisher": {}, "weights": {}})
    fisher = quadratic.accumulate(before["fisher"], fisher, context.hyperparameters.decay)
    return {"tasks": {"all": {"fisher": fisher, "weights": {**before["weights"], **here}}}}


def fisher_information(context: Context) -> quadratic.Weights:
    """Diagonal Fisher information by parameter name, each in the parameter's shape."""
    draws = context.stream("fisher")
    chosen = draw_samples(context, context.hyperparameters.fisher_samples, draws)
    estimator = context.hyperparameters.fisher
    if estimator == "exact":
        return exact_fisher(context, chosen)
    if estimator == "empirical":
        return mean_over_samples(context, chosen, log_probability, torch.square, chosen.labels)
    uniform = torch.from_numpy(draws.random(len(chosen)))
    return mean_over_samples(context, chosen, _log_probability_of_drawn, torch.square, uniform)


def exact_fisher(context: Context, samples: Batch) -> quadratic.Weights:
    """Mean over samples of Σ_y p(y | x) (∂ log p(y | x) / ∂θ_i)²; labels that the mask hides have p = 0."""
    total = quadratic.zeros(context)
    for label in _possible_labels(context, samples):
        labels = torch.full_like(samples.labels, label)
        total = quadratic.accumulate(
            total, mean_over_samples(context, samples, _weighted_log_probability, torch.square, labels)
        )
    return total


def _possible_labels(context: Context, samples: Batch) -> list[int]:
    if context.mask is None:
        return list(range(context.facts["n_outputs"]))
    return torch.nonzero(context.mask[samples.tasks.unique()].any(dim=0)).flatten().tolist()


def _weighted_log_probability(outputs: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """√p log p, whose squared gradient with p held fixed is p (∂ log p)²."""
    found = log_probability(outputs, label)
    return found.detach().exp().sqrt() * found


def _log_probability_of_drawn(outputs: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    return log_probability(outputs, _draw_label(torch.softmax(outputs.detach(), dim=0).double(), uniform))


def _draw_label(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """A label by inversion of the cumulative distribution `[n_outputs]`, an int64 scalar."""
    cumulative = probabilities.cumsum(dim=0)
    return (uniform * cumulative[-1] >= cumulative).sum().clamp(max=len(probabilities) - 1)
