# The study, its grid of runs, and the program of every rule: read once, when the workflow is parsed.

import json
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from palimpsest.cli.history import History, require_hooks
from palimpsest.core.errors import PalimpsestError
from palimpsest.plan.lock import lock_path
from palimpsest.plan.open import forget_what_is_stale, one_workflow_at_a_time, open_study, study_file

# Who only asks is let through while a workflow runs, and changes nothing. Snakemake does not tell it at this point.
QUERIES = {"-n", "--dry-run", "--dryrun", "--lint", "--list", "--list-rules", "--summary", "--detailed-summary"}
QUERIES |= {"--dag", "--rulegraph", "--filegraph", "--d3dag", "--report", "--unlock", "--list-input-changes"}

try:
    STUDY_FILE = study_file(
        workflow.configfiles, workflow.config_settings.config, Path(workflow.basedir) / "config" / "demo.yaml"
    )
    study, grid = open_study(STUDY_FILE)
    STUDY = f"results/{study.study}"
    PROGRAMS = grid.programs()
    history = History(STUDY_FILE, Path(STUDY), grid.plan, PROGRAMS)
    if workflow.is_main_process and not QUERIES.intersection(sys.argv):
        require_hooks(sys.argv)
        HELD = one_workflow_at_a_time(Path(STUDY))
        forget_what_is_stale(Path(STUDY), lock_path(STUDY_FILE), grid, PROGRAMS)
        history.keep()
except (PalimpsestError, OSError) as error:
    raise WorkflowError(str(error)) from None

BATCHES = grid.batches(study.execution.runs_per_job)


wildcard_constraints:
    method="|".join(re.escape(method) for method in grid.methods),
    program=r"[a-z0-9_.+/-]+",
