rule statistics:
    input:
        code=f"{STUDY}/plan/code/rules/statistics.json",
        units=f"{STUDY}/plan/units.parquet",
        tables=[f"{STUDY}/aggregate/{table}.parquet" for table in ("metrics", "summary", "costs", "failures")],
    output:
        f"{STUDY}/statistics/comparisons.parquet",
        f"{STUDY}/statistics/orders.parquet",
        f"{STUDY}/statistics/decisions.parquet",
    log:
        f"{STUDY}/telemetry/logs/statistics.log",
    params:
        study=study.study,
        analysis=lambda wildcards: grid.analysis,
        marks=lambda wildcards: history.marks(),
    shell:
        "palimpsest stage statistics --study results/{params.study} --code plan/code/rules/statistics.json"
        " --analysis {params.analysis:q} --marks {params.marks:q} > {log} 2>&1"
