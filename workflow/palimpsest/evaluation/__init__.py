"""From checkpoints to the prediction of every test sample, and to the accuracy matrix."""
