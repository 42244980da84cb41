"""YAML as the study file is read."""

from __future__ import annotations

import pytest

from palimpsest.core.errors import StudyError
from palimpsest.plan.yaml_file import read_yaml


def read(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    return read_yaml(path)


def test_a_key_that_stands_twice_is_refused(tmp_path):
    """The error names the second line and the first."""
    with pytest.raises(StudyError, match="'x' stands twice") as error:
        read(tmp_path, "a:\n  x: 1\n  y: 2\n  x: 3\n")
    assert error.value.where.endswith("a.yaml:4 a.x")
    assert error.value.got == "a first one in line 2"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 0.001), ("1E5", 1e5), ("-2.5e+3", -2500.0), (".5", 0.5), ("3.", 3.0), ("7", 7), ("-7", -7), ("1e", "1e")],
)
def test_numbers_are_those_of_yaml_1_2(tmp_path, text, value):
    """`1e-3` is a number, unlike in YAML 1.1; an integer stays one."""
    found = read(tmp_path, f"a: {text}\n").content["a"]
    assert (found, type(found)) == (value, type(value))


def test_every_field_knows_its_line(tmp_path):
    """Lines are counted from 1, in lists and nested mappings too; an absent field has the line of what is there."""
    file = read(tmp_path, "# head\na:\n  b: 1\n  c:\n    - x: 1\n    - x: 2\n")
    places = {("a",): 2, ("a", "b"): 3, ("a", "c", 0): 5, ("a", "c", 1, "x"): 6, ("a", "absent"): 2}
    for place, line in places.items():
        assert file.where(place).startswith(f"{file.path}:{line} ")
    assert file.where(("a", "c", 1, "x")).endswith("a.c.1.x")


@pytest.mark.parametrize(
    "text",
    [
        *("a: [1\n", "a: 1\n b: 2\n", "a: !!python/object:os.system {}\n", "a: !unknown 1\n", "a: 2020-13-45\n"),
        *("? [1, 2]\n: x\n", "a: &a [*a]\n", "a: 1\n---\nb: 1\n", "a: \x01\n"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(tmp_path, text):
    """Broken YAML, tags, impossible dates, keys that are lists, and structures that hold themselves are our errors."""
    with pytest.raises(StudyError):
        read(tmp_path, text)


def test_text_in_another_encoding_is_refused(tmp_path):
    """A file that is not UTF-8 is our error."""
    (tmp_path / "a.yaml").write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(StudyError, match="not YAML"):
        read_yaml(tmp_path / "a.yaml")


def test_a_file_that_is_not_there_is_named(tmp_path):
    """A missing file is our error, with its path."""
    with pytest.raises(StudyError, match="cannot be read") as error:
        read_yaml(tmp_path / "absent.yaml")
    assert error.value.where == str(tmp_path / "absent.yaml")


def test_an_empty_file_has_no_content(tmp_path):
    """An empty file reads as nothing."""
    assert read(tmp_path, "").content is None
