"""Task orders of a study, and how well they balance positions and neighbours."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from palimpsest.core.errors import StudyError
from palimpsest.core.streams import generator
from palimpsest.plan.study import Orders

Order = list[str]
CANONICAL = "canonical"
MAX_ENUMERATED_TASKS = 7
MAX_STRATIFIED = 5040


def task_orders(
    orders: Orders, tasks: Sequence[str], where: str, temporal: Sequence[str] | None = None
) -> dict[str, Order]:
    """The orders of a study by id, `o0`, `o1`, …

    Args:
        orders: the section of the study file.
        tasks: the task ids in the benchmark's canonical order.
        where: the section's place, for errors.
        temporal: the tasks in the order in which their data came about, where the benchmark declares it.

    Raises:
        StudyError: an explicit order is no permutation of the tasks or stands twice, more orders are asked for than
            there are, the benchmark declares no temporal order, or a table of similarities lacks a pair, names
            another task or is not symmetric.
    """
    made = {
        "canonical": lambda: [list(tasks)],
        "explicit": lambda: _explicit(orders, tasks, where),
        "random": lambda: _random(orders, tasks, where),
        "enumerate": lambda: _enumerate(tasks, where),
        "balanced": lambda: _balanced(orders, tasks, where),
        "temporal": lambda: _temporal(temporal, tasks, where),
        "stratified": lambda: _stratified(orders, tasks, where),
    }[orders.kind]()
    return {f"o{index}": order for index, order in enumerate(made)}


def williams_square(n_tasks: int) -> list[list[int]]:
    """Rows of task indices that balance positions and first-order neighbours.

    Every task stands in every position equally often, and every ordered pair of tasks is adjacent equally often. An
    even number of tasks needs T rows, an odd one 2T; the first T rows always balance the positions.

    Reference: E. J. Williams, Experimental designs balanced for the estimation of residual effects of treatments,
    Australian Journal of Scientific Research A 2 (1949) 149-168.

    >>> williams_square(4)
    [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]
    """
    first = [(position + 1) // 2 if position % 2 else -(position // 2) for position in range(n_tasks)]
    square = [[(start + step) % n_tasks for step in first] for start in range(n_tasks)]
    return square if n_tasks % 2 == 0 else square + [row[::-1] for row in square]


def balance(orders: Sequence[Order]) -> dict[str, dict[str, int]]:
    """How often each task stands in each position (`t1@2`) and each pair is adjacent (`t1>t2`)."""
    positions = Counter(f"{task}@{position}" for order in orders for position, task in enumerate(order, start=1))
    neighbours = Counter(f"{a}>{b}" for order in orders for a, b in itertools.pairwise(order))
    return {"positions": dict(sorted(positions.items())), "neighbours": dict(sorted(neighbours.items()))}


def describe_balance(orders: Sequence[Order], similarity: Mapping[str, Mapping[str, float]] | None = None) -> str:
    """The balance in one line, for the terminal and the report; with a table of similarities also what they span."""
    n_tasks = len(orders[0])
    counts = balance(orders)
    positions, neighbours = (list(counts[kind].values()) for kind in ("positions", "neighbours"))
    unseen = n_tasks * (n_tasks - 1) - len(neighbours)
    return (
        f"{len(orders)} orders of {n_tasks} tasks: each task in each position "
        f"{_span(positions, n_tasks * n_tasks - len(positions))} times, "
        f"each ordered pair of neighbours {_span(neighbours, unseen)} times"
        + (f" ({unseen} of {n_tasks * (n_tasks - 1)} pairs never)" if unseen else "")
        + (f", mean similarity of neighbours {_spread(orders, similarity)}" if similarity else "")
    )


def _spread(orders: Sequence[Order], similarity: Mapping[str, Mapping[str, float]]) -> str:
    found = sorted(neighbour_similarity(order, similarity) for order in orders)
    return f"{found[0]:.2f} to {found[-1]:.2f}"


def neighbour_similarity(order: Order, similarity: Mapping[str, Mapping[str, float]]) -> float:
    """Mean similarity of the pairs of neighbours in an order of at least two tasks, in the range of the table.

    >>> neighbour_similarity(["t1", "t3", "t2"], {"t1": {"t2": 0.9, "t3": 0.25}, "t2": {"t3": 0.75}})
    0.5
    """
    pairs = list(itertools.pairwise(order))
    return sum(_similarity(similarity, *pair) for pair in pairs) / len(pairs)


def _span(counts: Sequence[int], n_absent: int) -> str:
    if not counts:
        return "0"
    low, high = 0 if n_absent else min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _explicit(orders: Orders, tasks: Sequence[str], where: str) -> list[Order]:
    made = [list(order) for order in orders.explicit or []]
    for index, order in enumerate(made):
        if sorted(order) != sorted(tasks):
            raise _error("an order is no permutation of the tasks", f"{where}.explicit.{index}", tasks, order)
        if order in made[:index]:
            raise _error("an order stands twice", f"{where}.explicit.{index}", "each order once", order)
    if not made:
        raise _error("there is no order", f"{where}.explicit", "at least one permutation of the tasks", made)
    return made


def _random(orders: Orders, tasks: Sequence[str], where: str) -> list[Order]:
    count = _count(orders, where, _factorial(len(tasks)), f"{len(tasks)} tasks have no more orders")
    return [list(order) for order in _distinct(generator("orders", orders.seed), tasks, count)]


def _enumerate(tasks: Sequence[str], where: str) -> list[Order]:
    if len(tasks) > MAX_ENUMERATED_TASKS:
        raise _error("too many tasks to enumerate their orders", where, f"up to {MAX_ENUMERATED_TASKS} tasks", tasks)
    return [list(order) for order in itertools.permutations(tasks)]


def _balanced(orders: Orders, tasks: Sequence[str], where: str) -> list[Order]:
    square = williams_square(len(tasks))
    count = _count(orders, where, len(square), f"the Williams square of {len(tasks)} tasks has no more rows")
    return [[tasks[index] for index in row] for row in square[:count]]


def _temporal(temporal: Sequence[str] | None, tasks: Sequence[str], where: str) -> list[Order]:
    if temporal is None:
        raise _error("the benchmark declares no temporal order", f"{where}.kind", "another kind", "temporal")
    assert sorted(temporal) == sorted(tasks), "the temporal order of a benchmark is a permutation of its tasks"
    return [list(temporal)]


def _stratified(orders: Orders, tasks: Sequence[str], where: str) -> list[Order]:
    """One order from each of `count` equal parts of all orders, sorted by the similarity of their neighbours.

    Of more than seven tasks, all orders are 5,040 that are drawn. Ties are in random order.
    """
    assert orders.similarity is not None, "the study file's validation asks for a similarity"
    _check_similarity(orders.similarity, tasks, f"{where}.similarity")
    count = _count(orders, where, min(_factorial(len(tasks)), MAX_STRATIFIED), "one from each part of all orders")
    draws = generator("orders", orders.seed)
    pool = (
        [tuple(order) for order in itertools.permutations(tasks)]
        if len(tasks) <= MAX_ENUMERATED_TASKS
        else _distinct(draws, tasks, MAX_STRATIFIED)
    )
    shuffled = [list(pool[index]) for index in draws.permutation(len(pool))]
    ranked = sorted(shuffled, key=lambda order: neighbour_similarity(order, orders.similarity))
    edges = [len(ranked) * part // count for part in range(count + 1)]
    return [ranked[int(draws.integers(low, high))] for low, high in itertools.pairwise(edges)]


def _distinct(draws: np.random.Generator, tasks: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """So many orders, none twice, in the sequence in which they were drawn first."""
    made: dict[tuple[str, ...], None] = {}
    while len(made) < count:
        made[tuple(tasks[index] for index in draws.permutation(len(tasks)))] = None
    return list(made)


def _check_similarity(similarity: Mapping[str, Mapping[str, float]], tasks: Sequence[str], where: str) -> None:
    if len(tasks) < 2:
        raise _error("a single task has no neighbours", where, "at least two tasks", tasks)
    named = {task for task in similarity} | {task for row in similarity.values() for task in row}
    if not named <= set(tasks):
        raise _error("a similarity names a task that is not there", where, f"of {', '.join(tasks)}", named - set(tasks))
    for a, b in itertools.combinations(tasks, 2):
        found = {similarity[x][y] for x, y in ((a, b), (b, a)) if y in similarity.get(x, {})}
        if len(found) != 1:
            what = "two tasks have no similarity" if not found else "the table of similarities is not symmetric"
            raise _error(what, f"{where}.{a}.{b}", "one number for each pair of tasks", sorted(found) or "none")


def _similarity(similarity: Mapping[str, Mapping[str, float]], a: str, b: str) -> float:
    row = similarity.get(a, {})
    return row[b] if b in row else similarity[b][a]


def _count(orders: Orders, where: str, most: int, reason: str) -> int:
    assert orders.count is not None, "the study file's validation asks for a count"
    if orders.count > most:
        raise _error("too many orders", f"{where}.count", f"at most {most}: {reason}", orders.count)
    return orders.count


def _factorial(n: int) -> int:
    return n * _factorial(n - 1) if n > 1 else 1


def _error(what: str, where: str, expected: object, got: object) -> StudyError:
    wanted = expected if isinstance(expected, str) else "a permutation of " + ", ".join(map(str, expected))
    return StudyError(what, where=where, expected=wanted, got=str(got), next="correct design.orders in the study file")
