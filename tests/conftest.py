"""What is no test: programs that measure, run by hand (docs/benchmarks.md). And what several tests start from."""

from __future__ import annotations

from pathlib import Path

import pytest

collect_ignore = ["benchmarks"]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a small study that was really trained; a test that changes something takes a copy."""
    import finished_study

    return finished_study.finish(tmp_path_factory.mktemp("finished"))
