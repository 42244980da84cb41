"""Which samples of a stream a memory stores, and in whose place.

================ ==============================================================================================
name             rule
================ ==============================================================================================
`reservoir`      Vitter's algorithm R: all samples so far are stored with equal chance
`ring`           as many places for each class of each task; its last samples (Chaudhry 2019)
`ring_of_tasks`  as many places for each task; its last samples (Lopez-Paz 2017)
`class_balanced` class-balancing reservoir sampling (Chrysakis 2020): classes as equal in number as the stream
                 allows, the samples of a class with equal chance
`greedy`         greedy balancing (Prabhu 2020): a class below its share is stored, in the place of the largest
================ ==============================================================================================

A sample is offered once, at its first presentation. What a rule must remember of the stream stands in the memory.

J. S. Vitter, Random sampling with a reservoir, ACM TOMS 11 (1985) 37-57; A. Chaudhry et al., On tiny episodic memories
in continual learning, arXiv:1902.10486 (2019); D. Lopez-Paz, M. Ranzato, Gradient episodic memory for continual
learning, NeurIPS 2017; A. Chrysakis, M.-F. Moens, Online continual learning from imbalanced data, ICML 2020;
A. Prabhu, P. H. S. Torr, P. K. Dokania, GDumb, ECCV 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from palimpsest.methods import _memory as memory
from palimpsest.methods._declaration import Facts
from palimpsest.methods._hooks import Batch, Context, State

Placed = dict[int, int]
"""Row of the batch for each place; where two samples of a batch take one place, the later one stays."""


def offer(storage: str, context: Context, kept: State, batch: Batch, **extra: torch.Tensor) -> State:
    """The memory after those samples of a batch that are presented for the first time were offered to it.

    Args:
        storage: name of the rule.
        context: its stream `store` is drawn from.
        kept: the memory; its tensors are changed.
        batch: samples in the sequence in which they come.
        extra: what else is kept of them, `[batch, …]` each.
    """
    first = batch.first_presentation
    batch, extra = batch[first], {name: values[first] for name, values in extra.items()}
    if memory.places(kept) == 0 or len(batch) == 0:
        return kept
    placed, noted = RULES[storage](context, kept, batch)
    return {**memory.put(kept, placed, batch, **extra), **noted}


def n_groups(storage: str, facts: Facts) -> int:
    """Into how many parts of equal size a rule divides the memory; 1 if it does not."""
    return {"ring": sum(map(len, facts["tasks"])), "ring_of_tasks": len(facts["tasks"])}.get(storage, 1)


def _reservoir(context: Context, kept: State, batch: Batch) -> tuple[Placed, State]:
    """Sample number i of the stream takes a place with probability C / i."""
    met, places = kept.get("met", 0), memory.places(kept)
    # One number for each sample, whether it is needed or not: draws do not depend on what happened before.
    numbers = context.stream("store").integers(0, met + 1 + np.arange(len(batch)))
    filling = met + np.arange(len(batch))
    where = np.where(filling < places, filling, numbers).tolist()
    return {p: row for row, p in enumerate(where) if p < places}, {"met": met + len(batch)}


def _ring(by: str, context: Context, kept: State, batch: Batch) -> tuple[Placed, State]:
    """Each group has places of its own; when they are taken, a new sample replaces the oldest one."""
    met, stored = dict(kept.get("met", {})), kept[memory.STORED]
    share = memory.places(kept) // n_groups(by, context.facts)
    own: dict[str, list[int]] = {}
    for place, group in enumerate(_groups(by, *memory.labels_and_tasks(context, kept, memory.filled(kept)))):
        own.setdefault(group, []).append(place)
    placed: Placed = {}
    for row, group in enumerate(_groups(by, batch.labels, batch.tasks)):
        places, before = own.setdefault(group, []), met.get(group, 0)
        if before < share:
            places.append(stored)
            stored += 1
        # A group's places came in ascending sequence, so that the one of its oldest sample goes round.
        placed[places[before % share]] = row
        met[group] = before + 1
    return placed, {"met": met}


def _groups(by: str, labels: torch.Tensor, tasks: torch.Tensor) -> list[str]:
    if by == "ring_of_tasks":
        return [str(task) for task in tasks.tolist()]
    return [f"{task}:{label}" for task, label in zip(tasks.tolist(), labels.tolist(), strict=True)]


Choose = Callable[[int, np.ndarray, int, State, float], list[int] | None]
"""Of a sample's label, stored samples and samples met of each class, places and a random number: classes of which one
sample makes room if there is none; or none, if the sample is not stored."""


def _by_class(choose: Choose, context: Context, kept: State, batch: Batch) -> tuple[Placed, State]:
    """A rule that looks at classes; what is replaced is drawn from the samples that the rule names."""
    stored, places = kept[memory.STORED], memory.places(kept)
    labels = np.full(places, -1)
    labels[:stored] = kept["labels"][:stored].long().numpy()
    counts = np.bincount(labels[:stored], minlength=context.facts["n_outputs"])
    noted = {"met": dict(kept.get("met", {})), "full": dict(kept.get("full", {}))}
    # Two numbers for each sample, needed or not, as above: whether it is stored, and in whose place.
    numbers = context.stream("store").random((len(batch), 2))
    placed: Placed = {}
    for row, label in enumerate(batch.labels.tolist()):
        replaced = choose(label, counts, places, noted, numbers[row, 0])
        noted["met"][str(label)] = noted["met"].get(str(label), 0) + 1
        if replaced is None:
            continue
        if stored < places:
            place, stored = stored, stored + 1
        else:
            candidates = np.flatnonzero(np.isin(labels, replaced))
            place = int(candidates[int(numbers[row, 1] * len(candidates))])
            counts[labels[place]] -= 1
        labels[place] = label
        counts[label] += 1
        placed[place] = row
    return placed, noted


def _class_balancing(label: int, counts: np.ndarray, places: int, noted: State, number: float) -> list[int] | None:
    """A class is full from when it first is the largest of the full memory.

    A sample of a class that is not full replaces one of the largest classes; one of a full class replaces one of its
    own with probability m / n, where m of it are stored and n, with this one, have come.
    """
    if counts.sum() < places:
        return []
    largest = np.flatnonzero(counts == counts.max()).tolist()
    noted["full"].update(dict.fromkeys(map(str, largest), True))
    if str(label) not in noted["full"]:
        return largest
    came = noted["met"].get(str(label), 0) + 1
    return [label] if number <= counts[label] / came else None


def _greedy_balancing(label: int, counts: np.ndarray, places: int, noted: State, number: float) -> list[int] | None:
    """A class is stored if it is new, or has fewer samples than places divided by the number of classes so far."""
    n_classes = len(noted["met"])
    if str(label) in noted["met"] and counts[label] >= places / n_classes:
        return None
    return np.flatnonzero(counts == counts.max()).tolist()


RULES = {
    "reservoir": _reservoir,
    "ring": partial(_ring, "ring"),
    "ring_of_tasks": partial(_ring, "ring_of_tasks"),
    "class_balanced": partial(_by_class, _class_balancing),
    "greedy": partial(_by_class, _greedy_balancing),
}
