"""Checkpoints: nested dicts of tensors and plain values as one safetensors file, without pickle.

Tensors lie in the file under their path in the nesting (`model/head.weight`). All else, and the shape of the nesting,
stands as canonical JSON in the one metadata key `lineage`, beside where the checkpoint came from; several keys would be
written in random order. Numbers that canonical JSON would not give back as they are (NaN, infinity, and 1.0, which it
writes as 1) are stored as tensors.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save

from palimpsest.core.artifact import Job
from palimpsest.core.hashing import canonical_json

_TENSOR, _NUMBER = "$tensor", "$number"
_MEASURED = {"loss", "learning_rate", "gradient_norm", "loss_sum"}


def write_checkpoint(job: Job, path: str, content: dict[str, Any]) -> str:
    """Write a checkpoint with the job's lineage; returns the SHA-256 of the file."""
    return job.write_bytes(path, encode(content, job.lineage()), kind="checkpoint")


def read_checkpoint(job: Job, path: str) -> dict[str, Any]:
    """Content of a checkpoint, after its hash was compared with its record."""
    return decode(job.locate(path))


def encode(content: dict[str, Any], lineage: dict[str, Any]) -> bytes:
    """Bytes of a checkpoint: the same content and lineage give the same bytes."""
    tensors: dict[str, torch.Tensor] = {}
    skeleton = _take_out_tensors(content, "", tensors)
    return save(tensors, metadata={"lineage": canonical_json({**lineage, "content": skeleton}).decode()})


def decode(path: Path) -> dict[str, Any]:
    """Content of a checkpoint file. Every tensor is a copy in memory of its own, aligned as PyTorch aligns."""
    with safe_open(path, framework="pt") as file:
        skeleton = json.loads(file.metadata()["lineage"])["content"]
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - not a dict
    return _put_in_tensors(skeleton, tensors)


def tensors_of(columns: dict[str, list[Any]]) -> dict[str, torch.Tensor]:
    """Columns of numbers as tensors, for a resume file: int64, or float64 for those that hold measured values."""
    return {
        name: torch.tensor(values, dtype=torch.float64 if name in _MEASURED else torch.int64)
        for name, values in columns.items()
    }


def lists_of(tensors: dict[str, torch.Tensor]) -> dict[str, list[Any]]:
    """The columns again."""
    return {name: values.tolist() for name, values in tensors.items()}


def _take_out_tensors(value: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        tensors[path] = value.detach().contiguous().clone()
        return {_TENSOR: path}
    if isinstance(value, float) and (not math.isfinite(value) or value.is_integer()):
        tensors[path] = torch.tensor(value, dtype=torch.float64)
        return {_NUMBER: path}
    if isinstance(value, dict):
        plain = all(isinstance(key, str) and "/" not in key for key in value)
        assert plain, f"keys of {path or 'the checkpoint'} must be text without a slash"
        return {key: _take_out_tensors(item, f"{path}/{key}".lstrip("/"), tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_take_out_tensors(item, f"{path}/{index}", tensors) for index, item in enumerate(value)]
    assert value is None or isinstance(value, bool | int | float | str), f"{path} holds a {type(value).__name__}"
    return value


def _put_in_tensors(skeleton: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(skeleton, list):
        return [_put_in_tensors(item, tensors) for item in skeleton]
    if not isinstance(skeleton, dict):
        return skeleton
    if skeleton.keys() == {_TENSOR}:
        return tensors[skeleton[_TENSOR]]
    if skeleton.keys() == {_NUMBER}:
        return float(tensors[skeleton[_NUMBER]])
    return {key: _put_in_tensors(item, tensors) for key, item in skeleton.items()}
