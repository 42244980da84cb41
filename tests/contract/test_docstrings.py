"""Examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import palimpsest

MODULES = [m.name for m in pkgutil.walk_packages(palimpsest.__path__, "palimpsest.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    """Every example of a module's docstrings gives what it shows."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
