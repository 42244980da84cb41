"""Task orders of a study, and how well they balance positions and neighbours."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from palimpsest.core.errors import StudyError
from palimpsest.core.streams import generator
from palimpsest.plan.study import Orders

Order = list[str]
CANONICAL = "canonical"
MAX_ENUMERATED_TASKS = 7


def task_orders(orders: Orders, tasks: Sequence[str], where: str) -> dict[str, Order]:
    """The orders of a study by id, `o0`, `o1`, …

    Args:
        orders: the section of the study file.
        tasks: the task ids in the benchmark's canonical order.
        where: the section's place, for errors.

    Raises:
        StudyError: an explicit order is no permutation of the tasks or stands twice, or more orders are asked for than
            there are.
    """
    made = {
        "canonical": lambda: [list(tasks)],
        "explicit": lambda: _explicit(orders, tasks, where),
        "random": lambda: _random(orders, tasks, where),
        "enumerate": lambda: _enumerate(tasks, where),
        "balanced": lambda: _balanced(orders, tasks, where),
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


def describe_balance(orders: Sequence[Order]) -> str:
    """The balance in one line, for the terminal and the report."""
    n_tasks = len(orders[0])
    counts = balance(orders)
    positions, neighbours = (list(counts[kind].values()) for kind in ("positions", "neighbours"))
    unseen = n_tasks * (n_tasks - 1) - len(neighbours)
    return (
        f"{len(orders)} orders of {n_tasks} tasks: each task in each position "
        f"{_span(positions, n_tasks * n_tasks - len(positions))} times, "
        f"each ordered pair of neighbours {_span(neighbours, unseen)} times"
        + (f" ({unseen} of {n_tasks * (n_tasks - 1)} pairs never)" if unseen else "")
    )


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
    draws = generator("orders", orders.seed)
    made: list[Order] = []
    while len(made) < count:
        order = [tasks[index] for index in draws.permutation(len(tasks))]
        if order not in made:
            made.append(order)
    return made


def _enumerate(tasks: Sequence[str], where: str) -> list[Order]:
    if len(tasks) > MAX_ENUMERATED_TASKS:
        raise _error("too many tasks to enumerate their orders", where, f"up to {MAX_ENUMERATED_TASKS} tasks", tasks)
    return [list(order) for order in itertools.permutations(tasks)]


def _balanced(orders: Orders, tasks: Sequence[str], where: str) -> list[Order]:
    square = williams_square(len(tasks))
    count = _count(orders, where, len(square), f"the Williams square of {len(tasks)} tasks has no more rows")
    return [[tasks[index] for index in row] for row in square[:count]]


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
