"""Orders of the tasks, and how they balance."""

from __future__ import annotations

import itertools

import pytest
from pydantic import ValidationError

from palimpsest.core.errors import StudyError
from palimpsest.plan.orders import balance, describe_balance, neighbour_similarity, task_orders, williams_square
from palimpsest.plan.study import Orders

T3, T4 = ["t1", "t2", "t3"], ["t1", "t2", "t3", "t4"]


def orders(tasks, **section):
    return list(task_orders(Orders(**section), tasks, "study.yaml:1 design.orders").values())


@pytest.mark.parametrize(("n_tasks", "n_rows"), [(2, 2), (3, 6), (4, 4), (5, 10), (6, 6), (7, 14)])
def test_a_williams_square_balances_positions_and_neighbours(n_tasks, n_rows):
    """T rows for an even T and 2T for an odd one: every task equally often in every position, every pair adjacent."""
    square = williams_square(n_tasks)
    assert len(square) == n_rows
    assert all(sorted(row) == list(range(n_tasks)) for row in square)
    for position in range(n_tasks):
        column = [row[position] for row in square]
        assert {column.count(task) for task in range(n_tasks)} == {n_rows // n_tasks}
    pairs = [pair for row in square for pair in itertools.pairwise(row)]
    assert {pairs.count(pair) for pair in itertools.permutations(range(n_tasks), 2)} == {n_rows // n_tasks}


def test_squares_worked_by_hand():
    """Two tasks: both orders. Three: the cyclic rows of 0 1 2 by the zigzag 0, 1, -1, and each of them reversed."""
    assert williams_square(2) == [[0, 1], [1, 0]]
    assert williams_square(3) == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 0, 2]]


@pytest.mark.parametrize("n_tasks", [3, 5, 7])
def test_the_first_rows_balance_positions(n_tasks):
    """As many orders as tasks are enough to have every task in every position once."""
    made = orders([f"t{n}" for n in range(n_tasks)], kind="balanced", count=n_tasks)
    assert set(balance(made)["positions"].values()) == {1}
    assert len(balance(made)["positions"]) == n_tasks**2


def test_canonical_is_the_benchmarks_own():
    """The kind canonical gives one order, as the benchmark lists the tasks."""
    assert orders(T3, kind="canonical") == [T3]


def test_enumerate_gives_all():
    """The kind enumerate gives every permutation once."""
    assert sorted(orders(T3, kind="enumerate")) == [list(p) for p in itertools.permutations(T3)]


def test_too_many_tasks_are_not_enumerated():
    """Eight tasks have 40,320 orders: refused."""
    with pytest.raises(StudyError, match="too many tasks"):
        orders([f"t{n}" for n in range(8)], kind="enumerate")


def test_random_orders_differ():
    """All 24 orders of four tasks are drawn, none of them twice."""
    made = orders(T4, kind="random", count=24, seed=1)
    assert sorted(map(tuple, made)) == sorted(itertools.permutations(T4))


def test_random_orders_are_a_function_of_their_seed():
    """The same seed gives the same orders, and more of them begin with the same; another seed gives others."""
    first = orders(T4, kind="random", count=6, seed=0)
    assert orders(T4, kind="random", count=8, seed=0)[:6] == first
    assert orders(T4, kind="random", count=6, seed=1) != first


@pytest.mark.parametrize(
    ("section", "most"),
    [({"kind": "random", "count": 7}, "at most 6"), ({"kind": "balanced", "count": 7}, "at most 6")],
)
def test_more_orders_than_there_are_is_refused(section, most):
    """Three tasks have six orders."""
    with pytest.raises(StudyError, match="too many orders") as error:
        orders(T3, **section)
    assert error.value.expected.startswith(most)
    assert error.value.where == "study.yaml:1 design.orders.count"


@pytest.mark.parametrize(
    ("listed", "what"),
    [
        ([["t1", "t2"]], "no permutation"),
        ([["t1", "t2", "t2"]], "no permutation"),
        ([["t1", "t2", "t4"]], "no permutation"),
        ([T3, ["t1", "t2", "t3", "t1"]], "no permutation"),
        ([T3, T3], "stands twice"),
        ([], "there is no order"),
    ],
)
def test_explicit_orders_are_permutations(listed, what):
    """An explicit order that lacks, repeats or invents a task is refused, and so is one that stands twice."""
    with pytest.raises(StudyError, match=what):
        orders(T3, kind="explicit", explicit=listed)


def test_explicit_orders_are_taken_as_they_stand():
    """The listed orders come out under o0, o1 in their own sequence."""
    listed = [["t3", "t1", "t2"], T3]
    assert task_orders(Orders(kind="explicit", explicit=listed), T3, "") == {"o0": listed[0], "o1": listed[1]}


ALIKE = {"t1": {"t2": 0.9, "t3": 0.5, "t4": 0.1}, "t2": {"t3": 0.8, "t4": 0.2}, "t3": {"t4": 0.7}}


def stratified(count=4, similarity=ALIKE, tasks=T4, **more):
    return orders(tasks, kind="stratified", count=count, similarity=similarity, **more)


def test_stratified_orders_spread_over_the_similarity_of_neighbours():
    """One order comes from each quarter of all 24, from neighbours that differ to neighbours that are alike."""
    everything = sorted(neighbour_similarity(order, ALIKE) for order in itertools.permutations(T4))
    made = [neighbour_similarity(order, ALIKE) for order in stratified()]
    for quarter, value in enumerate(made):
        assert everything[6 * quarter] <= value <= everything[6 * quarter + 5]
    assert made[0] < made[-1]


def test_as_many_stratified_orders_as_there_are_is_all_of_them():
    """Parts of one order each."""
    assert sorted(map(tuple, stratified(24))) == sorted(itertools.permutations(T4))


def test_stratified_orders_are_a_function_of_their_seed():
    """The same study gives the same orders; another seed others; a table in full gives what its half gives."""
    full = {a: {b: ALIKE.get(a, {}).get(b, ALIKE.get(b, {}).get(a)) for b in T4 if b != a} for a in T4}
    assert stratified() == stratified() == stratified(similarity=full)
    assert stratified(seed=1) != stratified()


def test_orders_of_many_tasks_are_stratified_among_drawn_ones():
    """Ten tasks have too many orders to list; similarity by distance on a line."""
    tasks = [f"t{n}" for n in range(10)]
    line = {a: {b: 1 - abs(i - j) / 10 for j, b in enumerate(tasks) if j > i} for i, a in enumerate(tasks)}
    made = stratified(5, line, tasks)
    values = [neighbour_similarity(order, line) for order in made]
    assert all(sorted(order) == tasks for order in made)
    assert values == sorted(values)
    assert values[-1] - values[0] > 0.1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"t3": {}}, "two tasks have no similarity"),
        ({"t4": {"t3": 0.6}}, "not symmetric"),
        ({"t4": {"t5": 0.6}}, "names a task that is not there"),
    ],
)
def test_a_table_that_is_no_symmetric_one_of_all_tasks_is_refused(change, what):
    """A missing pair, two numbers for one pair, an unknown task."""
    with pytest.raises(StudyError, match=what) as error:
        stratified(similarity=ALIKE | change)
    assert error.value.where.startswith("study.yaml:1 design.orders.similarity")


def test_a_table_belongs_to_stratified_orders_alone():
    """Stratified without a table, and another kind with one, are refused."""
    for section in ({"kind": "stratified", "count": 2}, {"kind": "canonical", "similarity": ALIKE}):
        with pytest.raises(ValidationError, match="similarity"):
            Orders(**section)


def test_temporal_is_the_order_that_the_benchmark_declares():
    """One order, not the canonical one."""
    made = task_orders(Orders(kind="temporal"), T3, "here", ["t2", "t3", "t1"])
    assert made == {"o0": ["t2", "t3", "t1"]}


def test_temporal_is_refused_where_the_benchmark_declares_none():
    """Split digits did not come about in an order."""
    with pytest.raises(StudyError, match="declares no temporal order"):
        orders(T3, kind="temporal")


def test_the_balance_of_stratified_orders_tells_what_they_span():
    """The line ends with the least and the greatest mean similarity of neighbours."""
    line = describe_balance([["t1", "t2", "t3", "t4"], ["t2", "t4", "t1", "t3"]], ALIKE)
    assert line.endswith("mean similarity of neighbours 0.27 to 0.80")


def test_balance_counts_positions_and_neighbours():
    """Two orders of three tasks, counted by hand."""
    counts = balance([["a", "b", "c"], ["b", "a", "c"]])
    assert counts["positions"] == {"a@1": 1, "a@2": 1, "b@1": 1, "b@2": 1, "c@3": 2}
    assert counts["neighbours"] == {"a>b": 1, "a>c": 1, "b>a": 1, "b>c": 1}


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ([T3], "each task in each position 0 to 1 times, each ordered pair of neighbours 0 to 1 times (4 of 6 pairs"),
        (orders(T4, kind="balanced", count=4), "each position 1 times, each ordered pair of neighbours 1 times"),
        (orders(T3, kind="balanced", count=6), "each position 2 times, each ordered pair of neighbours 2 times"),
        ([["t1"]], "1 orders of 1 tasks: each task in each position 1 times, each ordered pair of neighbours 0 times"),
    ],
)
def test_balance_is_told_in_one_line(made, text):
    """The line gives the least and the greatest count, absent positions and pairs as 0."""
    assert text in describe_balance(made)
