"""A workflow that is killed is simply started again; two at once exclude each other."""

from __future__ import annotations

import os
import signal
import subprocess

from waiting import wait_for


def _kill_group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_killed_twice_and_started_again_ends_in_the_same_bytes(finished, clone, tmp_path) -> None:
    """Everything is killed at once, then Snakemake alone while its trainers live on; the end is bit-identical."""
    project = clone(tmp_path / "project")
    process = project.start()
    wait_for(project.study / "runs/finetune/s3-o0/stage-1.json", process)
    _kill_group(process)
    process = project.start()
    wait_for(project.study / "runs/replay/s3-o0/.lock", process)
    process.kill()
    done = project.snakemake()
    process.communicate()
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = finished.hashes(), project.hashes()
    assert {name for name in first | second if first.get(name) != second.get(name)} == set()


def test_two_workflows_at_once_exclude_each_other(clone, tmp_path) -> None:
    """The second one says who holds the study and leaves with an error; the first one is not disturbed."""
    project = clone(tmp_path / "project")
    process = project.start()
    wait_for(project.study / "plan/code/finetune.json", process)
    second = project.snakemake()
    assert second.returncode != 0
    assert "another workflow is working on this study" in second.stdout + second.stderr
    output, _ = process.communicate()
    assert process.returncode == 0, output


def test_a_finished_stage_is_accepted_and_not_trained_again(copy_of_finished) -> None:
    """A record that Snakemake deleted comes back from what lies beside it, checkpoint untouched."""
    project = copy_of_finished
    before = project.hashes()
    checkpoint = project.study / "runs/replay/s3-o0/stage-1.safetensors"
    when = checkpoint.stat().st_mtime_ns
    (project.study / "runs/replay/s3-o0/stage-1.json").unlink()
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkpoint.stat().st_mtime_ns == when
    assert project.hashes() == before


def test_a_run_does_not_go_on_with_other_instructions(copy_of_finished) -> None:
    """Under a cap that makes another kind of machine, a run that began without is refused; without it, it goes on."""
    project = copy_of_finished
    before = project.hashes()
    folder = project.study / "runs/replay/s3-o0"
    for name in ("stage-2.json", ".accepted/stage-2.json"):
        (folder / name).unlink()
    refused = project.snakemake(ATEN_CPU_CAPABILITY="default")
    assert refused.returncode != 0
    assert "a stage was trained on another kind of machine" in refused.stdout + refused.stderr
    assert not (folder / "stage-2.json").exists()
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.hashes() == before
