# A preregistered continual-learning study, from its locked plan to its report. See README.md.


include: "workflow/rules/common.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/metrics.smk"
include: "workflow/rules/aggregate.smk"
include: "workflow/rules/statistics.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/report.smk"


onstart:
    # The journal says so before anything is evaluated on test data.
    history.note(file for job in workflow.dag.needrun_jobs() for file in job.output)


rule all:
    default_target: True
    input:
        # All that is declared: what is removed is made again, although the report is there.
        rules.plan.output,
        rules.data.output,
        rules.manifest.output,
        rules.aggregate.output,
        rules.statistics.output,
        rules.audit.output,
        rules.report.output,
        [f"{STUDY}/{path}" for path in grid.run_files()],
        [f"{STUDY}/plan/code/{program}.json" for program in PROGRAMS],
