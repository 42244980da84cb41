"""Elastic weight consolidation, with one quadratic penalty for each learned task.

The penalty is λ/2 Σ_t Σ_i F_{t,i} (θ_i − θ*_{t,i})²: θ*_t are the weights after task t, F_t is the diagonal of the
Fisher information there. Estimator `sampled`: n training samples of the task are drawn without replacement, and for
each one label y from the model's own prediction p(y | x); F_{t,i} is the mean of (∂ log p(y | x) / ∂θ_i)², squared
sample by sample (never the square of a mean over a batch).
"""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, Field

from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import Batch, Context, State
from palimpsest.methods._per_sample import mean_over_samples

REFERENCE = (
    "J. Kirkpatrick et al., Overcoming catastrophic forgetting in neural networks, PNAS 114 (2017) 3521-3526, "
    "doi:10.1073/pnas.1611835114"
)
DECLARATION = Declaration(needs_task_boundaries=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `ewc`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    strength: float = Field(
        ge=0, le=1e30, allow_inf_nan=False, description="λ, weight of the penalty.", examples=[30.0]
    )
    fisher_samples: int = Field(
        ge=1, description="Training samples over which the Fisher is estimated.", examples=[200]
    )


def init(context: Context) -> State:
    """No task is remembered."""
    return {"tasks": {}}


def penalty(context: Context, state: State, batch: Batch) -> torch.Tensor | None:
    """λ/2 Σ_t Σ_i F_{t,i} (θ_i − θ*_{t,i})²."""
    if not state["tasks"] or context.hyperparameters.strength == 0:
        return None
    parameters = dict(context.model.named_parameters())
    terms = [
        (task["fisher"][name] * (parameters[name] - task["weights"][name]).square()).sum()
        for task in state["tasks"].values()
        for name in task["fisher"]
    ]
    return context.hyperparameters.strength / 2 * torch.stack(terms).sum()


def after_task(context: Context, state: State) -> State:
    """Remember the weights and their importance for the task just learned."""
    remembered = {
        "fisher": sampled_fisher(context),
        "weights": {name: p.detach().clone() for name, p in context.model.named_parameters()},
    }
    return {"tasks": {**state["tasks"], str(context.stage): remembered}}


def sampled_fisher(context: Context) -> dict[str, torch.Tensor]:
    """Diagonal Fisher information by parameter name, each in the parameter's shape."""
    draws = context.stream("fisher")
    count = min(context.hyperparameters.fisher_samples, context.n_samples)
    chosen = context.samples(draws.choice(context.n_samples, size=count, replace=False))
    with torch.no_grad(), context.evaluating():
        outputs = context.outputs(chosen.inputs, chosen.tasks)
    probabilities = torch.softmax(context.visible(outputs, chosen.tasks), dim=1).double()
    labels = _draw_labels(probabilities, torch.from_numpy(draws.random(count)))
    return mean_over_samples(context, chosen, _log_probability, torch.square, labels)


def _log_probability(outputs: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(outputs, dim=0).gather(0, label[None])[0]


def _draw_labels(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """One label for each row by inversion of the cumulative distribution, `[sample]` int64."""
    cumulative = probabilities.cumsum(dim=1)
    drawn = (uniform[:, None] * cumulative[:, -1:] >= cumulative).sum(dim=1)
    return drawn.clamp(max=probabilities.shape[1] - 1)
