"""What published programs compute, written down apart from ours, against the metric that is said to be the same.

The formulas are facts read in the places that the facts name (`ELSEWHERE` in each metric's file); no code of these
programs is in here. A matrix is given as a list of rows, as most of them keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from palimpsest.core.streams import generator
from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import Elsewhere, Inputs
from palimpsest.metrics._describe import facts
from palimpsest.metrics._evaluate import declaration, missing, values

Matrix = list[list[float]]


@dataclass(frozen=True)
class Run:
    """A random run: its matrix `a`, an untrained model `b`, numbers of test samples `n`, curves, joint models."""

    a: Matrix
    b: list[float]
    n: list[int]
    curves: Matrix
    joint: list[float]

    @property
    def tasks(self) -> range:
        return range(len(self.a))


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def drops(run: Run, stages: Callable[[int], range], tasks: range) -> list[float]:
    """Best accuracy over some stages minus the last one, for some tasks; 0 stands for what was not measured."""
    a = np.nan_to_num(run.a)
    return [max(a[k][j] for k in stages(j)) - a[-1][j] for j in tasks]


def differences(run: Run) -> list[float]:
    return [run.a[-1][j] - run.a[j][j] for j in run.tasks[:-1]]


def transfers(run: Run) -> list[float]:
    return [run.a[j - 1][j] - run.b[j] for j in run.tasks[1:]]


def seen_cells(run: Run) -> list[float]:
    return [run.a[k][j] for k in run.tasks for j in range(k + 1)]


def below(run: Run) -> list[float]:
    return [run.a[k][j] for k in run.tasks for j in range(k)]


def above(run: Run) -> list[float]:
    return [run.a[k][j] for k in run.tasks for j in run.tasks[k + 1 :]]


def pooled(run: Run, k: int, tasks: range) -> float:
    return sum(run.n[j] * run.a[k][j] for j in tasks) / sum(run.n[j] for j in tasks)


def continuum_backward(run: Run) -> float:
    n = len(run.a)
    return sum(run.a[i][j] - run.a[j][j] for i in range(1, n) for j in range(i - 1)) / (n * (n - 1) / 2)


def continuum_forgetting(run: Run) -> float:
    n = len(run.a)
    return sum(drops(run, lambda j: range(j, n - 2), range(n - 2))) / (n - 1)


FORMULAS: dict[tuple[str, str], Callable[[Run], object]] = {
    ("A-GEM", "ACC (average_acc_stats_across_runs)"): lambda run: mean(run.a[-1]),
    ("A-GEM", "compute_fgt"): lambda run: mean(drops(run, lambda j: run.tasks[:-1], run.tasks[:-1])),
    ("A-GEM", "Z_b"): lambda run: [mean([curve[b] for curve in run.curves]) for b in range(len(run.curves[0]))],
    ("A-GEM", "LCA_β"): lambda run: [
        sum(mean([curve[b] for curve in run.curves]) for b in range(beta + 1)) / (beta + 1)
        for beta in range(len(run.curves[0]))
    ],
    ("Avalanche", "StreamBWT"): lambda run: mean(differences(run)),
    ("Avalanche", "StreamForgetting"): lambda run: mean([run.a[j][j] - run.a[-1][j] for j in run.tasks[:-1]]),
    ("Avalanche", "StreamForwardTransfer"): lambda run: mean(transfers(run)),
    ("Avalanche", "Top1_Acc_Stream"): lambda run: pooled(run, -1, run.tasks),
    ("CLEAR", "accuracy"): lambda run: mean(seen_cells(run)),
    ("CLEAR", "in_domain"): lambda run: mean([run.a[j][j] for j in run.tasks]),
    ("CLEAR", "next_domain"): lambda run: mean([run.a[j - 1][j] for j in run.tasks[1:]]),
    ("CLEAR", "backward_transfer"): lambda run: mean(below(run)),
    ("CLEAR", "forward_transfer"): lambda run: mean(above(run)),
    ("Continuum", "accuracy"): lambda run: pooled(run, -1, run.tasks),
    ("Continuum", "accuracy_A"): lambda run: mean(seen_cells(run)),
    ("Continuum", "average_incremental_accuracy"): lambda run: mean([pooled(run, k, range(k + 1)) for k in run.tasks]),
    ("Continuum", "backward_transfer"): continuum_backward,
    ("Continuum", "remembering"): lambda run: max(0.0, continuum_backward(run)),
    ("Continuum", "positive_backward_transfer"): lambda run: 1 - abs(min(0.0, continuum_backward(run))),
    ("Continuum", "forward_transfer"): lambda run: mean(below(run)),
    ("Continuum", "forgetting"): continuum_forgetting,
    ("FACIL", "avg_accs_tag, avg_accs_taw"): lambda run: [
        sum(np.nan_to_num(run.a)[k][j] for j in range(k + 1)) / (k + 1) for k in run.tasks
    ],
    ("FACIL", "forg_tag, forg_taw (last row)"): lambda run: mean(
        drops(run, lambda j: range(j, len(run.a) - 1), run.tasks[:-1])
    ),
    ("GEM", "Final Accuracy"): lambda run: mean(run.a[-1]),
    ("GEM", "Backward"): lambda run: mean([run.a[-1][j] - run.a[j][j] for j in run.tasks]),
    ("GEM", "Forward"): lambda run: mean([0.0, *transfers(run)]),
    ("Mammoth", "backward_transfer"): lambda run: mean(differences(run)),
    ("Mammoth", "forward_transfer"): lambda run: mean(transfers(run)),
    ("Mammoth", "forgetting"): lambda run: mean(drops(run, lambda j: run.tasks, run.tasks[:-1])),
    ("RWalk", "F_k"): lambda run: mean(drops(run, lambda j: run.tasks[:-1], run.tasks[:-1])),
    ("RWalk", "I_k"): lambda run: [run.joint[k] - run.a[k][k] for k in run.tasks],
    ("van de Ven", "average (accuracy over contexts so far)"): lambda run: [mean(run.a[k][: k + 1]) for k in run.tasks],
    ("van de Ven", "BWT"): lambda run: mean(differences(run)),
    ("van de Ven", "FWT"): lambda run: mean(transfers(run)),
    ("van de Ven", "F"): lambda run: mean(drops(run, lambda j: run.tasks[:-1], run.tasks[:-1])),
}
FACTS = {(fact.program, fact.name): fact for _, fact in facts()}
# The same values only where the remark says: matrices without the cells above the diagonal, tasks of equal size.
ONLY_WITHOUT_CELLS_ABOVE = {("Mammoth", "forgetting")}
ONLY_WITH_EQUAL_SIZES = {("Continuum", "average_incremental_accuracy")}

every_fact = pytest.mark.parametrize("key", FORMULAS, ids=lambda key: f"{key[0]}: {key[1]}")


def random_run(n_tasks: int, *key: int, equal_sizes: bool = False, only_seen: bool = False) -> Run:
    draw = generator("tests", "conformance", n_tasks, *key)
    a = draw.random((n_tasks, n_tasks))
    if only_seen:
        a[np.triu_indices(n_tasks, 1)] = np.nan
    n = [100] * n_tasks if equal_sizes else draw.integers(1, 1000, n_tasks).tolist()
    curves, b, joint = draw.random((n_tasks, 4)), draw.random(n_tasks), draw.random(n_tasks)
    return Run(a.tolist(), b.tolist(), n, curves.tolist(), joint.tolist())


def inputs(run: Run) -> Inputs:
    return Inputs(
        accuracy=np.array(run.a),
        protocol="task_incremental",
        n_total=np.array(run.n, dtype=float),
        random_init=np.array(run.b),
        joint_at_k=np.array(run.joint),
        batches=np.arange(len(run.curves[0])),
        after_batches=np.array(run.curves),
    )


def ours(fact: Elsewhere, run: Run) -> np.ndarray:
    n_tasks = len(run.a)
    factor = {"1": 1.0, "-1": -1.0, "(T-1)/T": (n_tasks - 1) / n_tasks}[fact.factor]
    return factor * values(fact.ours, inputs(run))


def test_every_fact_has_a_formula_here_and_every_formula_a_fact() -> None:
    """Otherwise the page of definitions would state what nobody checked."""
    assert FORMULAS.keys() == FACTS.keys()
    assert len(FACTS) == len(facts())


@every_fact
@pytest.mark.parametrize("n_tasks", [2, 3, 5, 8])
def test_a_formula_has_the_values_of_the_metric_that_it_is_said_to_equal(key: tuple[str, str], n_tasks: int) -> None:
    fact = FACTS[key]
    for draw in range(5):
        run = random_run(
            n_tasks, draw, equal_sizes=key in ONLY_WITH_EQUAL_SIZES, only_seen=key in ONLY_WITHOUT_CELLS_ABOVE
        )
        if fact.ours:
            assert FORMULAS[key](run) == pytest.approx(ours(fact, run), abs=1e-12)


@every_fact
def test_without_cells_above_the_diagonal_a_formula_agrees_where_ours_is_defined(key: tuple[str, str]) -> None:
    fact = FACTS[key]
    run = random_run(5, 9, equal_sizes=key in ONLY_WITH_EQUAL_SIZES, only_seen=True)
    if fact.ours and missing(fact.ours, inputs(run)) == [None] * np.size(ours(fact, run)):
        assert FORMULAS[key](run) == pytest.approx(ours(fact, run), abs=1e-12)


@every_fact
def test_a_formula_of_which_it_is_said_that_none_of_ours_equals_it_equals_none(key: tuple[str, str]) -> None:
    run = random_run(5, 3)
    if not FACTS[key].ours:
        others = [name for name in METRICS.names() if declaration(name).index is None]
        assert not [name for name in others if np.isclose(abs(values(name, inputs(run))), abs(FORMULAS[key](run)))]


@pytest.mark.parametrize("key", sorted(ONLY_WITHOUT_CELLS_ABOVE | ONLY_WITH_EQUAL_SIZES))
def test_a_condition_in_a_remark_is_one(key: tuple[str, str]) -> None:
    """On whole matrices with tasks of other sizes these formulas depart."""
    run = random_run(5, 4)
    assert FORMULAS[key](run) != pytest.approx(ours(FACTS[key], run), abs=1e-3)


# One matrix on which they all differ; worked by hand. Rows: stages, columns: tasks.
WORKED = Run(
    [[0.8, 0.95, 0.2], [0.9, 0.9, 0.3], [0.95, 0.7, 0.9]], [0.1, 0.2, 0.3], [100, 100, 200], [[0.5]] * 3, [1.0] * 3
)


@pytest.mark.parametrize(
    ("key", "theirs", "metric", "of_ours"),
    [
        # (0.95 − 0.8 + 0.7 − 0.9)/2 = −0.025; the mean over three tasks with the third as 0 is two thirds of it.
        (("GEM", "Backward"), -0.05 / 3, "backward_transfer", -0.025),
        # (0.95 − 0.2 + 0.3 − 0.3)/2 = 0.375, and two thirds of it.
        (("GEM", "Forward"), 0.25, "forward_transfer_random_init", 0.375),
        # Maximum before the end: (0.9 − 0.95 + 0.95 − 0.7)/2 = 0.1; since the task itself: 0.025.
        (("Avalanche", "StreamForgetting"), 0.025, "forgetting", 0.1),
        # The maximum of task 1 includes the end: 0; that of task 2 includes stage 1: 0.25.
        (("Mammoth", "forgetting"), 0.125, "forgetting", 0.1),
        # Tasks count from their own stage on: (0.9 − 0.95 + 0.9 − 0.7)/2.
        (("FACIL", "forg_tag, forg_taw (last row)"), 0.075, "forgetting", 0.1),
        # Task 1 alone, stage 1 alone: (0.8 − 0.95)/2.
        (("Continuum", "forgetting"), -0.075, "forgetting", 0.1),
        # Task 1 at stage 3 alone: (0.95 − 0.8)/3.
        (("Continuum", "backward_transfer"), 0.05, "backward_transfer", -0.025),
        # Below the diagonal: (0.9 + 0.95 + 0.7)/3.
        (("Continuum", "forward_transfer"), 0.85, "forward_transfer_random_init", 0.375),
        # All six cells of tasks seen: 5.15/6; ours: (0.8 + 0.9 + 0.85)/3.
        (("Continuum", "accuracy_A"), 5.15 / 6, "average_incremental_accuracy", 0.85),
        (("CLEAR", "accuracy"), 5.15 / 6, "average_incremental_accuracy", 0.85),
        # An accuracy below the diagonal, and one above it: (0.95 + 0.2 + 0.3)/3.
        (("CLEAR", "backward_transfer"), 0.85, "backward_transfer", -0.025),
        (("CLEAR", "forward_transfer"), 1.45 / 3, "forward_transfer_random_init", 0.375),
        # Stage 3 by samples: (95 + 70 + 180)/400 = 0.8625, not 0.85.
        (("Continuum", "average_incremental_accuracy"), (0.8 + 0.9 + 0.8625) / 3, "average_incremental_accuracy", 0.85),
    ],
)
def test_a_difference_worked_by_hand(key: tuple[str, str], theirs: float, metric: str, of_ours: float) -> None:
    assert FORMULAS[key](WORKED) == pytest.approx(theirs, abs=1e-12)
    assert values(metric, inputs(WORKED)) == pytest.approx(of_ours, abs=1e-12)
