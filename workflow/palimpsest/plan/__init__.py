"""From the study file to the grid of runs: validation, task orders, the lock, what each run is told."""
