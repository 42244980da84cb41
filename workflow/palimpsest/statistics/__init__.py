"""Preregistered comparisons: pairs, tests, verdicts, and how much the order of the tasks matters."""
