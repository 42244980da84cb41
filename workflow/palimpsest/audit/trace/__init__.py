"""From a number back to what it came from: runs, stages, cells, predictions, samples, checkpoints, program, data."""
