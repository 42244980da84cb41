"""Canonical JSON and hashes."""

from __future__ import annotations

import hashlib
import json

import pytest

from palimpsest.core.hashing import canonical_json, hash_file, hash_json


def test_the_example_of_the_standard():
    """RFC 8785, section 3.2: numbers in the shortest form, minimal escapes, sorted keys, no blanks."""
    text = r"""{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"""
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical_json(json.loads(text)) == expected.encode()


def test_keys_are_sorted_by_utf16():
    """RFC 8785, section 3.2.3: keys are sorted by UTF-16 code units, so the emoji comes before U+FB33."""
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    expected = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical_json(dict.fromkeys(keys, 0)))) == expected


def test_the_order_of_keys_does_not_matter():
    """Two dicts with the same content have the same hash, however they were filled."""
    assert hash_json({"a": 1, "b": {"c": 2, "d": 3}}) == hash_json({"b": {"d": 3, "c": 2}, "a": 1})


def test_true_is_not_one():
    """Content that Python takes for equal and JSON does not has different hashes."""
    assert len({hash_json(content) for content in ([1], [True], ["1"], [None])}) == 4


@pytest.mark.parametrize("content", [float("nan"), float("inf"), 2**53 + 1])
def test_what_json_cannot_say_is_refused(content):
    """NaN, infinity and integers that a double cannot hold raise ValueError."""
    with pytest.raises(ValueError, match=r"."):
        canonical_json([content])


def test_a_file_is_hashed_whole(tmp_path):
    """The hash of a file larger than one piece of reading is that of its bytes."""
    content = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(content)
    assert hash_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()
