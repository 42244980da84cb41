# The study, its grid of runs, and the program of every rule: read once, when the workflow is parsed.

import json
import re
from pathlib import Path

from snakemake.exceptions import WorkflowError

from palimpsest.core.errors import PalimpsestError
from palimpsest.plan.lock import lock_path
from palimpsest.plan.open import forget_other_programs, one_workflow_at_a_time, open_study, study_file

try:
    STUDY_FILE = study_file(
        workflow.configfiles, workflow.config_settings.config, Path(workflow.basedir) / "config" / "demo.yaml"
    )
    study, grid = open_study(STUDY_FILE)
    STUDY = f"results/{study.study}"
    PROGRAMS = grid.programs()
    if workflow.is_main_process and not workflow.dryrun:
        HELD = one_workflow_at_a_time(Path(STUDY))
        forget_other_programs(Path(STUDY), PROGRAMS)
except PalimpsestError as error:
    raise WorkflowError(str(error)) from None

BATCHES = grid.batches(study.execution.runs_per_job)


wildcard_constraints:
    method="|".join(re.escape(method) for method in grid.methods),
    program=r"[a-z0-9_.+/-]+",
