"""Two studies in one folder."""

from __future__ import annotations

from project import Project


def test_two_studies_in_one_folder_do_not_disturb_each_other(finished, clone, tmp_path) -> None:
    """Run at the same time from one folder, both end; the first one in the bytes that it has alone."""
    project = clone(tmp_path / "project")
    other = Project(project.root, "other")
    text = (project.root / "config/small.yaml").read_text()
    (project.root / "config/other.yaml").write_text(text.replace("study: small", "study: other", 1))
    locked = project.run("palimpsest", "lock", "config/other.yaml")
    assert locked.returncode == 0, locked.stderr
    process = other.start()
    first = project.snakemake()
    output, _ = process.communicate()
    assert first.returncode == 0, first.stdout + first.stderr
    assert process.returncode == 0, output
    assert project.hashes() == finished.hashes()
    assert other.hashes().keys() == project.hashes().keys()
