"""Palimpsest: preregistered continual-learning studies whose every number can be traced back."""

__version__ = "0.1.0"
