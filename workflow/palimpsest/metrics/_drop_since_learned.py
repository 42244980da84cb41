"""The loss on each task that two variants of forgetting average."""

from __future__ import annotations

import numpy as np


def drop_since_learned(accuracy: np.ndarray) -> np.ndarray:
    """max_{j≤l<T} a[l, j] − a[T, j] for every j < T, `[..., T − 1]`, in [−1, 1]; rows before task j do not count."""
    earlier = accuracy[..., :-1, :-1]
    since_learned = np.tri(earlier.shape[-1], dtype=bool)
    return np.where(since_learned, earlier, -np.inf).max(axis=-2) - accuracy[..., -1, :-1]
