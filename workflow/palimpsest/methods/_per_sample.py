"""Gradients sample by sample: what importance is made of, and never the square of a mean over a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch.func import functional_call, grad, vmap

from palimpsest.methods._hooks import Batch, Context, scale

CHUNK = 50
"""Samples whose gradients are held at once."""


def draw_samples(context: Context, count: int | Literal["all"], draws: np.random.Generator) -> Batch:
    """Training samples of the stage, drawn without replacement: so many, as far as there are so many, or all."""
    size = context.n_samples if count == "all" else min(count, context.n_samples)
    return context.samples(draws.choice(context.n_samples, size=size, replace=False))


def mean_over_samples(
    context: Context,
    samples: Batch,
    function: Callable[..., torch.Tensor],
    transform: Callable[[torch.Tensor], torch.Tensor],
    *extra: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """1/n Σ_x transform(∂ function(outputs(x), …) / ∂θ), with the model as in a test.

    Args:
        context: its model is left as it is.
        samples: the n samples x.
        function: of the visible outputs of one sample, `[n_outputs]`, and its row of each of `extra`; gives a scalar.
        transform: elementwise, such as the square.
        extra: `[n, …]` each.

    Returns:
        By name of each parameter that is trained, in its shape.
    """
    parameters = {name: p.detach() for name, p in context.model.named_parameters() if p.requires_grad}
    total = {name: torch.zeros_like(p) for name, p in parameters.items()}
    with context.evaluating():
        # One task at a time: which layers of a head take part must not depend on the sample.
        for task in samples.tasks.unique():
            (rows,) = torch.nonzero(samples.tasks == task, as_tuple=True)
            of_each = _of_each(context, task[None], function, 1 + len(extra))
            for part in rows.split(CHUNK):
                for name, gradients in of_each(parameters, samples.inputs[part], *(e[part] for e in extra)).items():
                    total[name] += transform(gradients).sum(dim=0)
    return {name: value / len(samples) for name, value in total.items()}


def _of_each(context: Context, task: torch.Tensor, function: Callable[..., torch.Tensor], n_batched: int) -> Callable:
    buffers = dict(context.model.named_buffers())

    def of_one(parameters: dict, inputs: torch.Tensor, *extra: torch.Tensor) -> torch.Tensor:
        outputs = functional_call(context.model, (parameters, buffers), (scale(inputs[None]), task))
        return function(context.visible(outputs, task)[0], *extra)

    return vmap(grad(of_one), in_dims=(None, *[0] * n_batched))


def log_probability(outputs: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """log p(label | x) of one sample, from its visible outputs `[n_outputs]`."""
    return torch.log_softmax(outputs, dim=0).gather(0, label[None])[0]
