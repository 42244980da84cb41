"""What torch is told before it computes anything that must come out the same again."""

from __future__ import annotations

import torch


def be_exact(threads: int) -> None:
    """Use this many threads and deterministic algorithms only; `cli.numerics` set the environment before."""
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
