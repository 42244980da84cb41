"""One kind of machine: numbers that are equal to the last bit need the same kind of processor and program."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

Kind = dict[str, str | int]


def kind_of_machine(threads: int, at_most: str = "avx2") -> Kind:
    """What decides the bits of a sum: processor vendor, instruction set in use, torch version, threads.

    Vector instructions are capped at AVX2 (`cli.numerics`), so processors of one vendor that have it are one kind.

    Args:
        threads: of one training job.
        at_most: the cap, `avx2` or `default`: what every x86-64 processor has.
    """
    fields = _processor()
    has_avx2 = "avx2" in fields.get("flags", "").split()
    return {
        "vendor": fields.get("vendor_id", "unknown"),
        "instructions": at_most if has_avx2 else "default",
        "torch": importlib.metadata.version("torch"),
        "threads": threads,
    }


def _processor() -> dict[str, str]:
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return {}
    lines = path.read_text().split("\n\n")[0].splitlines()
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}
