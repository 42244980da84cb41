"""Gradient episodic memory: a step must not raise the loss on the stored samples of any earlier task.

Each task of the study has the same number of places, which hold its last samples. With g the gradient of the step and
the rows of G those of the mean cross-entropy over each earlier task's memory, g stays as it is if G g ≥ 0. Else it
becomes g + Gᵀ v, where v solves the dual quadratic program min ½ vᵀ G Gᵀ v + (G g)ᵀ v over v ≥ γ, as in the authors'
program (the paper's text adds γ to the solution for γ = 0). With γ = 0 this is the nearest vector x with G x ≥ 0.
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from scipy.optimize import nnls

from palimpsest.methods import _memory as memory
from palimpsest.methods import _projection as projection
from palimpsest.methods import _storage as storage
from palimpsest.methods._declaration import Declaration
from palimpsest.methods._hooks import Batch, Context, Gradients, Loss, State

REFERENCE = "D. Lopez-Paz, M. Ranzato, Gradient episodic memory for continual learning, NeurIPS 2017, arXiv:1706.08840"
DECLARATION = Declaration(stores_raw_data=True, needs_task_boundaries=True)


class Hyperparameters(BaseModel):
    """Hyperparameters of `gem`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    buffer_bytes: memory.BufferBytes
    margin: float = Field(
        0.5, ge=0, le=1e6, allow_inf_nan=False, description="γ, least weight of each earlier task's gradient."
    )


check = projection.check
init = projection.init


def project(context: Context, state: State, gradients: Gradients) -> Gradients:
    """The gradients, changed if they would raise the loss of an earlier task."""
    tasks = projection.earlier(context, state["memory"])
    if not tasks:
        return gradients
    whole = projection.complete(context, gradients)
    batches = [memory.take(context, state["memory"], places) for places in tasks.values()]
    rows = torch.stack([projection.gradient(context, samples, whole) for samples in batches])
    wanted = projection.vector(whole)
    products = rows @ wanted
    if bool((products >= 0).all()):
        return gradients
    if not bool(torch.isfinite(products).all()):
        return projection.unpacked(torch.full_like(wanted, torch.nan), whole)  # ends the run as numerical
    weights = torch.from_numpy(dual(rows.double(), wanted.double(), context.hyperparameters.margin))
    return projection.unpacked(wanted + rows.T @ weights.to(wanted.dtype), whole)


def after_step(context: Context, state: State, batch: Batch, loss: Loss) -> State:
    """Store the new samples in the memory of their task, each once, in the place of the oldest."""
    return {"memory": storage.offer(projection.RULE, context, state["memory"], batch)}


def dual(rows: torch.Tensor, wanted: torch.Tensor, margin: float) -> np.ndarray:
    """The v ≥ γ that minimises ½ ‖Gᵀ v + g‖².

    With v = γ + u this is a least-squares problem in u ≥ 0; the triangular factor of [Gᵀ, g + γ Gᵀ 1] holds all of it
    in as many rows as there are tasks, and one more.

    Args:
        rows: G, `[n_tasks, n_parameters]` float64.
        wanted: g, `[n_parameters]` float64.
        margin: γ.

    Returns:
        `[n_tasks]` float64; not numbers where the solver does not converge, which ends the run as numerical.
    """
    target = wanted + margin * rows.sum(dim=0)
    factor = torch.linalg.qr(torch.cat([rows, target[None]]).T, mode="r").R.numpy()
    try:
        solution, _ = nnls(factor[:, :-1], -factor[:, -1])
    except RuntimeError:  # it did not converge
        return np.full(len(rows), np.nan)
    return solution + margin
