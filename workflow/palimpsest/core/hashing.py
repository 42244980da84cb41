"""Canonical JSON (RFC 8785) and SHA-256: the same content gives the same hash everywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import rfc8785


def canonical_json(content: Any) -> bytes:
    """Serialise plain content (dict, list, str, int, finite float, bool, None) to its one canonical form.

    Raises:
        ValueError: the content holds something that JSON cannot say (NaN, infinity, an integer beyond 2**53).
    """
    return rfc8785.dumps(content)


def hash_json(content: Any) -> str:
    """SHA-256 (hex) of the canonical JSON of the content."""
    return hash_bytes(canonical_json(content))


def hash_bytes(content: bytes) -> str:
    """SHA-256 (hex) of bytes."""
    return hashlib.sha256(content).hexdigest()


def hash_file(path: Path) -> str:
    """SHA-256 (hex) of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
