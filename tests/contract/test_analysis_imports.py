"""The analysing stages start quickly and without the training's libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"torch", "pandas", "matplotlib", "snakemake"}
# The module that does the stage's work, and what it may load only where it computes with it.
STAGES = {
    "metrics": ("palimpsest.metrics._run", {"scipy", "statsmodels"}),
    "aggregate": ("palimpsest.aggregate.study", {"scipy", "statsmodels"}),
    "statistics": ("palimpsest.statistics.study", {"scipy", "statsmodels"}),
    "ledger": ("palimpsest.audit.ledger", {"scipy", "statsmodels", "numpy.random"}),
    "audit": ("palimpsest.audit.ledger", {"scipy", "statsmodels", "numpy.random"}),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_starts_without_libraries_that_it_does_not_need(stage: str) -> None:
    module, lazy = STAGES[stage]
    code = f"import sys, palimpsest.cli.stages.{stage}, {module}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not (HEAVY | lazy) & set(done.stdout.split())
