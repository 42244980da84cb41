"""The directions of the layout, and who may write, execute, and see the machine: read off every source file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import palimpsest

PACKAGE = Path(palimpsest.__file__).parent
ROOT = PACKAGE.parents[1]
SHARED = ["core", "plan"]
RUNNING = ["data", "benchmarks", "models", "methods", "training", "evaluation"]
ANALYSING = ["metrics", "aggregate", "statistics", "report", "audit"]
MAY_IMPORT = {
    **{part: SHARED[: n + 1] for n, part in enumerate(SHARED)},
    **{part: SHARED + column[: n + 1] for column in (RUNNING, ANALYSING) for n, part in enumerate(column)},
    "cli": [*SHARED, *RUNNING, *ANALYSING, "cli"],
}
WITHOUT_TORCH = {*SHARED, *ANALYSING}

WRITERS = {
    "audit/archive.py": "an archive is no result: it lies beside them",
    "audit/unpack.py": "unpacks into a folder that was empty",
    "cli/analysing.py shutil.copyfile": "takes over artifacts as they are, where they cannot be linked",
    "core/artifact.py": "the one writer of results",
    "core/exclusive.py": "lock files, which hold nothing",
    "core/attempts.py": "the log of attempts: telemetry, appended to while a job runs",
    "data/write.py np.save": "encodes into memory; the bytes are written by core.artifact",
    "report/figures.py figure.savefig": "draws into memory; the bytes are written by core.artifact",
    "audit/trace/images.py picture.save": "encodes into memory; the bytes are written by core.artifact",
    "training/checkpoint.py save": "encodes into memory; the bytes are written by core.artifact",
}
CLOCK_AND_ENVIRONMENT = {
    "time",
    "datetime",
    "os.environ",
    "os.getenv",
    "os.environb",
    "sys.argv",
    "argparse",
    "getpass",
}
EXECUTES = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "torch.load", "torch.save", "torch.hub"}
SYSTEM_FILES = {"/proc/cpuinfo", "/usr/share/datasets/fashion-mnist"}
SOURCES = {str(path.relative_to(PACKAGE)): ast.parse(path.read_bytes()) for path in sorted(PACKAGE.rglob("*.py"))}


def imports(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all that a file imports, in functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def names(tree: ast.AST) -> Iterator[str]:
    """Dotted names that a file uses (`os.environ`) or imports."""
    yield from imports(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


def writes(tree: ast.AST) -> Iterator[str]:
    """Calls that write a file, or could."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        receiver, _, function = called.rpartition(".")
        if function == "open" and not receiver:
            modes = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
            if any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in modes):
                yield called
        if function == "open" and receiver and set("".join(ast.unparse(a) for a in node.args[:1])) & set("wax+"):
            yield called
        if function in {"write_bytes", "write_table", "write_json"} and not receiver.endswith(
            ("job", "self", "writer")
        ):
            yield called
        if function in {
            *("write_text", "to_parquet", "to_csv", "savefig", "save", "savez", "save_file", "tofile", "fdopen"),
            *("mkstemp", "NamedTemporaryFile", "new_file", "ParquetWriter", "writestr", "copyfile", "copytree"),
        }:
            yield called
        if called == "json.dump":
            yield called


def test_walks_the_whole_package():
    """Every folder of the package has its place in the layout."""
    assert {path.split("/")[0] for path in SOURCES if "/" in path} <= MAY_IMPORT.keys()


@pytest.mark.parametrize("path", SOURCES)
def test_imports_only_what_lies_above(path):
    """A module imports from its own part, from those above it in its column, and from core and plan."""
    if "/" not in path:
        return
    part = path.split("/")[0]
    used = {name.split(".")[1] for name in imports(SOURCES[path]) if name.startswith("palimpsest.")}
    assert used <= {*MAY_IMPORT[part], "__version__"}


@pytest.mark.parametrize("axis", ["benchmarks", "models", "methods"])
def test_entries_of_an_axis_do_not_import_one_another(axis):
    """Two methods (models, benchmarks) share only files that begin with an underscore: an edit touches its own runs."""
    for path, tree in SOURCES.items():
        if path.startswith(f"{axis}/"):
            others = {name.split(".")[2] for name in imports(tree) if name.startswith(f"palimpsest.{axis}.")}
            entries = {other for other in others if (PACKAGE / axis / f"{other}.py").is_file() and other[0] != "_"}
            assert not entries, path


@pytest.mark.parametrize("path", [path for path in SOURCES if path.split("/")[0] in WITHOUT_TORCH])
def test_plan_and_analysis_name_no_torch(path):
    """Core, plan and the analysing column do not import torch, not even in a function."""
    assert not [name for name in imports(SOURCES[path]) if name.split(".")[0] in {"torch", "safetensors"}]


@pytest.mark.parametrize("path", SOURCES)
def test_nothing_from_a_file_is_executed(path):
    """There is no pickle, no torch.load or torch.save, no eval and no exec."""
    used = {name for name in names(SOURCES[path]) if name in EXECUTES or name.split(".")[0] in EXECUTES}
    called = {
        node.func.id
        for node in ast.walk(SOURCES[path])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not used | (called & {"eval", "exec", "compile"})
    allowed = [k.value for n in ast.walk(SOURCES[path]) for k in getattr(n, "keywords", []) if k.arg == "allow_pickle"]
    assert all(isinstance(value, ast.Constant) and value.value is False for value in allowed)


@pytest.mark.parametrize("path", SOURCES)
def test_only_the_artifact_module_writes(path):
    """Files are written by core.artifact alone; each exception stands in the list with its reason."""
    found = [call for call in writes(SOURCES[path]) if path not in WRITERS and f"{path} {call}" not in WRITERS]
    assert not found


@pytest.mark.parametrize("path", [path for path in SOURCES if not path.startswith("cli/")])
def test_only_the_command_line_sees_clock_environment_and_arguments(path):
    """No module outside of cli reads the time, the environment or the arguments."""
    used = {".".join(name.split(".")[:n]) for name in names(SOURCES[path]) for n in (1, 2)}
    assert not used & CLOCK_AND_ENVIRONMENT - SLEEPERS.get(path, set())


SLEEPERS = {"core/exclusive.py": {"time"}}
"""It waits a moment for a lock, and reads no clock."""


def texts() -> Iterator[Path]:
    yield ROOT / "Snakefile"
    for folder in (PACKAGE, ROOT / "workflow" / "rules", ROOT / "workflow" / "profiles", ROOT / "config"):
        yield from (
            p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix in {".py", ".smk", ".yaml", ".json"}
        )


@pytest.mark.parametrize("path", [str(path.relative_to(ROOT)) for path in texts()])
def test_no_file_names_a_machine(path):
    """No file of the package, the rules or the studies names a place on a machine or a package registry."""
    text = (ROOT / path).read_text()
    places = re.findall(
        r"""(?<=["'\s=(])/(?:home|root|work|usr|opt|tmp|mnt|srv|data|var|etc|proc|Users)\b[\w./-]*""", text
    )
    assert set(places) <= SYSTEM_FILES
    assert not re.search(r"pypi|/simple\b|conda-forge|anaconda\.org|index-url|huggingface", text)


def modules_of(parts: set[str]) -> list[str]:
    """Dotted names of all modules of some parts."""
    paths = [Path(path) for path in SOURCES if path.split("/")[0] in parts]
    dotted = [".".join(("palimpsest", *path.with_suffix("").parts)).removesuffix(".__init__") for path in paths]
    return sorted(dotted)


def imported_together(modules: list[str]) -> str:
    """Import modules in a process of their own; says whether torch came with them."""
    program = (
        "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\nprint('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *modules], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_plan_and_analysis_run_without_torch():
    """Importing every module of core, plan and the analysing column does not bring in torch."""
    modules = modules_of(WITHOUT_TORCH)
    assert "palimpsest.plan.lock" in modules
    assert imported_together(modules) == "False"


def test_the_command_line_starts_without_torch():
    """Neither the command nor any of its stages, nor accepting and collecting stages, brings in torch."""
    stages = [
        name for name in modules_of({"cli"}) if name.startswith(("palimpsest.cli.stages", "palimpsest.cli.commands"))
    ]
    assert "palimpsest.cli.stages.train" in stages
    modules = ["palimpsest.training.stages", "palimpsest.training.collect", "palimpsest.cli.main", *stages]
    assert imported_together(modules) == "False"
