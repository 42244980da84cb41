"""Finetune: plain training on one task after the other, the method without hooks."""

from palimpsest.methods._declaration import Declaration, NoHyperparameters

REFERENCE = (
    "the baseline of the field; M. McCloskey, N. J. Cohen, Psychology of Learning and Motivation 24 (1989) 109-165"
)
DECLARATION = Declaration()
Hyperparameters = NoHyperparameters
