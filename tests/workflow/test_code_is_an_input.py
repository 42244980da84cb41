"""An edit reruns what depends on it and nothing else; an edit during a run is refused."""

from __future__ import annotations

import shutil

from waiting import wait_for

EWC = "workflow/palimpsest/methods/ewc.py"
LOSS = "return strength * quadratic.penalty(context, *remembered)"
OTHER_LOSS = "return quadratic.penalty(context, *remembered) * strength"


def _times(project) -> dict[str, int]:
    return {
        str(path.relative_to(project.study)): path.stat().st_mtime_ns
        for path in sorted(project.study.glob("runs/*/*/stage-*.json"))
    }


def test_editing_one_method_reruns_its_runs_alone(copy_of_finished) -> None:
    """After an edit of ewc.py the runs of replay+ewc are trained again, and no other."""
    project = copy_of_finished
    before = _times(project)
    project.edit(EWC, LOSS, OTHER_LOSS)
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    changed = {name.split("/")[1] for name, when in _times(project).items() if before[name] != when}
    assert changed == {"replay+ewc"}


def test_an_edit_is_found_without_snakemakes_notes(copy_of_finished) -> None:
    """A restored folder has no metadata of earlier runs; the recorded program tells what has to be made again."""
    project = copy_of_finished
    shutil.rmtree(project.root / ".snakemake")
    before = _times(project)
    project.edit(EWC, LOSS, OTHER_LOSS)
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    changed = {name.split("/")[1] for name, when in _times(project).items() if before[name] != when}
    assert changed == {"replay+ewc"}


def test_comments_docstrings_and_new_methods_rerun_nothing(copy_of_finished) -> None:
    """What changes no program changes no result."""
    project = copy_of_finished
    project.edit(EWC, '"""No task is remembered."""', '"""At first no task is remembered."""  # or so')
    project.edit("workflow/palimpsest/training/loop.py", '"""One optimizer step;', '"""A step of the optimizer;')
    (project.root / "workflow/palimpsest/methods/another.py").write_text("REFERENCE = 'a method that no study names'\n")
    done = project.snakemake()
    assert "Nothing to be done" in done.stdout + done.stderr, done.stdout + done.stderr


def test_an_edit_during_a_run_is_refused(clone, tmp_path) -> None:
    """A job whose program changed since the run began fails and says so; the next run takes the edit up."""
    project = clone(tmp_path / "project")
    process = project.start("--cores", "1")
    wait_for(project.study / "plan/code/replay+ewc.json", process)
    project.edit(EWC, LOSS, OTHER_LOSS)
    output, _ = process.communicate()
    assert process.returncode != 0
    assert "the program changed after this workflow run began" in output
    assert "palimpsest.methods.ewc" in output
    again = project.snakemake()
    assert again.returncode == 0, again.stdout + again.stderr
    assert (project.study / "report/index.html").is_file()
