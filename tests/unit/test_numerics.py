"""What a training process is told before it imports torch, as torch itself says afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json
from palimpsest.cli.numerics import pin_numerics
kind = pin_numerics(1)
import torch
in_use = torch.backends.cpu.get_cpu_capability().lower()
print(json.dumps([kind["instructions"], in_use, torch.get_num_threads()]))
"""


def pinned(**variables: str) -> list[str | int]:
    environment = {**os.environ, **variables}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("capability", ["avx512", "avx2", "nonsense"])
def test_neither_threads_nor_newer_instructions_come_from_outside(capability: str) -> None:
    found = pinned(ATEN_CPU_CAPABILITY=capability, ONEDNN_MAX_CPU_ISA="AVX512_CORE", OMP_NUM_THREADS="7")
    assert found[0] == found[1], "the kind names the instructions that torch uses"
    assert found == pinned(), "and a variable does not change them"
    assert found[2] == 1


def test_a_lower_cap_makes_another_kind_of_machine() -> None:
    assert pinned(ATEN_CPU_CAPABILITY="default") == ["default", "default", 1]
