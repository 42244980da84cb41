"""Which tasks each stage trains on, and from which stage it starts: three tasks by hand."""

from __future__ import annotations

import pytest

from palimpsest.plan.schedule import SCHEDULES, stages

ORDER = ["b", "a", "c"]
BY_HAND = {
    ("sequential", None): [(1, "b", ["b"], None), (2, "a", ["a"], 1), (3, "c", ["c"], 2)],
    ("cumulative", None): [(1, "b", ["b"], None), (2, "b+a", ["b", "a"], 1), (3, "b+a+c", ["b", "a", "c"], 2)],
    ("joint", "final"): [(3, "b+a+c", ["b", "a", "c"], None)],
    ("joint", "per_stage"): [(1, "b", ["b"], None), (2, "b+a", ["b", "a"], None), (3, "b+a+c", ["b", "a", "c"], None)],
    ("isolated", None): [(1, "b", ["b"], None), (2, "a", ["a"], None), (3, "c", ["c"], None)],
    ("untrained", None): [(0, None, [], None)],
}


@pytest.mark.parametrize(("schedule", "joint"), BY_HAND)
def test_each_schedule(schedule, joint):
    """Stage number, name, tasks and parent of every stage are those worked out by hand; each is the first visit."""
    expected = [
        {"stage": number, "task": name, "tasks": tasks, "visit": 1, "parent": parent}
        for number, name, tasks, parent in BY_HAND[schedule, joint]
    ]
    assert stages(schedule, ORDER, joint) == expected


def test_every_schedule_is_worked_by_hand():
    """No schedule is left out above."""
    assert {schedule for schedule, _ in BY_HAND} == set(SCHEDULES)


def test_a_task_that_comes_back_is_visited_again():
    """A repeated task has the visits 1 and 2, and the one between them its own first."""
    assert [stage["visit"] for stage in stages("sequential", ["a", "b", "a", "a"])] == [1, 1, 2, 3]


def test_one_task_is_one_stage():
    """A sequence of one task starts from fresh weights and ends there."""
    assert [(s["stage"], s["parent"]) for s in stages("sequential", ["a"])] == [(1, None)]
