"""What commands on matrices from anywhere share: the references that a user gives, as options."""

from __future__ import annotations

from typing import Annotated

import typer

_EACH = "of each task: a number, numbers separated by commas, or a file of them"

RandomInit = Annotated[str | None, typer.Option(help=f"Accuracy of an untrained model {_EACH}.")]
Isolated = Annotated[str | None, typer.Option(help=f"Accuracy of a model trained on the task alone {_EACH}.")]
Joint = Annotated[
    str | None,
    typer.Option(
        help=f"Accuracy of a model trained on all tasks at once {_EACH}; or a square table whose row k is that of a "
        "model trained on the first k tasks."
    ),
]
NTotal = Annotated[str | None, typer.Option(help="Test samples of each task: numbers separated by commas.")]
Percent = Annotated[bool, typer.Option("--percent", help="All accuracies are percent instead of fractions.")]
