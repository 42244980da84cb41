rule plan_code:
    output:
        f"{STUDY}/plan/code/{{program}}.json",
    log:
        f"{STUDY}/telemetry/logs/plan_code/{{program}}.log",
    params:
        study=study.study,
        program=lambda wildcards: PROGRAMS[wildcards.program],
    shell:
        "palimpsest stage plan_code --study results/{params.study} --code plan/code/{wildcards.program}.json"
        " --program {params.program:q} > {log} 2>&1"


rule plan:
    input:
        code=f"{STUDY}/plan/code/rules/plan.json",
        lock=lock_path(STUDY_FILE),
    output:
        f"{STUDY}/plan/lock.json",
        f"{STUDY}/plan/units.parquet",
        f"{STUDY}/plan/runs.parquet",
    log:
        f"{STUDY}/telemetry/logs/plan.log",
    # First, so that `palimpsest status` knows the plan.
    priority: 1
    params:
        study=study.study,
        plan=grid.plan["hash"],
    shell:
        "palimpsest stage plan --study results/{params.study} --code plan/code/rules/plan.json --lock {input.lock:q} > {log} 2>&1"
