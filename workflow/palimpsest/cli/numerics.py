"""The same bits on every processor of a kind, whatever the environment says: threads and vector instructions."""

from __future__ import annotations

import os


def pin_numerics(threads: int) -> None:
    """Set threads and instruction set for torch; must come before torch is first imported
    (`training.exact` does the rest).

    ATen and oneDNN are capped at AVX2, since a processor of another generation would sum in another order. Variables
    that could change either from outside are overwritten.
    """
    os.environ.update(
        OMP_NUM_THREADS=str(threads),
        MKL_NUM_THREADS=str(threads),
        OMP_DYNAMIC="FALSE",
        MKL_DYNAMIC="FALSE",
        ATEN_CPU_CAPABILITY="avx2",
        ONEDNN_MAX_CPU_ISA="AVX2",
        CUDA_VISIBLE_DEVICES="",
    )
