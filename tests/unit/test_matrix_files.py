"""Accuracy matrices from files that others wrote: what is read, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from palimpsest.core.errors import MatrixError
from palimpsest.metrics._files import read_matrices, read_values

MATRIX = [[0.9, None], [0.7, 0.8]]
NUMBERS = np.array(MATRIX, dtype=float)
LONG = [
    {"run": "a", "stage": 1, "task": "x", "value": 0.9},
    {"run": "a", "stage": 2, "task": "x", "value": 0.7},
    {"run": "a", "stage": 2, "task": "y", "value": 0.8},
]


def write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    if isinstance(content, np.ndarray):
        np.save(path, content, allow_pickle=True)
    elif isinstance(content, pa.Table):
        pq.write_table(content, path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


PLAIN = {
    "plain.csv": "0.9,\n0.7,0.8\n",
    "named.csv": "x,y\n0.9,nan\n0.7,0.8\n",
    "semicolons.csv": "0.9;\n0.7;0.8\n",
    "byte order mark.csv": "\ufeff0.9,NA\n0.7,0.8\n",
    "plain.json": MATRIX,
    "plain.npy": NUMBERS,
    "plain.parquet": pa.table({"x": [0.9, 0.7], "y": [None, 0.8]}),
    "long.csv": "run,stage,task,value\na,1,x,0.9\na,2,x,0.7\na,2,y,0.8\n",
    "long.json": LONG,
    "columns.json": {key: [row[key] for row in LONG] for key in LONG[0]},
    "long.parquet": pa.Table.from_pylist(LONG),
    "shuffled.json": [LONG[1], LONG[0], LONG[2]],
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_matrix_is_read_whatever_its_file(tmp_path: Path, name: str) -> None:
    (matrix,) = read_matrices(write(tmp_path, name, PLAIN[name]))
    np.testing.assert_array_equal(matrix.accuracy, NUMBERS)


def test_percent_is_divided_by_a_hundred_when_the_user_says_so(tmp_path: Path) -> None:
    (matrix,) = read_matrices(write(tmp_path, "m.csv", "90,\n70,80\n"), percent=True)
    np.testing.assert_allclose(matrix.accuracy, NUMBERS)


def test_a_file_may_hold_many_matrices(tmp_path: Path) -> None:
    stack = write(tmp_path, "stack.npy", np.stack([NUMBERS, NUMBERS / 2]))
    assert [matrix.name for matrix in read_matrices(stack)] == ["stack[0]", "stack[1]"]
    rows = LONG + [{**row, "run": "b", "value": 0.5} for row in LONG]
    matrices = read_matrices(write(tmp_path, "many.json", rows))
    assert [matrix.name for matrix in matrices] == ["a", "b"]
    assert matrices[1].accuracy[1, 1] == 0.5


def test_numbers_order_the_tasks_and_names_keep_the_order_of_the_file(tmp_path: Path) -> None:
    rows = [{"stage": k, "task": str(j), "value": 0.1 * j} for k in (1, 2) for j in (10, 9)]
    (matrix,) = read_matrices(write(tmp_path, "m.json", rows))
    assert matrix.tasks == ("9", "10")
    rows = [{"stage": k, "task": j, "value": 0.5} for k in (1, 2) for j in "zy"]
    (matrix,) = read_matrices(write(tmp_path, "m.json", rows))
    assert matrix.tasks == ("z", "y")


def test_the_trained_task_of_each_stage_decides_the_order(tmp_path: Path) -> None:
    rows = [
        {"stage": k, "task": j, "value": 0.5, "trained_task": trained}
        for k, trained in ((1, "y"), (2, "z"))
        for j in "zy"
    ]
    (matrix,) = read_matrices(write(tmp_path, "m.json", rows))
    assert matrix.tasks == ("y", "z")


def test_method_and_unit_name_a_run_and_are_kept(tmp_path: Path) -> None:
    (matrix,) = read_matrices(write(tmp_path, "m.csv", "method,unit,stage,task,value\ner,s0-o1,1,x,0.5\n"))
    assert (matrix.name, matrix.about) == ("er/s0-o1", {"method": "er", "unit": "s0-o1"})


BAD = {
    "a ragged row": ("m.csv", "0.9,0.1\n0.7\n", "row 2", "2 cells"),
    "a ragged row in long form": ("m.csv", "stage,task,value\n1,x\n", "row 2", "3 cells"),
    "not square": ("m.csv", "0.9,0.8,0.7\n0.7,0.8,0.9\n", "row 1", "2 cells"),
    "text": ("m.csv", "0.9,\n0.7,good\n", "row 2, column 2", "'good'"),
    "text below a header": ("m.csv", "x,y\n0.9,\n0.7,good\n", "row 3, column 2", "'good'"),
    "text in long form": ("m.csv", "stage,task,value\n1,x,good\n", "row 2, column value", "'good'"),
    "percent": ("m.csv", "90,\n70,80\n", "row 1, column 1", "--percent"),
    "negative": ("m.csv", "-0.1,\n0.7,0.8\n", "row 1, column 1", "-0.1"),
    "infinite": ("m.csv", "inf,\n0.7,0.8\n", "row 1, column 1", "inf"),
    "missing below the diagonal": ("m.csv", "0.9,\n,0.8\n", "row 2, column 1", "a[2,1]"),
    "missing on the diagonal": ("m.json", [[0.9, 0.5], [0.7, None]], "row 2, column 2", "a[2,2]"),
    "a row absent in long form": ("m.json", [LONG[0], LONG[2]], "run a, stage 2, task x", "a[2,1]"),
    "a cell twice": ("m.json", [*LONG, LONG[1]], "row 4", "row 2 has one"),
    "an unknown column": ("m.csv", "stage,task,value,epoch\n1,x,0.5,3\n", "m.csv", "'epoch' is unknown"),
    "a missing column": ("m.csv", "stage,task\n1,x\n", "m.csv", "'value' is missing"),
    "a column twice": ("m.csv", "stage,task,value,value\n1,x,0.5,0.6\n", "m.csv", "'value' stands there twice"),
    "an unknown column in JSON": ("m.json", [{**LONG[0], "loss": 1}], "row 1", "'loss' is unknown"),
    "rows of two kinds": ("m.json", [LONG[0], [0.5]], "row 2", "named columns"),
    "columns of two lengths": ("m.json", {"stage": [1, 2], "task": ["x"], "value": [1]}, "m.json", "one length"),
    "a number": ("m.json", 3, "m.json", "a list of rows"),
    "a list": ("m.json", [0.5, 0.6], "row 1", "a list of numbers"),
    "no stage": ("m.csv", "stage,task,value\n0,x,0.5\n", "row 2, column stage", "'0'"),
    "half a stage": ("m.csv", "stage,task,value\n1.5,x,0.5\n", "row 2, column stage", "'1.5'"),
    "a nameless task": ("m.csv", "stage,task,value\n1,,0.5\n", "row 2, column task", "a name"),
    "more stages than tasks": ("m.csv", "stage,task,value\n1,x,0.5\n2,x,0.5\n", "row 3, column stage", "1 to 1"),
    "a task named twice": ("m.csv", "x,x\n0.9,\n0.7,0.8\n", "row 1", "another name"),
    "an order that is no order": (
        "m.csv",
        "stage,task,value,trained_task\n1,x,0.5,x\n2,x,0.5,x\n2,y,0.5,x\n",
        "column trained_task",
        "x at 2",
    ),
    "a run of two methods": (
        "m.csv",
        "run,method,stage,task,value\na,er,1,x,0.5\na,ft,2,x,0.5\n",
        "row 3",
        "as in the first row",
    ),
    "empty": ("m.csv", "", "m.csv", "at least one row"),
    "only a header": ("m.csv", "stage,task,value\n", "m.csv", "at least one row"),
    "an empty list": ("m.json", [], "m.json", "at least one row"),
    "no JSON": ("m.json", "{", "m.json", "JSON"),
    "no text": ("m.csv", b"\xff\xfe\x00", "m.csv", "UTF-8"),
    "no Parquet": ("m.parquet", b"PAR1", "m.parquet", "a table"),
    "no array": ("m.npy", b"x", "m.npy", "an array of numbers"),
    "objects": ("m.npy", np.array([{}]), "m.npy", "an array of numbers"),
    "texts": ("m.npy", np.array([["a"]]), "m.npy", "numbers along"),
    "another kind": ("m.xlsx", b"", "m.xlsx", ".csv, .json"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, case: str) -> None:
    name, content, where, said = BAD[case]
    with pytest.raises(MatrixError) as error:
        read_matrices(write(tmp_path, name, content))
    assert where in error.value.where
    assert said in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="no such file"):
        read_matrices(tmp_path / "m.csv")


@pytest.mark.parametrize("content", ["0.5,0.6\n", "0.5\n0.6\n"])
def test_references_are_numbers_in_a_row_or_a_column(tmp_path: Path, content: str) -> None:
    np.testing.assert_array_equal(read_values(write(tmp_path, "r.csv", content)), [0.5, 0.6])


def test_a_reference_may_be_a_square_table(tmp_path: Path) -> None:
    assert read_values(write(tmp_path, "r.json", [[0.5, 0.1], [0.6, 0.7]])).shape == (2, 2)
    assert read_values(write(tmp_path, "r.json", [0.5, 0.6])).shape == (2,)
    with pytest.raises(MatrixError, match="given as numbers"):
        read_values(write(tmp_path, "r.json", LONG))
