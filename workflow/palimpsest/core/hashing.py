"""Canonical JSON (RFC 8785) and SHA-256: the same content gives the same hash everywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import rfc8785

from palimpsest.core.errors import PalimpsestError


def canonical_json(content: Any) -> bytes:
    """Serialise plain content (dict, list, str, int, finite float, bool, None) to its one canonical form.

    Raises:
        PalimpsestError: the content holds what JSON cannot say: NaN, infinity, an integer beyond 2**53, or half a
            character.
    """
    try:
        return rfc8785.dumps(content)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise PalimpsestError(
            "a value cannot be written as JSON",
            where="the study, or what follows from it",
            expected="finite numbers, integers up to 2**53, whole characters",
            got=str(error),
            next="correct the value in the study file",
        ) from None


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
