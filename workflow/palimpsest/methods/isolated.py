"""Isolated: each task alone, from fresh weights."""

from palimpsest.methods._declaration import Declaration, NoHyperparameters

REFERENCE = "the single-task reference of transfer and intransigence; see the metrics that use it"
DECLARATION = Declaration(needs_task_boundaries=True, schedule="isolated")
Hyperparameters = NoHyperparameters
