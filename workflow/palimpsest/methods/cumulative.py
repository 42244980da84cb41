"""Cumulative: each stage trains on all tasks so far, from the weights of the stage before."""

from palimpsest.methods._declaration import Declaration, NoHyperparameters

REFERENCE = (
    "V. Lomonaco et al., Avalanche: an end-to-end library for continual learning, CVPR workshops 2021, "
    "arXiv:2104.00405 (the strategy of this name)"
)
DECLARATION = Declaration(stores_raw_data=True, needs_task_boundaries=True, pairing="init", schedule="cumulative")
Hyperparameters = NoHyperparameters
