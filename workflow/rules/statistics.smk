rule statistics:
    input:
        code=f"{STUDY}/plan/code/rules/statistics.json",
        units=f"{STUDY}/plan/units.parquet",
        metrics=f"{STUDY}/aggregate/metrics.parquet",
    output:
        f"{STUDY}/statistics/comparisons.parquet",
        f"{STUDY}/statistics/orders.parquet",
    log:
        f"{STUDY}/telemetry/logs/statistics.log",
    params:
        study=study.study,
        analysis=lambda wildcards: grid.analysis,
    shell:
        "palimpsest stage statistics --study results/{params.study} --code plan/code/rules/statistics.json"
        " --analysis {params.analysis:q} > {log} 2>&1"
