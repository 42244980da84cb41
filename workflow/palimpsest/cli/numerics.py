"""The same bits on every processor of a kind, whatever the environment says: threads and vector instructions."""

from __future__ import annotations

import os

from palimpsest.training.machine import Kind, kind_of_machine

_ONEDNN = {"avx2": "AVX2", "default": "SSE41"}
"""What oneDNN calls the instructions that ATen calls so."""


def pin_numerics(threads: int) -> Kind:
    """Set threads and instruction set for torch; must come before torch is first imported
    (`training.exact` does the rest).

    ATen and oneDNN are capped at AVX2, since a processor of another generation would sum in another order. Variables
    that could change either from outside are overwritten, but for one: `ATEN_CPU_CAPABILITY=default` caps both at what
    every x86-64 processor has, and makes another kind of machine.

    Returns:
        The kind that this machine is now.
    """
    asked = os.environ.get("ATEN_CPU_CAPABILITY", "").lower()
    instructions = "default" if asked == "default" else "avx2"
    os.environ.update(
        OMP_NUM_THREADS=str(threads),
        MKL_NUM_THREADS=str(threads),
        OMP_DYNAMIC="FALSE",
        MKL_DYNAMIC="FALSE",
        ATEN_CPU_CAPABILITY=instructions,
        ONEDNN_MAX_CPU_ISA=_ONEDNN[instructions],
        CUDA_VISIBLE_DEVICES="",
    )
    return kind_of_machine(threads, instructions)
