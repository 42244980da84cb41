"""Named random streams: independent generators derived from what they are for.

Nothing in Palimpsest draws from a global generator. A stream is named by what it decides and keyed by what it may
depend on, so that drawing more numbers for one purpose changes nothing for any other:

========= ============================================================ ==========================================
stream    key                                                          decides
========= ============================================================ ==========================================
init      seed, parameter name                                         the initial value of one parameter
batches   seed, task, visit, epoch                                     the order of the samples within an epoch
method    seed, order, method, task, visit, purpose and step           what a method draws (buffer, Fisher labels)
probe     seed, split, task                                            which held-out samples a probe is on
split     benchmark seed, data set, class                              which sample is for training, validation, test
tasks     benchmark seed, permutation or rotation, task                how the inputs of a task differ from the stored
bootstrap comparison, or method, protocol and task                which pairs or runs a bootstrap resamples
orders    design seed                                                  the task orders of a `random` design
========= ============================================================ ==========================================
"""

from __future__ import annotations

import hashlib

import numpy as np

from palimpsest.core.hashing import canonical_json

Key = str | int


def generator(stream: str, *key: Key) -> np.random.Generator:
    """A fresh generator for one use of a named stream.

    The same name and key always give the same numbers; any other name or key gives independent ones. The 128-bit key
    of the counter-based Philox generator is the head of SHA-256 over the canonical JSON of name and key.

    >>> bool(generator("init", 0, "weight").random() == generator("init", 0, "weight").random())
    True
    """
    digest = hashlib.sha256(canonical_json([stream, *key])).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "big")))
