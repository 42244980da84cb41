"""Random init: the untrained model, the baseline of forward transfer."""

from palimpsest.methods._declaration import Declaration, NoHyperparameters

REFERENCE = "D. Lopez-Paz, M. Ranzato, Gradient episodic memory for continual learning, NeurIPS 2017, section 2"
DECLARATION = Declaration(schedule="untrained")
Hyperparameters = NoHyperparameters
