"""The `palimpsest` command: finds the sub-commands by their file names and turns our errors into messages."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from palimpsest.core.catalog import Catalog
from palimpsest.core.errors import EnvironmentLacksError, PalimpsestError

COMMANDS = Catalog("palimpsest.cli.commands", "command")
STAGES = Catalog("palimpsest.cli.stages", "stage")
# What training, its data and the workflow need, and the environment of the analysis has not.
FULL_ENVIRONMENT = ("torch", "safetensors", "mlxtend", "snakemake")


def main() -> None:
    """Run the command line; exit with 1 after an error that the user can act on."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal that cannot show a dash is no reason to fail
    try:
        _app()(standalone_mode=True)
    except PalimpsestError as error:
        _fail(error)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        print(f"palimpsest: the system says: {error.strerror or error}{place}", file=sys.stderr)
        print(
            "  next:     mend it (space, permissions, path) and start again; nothing is half-written", file=sys.stderr
        )
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name not in FULL_ENVIRONMENT:
            raise
        _fail(
            EnvironmentLacksError(
                "this command does not work in the environment of the analysis",
                where=" ".join(["palimpsest", *sys.argv[1:2]]),
                expected=f"the package {error.name}, which the whole environment has",
                got="an environment without it",
                next="run it by envs/run palimpsest …, without --env analysis",
            )
        )
    except (MemoryError, RuntimeError, ImportError) as error:
        if not _is_lack_of_memory(error):
            raise
        told = (str(error) or type(error).__name__).splitlines()[0]
        print(f"palimpsest: memory ran out: {told}", file=sys.stderr)
        print(
            "  next:     give the job more memory, or a smaller model or batch; it goes on from where it was",
            file=sys.stderr,
        )
        sys.exit(1)


def _is_lack_of_memory(error: BaseException) -> bool:
    """Python, PyTorch and the loader of its libraries each say it in their own way."""
    told = ("can't allocate memory", "CUDA out of memory", "failed to map segment")
    return isinstance(error, MemoryError) or any(text in str(error) for text in told)


def _fail(error: PalimpsestError) -> NoReturn:
    print(f"palimpsest: {error}", file=sys.stderr)
    sys.exit(1)


def _app() -> typer.Typer:
    app = typer.Typer(
        name="palimpsest", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__
    )
    app.callback()(_describe)
    for name in COMMANDS.names():
        app.command(name.replace("_", "-"))(COMMANDS.load(name, "the command line").command)
    stages = typer.Typer(no_args_is_help=True, help="One step of the workflow, as its rules call it.")
    for name in STAGES.names():
        stages.command(name)(STAGES.load(name, "the command line").command)
    app.add_typer(stages, name="stage")
    return app


def _describe() -> None:
    """Preregistered continual-learning studies whose every number can be traced back."""
