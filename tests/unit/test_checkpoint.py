"""Checkpoints: what goes in comes out, and the bytes are always the same."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest
import torch

from palimpsest.core.artifact import Job
from palimpsest.core.errors import ArtifactError
from palimpsest.training.checkpoint import decode, encode, read_checkpoint, write_checkpoint

CONTENT = {
    "model": {
        "w": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "empty": torch.zeros(0, 4),
        "step": torch.tensor(3),
    },
    "bytes": torch.tensor([1, 255], dtype=torch.uint8),
    "half": torch.tensor([1.5], dtype=torch.bfloat16),
    "truth": torch.tensor([True, False]),
    "whole": 2**40,
    "number": 0.1,
    "whole float": 1.0,
    "none": None,
    "flag": True,
    "text": "$tensor",
    "nothing": {},
    "list": [1, 2.5, [], {"inner": torch.ones(1)}, None],
}


def there_and_back(tmp_path, content):
    (tmp_path / "c").write_bytes(encode(content, {"rule": "test"}))
    return decode(tmp_path / "c")


def same(first, second) -> bool:
    """Equal in type, shape and value, all the way down."""
    if type(first) is not type(second):
        return False
    if isinstance(first, torch.Tensor):
        return (first.dtype, first.shape) == (second.dtype, second.shape) and torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(same(*pair) for pair in zip(first, second, strict=True))
    return first == second


def test_nested_content_comes_back(tmp_path):
    """Tensors of every kind, 0-d and empty ones, numbers, truths, texts, nulls and lists come back as they were."""
    assert same(there_and_back(tmp_path, CONTENT), CONTENT)


def test_numbers_that_json_cannot_say_come_back(tmp_path):
    """NaN and the two infinities come back as plain numbers, in dicts and in lists."""
    back = there_and_back(tmp_path, {"a": math.nan, "b": [math.inf, -math.inf], "c": {"d": math.inf}})
    assert math.isnan(back["a"])
    assert (back["b"], back["c"]) == ([math.inf, -math.inf], {"d": math.inf})
    assert type(back["a"]) is type(back["b"][0]) is float


def test_the_sign_of_zero_comes_back(tmp_path):
    """-0.0 comes back as -0.0."""
    assert math.copysign(1, there_and_back(tmp_path, {"zero": -0.0})["zero"]) == -1


def test_tensors_that_share_memory_come_back_apart(tmp_path):
    """Two views of one tensor are stored each, and are independent afterwards."""
    whole = torch.arange(4.0)
    back = there_and_back(tmp_path, {"a": whole[:2], "b": whole, "c": whole.reshape(2, 2).T})
    back["b"][0] = 9
    assert back["a"].tolist() == [0, 1]
    assert back["c"].tolist() == [[0, 2], [1, 3]]


def test_names_do_not_clash(tmp_path):
    """A dotted name does not run together with a nesting; one with a slash, which would, is refused."""
    content = {"a.b": torch.ones(1), "a": {"b": torch.zeros(1)}, "x": {"y.z": torch.ones(2)}}
    assert same(there_and_back(tmp_path, content), content)
    with pytest.raises(AssertionError, match="without a slash"):
        encode({"a/b": torch.ones(1), "a": {"b": torch.zeros(1)}}, {})


def test_adam_comes_back(tmp_path):
    """The state of Adam, its step counter among it, continues from a checkpoint to the same weights."""
    from palimpsest.training.learner import COUNTERS, Learner, _optimizer_content

    def made():
        model = torch.nn.Linear(3, 2)
        torch.nn.init.ones_(model.weight)
        torch.nn.init.zeros_(model.bias)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        return model, optimizer

    def step(model, optimizer, number):
        optimizer.zero_grad()
        model(torch.arange(3.0) + number).square().sum().backward()
        optimizer.step()

    model, optimizer = made()
    for number in range(3):
        step(model, optimizer, number)
    content = {
        "model": model.state_dict(),
        "optimizer": _optimizer_content(optimizer, model),
        "method": {},
        "sampler": {"epoch": 0, "batch": 0},
        "counters": {name: torch.tensor(3) for name in COUNTERS},
    }
    restored, fresh = made()
    Learner(restored, fresh, None).begin_from(there_and_back(tmp_path, content), with_optimizer=True)
    for number in range(3, 5):
        step(model, optimizer, number)
        step(restored, fresh, number)
    assert restored.weight.tolist() == model.weight.tolist()


def test_two_encodings_are_the_same(tmp_path):
    """The same content gives the same bytes, whatever the order in which its tensors were made."""
    reverse = dict(reversed(CONTENT.items()))
    assert encode(CONTENT, {"b": 1, "a": 2}) == encode(reverse, {"a": 2, "b": 1})


def test_two_processes_write_the_same_bytes():
    """Two processes with other hash seeds write the same checkpoint."""
    program = """
import hashlib, torch
from palimpsest.training.checkpoint import encode
names = list({f"p{n}" for n in range(20)})  # a set: in another order for another hash seed
content = {"model": {n: torch.full((3,), float(n[1:])) for n in names}, "nan": float("nan"), "x": None}
print(hashlib.sha256(encode(content, {"rule": "t"})).hexdigest())
"""

    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        for seed in "12"
    ]
    first, second = (run.communicate(timeout=60)[0] for run in runs)
    assert first == second
    assert len(first.strip()) == 64


@pytest.mark.parametrize("value", [(1, 2), {1: 2}, {1, 2}, object()])
def test_other_content_is_refused(value):
    """A tuple, a set, an object or a key that is no text would not come back as it was: refused."""
    with pytest.raises(AssertionError, match="inner"):
        encode({"inner": value}, {})


def test_a_checkpoint_holds_no_pickle(tmp_path):
    """The file begins with its length and a JSON header whose only metadata key is `lineage`."""
    content = encode(CONTENT, {"rule": "test"})
    length = int.from_bytes(content[:8], "little")
    assert list(json.loads(content[8 : 8 + length])["__metadata__"]) == ["lineage"]


def test_loaded_tensors_are_copies(tmp_path):
    """A tensor that was read may be changed; the file stays as it was."""
    job = Job(tmp_path, "train", "c", "e")
    write_checkpoint(job, "a.safetensors", {"w": torch.zeros(3)})
    before = (tmp_path / "a.safetensors").read_bytes()
    read_checkpoint(job, "a.safetensors")["w"].fill_(1)
    assert (tmp_path / "a.safetensors").read_bytes() == before


def test_loaded_tensors_are_aligned(tmp_path):
    """Tensors behind others of odd sizes lie where torch would put them: elsewhere, sums come out in another order."""
    content = {f"t{n}": torch.zeros(n, dtype=torch.uint8) for n in (1, 3, 5, 7)} | {
        "w": torch.ones(9),
        "x": torch.ones(2),
    }
    back = there_and_back(tmp_path, content)
    assert {tensor.data_ptr() % 64 for tensor in back.values()} == {0}


def test_a_flipped_bit_is_found_on_reading(tmp_path):
    """A checkpoint that changed is refused before anything of it is used."""
    job = Job(tmp_path, "train", "c", "e")
    write_checkpoint(job, "a.safetensors", {"w": torch.zeros(3)})
    content = bytearray((tmp_path / "a.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(ArtifactError, match="not the one that was written"):
        read_checkpoint(job, "a.safetensors")
