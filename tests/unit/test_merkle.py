"""The Merkle root, worked by hand."""

from __future__ import annotations

from hashlib import sha256

import pytest

from palimpsest.audit.merkle import merkle_root

HASHES = {"a": "11" * 32, "b": "22" * 32, "c": "33" * 32}
LEAVES = [sha256(b"\x00" + name.encode() + b"\x00" + content.encode()).digest() for name, content in HASHES.items()]


def node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def test_the_root_of_one_leaf_is_the_leaf() -> None:
    assert merkle_root({"a": HASHES["a"]}) == LEAVES[0].hex()


def test_the_root_of_two_leaves_joins_them() -> None:
    assert merkle_root({"a": HASHES["a"], "b": HASHES["b"]}) == node(*LEAVES[:2]).hex()


def test_the_root_of_three_leaves_has_two_on_the_left() -> None:
    assert merkle_root(HASHES) == node(node(*LEAVES[:2]), LEAVES[2]).hex()


def test_the_root_does_not_depend_on_the_order_of_insertion() -> None:
    assert merkle_root(dict(reversed(HASHES.items()))) == merkle_root(HASHES)


def test_the_root_changes_with_a_name() -> None:
    assert merkle_root({"a": "11"}) != merkle_root({"b": "11"})


def test_there_is_no_root_over_nothing() -> None:
    with pytest.raises(ValueError, match="at least one leaf"):
        merkle_root({})
