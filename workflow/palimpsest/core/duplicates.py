"""Which inputs of a study are copies of one another, byte for byte or nearly.

Two inputs are near duplicates where d(a, b)² ≤ 1/50 · min(contrast(a), contrast(b)). d is the Euclidean distance of
their pixels in 16 levels, the contrast of an input the sum of its squared deviations from its mean level. Among inputs
of equal mean and contrast this is a correlation of at least 0.99. What was moved, turned or mirrored is not found.

Everything is whole numbers that float32 holds exactly, so that any machine finds the same pairs. Sums of 2 × 2 pixels
give a lower bound of the distance, and their norms one that needs no product: most pairs are excluded by these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from palimpsest.core.hashing import hash_bytes

PER = 50
"""A near duplicate's squared distance is at most the contrast divided by this."""
LEVEL_BITS = 4
BLOCK = 1024
_POOL = 2
_ROWS_AT_ONCE = 4096
# So that no sum of three of them leaves the whole numbers of float32.
_EXACT_IN_FLOAT32 = 2**22


def exact_groups(stored: np.ndarray) -> np.ndarray:
    """For each stored input the first one with the same bytes, `[n]` int64."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(hash_bytes(row.tobytes()), number) for number, row in enumerate(stored)], int)


def near_pairs(stored: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of near duplicates, each once, some at a time; memory grows with the number of inputs alone.

    Args:
        stored: inputs that differ from one another, `[n, height, width]` or with colours, uint8.
    """
    levels = np.concatenate([_levels(stored[at : at + _ROWS_AT_ONCE]) for at in range(0, len(stored), _ROWS_AT_ONCE)])
    flat = levels.reshape(len(levels), -1)
    n_pixels = flat.shape[1]
    pooled = np.concatenate([_pooled(levels[at : at + _ROWS_AT_ONCE]) for at in range(0, len(levels), _ROWS_AT_ONCE)])
    squares = np.einsum("ij,ij->i", pooled, pooled, dtype=np.float64)
    assert squares.max(initial=0) < _EXACT_IN_FLOAT32, "inputs too large for exact products in float32"
    norms, contrast = np.sqrt(squares), _contrast(flat)
    # By norm, inputs that may be near stand near each other: the others are never multiplied.
    order = np.argsort(norms, kind="stable")
    pooled, squares, norms = pooled[order], squares[order].astype(np.float32), norms[order]
    # d² of pooled sums ≤ pool² · d², and the contrast is in units of 1 / n_pixels.
    reach = (_POOL**2 * contrast[order] // (PER * n_pixels) + 1).astype(np.float32)
    for start in range(0, len(order), BLOCK):
        here = slice(start, start + BLOCK)
        furthest = norms[here].max() + np.sqrt(reach[here].max())
        for other in range(start, int(np.searchsorted(norms, furthest, "right")), BLOCK):
            there = slice(other, other + BLOCK)
            distances = pooled[here] @ pooled[there].T
            distances *= -2
            distances += squares[here, None] - reach[here, None]
            distances += squares[None, there]
            rows, columns = np.nonzero(distances <= 0)
            once = start + rows < other + columns
            yield from _verified(flat, contrast, order[start + rows[once]], order[other + columns[once]])


def _levels(inputs: np.ndarray) -> np.ndarray:
    """Inputs `[n, height, width, colours]` in 16 levels."""
    return (inputs >> (8 - LEVEL_BITS)).reshape(*inputs.shape[:3], -1)


def _pooled(levels: np.ndarray) -> np.ndarray:
    """Sums of 2 × 2 pixels, `[n, …]` float32; what is missing at the edge counts as black."""
    odd = [(0, 0), *((0, size % _POOL) for size in levels.shape[1:3]), (0, 0)]
    n, height, width, colours = (padded := np.pad(levels, odd)).shape
    blocks = padded.reshape(n, height // _POOL, _POOL, width // _POOL, _POOL, colours)
    return blocks.sum(axis=(2, 4), dtype=np.uint16).reshape(n, -1).astype(np.float32)


def _contrast(flat: np.ndarray) -> np.ndarray:
    """Sum of squared deviations from the mean, times the number of pixels: a whole number, `[n]` int64."""
    parts = [flat[at : at + _ROWS_AT_ONCE].astype(np.int64) for at in range(0, len(flat), _ROWS_AT_ONCE)]
    return np.concatenate([flat.shape[1] * (part**2).sum(axis=1) - part.sum(axis=1) ** 2 for part in parts])


def _verified(
    flat: np.ndarray, contrast: np.ndarray, a: np.ndarray, b: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for at in range(0, len(a), _ROWS_AT_ONCE):
        left, right = a[at : at + _ROWS_AT_ONCE], b[at : at + _ROWS_AT_ONCE]
        distance = ((flat[left].astype(np.int32) - flat[right]) ** 2).sum(axis=1, dtype=np.int64)
        near = PER * flat.shape[1] * distance <= np.minimum(contrast[left], contrast[right])
        if near.any():
            yield left[near], right[near]
