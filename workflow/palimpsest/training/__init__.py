"""The training loop, its checkpoints, and the job that runs the stages of one run."""
