"""Merkle tree hash as in RFC 6962, section 2.1: one number that stands for a whole list."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence


def merkle_root(content_hashes: Mapping[str, str]) -> str:
    """Root (hex) over named content hashes, in the order of their names.

    A leaf is SHA-256(0x00 ‖ name ‖ 0x00 ‖ content hash in hex, all UTF-8); an inner node is
    SHA-256(0x01 ‖ left ‖ right), where the left subtree takes the largest power of two of the leaves that leaves
    something for the right one.

    Args:
        content_hashes: hash of the content (hex) by name.

    Raises:
        ValueError: there is nothing to hash.
    """
    if not content_hashes:
        raise ValueError("a Merkle root needs at least one leaf")
    return _root([_leaf(name, content) for name, content in sorted(content_hashes.items())]).hex()


def _leaf(name: str, content_hash: str) -> bytes:
    return hashlib.sha256(b"\x00" + name.encode() + b"\x00" + content_hash.encode()).digest()


def _root(leaves: Sequence[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    left = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + _root(leaves[:left]) + _root(leaves[left:])).digest()
