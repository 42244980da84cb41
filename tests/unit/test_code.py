"""Hashes of programs, on a package in miniature."""

from __future__ import annotations

import pytest

from palimpsest.core import code
from palimpsest.core.errors import CodeChangedError

FILES = {
    "__init__.py": '"""The package."""\n',
    "core.py": '"""Core."""\n\n\ndef f(x):\n    """Doc."""\n    # why\n    return x + 1\n',
    "entry.py": "from palimpsest.core import f\n\n\ndef main():\n    import palimpsest.deep.inner as i\n    i.g(f)\n",
    "deep/__init__.py": "",
    "deep/inner.py": "import palimpsest.other\n\n\ndef g(f):\n    return f\n",
    "other.py": "x = 1\n",
    "methods/__init__.py": "",
    "methods/ewc.py": "strength = 1\n",
    "methods/replay.py": "size = 1\n",
    "report/__init__.py": "",
    "report/page.py": "y = 1\n",
    "report/page.html.j2": "<p>",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of the package; the hashes are computed over it."""
    folder = tmp_path / "workflow" / "palimpsest"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    lock = tmp_path / "requirements.lock"
    lock.write_text("# made by a tool\nnumpy==2.0 # why\n")
    monkeypatch.setattr(code, "PACKAGE", folder)
    monkeypatch.setattr(code, "ENVIRONMENT_LOCK", lock)
    forget()
    yield folder
    forget()


def forget():
    code._read.cache_clear()
    code.environment_hash.cache_clear()


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    forget()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# why", "# because"),
        ('"""Doc."""', '"""Another text."""'),
        ('    """Doc."""\n', ""),
        ("return x + 1", "return (x  +  1)"),
    ],
)
def test_comments_docstrings_and_blanks_do_not_count(package, old, new):
    """An edit that changes nothing of what runs keeps the hash."""
    before = code.program("palimpsest.entry")["code"]
    edit(package / "core.py", old, new)
    assert code.program("palimpsest.entry")["code"] == before


def test_an_edit_of_code_counts(package):
    """An edit of a statement in an imported module gives another hash."""
    before = code.program("palimpsest.entry")["code"]
    edit(package / "core.py", "x + 1", "x + 2")
    assert code.program("palimpsest.entry")["code"] != before


def test_a_string_that_is_no_docstring_counts(package):
    """A text that the program uses is part of it."""
    before = code.program("palimpsest.other")["code"]
    edit(package / "other.py", "x = 1", "x = 'text'")
    middle = code.program("palimpsest.other")["code"]
    edit(package / "other.py", "'text'", "'texts'")
    assert len({before, middle, code.program("palimpsest.other")["code"]}) == 3


def test_the_closure_follows_imports_inside_functions(package):
    """The files are the entry point and all that it imports, in functions and through other modules, with packages."""
    assert code.program("palimpsest.entry")["files"].keys() == {
        *("palimpsest", "palimpsest.entry", "palimpsest.core", "palimpsest.deep", "palimpsest.deep.inner"),
        "palimpsest.other",
    }


def test_only_the_named_method_counts(package):
    """A module found by name belongs to the program that names it, and to no other."""
    ewc = code.program("palimpsest.entry", ["palimpsest.methods.ewc"])
    replay = code.program("palimpsest.entry", ["palimpsest.methods.replay"])
    edit(package / "methods" / "ewc.py", "strength = 1", "strength = 2")
    assert code.program("palimpsest.entry", ["palimpsest.methods.ewc"])["code"] != ewc["code"]
    assert code.program("palimpsest.entry", ["palimpsest.methods.replay"])["code"] == replay["code"]


def test_a_template_beside_a_module_counts(package):
    """A file that is no Python, beside a module of the closure, belongs to the program."""
    before = code.program("palimpsest.report.page")
    assert "palimpsest/report/page.html.j2" in before["files"]
    edit(package / "report" / "page.html.j2", "<p>", "<b>")
    assert code.program("palimpsest.report.page")["code"] != before["code"]


def test_the_recorded_program_may_run(package):
    """A program that is as it was recorded is not refused."""
    code.require(code.program("palimpsest.entry"), "palimpsest.entry")


def test_a_changed_file_is_named(package):
    """A program that was edited after it was recorded is refused; the error names the edited file and no other."""
    recorded = code.program("palimpsest.entry")
    path = package / "other.py"
    path.write_text("x = 2\n")  # without `forget`: it must be read afresh
    with pytest.raises(CodeChangedError) as error:
        code.require(recorded, "palimpsest.entry")
    assert error.value.where == "palimpsest.other"


def test_a_new_import_is_named(package):
    """A module that was not there when the program was recorded is named too."""
    recorded = code.program("palimpsest.other")
    (package / "other.py").write_text("import palimpsest.core\nx = 1\n")
    with pytest.raises(CodeChangedError) as error:
        code.require(recorded, "palimpsest.other")
    assert error.value.where == "palimpsest.core, palimpsest.other"


def test_another_environment_is_refused(package):
    """Another version of a locked package stops the program; another comment does not."""
    recorded = code.program("palimpsest.entry")
    edit(code.ENVIRONMENT_LOCK, "# why", "# because")
    code.require(recorded, "palimpsest.entry")
    edit(code.ENVIRONMENT_LOCK, "numpy==2.0", "numpy==2.1")
    with pytest.raises(CodeChangedError, match="after this workflow run began") as error:
        code.require(recorded, "palimpsest.entry")
    assert error.value.where == "requirements.lock"
